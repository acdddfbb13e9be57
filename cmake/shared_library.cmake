# The shared library: all modules that a user's process needs, and none of their headers but the
# public ones. (The simulator stays out: only programs and tests use it.)
set(shared_modules base hadamard wire ubt udp dpdk fault control ports collectives)

set(shared_objects "")
foreach(module IN LISTS shared_modules)
  if(TARGET optireduce_${module})
    list(APPEND shared_objects $<TARGET_OBJECTS:optireduce_${module}>)
  endif()
endforeach()

if(shared_objects)
  add_library(optireduce SHARED ${shared_objects})
  add_library(optireduce::optireduce ALIAS optireduce)
  set_target_properties(
    optireduce
    PROPERTIES VERSION ${PROJECT_VERSION}
               SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
               LINKER_LANGUAGE CXX
               LINK_DEPENDS "${PROJECT_SOURCE_DIR}/cmake/exports.map")
  target_include_directories(
    optireduce
    INTERFACE "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/lib/include>"
              "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/collectives/include>"
              "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
  target_compile_features(optireduce INTERFACE cxx_std_20)
  target_link_options(
    optireduce PRIVATE "-Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/exports.map"
    -Wl,-Bsymbolic-functions)
  if(NOT OPTIREDUCE_SANITIZE)
    target_link_options(optireduce PRIVATE -Wl,-z,defs)
  endif()
  target_link_libraries(optireduce PRIVATE PkgConfig::NETTLE PkgConfig::SODIUM PkgConfig::ISAL
                                           Threads::Threads)
endif()
