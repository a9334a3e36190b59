#include <doctest/doctest.h>

#include <cmath>
#include <string_view>

// As vendors' headers have them, after the standard library was read.
#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))
#define abs(x) ((x) > 0 ? (x) : -(x))
#define round(x) ((long)((x) + 0.5))
#define F(text) (text)
#define PI 3.14159
#include "gradus/base/foreign_macros.hpp"
#if defined(min) || defined(max) || defined(abs) || defined(round)
#error "they are undefined, as the standard library's headers do"
#endif

TEST_CASE("macros that are no words of the library stay") {
  CHECK(std::string_view(F("kept")) == "kept");
  CHECK(PI == 3.14159);
  CHECK(std::abs(-2.0) == 2);
}
