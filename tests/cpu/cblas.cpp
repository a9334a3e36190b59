// one thread: those that begin are the library's own, which no sanitizer instruments
// needs: cblas
#include <gradus/cpu/cblas.hpp>

#include "library_suite.hpp"

TEST_CASE("CBLAS multiplies as we do") {
  library_suite::check_library<gradus::cblas, float>();
  library_suite::check_library<gradus::cblas, double>();
}
