# optireduce_module(<name> [GLOB <pattern>...] [DEPENDS <module>...] [LINK <target>...])
#
# One module is one folder: a static library optireduce_<name>, also known as optireduce::<name>,
# of all sources in the calling folder (or matching GLOB). A folder without sources makes no
# target, and who depends on it goes without. DEPENDS are modules of lower levels:
# test/tidy/edges.py holds the list of what may see what, and checks it.
set_property(GLOBAL PROPERTY OPTIREDUCE_MODULES "")

function(optireduce_module name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "GLOB;EXCLUDE;DEPENDS;LINK")
  if(NOT arg_GLOB)
    set(arg_GLOB "*.cc")
  endif()
  file(GLOB sources CONFIGURE_DEPENDS LIST_DIRECTORIES false RELATIVE
       "${CMAKE_CURRENT_SOURCE_DIR}" ${arg_GLOB})
  list(SORT sources)
  if(arg_EXCLUDE)
    list(REMOVE_ITEM sources ${arg_EXCLUDE})
  endif()
  if(NOT sources)
    return()
  endif()
  add_library(optireduce_${name} STATIC ${sources})
  add_library(optireduce::${name} ALIAS optireduce_${name})
  target_link_libraries(optireduce_${name} PRIVATE optireduce_flags)
  target_link_libraries(optireduce_${name} PUBLIC Threads::Threads)
  foreach(module IN LISTS arg_DEPENDS)
    if(TARGET optireduce_${module})
      target_link_libraries(optireduce_${name} PUBLIC optireduce_${module})
    endif()
  endforeach()
  target_link_libraries(optireduce_${name} PUBLIC ${arg_LINK})
  set_property(GLOBAL APPEND PROPERTY OPTIREDUCE_MODULES ${name})
endfunction()

# Links those of the named modules that exist.
function(optireduce_link_modules target)
  foreach(module IN LISTS ARGN)
    if(TARGET optireduce_${module})
      target_link_libraries(${target} PRIVATE optireduce_${module})
    endif()
  endforeach()
endfunction()

# optireduce_program(<name> <source>... ) : a program of ours in <build>/bin.
function(optireduce_program name)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE optireduce_flags)
  set_property(GLOBAL APPEND PROPERTY OPTIREDUCE_PROGRAMS ${name})
endfunction()
