# The foreign libraries behind our doors. Read by the build here and, installed, by find_package(gradus), so that both
# look the same way. For each NAME of GRADUS_DEPENDENCIES, sets gradus_NAME_FOUND and gradus_NAME_TARGET.
#
#   xtensor  tensor/xtensor.hpp      cereal    codec/cereal.hpp         protozero  store/wire.hpp
#   xsimd    cpu/simd.hpp            json      store/json.hpp           zlib       store/inflate.hpp
#   threads  the threaded executor   stb       summary/image.hpp
#
# And those that nobody gets without asking by name, as targets gradus::NAME to link:
#
#   cblas    cpu/cblas.hpp           onednn    cpu/onednn.hpp          grpc       cluster/grpc.hpp
#   mpi      cluster/mpi.hpp
set(GRADUS_DEPENDENCIES xtensor xsimd cereal json zlib protozero stb threads)
set(GRADUS_OPTIONAL_DEPENDENCIES cblas onednn grpc mpi)
# Those that a macro turns on (base/optional_library.hpp), which gradus::gradus defines where they were found:
# GRADUS_ZLIB, GRADUS_PROTOZERO, GRADUS_STB, GRADUS_XSIMD.
set(GRADUS_SWITCHED_DEPENDENCIES zlib protozero stb xsimd)

# Which of them are looked for: gradus_with_NAME is AUTO or empty (whichever are here), ON (it is an error if it is not
# here) or OFF (never, even if it is here). CMakeLists.txt sets it by GRADUS_WITH_NAME, and an installed package remembers
# ON and OFF, so that a package of a manager with options means the same on every machine.

# A target that is there already is taken as it is: a parent project may bring its own.
macro(gradus_find_one name target package)
  if(NOT TARGET ${target} AND NOT "${gradus_with_${name}}" STREQUAL "OFF")
    find_package(${package} ${ARGN} QUIET)
  endif()
  set(gradus_${name}_TARGET ${target})
  if(TARGET ${target} AND NOT "${gradus_with_${name}}" STREQUAL "OFF")
    set(gradus_${name}_FOUND TRUE)
  else()
    set(gradus_${name}_FOUND FALSE)
  endif()
endmacro()

macro(gradus_find_dependencies)
  # Visible to the whole project and not just to this folder, since gradus::gradus hands them on.
  set(gradus_global_before ${CMAKE_FIND_PACKAGE_TARGETS_GLOBAL})
  set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL TRUE)
  gradus_find_one(xtensor xtensor xtensor CONFIG)
  gradus_find_one(xsimd xsimd xsimd CONFIG)
  gradus_find_one(cereal cereal::cereal cereal CONFIG)
  gradus_find_one(json nlohmann_json::nlohmann_json nlohmann_json CONFIG)
  gradus_find_one(zlib ZLIB::ZLIB ZLIB)
  gradus_find_one(threads Threads::Threads Threads)
  # protozero is a folder of headers with no package file.
  if(NOT TARGET gradus_protozero AND NOT "${gradus_with_protozero}" STREQUAL "OFF")
    find_path(gradus_protozero_INCLUDE_DIR protozero/pbf_reader.hpp)
    mark_as_advanced(gradus_protozero_INCLUDE_DIR)
    if(gradus_protozero_INCLUDE_DIR)
      add_library(gradus_protozero INTERFACE IMPORTED GLOBAL)
      target_include_directories(gradus_protozero SYSTEM INTERFACE "${gradus_protozero_INCLUDE_DIR}")
    endif()
  endif()
  set(gradus_protozero_TARGET gradus_protozero)
  if(TARGET gradus_protozero AND NOT "${gradus_with_protozero}" STREQUAL "OFF")
    set(gradus_protozero_FOUND TRUE)
  else()
    set(gradus_protozero_FOUND FALSE)
  endif()
  # So is stb, which package managers put in no folder, and Debian in one: the machine's own comes last.
  if(NOT TARGET gradus_stb AND NOT "${gradus_with_stb}" STREQUAL "OFF")
    find_path(gradus_stb_INCLUDE_DIR NAMES stb_image_write.h stb/stb_image_write.h)
    mark_as_advanced(gradus_stb_INCLUDE_DIR)
    if(gradus_stb_INCLUDE_DIR)
      add_library(gradus_stb INTERFACE IMPORTED GLOBAL)
      target_include_directories(gradus_stb SYSTEM INTERFACE "${gradus_stb_INCLUDE_DIR}")
    endif()
  endif()
  set(gradus_stb_TARGET gradus_stb)
  if(TARGET gradus_stb AND NOT "${gradus_with_stb}" STREQUAL "OFF")
    set(gradus_stb_FOUND TRUE)
  else()
    set(gradus_stb_FOUND FALSE)
  endif()
  set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ${gradus_global_before})
endmacro()

# gRPC has a package file and a description for pkg-config. The package file of a package manager comes first. That of the
# system comes last: Debian's ends the configuration with an error where the compiler of .proto files is not installed.
# A program of LLVM's standard library cannot link a gRPC that was built with GNU's, so one is tried there.
macro(gradus_find_grpc)
  find_package(gRPC CONFIG QUIET NO_CMAKE_SYSTEM_PATH NO_SYSTEM_ENVIRONMENT_PATH NO_CMAKE_PACKAGE_REGISTRY)
  if(NOT TARGET gRPC::grpc++)
    find_package(PkgConfig QUIET)
    if(PKG_CONFIG_FOUND)
      pkg_check_modules(gradus_grpc QUIET IMPORTED_TARGET GLOBAL grpc++)
    endif()
    if(NOT gradus_grpc_FOUND)
      find_package(gRPC CONFIG QUIET)
    endif()
  endif()
  foreach(gradus_grpc_target IN ITEMS PkgConfig::gradus_grpc gRPC::grpc++)
    if(TARGET ${gradus_grpc_target} AND "${CMAKE_CXX_FLAGS}" MATCHES "-stdlib=libc\\+\\+")
      include(CheckCXXSourceCompiles)
      set(CMAKE_REQUIRED_LIBRARIES ${gradus_grpc_target})
      check_cxx_source_compiles(
        "#include <string>\nnamespace grpc { std::string Version(); }\nint main() { return grpc::Version().empty(); }"
        gradus_${gradus_grpc_target}_LINKS)
      unset(CMAKE_REQUIRED_LIBRARIES)
      if(NOT gradus_${gradus_grpc_target}_LINKS)
        message(STATUS "gradus: this gRPC was built with another C++ standard library than -stdlib=libc++, so it is left out")
        continue()
      endif()
    endif()
    if(TARGET ${gradus_grpc_target} AND NOT TARGET gradus::grpc)
      add_library(gradus::grpc INTERFACE IMPORTED GLOBAL)
      target_link_libraries(gradus::grpc INTERFACE ${gradus_grpc_target})
    endif()
  endforeach()
  unset(gradus_grpc_target)
endmacro()

# MPI as its own compiler says it, without its old bindings for C++. The module looks for no other language.
macro(gradus_find_mpi)
  set(MPI_CXX_SKIP_MPICXX TRUE)
  find_package(MPI COMPONENTS CXX QUIET)
  if(TARGET MPI::MPI_CXX)
    add_library(gradus::mpi INTERFACE IMPORTED GLOBAL)
    target_link_libraries(gradus::mpi INTERFACE MPI::MPI_CXX)
  endif()
endmacro()

# Sets gradus_NAME_FOUND, and makes gradus::NAME if so.
macro(gradus_find_optional name)
  if("${name}" STREQUAL "grpc")
    if(NOT TARGET gradus::grpc)
      gradus_find_grpc()
    endif()
  elseif("${name}" STREQUAL "mpi")
    if(NOT TARGET gradus::mpi)
      gradus_find_mpi()
    endif()
  elseif(NOT TARGET gradus::${name})
    if("${name}" STREQUAL "cblas")
      find_path(gradus_cblas_INCLUDE_DIR cblas.h PATH_SUFFIXES openblas)
      find_library(gradus_cblas_LIBRARY NAMES openblas cblas blis mkl_rt)
    elseif("${name}" STREQUAL "onednn") # its own package file asks for OpenCL's headers, for GPUs
      find_path(gradus_onednn_INCLUDE_DIR oneapi/dnnl/dnnl.h)
      find_library(gradus_onednn_LIBRARY NAMES dnnl)
    endif()
    mark_as_advanced(gradus_${name}_INCLUDE_DIR gradus_${name}_LIBRARY)
    if(gradus_${name}_INCLUDE_DIR AND gradus_${name}_LIBRARY)
      add_library(gradus::${name} INTERFACE IMPORTED GLOBAL)
      target_include_directories(gradus::${name} SYSTEM INTERFACE "${gradus_${name}_INCLUDE_DIR}")
      target_link_libraries(gradus::${name} INTERFACE "${gradus_${name}_LIBRARY}")
    endif()
  endif()
  if(TARGET gradus::${name})
    set(gradus_${name}_FOUND TRUE)
  else()
    set(gradus_${name}_FOUND FALSE)
  endif()
endmacro()
