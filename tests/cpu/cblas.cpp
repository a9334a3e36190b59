// needs: cblas
#include <gradus/cpu/cblas.hpp>

#include "library_suite.hpp"

TEST_CASE("CBLAS multiplies as we do") {
  library_suite::check_library<gradus::cblas, float>();
  library_suite::check_library<gradus::cblas, double>();
}
