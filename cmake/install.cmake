# Both libraries, the public headers, a CMake package and a pkg-config file. Nothing in them says
# where they lie: an installation may be moved.
if(NOT TARGET optireduce)
  return()
endif()
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/optireduce)
install(TARGETS optireduce EXPORT optireduce LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT optireduce NAMESPACE optireduce:: FILE optireduce-targets.cmake
        DESTINATION ${package_dir})
# A set of its own: its users need the libraries below it, those of the shared one do not.
install(TARGETS optireduce_static EXPORT optireduce_static
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT optireduce_static NAMESPACE optireduce:: FILE optireduce-static-targets.cmake
        DESTINATION ${package_dir})
install(DIRECTORY lib/include/optireduce collectives/include/optireduce
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")

configure_package_config_file(cmake/optireduce-config.cmake.in optireduce-config.cmake
                              INSTALL_DESTINATION ${package_dir})
# 0.x: a minor version may break what the one before it promised.
write_basic_package_version_file(optireduce-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/optireduce-config.cmake"
              "${PROJECT_BINARY_DIR}/optireduce-config-version.cmake" DESTINATION ${package_dir})

set(pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH pkgconfig_to_prefix "/${pkgconfig_dir}" "/")
configure_file(optireduce.pc.in optireduce.pc @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/optireduce.pc" DESTINATION ${pkgconfig_dir})
