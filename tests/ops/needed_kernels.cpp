#include <doctest/doctest.h>
#include <gradus/ops/needed_kernels.hpp>

using namespace gradus;

namespace gradus::inline GRADUS_BUILD::detail {
struct kernels_of_no_file;
struct kernels_of_this_file;
#if GRADUS_KERNELS_BY_USE
namespace {
int shown = 0;
}
template <>
void show_kernels<kernels_of_this_file>() {
  ++shown;
}
#endif
}  // namespace gradus::inline GRADUS_BUILD::detail

// A constant expression cannot call what is defined elsewhere, so this would not compile if it did.
static_assert((detail::need_kernels<detail::kernels_of_no_file>(), detail::need_kernels<detail::kernels_of_this_file>(),
               true));

TEST_CASE("kernels that no file of the program has are left out, and others are shown") {
  detail::need_kernels<detail::kernels_of_no_file>();
#if GRADUS_KERNELS_BY_USE
  CHECK(detail::shown == 0);
  detail::need_kernels<detail::kernels_of_this_file>();
  CHECK(detail::shown == 1);
#endif
}
