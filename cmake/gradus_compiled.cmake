# gradus::compiled: what of the library does not depend on a program's types, compiled once, as a static library that is
# built with the program's flags when something links it. The headers then hold declarations alone (base/body.hpp), so
# that a program compiles faster. No binary is installed.
#
# gradus::pch: the umbrella as a precompiled header of every target that links it, beside gradus::gradus or
# gradus::compiled.
#
# gradus_add_compiled(FOLDER)   both; the library is of the sources FOLDER/gradus/compiled/*.cpp
function(gradus_add_compiled include_folder)
  if(TARGET gradus_compiled)
    return()
  endif()
  file(GLOB sources "${include_folder}/gradus/compiled/*.cpp")
  add_library(gradus_compiled STATIC EXCLUDE_FROM_ALL ${sources})
  add_library(gradus::compiled ALIAS gradus_compiled)
  target_link_libraries(gradus_compiled PUBLIC gradus::gradus)
  target_compile_definitions(gradus_compiled PUBLIC GRADUS_COMPILED)
  target_compile_options(gradus_compiled PRIVATE -w) # the user's warnings are for the user's files
  # Shared libraries may link it. What a file defines before its includes must come before all headers (compiled/ops.cpp).
  set_target_properties(gradus_compiled PROPERTIES POSITION_INDEPENDENT_CODE ON UNITY_BUILD OFF DISABLE_PRECOMPILE_HEADERS ON)
  add_library(gradus_pch INTERFACE)
  add_library(gradus::pch ALIAS gradus_pch)
  target_link_libraries(gradus_pch INTERFACE gradus::gradus)
  target_precompile_headers(gradus_pch INTERFACE <gradus/gradus.hpp>)
endfunction()
