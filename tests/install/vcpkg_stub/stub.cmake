# A library of this machine in the place of vcpkg's own port, so that tests/install/roads.py and tools/roads need no net.
# Every portfile of this folder includes this file.
set(VCPKG_BUILD_TYPE release)
set(VCPKG_POLICY_SKIP_COPYRIGHT_CHECK enabled)
# what it is of /usr/include, and the target of its CMake package where vcpkg's port has one of its own
set(headers_of_zlib zlib.h zconf.h)
set(headers_of_protozero protozero)
set(headers_of_xsimd xsimd)
set(target_of_xsimd xsimd)
set(headers_of_xtensor xtensor xtl)
set(target_of_xtensor xtensor)
set(headers_of_cereal cereal)
set(target_of_cereal cereal::cereal)
set(headers_of_stb "stb/stb_*.h") # vcpkg has them without the folder

foreach(name IN LISTS headers_of_${PORT})
  file(GLOB found "/usr/include/${name}" "/usr/include/*-linux-gnu*/${name}")
  if(NOT found)
    message(FATAL_ERROR "${PORT}: no ${name} in /usr/include; install the library's Debian package (scripts/deps.sh)")
  endif()
  file(COPY ${found} DESTINATION "${CURRENT_PACKAGES_DIR}/include")
endforeach()
if(PORT STREQUAL "zlib")
  execute_process(COMMAND cc -print-file-name=libz.a OUTPUT_VARIABLE library OUTPUT_STRIP_TRAILING_WHITESPACE
    COMMAND_ERROR_IS_FATAL ANY)
  file(COPY "${library}" DESTINATION "${CURRENT_PACKAGES_DIR}/lib")
endif()
if(target_of_${PORT})
  file(WRITE "${CURRENT_PACKAGES_DIR}/share/${PORT}/${PORT}Config.cmake" "if(NOT TARGET ${target_of_${PORT}})
  add_library(${target_of_${PORT}} INTERFACE IMPORTED)
  target_include_directories(${target_of_${PORT}} INTERFACE \"\${CMAKE_CURRENT_LIST_DIR}/../../include\")
endif()
")
endif()
