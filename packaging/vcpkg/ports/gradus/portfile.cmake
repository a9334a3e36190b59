# An overlay port of the tree that it stands in: vcpkg install gradus --overlay-ports=packaging/vcpkg/ports. A registry
# takes the source of a release instead: vcpkg_from_github(OUT_SOURCE_PATH SOURCE_PATH ... REF "v${VERSION}" SHA512 ...).
set(VCPKG_BUILD_TYPE release) # headers
get_filename_component(SOURCE_PATH "${CURRENT_PORT_DIR}/../../../.." ABSOLUTE)

vcpkg_check_features(OUT_FEATURE_OPTIONS FEATURE_OPTIONS
  FEATURES
    cereal GRADUS_WITH_CEREAL
    protozero GRADUS_WITH_PROTOZERO
    stb GRADUS_WITH_STB
    xsimd GRADUS_WITH_XSIMD
    xtensor GRADUS_WITH_XTENSOR
    zlib GRADUS_WITH_ZLIB
)
vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS
    -DGRADUS_INSTALL=ON
    -DGRADUS_BUILD_TESTS=OFF
    -DGRADUS_BUILD_EXAMPLES=OFF
    -DGRADUS_BUILD_TOOLS=OFF
    -DGRADUS_BUILD_BENCHMARKS=OFF
    -DGRADUS_WITH_JSON=OFF
    ${FEATURE_OPTIONS}
)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH share/cmake/gradus)
# share/ is for what links nothing at all, and gradus.pc has -pthread.
file(MAKE_DIRECTORY "${CURRENT_PACKAGES_DIR}/lib")
file(RENAME "${CURRENT_PACKAGES_DIR}/share/pkgconfig" "${CURRENT_PACKAGES_DIR}/lib/pkgconfig")
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/share/licenses")

file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
