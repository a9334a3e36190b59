# How our own programs are built: tests, examples, benchmarks. Nothing here touches gradus::gradus.
#
#   GRADUS_DEVELOPMENT_OPTIONS   optimization and sanitizers of tests and examples, a list ("-O2")
#   GRADUS_TEST_ROOMS            rooms whose tests are built; empty: all
#   GRADUS_HOUSE_TESTS           also the tests that bring their own compilers and need no second run under a
#                                sanitizer: rooms, refusals, install, bare metal, format
set(GRADUS_DEVELOPMENT_OPTIONS "-O2" CACHE STRING "Compile and link options of tests and examples")
set(GRADUS_TEST_ROOMS "" CACHE STRING "Rooms whose tests are built (empty: all)")
option(GRADUS_HOUSE_TESTS "Test the repository itself: rooms, refusals, install, bare metal, format" ON)

find_program(GRADUS_CCACHE ccache)
mark_as_advanced(GRADUS_CCACHE)
if(GRADUS_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Without these words it would not keep what was compiled with a precompiled header.
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros "${GRADUS_CCACHE}")
endif()
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# What may be here for tests and benchmarks of the leaves; not where the code is for another machine.
foreach(name IN LISTS GRADUS_OPTIONAL_DEPENDENCIES)
  if(CMAKE_CROSSCOMPILING)
    set(gradus_${name}_FOUND FALSE)
  else()
    gradus_find_optional(${name})
  endif()
endforeach()

# Warnings are errors in our own code; foreign headers come in as system headers.
add_library(gradus_warnings INTERFACE)
target_compile_options(gradus_warnings INTERFACE -Wall -Wextra -Wpedantic -Wconversion -Werror)

add_library(gradus_development INTERFACE)
target_link_libraries(gradus_development INTERFACE gradus::gradus gradus_warnings)
target_compile_options(gradus_development INTERFACE ${GRADUS_DEVELOPMENT_OPTIONS})
target_link_options(gradus_development INTERFACE ${GRADUS_DEVELOPMENT_OPTIONS})
if("${GRADUS_DEVELOPMENT_OPTIONS}" MATCHES "-fsanitize=thread") # it brings an operator new that cannot be replaced
  target_compile_definitions(gradus_development INTERFACE GRADUS_TEST_UNCOUNTED)
endif()
# Forced inlining without an optimizer behind it makes kernels of megabytes, and a sanitizer checks every copy: it took up to
# ten times as long to compile, and a third longer without a sanitizer. Each program is of one architecture, so nothing is lost.
if("${GRADUS_DEVELOPMENT_OPTIONS}" MATCHES "-fsanitize|-O[01]")
  target_compile_definitions(gradus_development INTERFACE GRADUS_INLINE=inline)
endif()
# Generated machine code is ours to choose per file: a line "// compiled with: -O3 -march=native" near its top.
function(gradus_extra_options file out)
  file(STRINGS "${file}" line LIMIT_COUNT 1 REGEX "^// compiled with: ")
  string(REGEX REPLACE "^// compiled with: *" "" line "${line}")
  separate_arguments(line)
  if(CMAKE_CROSSCOMPILING OR "${GRADUS_DEVELOPMENT_OPTIONS}" MATCHES "-m(arch|avx)") # a machine that is not this one
    list(FILTER line EXCLUDE REGEX "^-march=native$")
  endif()
  set(${out} "${line}" PARENT_SCOPE)
  if("${GRADUS_DEVELOPMENT_OPTIONS}" MATCHES "-fsanitize") # optimizing sanitized code takes ten times as long to compile
    list(FILTER line EXCLUDE REGEX "^-O")
  elseif(line)
    list(APPEND line -UGRADUS_INLINE)
  endif()
  # On the file, not on its program: so they come after the options of the configuration, and win.
  set_source_files_properties("${file}" PROPERTIES COMPILE_OPTIONS "${line}")
endfunction()

# Programs of a folder: each F.cpp is one program F; so is each folder F with its *.cpp. They land in bin/.
# A folder with a CMakeLists.txt of its own speaks for itself; a folder in it that has one is added elsewhere.
function(gradus_add_programs folder)
  set(root "${PROJECT_SOURCE_DIR}/${folder}")
  if(EXISTS "${root}/CMakeLists.txt")
    add_subdirectory("${root}" "${PROJECT_BINARY_DIR}/${folder}")
    return()
  endif()
  find_package(CLI11 CONFIG QUIET)
  file(GLOB entries CONFIGURE_DEPENDS LIST_DIRECTORIES true "${root}/*")
  foreach(entry IN LISTS entries)
    if(EXISTS "${entry}/CMakeLists.txt")
      continue()
    elseif(IS_DIRECTORY "${entry}")
      file(GLOB sources CONFIGURE_DEPENDS "${entry}/*.cpp")
    elseif(entry MATCHES "\\.cpp$")
      set(sources "${entry}")
    else()
      continue()
    endif()
    if(NOT sources)
      continue()
    endif()
    get_filename_component(name "${entry}" NAME_WE)
    list(GET sources 0 first)
    gradus_extra_options("${first}" extra)
    add_executable(${name} ${sources})
    target_link_libraries(${name} PRIVATE gradus_development)
    if("${GRADUS_DEVELOPMENT_OPTIONS}" STREQUAL "-O0" AND name STREQUAL "digits") # tests run it dozens of times
      target_compile_options(${name} PRIVATE -O1 -UGRADUS_INLINE)
    endif()
    if(TARGET CLI11::CLI11)
      target_link_libraries(${name} PRIVATE CLI11::CLI11)
    endif()
    # A program that trains over gRPC and MPI where they are installed, and says so where they are not.
    foreach(library IN ITEMS grpc mpi)
      string(TOUPPER "GRADUS_EXAMPLE_${library}" macro)
      file(STRINGS "${first}" line LIMIT_COUNT 1 REGEX "ifdef ${macro}")
      # The system's libraries are built with its own standard library.
      if(line AND NOT "${CMAKE_CXX_FLAGS}" MATCHES "-stdlib=libc")
        gradus_find_optional(${library})
        if(TARGET gradus::${library})
          target_link_libraries(${name} PRIVATE gradus::${library})
          target_compile_definitions(${name} PRIVATE ${macro})
        endif()
      endif()
    endforeach()
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
  endforeach()
endfunction()
