#include <gradus/train/composition.hpp>

#include <gradus/ops/layer.hpp>
#include <gradus/run/executor.hpp>
#include <gradus/update/average.hpp>
#include <gradus/update/clip.hpp>
#include <gradus/update/rules/adam.hpp>

#include <doctest/doctest.h>

using namespace gradus;

namespace {

inline constexpr auto line = [](graph& g) {
  auto x = g.placeholder("x", {batch, 1});
  return model_spec{.loss = reduce_mean(square(dense(x, {.units = 1, .name = "line"})))};
};
using compiled = detail::by_compiler<line>;
template <class... Policies>
using made_of = detail::composition<compiled, Policies...>;

// What an update is made of does not depend on the order, nor on policies of other kinds.
static_assert(made_of<adam>::update_type::slot_count == 2);
static_assert(!made_of<adam>::update_type::needs_norm);
static_assert(made_of<threads, clip_by_global_norm, system_clock, adam>::update_type::needs_norm);
static_assert(made_of<exponential_moving_average, adam>::update_type::mirror_count == 3);

// The defaults, and what takes their place.
static_assert(std::is_same_v<made_of<adam>::executor_type, serial>);
static_assert(std::is_same_v<made_of<adam>::arithmetic_type, fast>);
static_assert(std::is_same_v<made_of<adam>::codec_type, flat_binary>);
static_assert(std::is_same_v<made_of<adam>::file_system_type, posix>);
static_assert(std::is_same_v<made_of<adam, threads>::executor_type, threads>);
static_assert(std::is_same_v<made_of<portable, adam>::arithmetic_type, portable>);

// Threads need every tensor's memory to itself; the graph's order is the gate's.
static_assert(std::is_same_v<made_of<adam>::model_type, compiled_model<line, cpu<fast>, gating::op, false, true>>);
static_assert(std::is_same_v<made_of<threads, gate_graph, adam, clip_by_global_norm>::model_type,
                             compiled_model<line, cpu<fast>, gating::graph, true, false>>);

}  // namespace

TEST_CASE("composition: a model of the compiler's and one of the program's give the same graph") {
  const detail::by_program run_time{line};
  const auto one = compiled{}.make<made_of<adam>::model_type>();
  const auto other = run_time.make<detail::composition<detail::by_program, adam>::model_type>();
  const auto a = one.get<mode::train>(), b = other.get<mode::train>();
  REQUIRE(a.graph.view.size == b.graph.view.size);
  for (int i = 0; i < a.graph.view.size; ++i) {
    CHECK(a.at(i).op == b.at(i).op);
    CHECK(a.name_of(i) == b.name_of(i));
  }
  CHECK(build_model(compiled::build, mode::train).nodes.count == build_model(run_time.build, mode::train).nodes.count);
}
