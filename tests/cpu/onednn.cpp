// one thread: those that begin are the library's own, which no sanitizer instruments
// needs: onednn
#include <gradus/cpu/onednn.hpp>

#include "library_suite.hpp"

TEST_CASE("oneDNN multiplies as we do, and leaves doubles to us") {
  library_suite::check_library<gradus::onednn, float>();
  CHECK(!gradus::onednn::takes<double>(256, 256, 256));
}
