// The library needs C++20, and g++ 12 or clang 16 or newer. Another compiler gets one error before it fails in a
// template. The include of a missing file ends the compilation; #error alone does not end it, and hundreds of errors
// would follow. With GRADUS_UNTESTED_COMPILER an older compiler is not refused.
#pragma once

#if __cplusplus < 202002L
#error \
    "gradus: expected C++20, found an older standard; compile with -std=c++20, or link the CMake target gradus::gradus"
#include <gradus: the error above says why nothing more is compiled>
#elif defined(GRADUS_UNTESTED_COMPILER)
#elif defined(__apple_build_version__)
#if __clang_major__ < 15
#error "gradus: expected Xcode 15 or newer, found an older clang; -DGRADUS_UNTESTED_COMPILER goes on with it"
#include <gradus: the error above says why nothing more is compiled>
#endif
#elif defined(__clang__)
#if __clang_major__ < 16
#error "gradus: expected clang 16 or newer, found an older one; -DGRADUS_UNTESTED_COMPILER goes on with it"
#include <gradus: the error above says why nothing more is compiled>
#endif
#elif defined(__GNUC__)
#if __GNUC__ < 12
#error "gradus: expected g++ 12 or newer, found an older one; -DGRADUS_UNTESTED_COMPILER goes on with it"
#include <gradus: the error above says why nothing more is compiled>
#endif
#endif
