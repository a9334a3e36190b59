#include <gradus/cluster/update_store.hpp>

#include <doctest/doctest.h>

#include <gradus/update/accumulate.hpp>
#include <gradus/update/average.hpp>
#include <gradus/update/chain.hpp>
#include <gradus/update/clip.hpp>
#include <gradus/update/rules/adam.hpp>

#include "store_cases.hpp"

using namespace store_test;

namespace {
// What protocol/shard.hpp asks of a store.
template <class S>
concept a_store = requires(S& s, const S& c, std::span<const wire_slice> parts, std::uint64_t order, std::size_t round,
                           std::span<const staged_part> set, std::span<const std::span<const double>> by_shard,
                           detail::bytes_out out, detail::bytes_in& in) {
  { c.problem_of(parts) } -> std::same_as<std::string>;
  s.begin(order, set);
  { c.rounds() } -> std::same_as<std::size_t>;
  { s.measure(round) } -> std::same_as<std::span<const double>>;
  s.settle(round, by_shard);
  s.apply();
  { c.values() } -> std::same_as<std::span<const wire_slice>>;
  { c.state() } -> std::same_as<std::span<const wire_slice>>;
  s.restore(order, parts);
  c.save(out);
  s.load(in);
};
static_assert(a_store<store<composed<adam>>>);
}  // namespace

TEST_CASE("shards together do what one updater does, in bits: Adam, a clip by the global norm, an average") {
  same_bits_anyhow(a_model(), adam{.rate = 0.1}, clip_by_global_norm{0.5}, exponential_moving_average{.decay = 0.9});
}
TEST_CASE("the same with gradients that come as rows") {
  same_bits_anyhow(with_tables(a_model()), adam{.rate = 0.1}, clip_by_global_norm{0.5},
                   exponential_moving_average{.decay = 0.9});
}
TEST_CASE("a norm inside a chain is added block by block, as one process adds it") {
  const chain inner{clip_by_value{-0.9, 0.9}, clip_by_global_norm{0.5}, adam{.rate = 0.1}};
  same_bits_anyhow(with_tables(a_model()), inner);
  same_bits_anyhow(with_tables(a_model()), inner, clip_by_global_norm{20});
  same_bits_anyhow(with_tables(a_model()), inner, accumulate{2});
}
