#include <gradus/run/tracked_variable.hpp>
#include <gradus/update/average.hpp>
#include <gradus/update/rules/adam.hpp>

#include <doctest/doctest.h>

#include <vector>

using namespace gradus;

namespace {
using averaged = decltype(composed{adam{}, exponential_moving_average{}});
const averaged update{adam{}, exponential_moving_average{}};
}  // namespace

TEST_CASE("slots start at zero, an average as the array, which stays where it is") {
  std::vector<float> w{1, 2, 3, 4, 5, 6};
  detail::tracked_variable<averaged> v(update, "w", tensor_view(std::span<float>(w), {3, 2}));
  CHECK(v.values.data == reinterpret_cast<const std::byte*>(w.data()));
  CHECK(v.row_count() == 3);
  CHECK(v.width() == 2);
  const auto mirrors = v.mirrors_as<float>();
  int slots = 0;
  detail::each_mirror(update, v.state.branch, v.values.dims, [&](std::size_t k, const mirror& m, const extents& dims) {
    ++slots;
    CHECK(dims == extents{3, 2});
    for (std::size_t i = 0; i < 6; ++i) CHECK(mirrors[k][i] == (m.slot == "average" ? w[i] : 0.0f));
  });
  CHECK(slots == 3);
}

TEST_CASE("16-bit numbers get a master; integers are refused") {
  std::vector<bfloat> w(4, bfloat(1.5f));
  detail::tracked_variable<averaged> v(update, "w", std::span<bfloat>(w));
  CHECK(v.master.kept());
  CHECK(v.values.type == float32);
  CHECK(v.values.as<float>()[3] == 1.5f);
  std::vector<std::int32_t> n(4);
  using tracked = detail::tracked_variable<averaged>;
  CHECK_THROWS_WITH_AS(tracked(update, "n", std::span<std::int32_t>(n)),
                       "expected float32, float64, bfloat16 or float16 for \"n\", found int32", invalid_argument);
}
