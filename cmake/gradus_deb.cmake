# A Debian package of the headers and the package files, for every architecture:
#
#   cmake --preset headers && cpack -G DEB --config build/headers/CPackConfig.cmake
#
# makes build/headers/libgradus-dev_0.6.0_all.deb.
#
# With the tools in it (GRADUS_BUILD_TOOLS) it is of this machine's architecture. Who packs it stands in DEBFULLNAME and
# DEBEMAIL, as for Debian's own tools.
find_program(GRADUS_DPKG dpkg-deb)
find_program(GRADUS_GZIP gzip)
mark_as_advanced(GRADUS_DPKG GRADUS_GZIP)
if(NOT GRADUS_DPKG OR NOT GRADUS_GZIP)
  return()
endif()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME libgradus-dev)
set(CPACK_PACKAGE_VENDOR "The gradus authors")
set(CPACK_PACKAGE_CONTACT "The gradus authors <gradus@gradus.invalid>")
if(DEFINED ENV{DEBFULLNAME} AND DEFINED ENV{DEBEMAIL})
  set(CPACK_PACKAGE_CONTACT "$ENV{DEBFULLNAME} <$ENV{DEBEMAIL}>")
endif()
set(CPACK_PACKAGE_DIRECTORY "${PROJECT_BINARY_DIR}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "train models inside C++ programs (headers)")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "gradus is a C++20 library of headers that trains models inside the
program that uses them: optimizers, schedules, checkpoints from which a
killed run goes on with the same bits, and event files for TensorBoard.
CMake finds it as gradus::gradus, pkg-config as gradus.")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
# What gradus.pc turns on has to be there; the rest is recommended, and what single headers need is suggested.
set(gradus_deb_depends "")
set(gradus_deb_recommends "")
foreach(library IN ITEMS PROTOZERO=libprotozero-dev STB=libstb-dev XSIMD=libxsimd-dev ZLIB=zlib1g-dev)
  string(REPLACE "=" ";" library "${library}")
  list(GET library 0 macro)
  list(GET library 1 package)
  if("${pkgconfig_macros} " MATCHES " -DGRADUS_${macro} ")
    list(APPEND gradus_deb_depends "${package}")
  else()
    list(APPEND gradus_deb_recommends "${package}")
  endif()
endforeach()
list(JOIN gradus_deb_depends ", " CPACK_DEBIAN_PACKAGE_DEPENDS)
list(JOIN gradus_deb_recommends ", " CPACK_DEBIAN_PACKAGE_RECOMMENDS)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libcereal-dev, libxtensor-dev")
if(GRADUS_BUILD_TOOLS)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
else()
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE all)
endif()

# Beside the installed files: /usr/share/doc/libgradus-dev/, which Debian wants and no other installation needs.
set(documents "${PROJECT_BINARY_DIR}/deb_documents")
file(READ "${PROJECT_SOURCE_DIR}/LICENSE" licence)
file(WRITE "${documents}/copyright" "gradus, ${PROJECT_DESCRIPTION}\n\n${licence}")
file(STRINGS "${PROJECT_SOURCE_DIR}/CHANGELOG.md" released REGEX "^## ${PROJECT_VERSION} - " LIMIT_COUNT 1)
string(REGEX MATCH "[0-9]+-[0-9]+-[0-9]+$" released "${released}")
execute_process(COMMAND date -u -R -d "${released}" OUTPUT_VARIABLE released OUTPUT_STRIP_TRAILING_WHITESPACE)
file(WRITE "${documents}/changelog"
  "libgradus-dev (${PROJECT_VERSION}) unstable; urgency=medium\n\n  * What changed is in CHANGELOG.md of the source.\n\n"
  " -- ${CPACK_PACKAGE_CONTACT}  ${released}\n")
execute_process(COMMAND "${GRADUS_GZIP}" -9nf "${documents}/changelog")
set(CPACK_INSTALLED_DIRECTORIES "${documents}" usr/share/doc/libgradus-dev)
include(CPack)
