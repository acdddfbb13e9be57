# What is installed, shared and static: all modules that a user's process needs, and none of their
# headers but the public ones. (The simulator stays out: only programs and tests use it.)
set(shared_modules base hadamard wire ubt udp dpdk fault control ports collectives)

set(shared_objects "")
foreach(module IN LISTS shared_modules)
  if(TARGET optireduce_${module})
    list(APPEND shared_objects $<TARGET_OBJECTS:optireduce_${module}>)
  endif()
endforeach()

if(shared_objects)
  add_library(optireduce SHARED ${shared_objects})
  add_library(optireduce_static STATIC ${shared_objects})
  foreach(library IN ITEMS optireduce optireduce_static)
    add_library(optireduce::${library} ALIAS ${library})
    set_target_properties(${library} PROPERTIES LINKER_LANGUAGE CXX)
    target_include_directories(
      ${library}
      INTERFACE "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/lib/include>"
                "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/collectives/include>"
                "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
    target_compile_features(${library} INTERFACE cxx_std_20)
    # Not in the interface of the shared one; the static one hands them on, to be linked only.
    target_link_libraries(${library} PRIVATE PkgConfig::NETTLE PkgConfig::SODIUM PkgConfig::ISAL
                                             Threads::Threads)
  endforeach()
  set_target_properties(optireduce_static PROPERTIES OUTPUT_NAME optireduce)
  set_target_properties(
    optireduce
    PROPERTIES VERSION ${PROJECT_VERSION}
               SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
               LINK_DEPENDS "${PROJECT_SOURCE_DIR}/cmake/exports.map")
  target_link_options(
    optireduce PRIVATE "-Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/exports.map"
    -Wl,-Bsymbolic-functions)
  if(NOT OPTIREDUCE_SANITIZE)
    target_link_options(optireduce PRIVATE -Wl,-z,defs)
  endif()
endif()
