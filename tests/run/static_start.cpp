#include <gradus/cpu/device.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/run/static_start.hpp>
#include <gradus/update/rules/adam.hpp>

#include <doctest/doctest.h>

#include <vector>

using namespace gradus;

namespace {
constexpr auto model = [](graph& g) {
  const auto x = g.placeholder("x", {batch, 3});
  const auto h = dense(x, {.units = 5, .name = "hidden"}) * g.constant({1, 2, 3, -4, 0.5}, {5});
  return model_spec{
      .loss = reduce_mean(square(h + g.constant(0.25, float32, {batch, 5}))), .metrics = {}, .predictions = {{"h", h}}};
};
using train = detail::placed_graph<frozen_model<model, detail::static_options<mode::train, adam>>>;
using forward = detail::placed_graph<frozen_model<model, detail::static_options<mode::predict, adam>>>;
using device = cpu<portable>;
struct room {
  static constexpr auto layout = detail::lay_out<train, forward, device, composed<adam>>(2);
  alignas(64) std::byte memory[layout.bytes] = {};
};
}  // namespace

TEST_CASE("constants of one value and of several lie where kernels read them") {
  room r;
  detail::fill_constants<train, room::layout, 2>(r.memory);
  static constexpr auto ids = detail::nodes_of<train, &constant_card>();
  int several = 0, batched = 0;
  detail::for_each_below<ids.size()>([&]<int I> {
    const float* const at = reinterpret_cast<const float*>(r.memory + room::layout.offset<train>(ids[I]));
    const std::int64_t n = train::count(ids[I], 2);
    if (n == 5) {
      ++several;
      CHECK(std::vector<float>(at, at + 5) == std::vector<float>{1, 2, 3, -4, 0.5});
    }
    if (n == 10) {
      ++batched;
      CHECK(std::vector<float>(at, at + 10) == std::vector<float>(10, 0.25f));
    }
  });
  CHECK(several == 1);
  CHECK(batched <= 1);  // a formula may have taken the number in
}

TEST_CASE("variables start as any other's of their name and seed") {
  room r;
  detail::start_variables<train, train, device, room::layout>(r.memory, 9);
  detail::start_variables<forward, train, device, room::layout>(r.memory, 9);
  std::vector<float> wanted(15);
  device::initialize(glorot_uniform, float32, {3, 5}, 9, stream_of("hidden/kernel"),
                     reinterpret_cast<std::byte*>(wanted.data()));
  const float* const kernel =
      reinterpret_cast<const float*>(r.memory + room::layout.variable[train::find_variable("hidden/kernel")]);
  CHECK(std::vector<float>(kernel, kernel + 15) == wanted);
  CHECK_THROWS_AS(detail::variables_not_ready(), failed_precondition);
}
