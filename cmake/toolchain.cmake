# How all our code is compiled.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")

find_program(OPTIREDUCE_CCACHE ccache)
mark_as_advanced(OPTIREDUCE_CCACHE)
if(OPTIREDUCE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${OPTIREDUCE_CCACHE}")
endif()

# Linked PRIVATE by every target of ours, so that no flag here reaches a user of the library.
# Never -march=native: kernels carry their own target attributes and are chosen at run time.
add_library(optireduce_flags INTERFACE)
target_include_directories(
  optireduce_flags INTERFACE "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/lib/include"
                             "${PROJECT_SOURCE_DIR}/collectives/include")
target_compile_definitions(optireduce_flags
                           INTERFACE "OPTIREDUCE_VERSION=\"${PROJECT_VERSION}\"")
target_compile_options(
  optireduce_flags
  INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -fno-semantic-interposition
            -fvisibility-inlines-hidden "-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # g++ 12 sees an overlap in "literal" + std::string() that is not there (GCC bug 105651).
  target_compile_options(optireduce_flags INTERFACE -Wno-restrict)
endif()
if(OPTIREDUCE_WARNINGS_AS_ERRORS)
  target_compile_options(optireduce_flags INTERFACE -Werror)
endif()

if(OPTIREDUCE_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)  # coverage for all code, main() for none
endif()
if(OPTIREDUCE_SANITIZE)
  # Global: a binary whose halves disagree about a sanitizer reports nonsense.
  add_compile_options("-fsanitize=${OPTIREDUCE_SANITIZE}" -fno-sanitize-recover=all
                      -fno-omit-frame-pointer)
  add_link_options("-fsanitize=${OPTIREDUCE_SANITIZE}")
  # Indices of vectors and spans: memory that we hand out ourselves has no red zones.
  add_compile_definitions(_GLIBCXX_ASSERTIONS)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Instrumented code hides from g++ what it has just set; the release build has the warning.
    target_compile_options(optireduce_flags INTERFACE -Wno-maybe-uninitialized)
  endif()
  if(OPTIREDUCE_SANITIZE MATCHES "thread")
    # TSan does not model fences and g++ refuses them under -Werror.
    add_compile_definitions(BOOST_ASIO_DISABLE_FENCED_BLOCK)
  endif()
endif()
