#include "gradus/base/compiler.hpp"

#include <doctest/doctest.h>

TEST_CASE("this compiler is one that is tested") {  // tests/order/macros.py asks older ones
#if defined(__clang__)
  CHECK(__clang_major__ >= 16);
#else
  CHECK(__GNUC__ >= 12);
#endif
}
