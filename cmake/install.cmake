# The shared library, the public headers, a CMake package and a pkg-config file.
if(NOT TARGET optireduce)
  return()
endif()
include(CMakePackageConfigHelpers)

install(TARGETS optireduce EXPORT optireduce LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY lib/include/optireduce collectives/include/optireduce
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/optireduce)
install(EXPORT optireduce NAMESPACE optireduce:: FILE optireduce-targets.cmake
        DESTINATION ${package_dir})
configure_package_config_file(cmake/optireduce-config.cmake.in optireduce-config.cmake
                              INSTALL_DESTINATION ${package_dir})
# 0.x: a minor version may break what the one before it promised.
write_basic_package_version_file(optireduce-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/optireduce-config.cmake"
              "${PROJECT_BINARY_DIR}/optireduce-config-version.cmake" DESTINATION ${package_dir})

configure_file(optireduce.pc.in optireduce.pc.half @ONLY)
# The prefix is known only at install time (cmake --install --prefix).
install(CODE "set(OPTIREDUCE_PC_IN \"${PROJECT_BINARY_DIR}/optireduce.pc.half\")
set(OPTIREDUCE_PC_DIR \"${CMAKE_INSTALL_LIBDIR}/pkgconfig\")")
install(SCRIPT cmake/install_pkgconfig.cmake)
