#include <gradus/gradus.hpp>

#include <doctest/doctest.h>

using namespace gradus;

namespace {

inline constexpr auto good = [](graph& g) {
  auto x = g.placeholder("x", {batch, 3});
  return model_spec{.loss = reduce_mean(square(dense(x, {.units = 2})))};
};
inline constexpr auto bad = [](graph& g) {
  auto x = g.placeholder("x", {batch, 3});
  return model_spec{.loss = reduce_mean(square(matmul(x, g.variable("w", {4, 2}))))};
};

template <class Source, class... Policies>
inline constexpr bool opens = detail::door<detail::trainer_kinds, Source, Policies...>::value;

// Asking is quiet; what a door that is shut prints is in tests/refuse.
static_assert(opens<detail::by_compiler<good>, adam>);
static_assert(opens<detail::by_compiler<good>, run_config, threads, exponential_decay, adam, clip_by_global_norm,
                    exponential_moving_average, gate_none, flat_binary, posix, system_clock, progress>);
static_assert(!opens<detail::by_compiler<bad>, adam>);
static_assert(opens<detail::by_program, adam>);

}  // namespace

TEST_CASE("a model that the program builds is refused by the program, in the same words") {
  std::string refusal;
  try {
    make_trainer(bad, adam{});
  } catch (const error& e) {
    refusal = e.what();
  }
  CHECK(refusal.find("MatMul: inner extents differ: 3 and 4 (x[batch, 3], w[4, 2])") != std::string::npos);
}
