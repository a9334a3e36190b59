#include <gradus/cluster/update_store.hpp>

#include <doctest/doctest.h>

#include <gradus/update/accumulate.hpp>
#include <gradus/update/average.hpp>
#include <gradus/update/chain.hpp>
#include <gradus/update/clip.hpp>
#include <gradus/update/decay.hpp>
#include <gradus/update/freeze.hpp>
#include <gradus/update/multi.hpp>
#include <gradus/update/not_finite.hpp>
#include <gradus/update/plateau.hpp>
#include <gradus/update/rules/adam.hpp>
#include <gradus/update/rules/gradient_descent.hpp>
#include <gradus/update/rules/momentum.hpp>
#include <gradus/update/vary.hpp>

#include <cmath>
#include <string>
#include <tuple>
#include <vector>

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

using plain = composed<adam, clip_by_global_norm>;
const plain clipped{adam{.rate = 0.1}, clip_by_global_norm{0.5}};
std::vector<store_variable> two_shards() {
  return {{.name = "w", .dims = {3}, .shard = 0}, {.name = "b", .dims = {2}, .shard = 1}};
}
contribution of(std::vector<double> w, std::vector<double> b) { return {{{float32, w}, {float32, b}}, {{}, {}}}; }
template <class Update>
struct server_of : shards<Update> {
  std::vector<float> w{1, 2, 3}, b{4, 5};
  std::vector<std::vector<sent_parts>> keep;

  explicit server_of(const Update& update) : shards<Update>(two_shards(), 2, update, 1) {
    for (auto& s : this->all) s->restore(0, initial());
  }
  std::vector<wire_slice> initial() const {
    return {{"w", float32, 0, std::as_bytes(std::span(w))}, {"b", float32, 0, std::as_bytes(std::span(b))}};
  }
  void open(std::uint64_t order, const contribution& c) { this->begin(order, {c}, keep); }
  void settle(std::size_t shard, std::size_t round, const std::vector<std::vector<double>>& lists) {
    const std::vector<std::span<const double>> by_shard(lists.begin(), lists.end());
    this->all[shard]->settle(round, by_shard);
  }
};
// All that is shown, as bytes.
template <class Store>
std::vector<std::byte> saved(const Store& s) {
  std::vector<std::byte> out;
  s.save(detail::bytes_out(out));
  return out;
}
std::vector<std::string> names_of(std::span<const wire_slice> slices) {
  std::vector<std::string> out;
  for (const wire_slice& s : slices) out.emplace_back(s.name);
  return out;
}
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

TEST_CASE("groups, varied settings, a plateau, a clip by columns, a norm at which one group alone looks") {
  const auto model = with_tables(a_model());
  same_bits_drawn(
      model, 0,
      multi{on{matrices{}, chain{clip_by_global_norm{0.5}, adam{.rate = 0.1}}},
            on{named{"a/"}, chain{clip_by_global_norm{0.1}, momentum{.rate = 0.1}}}, gradient_descent{.rate = 0.1}});
  same_bits_drawn(model, 1, adam{.rate = 0.1}, vary<&clip_by_global_norm::max_norm>(exponential_decay{0.5, 2, 0.5}),
                  vary<&adam::beta1>(exponential_decay{0.9, 3, 0.9}), clip_by_global_norm{0.5});
  same_bits_drawn(a_model(), 2, momentum{}, exponential_decay{0.1, 2, 0.9}, adaptive_clip{0.1});
}
TEST_CASE("what a schedule has observed comes with one gradient of a set, and moves the rate as in one process") {
  const auto policies = std::tuple(momentum{}, reduce_on_plateau{.initial = 0.1, .factor = 0.5, .patience = 1},
                                   accumulate{2}, clip_by_global_norm{0.5});
  using update_type = composed<momentum, reduce_on_plateau, accumulate, clip_by_global_norm>;
  draws draw{5};
  auto model = a_model();
  detail::place_variables(model, 2);
  auto one = std::apply([&](auto... p) { return whole<decltype(p)...>(model, draw, p...); }, policies);
  shards<update_type> many(model, 2, std::make_from_tuple<update_type>(policies), 2);
  for (auto& s : many.all) s->restore(0, one.initial());
  auto chief = std::make_from_tuple<update_type>(policies);
  detail::observed_state observed(chief);
  for (std::uint64_t order = 1; order <= 12; ++order) {
    CAPTURE(order);
    many.beside.clear();
    if (order % 3 != 0) {  // with some gradients nothing comes, and the rate stays
      one.one.watch(1), chief.watch(1);
      observed.keep();
      many.beside = {observed.slice()};
    }
    const std::vector<contribution> set{drawn(draw, model), drawn(draw, model)};
    one.apply(set);
    const auto before = saved(*many.all[0]);
    std::vector<std::vector<sent_parts>> keep;
    many.begin(order, set, keep);  // an update that is given up leaves nothing behind
    CHECK(saved(*many.all[0]) == before);
    many.exchange();
    CHECK(saved(*many.all[0]) == before);
    many.update(order, set);
    same_state(one.one, many);
  }
  CHECK(many.all[1]->update().rate(12) < 0.05);
}
TEST_CASE("the state of a schedule that does not fit, or that no schedule has, is refused") {
  const auto said = [](const auto& update, const wire_slice& more) {
    const std::vector<store_variable> model{{.name = "w", .dims = {2}}};
    const store<std::remove_cvref_t<decltype(update)>> s(detail::update_store_options{.variables = model}, update);
    const float gradient[] = {1, 2};
    return s.problem_of(std::vector<wire_slice>{{"w", float32, 0, std::as_bytes(std::span(gradient))}, more});
  };
  const composed<momentum, reduce_on_plateau> watches(momentum{}, reduce_on_plateau{});
  const std::vector<std::byte> bytes(40);
  const auto of = [&](dtype type, std::size_t n, std::uint64_t begin = 0) {
    return wire_slice{":observed", type, begin, std::span(bytes).first(n)};
  };
  CHECK(said(watches, of(uint8, 32)) == "");
  CHECK(said(watches, of(uint8, 31)) ==
        "the state of the schedules that observe values is 31 bytes of uint8 from element 0; expected 32 of uint8, "
        "dense, from 0");
  CHECK(said(watches, of(uint8, 40)) != "");
  CHECK(said(watches, of(uint8, 32, 1)) != "");
  CHECK(said(watches, of(float64, 32)) != "");
  CHECK(said(composed<momentum>(momentum{.rate = 0.1}), of(uint8, 32)) ==
        "\":observed\" is no trainable variable of shard 0; workers and parameter servers have to run the same model, "
        "placed the same way");
}

TEST_CASE("values are the variables where they lie, and on shard 0 the optimizer's own state beside them") {
  server_of s(clipped);
  CHECK(names_of(s.all[0]->values()) == std::vector<std::string>{"w", ":beta1_power", ":beta2_power"});
  CHECK(names_of(s.all[1]->values()) == std::vector<std::string>{"b"});
  CHECK(names_of(s.all[1]->state()) ==
        std::vector<std::string>{"b", "b/Adam", "b/Adam_1", "beta1_power", "beta2_power"});
  const std::byte* const at = s.all[0]->values()[0].bytes.data();
  CHECK(std::memcmp(at, s.w.data(), 12) == 0);
  CHECK(s.update(1, {of({1, 1, 1}, {1, 1})}) == 1);
  CHECK(s.all[0]->values()[0].bytes.data() == at);
  CHECK(std::memcmp(at, s.w.data(), 12) != 0);
  CHECK(s.all[0]->gradient_norm() == std::sqrt(5.0));
  CHECK(s.all[1]->gradient_norm() == std::sqrt(5.0));
}
TEST_CASE("until it is applied an update shows in nothing, and it may be begun again with the same end") {
  using update_type = composed<adam, accumulate, clip_by_global_norm, not_finite::skip>;
  const update_type update{adam{.rate = 0.1}, accumulate{2}, clip_by_global_norm{0.5}, not_finite::skip{}};
  for (const double third : {0.5, HUGE_VAL}) {  // an update, and one that is left out
    INFO(third);
    server_of s(update), again(update);
    CHECK(s.update(1, {of({1, 1, 1}, {1, 1})}) == 0);  // it only adds
    again.update(1, {of({1, 1, 1}, {1, 1})});
    const contribution c = of({0.1, 0.2, third}, {1, 2});
    s.update(2, {c});
    const auto before = saved(*again.all[0]), before_1 = saved(*again.all[1]);
    again.open(2, of({9, 9, 9}, {9, 9}));
    again.exchange();
    again.open(2, c);
    CHECK(saved(*again.all[0]) == before);
    again.all[0]->measure(0);
    CHECK(again.all[0]->measure(0).size() == 1);  // the same list when asked again
    CHECK(saved(*again.all[0]) == before);
    again.exchange();
    again.open(2, c);  // settled, and begun again
    CHECK(saved(*again.all[0]) == before);
    CHECK(saved(*again.all[1]) == before_1);
    again.exchange();
    for (auto& one : again.all) one->apply();
    for (int k : {0, 1}) {
      const auto i = static_cast<std::size_t>(k);
      CHECK(saved(*again.all[i]) == saved(*s.all[i]));
      CHECK(again.all[i]->update().skipped_steps() == (third == 0.5 ? 0 : 1));
    }
  }
}
TEST_CASE("not_finite::raise names the first variable at fault on every shard, and changes nothing") {
  const composed update{adam{.rate = 0.1}, not_finite::raise{}};
  server_of s(update);
  const auto before = saved(*s.all[0]);
  const auto refused = [&](const contribution& c, const char* on_0, const char* on_1) {
    s.open(1, c);
    std::vector<std::vector<double>> lists;
    for (auto& one : s.all) lists.emplace_back(one->measure(0).begin(), one->measure(0).end());
    for (int twice = 0; twice < 2; ++twice) {
      CHECK_THROWS_WITH_AS(s.settle(0, 0, lists), on_0, invalid_argument);
      CHECK_THROWS_WITH_AS(s.settle(1, 0, lists), on_1, invalid_argument);
    }
    CHECK(saved(*s.all[0]) == before);
  };
  refused(of({1, 2, 3}, {1, NAN}),
          "the gradient of \"b\", on shard 1, is not finite, or its squares have no room, in the step after step 0; "
          "nothing was updated. Lower the learning rate, clip gradients, or look at this batch",
          "the gradient of \"b\" is NaN in the step after step 0; nothing was updated. Lower the learning rate, clip "
          "gradients, or look at this batch");
  refused(of({1, HUGE_VAL, 3}, {1, NAN}),
          "the gradient of \"w\" is infinite in the step after step 0; nothing was updated. Lower the learning rate, "
          "clip gradients, or look at this batch",
          "the gradient of \"w\", on shard 0, is not finite, or its squares have no room, in the step after step 0; "
          "nothing was updated. Lower the learning rate, clip gradients, or look at this batch");
  CHECK(s.update(1, {of({1, 2, 3}, {4, 5})}) == 1);  // it goes on
}
TEST_CASE("lists of strangers are held against the variables before anything is settled") {
  const composed update{chain{clip_by_global_norm{0.5}, adam{.rate = 0.1}}};
  server_of s(update);
  const contribution c = of({1, 2, 3}, {4, 5});
  s.open(1, c);
  const auto refused = [&](std::size_t round, std::vector<std::vector<double>> lists, const char* what) {
    CHECK_THROWS_WITH_AS(s.settle(0, round, lists), what, data_loss);
  };
  s.all[0]->measure(0);
  refused(0, {{14}}, "round 0: the lists of 1 shards came; expected those of 2");
  refused(0, {{15}, {41}}, "the list of shard 0 for round 0 is malformed: it is not the list that this shard measured");
  refused(
      0, {{14}, {}},
      "the list of shard 1 for round 0 is malformed: it ends within \"b\": expected 1 more numbers, and 0 are left");
  refused(0, {{14}, {41, 1}}, "the list of shard 1 for round 0 is malformed: 1 numbers are left behind its end");
  refused(0, {{14}, {41}, {1}}, "the list of shard 2 for round 0 is malformed: 1 numbers are left behind its end");
  refused(0, {{14}, {-1}},
          "the list of shard 1 for round 0 is malformed: the sum of squares of \"b\" is -1; expected 0 or more");
  s.settle(0, 0, {{14}, {41}, {}});
  s.all[0]->measure(1);
  refused(1, {{1, 14}, {2, 20, 21}}, "the list of shard 1 for round 1 is malformed: \"b\" has 2 numbers; expected 1");
  refused(1, {{1, 14}, {2, 41}},
          "the list of shard 1 for round 1 is malformed: it says that \"b\" has 2 numbers, and 1 are left");
  s.settle(0, 1, {{1, 14}, {1, 41}});
  s.all[0]->apply();
  server_of again(update);
  again.update(1, {c});
  CHECK(saved(*s.all[0]) == saved(*again.all[0]));
}
TEST_CASE("what is out of turn is refused") {
  server_of s(clipped);
  const auto& first = s.all[0];
  CHECK_THROWS_WITH_AS(first->apply(), "apply: no update is under way; call begin first", failed_precondition);
  CHECK_THROWS_WITH_AS(first->measure(0), "measure: no update is under way; call begin first", failed_precondition);
  CHECK(first->rounds() == 0);
  CHECK_THROWS_WITH_AS(s.open(2, of({1, 2, 3}, {4, 5})), "shard 0 cannot begin update 2: it is behind update 0",
                       failed_precondition);
  s.open(1, of({1, 2, 3}, {4, 5}));
  CHECK_THROWS_WITH_AS(first->apply(), "apply: 0 rounds of 1 are settled", failed_precondition);
  CHECK_THROWS_WITH_AS(first->measure(1), "measure: found round 1; expected 0, of 1 rounds", failed_precondition);
  CHECK_THROWS_WITH_AS(first->begin(1, {}), "update 1 has no contributions; expected one at least", data_loss);
  const staged_part nothing{{.worker = 3, .incarnation = 1, .sequence = 1}, 0, {}};
  CHECK_THROWS_WITH_AS(first->begin(1, std::span(&nothing, 1)),
                       "update 1, worker 3: there is no gradient of \"w\"; expected one for each trainable variable of "
                       "shard 0",
                       data_loss);
  store<plain> fresh({.shard = 0, .variables = two_shards()}, clipped);
  CHECK_THROWS_WITH_AS(fresh.begin(1, std::span(&nothing, 1)), "shard 0 has no values yet; restore them first",
                       failed_precondition);
  CHECK_THROWS_WITH_AS(store<plain>({.shard = 0, .variables = two_shards(), .divide_by = 0}, clipped),
                       "the sum of a set is divided by 0; expected 1 or more", invalid_argument);
  using frozen = decltype(composed{adam{}, freeze{named{"x"}}});
  CHECK_THROWS_WITH_AS(store<frozen>({.shard = 0, .variables = two_shards()}, composed{adam{}, freeze{named{"x"}}}),
                       "the mask of freeze matches no variable of \"w\", \"b\"; mend the mask, or leave freeze out",
                       invalid_argument);
  // A mask that fits a variable of another shard is right here too.
  store<frozen>({.shard = 0, .variables = two_shards()}, composed{adam{}, freeze{named{"b"}}});
}
TEST_CASE("state that lacks something, or does not fit, is refused and changes nothing") {
  server_of s(clipped);
  s.update(1, {of({1, 2, 3}, {4, 5})});
  const auto before = saved(*s.all[0]);
  const auto all = s.state();
  const auto refused = [&](auto spoil, const char* what) {
    std::vector<wire_slice> parts = all;
    spoil(parts);
    CHECK_THROWS_WITH_AS(s.all[0]->restore(7, parts), what, data_loss);
    CHECK(saved(*s.all[0]) == before);
  };
  using parts = std::vector<wire_slice>&;
  const auto without = [](parts p, std::string_view name) {
    std::erase_if(p, [&](const wire_slice& x) { return x.name == name; });
  };
  refused([&](parts p) { without(p, "w"); }, "there are no values of \"w\", which lies on shard 0");
  refused([&](parts p) { without(p, "w/Adam"); }, "there is \"w/Adam_1\" and no \"w/Adam\"; expected both, or neither");
  refused([&](parts p) { without(p, "beta2_power"); },
          "there is \"beta1_power\" and no \"beta2_power\"; expected both, or neither");
  refused([&](parts p) { without(p, "beta1_power"), without(p, "beta2_power"); },
          "there are slots of variables, and no \"beta1_power\" with them");
  refused([&](parts p) { p[0].bytes = p[0].bytes.first(8); },
          "the state \"w\" has 2 elements of float32; expected 3 of float32");
  CHECK_THROWS_WITH_AS(s.all[0]->restore(~std::uint64_t{0}, all),
                       "state as it is after 18446744073709551615 updates; expected 2^63 - 1 at most", data_loss);
  // A snapshot of another shard, and one that was cut.
  const auto other = saved(*s.all[1]);
  detail::bytes_in in(other, "store");
  CHECK_THROWS_WITH_AS(s.all[0]->load(in), "malformed store: it goes on with \"b\"; expected \"w\"", data_loss);
  for (std::size_t n = 0; n < before.size(); n += 7) {
    detail::bytes_in cut(std::span<const std::byte>(before).first(n), "store");
    CHECK_THROWS_AS(s.all[0]->load(cut), data_loss);
  }
  CHECK(saved(*s.all[0]) == before);
}
TEST_CASE("values alone start the slots, at any step; a store's own state is taken as anyone's") {
  server_of s(clipped), fresh(clipped);
  s.update(1, {of({1, 2, 3}, {4, 5})});
  s.all[0]->restore(0, s.initial());
  CHECK(saved(*s.all[0]) == saved(*fresh.all[0]));
  s.all[0]->restore(40, s.initial());
  CHECK(s.all[0]->global_step() == 40);
  const auto state = saved(*s.all[0]);
  s.all[0]->restore(40, s.all[0]->state());
  CHECK(saved(*s.all[0]) == state);
  store<plain> unfilled({.shard = 0, .variables = two_shards()}, clipped);
  const auto nothing = saved(unfilled);
  detail::bytes_in in(nothing, "store");
  s.all[0]->load(in);
  CHECK_THROWS_AS(s.open(1, of({1, 2, 3}, {4, 5})), failed_precondition);
}
