// Policies as bytes: every rule with every setting, every schedule, and what they are put into.
#include <gradus/cluster/plain_bytes.hpp>
#include <gradus/cluster/shard_program.hpp>
#include <gradus/cluster/staleness.hpp>
#include <gradus/rules.hpp>
#include <gradus/run/microbatch.hpp>
#include <gradus/schedules.hpp>
#include <gradus/update/matching.hpp>
#include <gradus/update/noise.hpp>

#include <doctest/doctest.h>

#include <functional>

#include "../message.hpp"

using namespace gradus;
using namespace gradus::detail;

namespace {
template <class T>
std::vector<std::byte> bytes_of(const T& x) {
  std::vector<std::byte> b;
  bytes_out out(b);
  put_plain(out, x);
  return b;
}
kept_texts kept_here;
template <class T>
T back(const T& x) {
  const auto b = bytes_of(x);
  bytes_in in(b, "policy");
  T made = take_plain<T>(in, kept_here);
  in.end();
  CHECK(bytes_of(made) == b);
  CHECK(show_plain(made) == show_plain(x));
  // Cut short it is refused, whatever is missing.
  for (std::size_t n = 0; n < b.size(); ++n) {
    bytes_in less(std::span<const std::byte>(b).first(n), "policy");
    CHECK_THROWS_AS((take_plain<T>(less, kept_here), less.end()), data_loss);
  }
  return made;
}
// A value that the setting takes and that is not the one it has.
template <class R>
double other_value(const setting<R>& s, const R& of) {
  for (const double x : {0.25, 0.5, 3.0, 2.0, 1.0, 0.0, -1.0})
    if (s.takes(x) && s.value(of) != x) return x;
  FAIL(std::string(s.name));
  return 0;
}
}  // namespace

TEST_CASE("every setting of every rule arrives, and shows") {
  std::size_t settings = 0;
  all_rules::for_each([&]<class R>(std::type_identity<R>) {
    static_assert(can_send<R>);
    for (const auto& s : R::settings()) {
      R rule{};
      const std::string shown = show_plain(rule);
      const double x = other_value(s, rule);
      s.set(rule, x);
      CAPTURE(R::name);
      CAPTURE(s.name);
      CHECK(s.value(back(rule)) == x);
      CHECK(show_plain(rule) != shown);
      ++settings;
    }
  });
  CHECK(settings > 100);
}

TEST_CASE("choices and lists of a rule arrive") {
  CHECK(back(adam{.sparse = sparse_mode::decay_all}).sparse == sparse_mode::decay_all);
  CHECK(back(momentum{.rate = 1, .use_nesterov = true}).use_nesterov);
  const auto steps = back(piecewise_constant{.boundaries = {10, 20}, .values = {0.1, 0.2, 0.3}});
  for (const int at : {0, 10, 11, 20, 21}) CHECK(steps(at) == (at <= 10 ? 0.1 : at <= 20 ? 0.2 : 0.3));
}

TEST_CASE("schedules arrive with their values") {
  const auto same = [](const auto& s) {
    const auto there = back(s);
    for (const std::int64_t step : {0, 1, 7, 100, 999, 5000}) CHECK(there(step) == s(step));
  };
  same(constant{0.3});
  same(exponential_decay{.initial = 0.3, .decay_steps = 10, .decay_rate = 0.5, .staircase = true});
  same(natural_exp_decay{.initial = 0.3, .decay_steps = 10, .decay_rate = 0.5});
  same(inverse_time_decay{.initial = 0.3, .decay_steps = 10, .decay_rate = 0.5, .staircase = true});
  same(polynomial_decay{.initial = 0.3, .decay_steps = 10, .end = 0.01, .power = 2, .cycle = true});
  same(cosine_decay{.initial = 0.3, .decay_steps = 10});
  same(one_cycle{});
  same(cosine_onecycle{});
  same(linear_onecycle{});
  same(warmup_cosine_decay{});
  same(warmup_stable_decay{});
  same(inverse_sqrt{});
  same(noam{});
  same(sequence(constant{0.1}, 90, linear_warmup{.peak = 0.1, .warmup_steps = 500}));
  same(product_of(linear_warmup{.peak = 1, .warmup_steps = 500}, exponential_decay{.initial = 2, .decay_steps = 3}));
  static_assert(can_send<reduce_on_plateau>);
}

TEST_CASE("groups, chains, masks and varied settings arrive") {
  CHECK(back(float_constants{adam{.rate = 0.5, .beta1 = 0.7}}).beta1 == 0.7);
  const auto m =
      back(multi{on{matching("bias$"), adam{.beta1 = 0.5}, 2.0},
                 on{named{"encoder/"}, chain{clip_by_value{-1, 1}, weight_decay{0.01, matrices{}}, gradient_descent{}},
                    constant{0.5}},
                 on{all_but{matching("x")}, ftrl{}}, gradient_descent{.rate = 3}});
  CHECK(m.group("layer/bias", {2}) == 0);
  CHECK(m.group("encoder/w", {2, 2}) == 1);
  CHECK(m.group("y", {2}) == 2);
  CHECK(m.group("x", {2}) == 3);
  CHECK(std::get<0>(m.groups()).rule.beta1 == 0.5);
  CHECK(std::get<0>(m.groups()).rate_factor == 2);
  CHECK(std::get<1>(m.groups()).schedule(3) == 0.5);
  CHECK(std::get<0>(std::get<1>(m.groups()).rule.parts()).min == -1);
  CHECK(std::get<3>(m.groups()).rule.rate == 3);

  const auto v = back(vary<&clip_by_global_norm::max_norm>([](std::int64_t step) { return 0.5 + double(step); }));
  clip_by_global_norm c{};
  v.what.set(c, v.follows(2));
  CHECK(c.max_norm == 2.5);
  CHECK(show_plain(vary<&adam::beta1>(constant{0.5})) == "{\"beta1\" {0.5}}");
  const auto f = back(gradus::freeze{named{"a"}});
  CHECK((f("ab", {}) && !f("b", {})));
}

TEST_CASE("what points elsewhere cannot be sent") {
  const double captured = 1;
  const auto lambda = [captured](std::int64_t) { return captured; };
  static_assert(!can_send<decltype(lambda)> && !can_send<std::function<double(std::int64_t)>> && !can_send<int*>);
  static_assert(!can_send<multi<on<all_variables, adam, std::remove_const_t<decltype(lambda)>>>>);
  static_assert(!can_send<std::tuple<adam, int*>>);
  CHECK(show_plain(lambda) == "...");
}

TEST_CASE("bytes of a stranger are held against what is there") {
  const auto refused = [](const auto& put, const auto& take) {
    std::vector<std::byte> b;
    bytes_out out(b);
    put(out);
    return message_of(status::data_loss, [&] {
      bytes_in in(b, "policy");
      take(in);
    });
  };
  CHECK(says(refused([](bytes_out& o) { o.number(std::uint32_t{1} << 30); },
                     [](bytes_in& i) { take_plain<std::vector<double>>(i, kept_here); }),
             "1073741824 entries follow"));
  CHECK(says(refused([](bytes_out& o) { o.number(std::uint8_t{200}); },
                     [](bytes_in& i) { take_plain<extents>(i, kept_here); }),
             "rank 200"));
  using varied_beta = decltype(vary<&adam::beta1>(constant{0.5}));
  CHECK(says(refused([](bytes_out& o) { o.string("gamma"), o.number(0.5); },
                     [](bytes_in& i) { take_plain<varied_beta>(i, kept_here); }),
             "there is no setting \"gamma\""));
  std::vector<std::byte> b;
  bytes_out out(b);
  put_plain(out, std::tuple<std::uint64_t, std::array<double, 17>>{1000, {}});
  bytes_in in(b, "policy");
  CHECK_THROWS_AS((take_plain<short_list<double, 17>>(in, kept_here)), invalid_argument);
}

TEST_CASE("settings of a parameter server arrive, and none that no machine can hold") {
  shard_settings s{.of = {.rule = "adam", .settings = {{"policy 0, rate", "0.1"}}},
                   .variables = {{"w", float32, {2, 3}, non_neg, true, 1}, {"b", float64, {}, {}, false, 0}},
                   .divide_by = 6,
                   .decides = {.shape = {2, 3}, .mode = staleness::synchronous, .round = {3, 3, false}},
                   .log = recovery::log{.directory = "logs", .durable = true}};
  const auto b = to_bytes(s);
  bytes_in in(b, "recipe");
  const shard_settings there = shard_settings_from(in);
  CHECK(to_bytes(there) == b);
  CHECK((there.variables[0].dims == extents{2, 3} && there.variables[0].limit.kind == constraint::positive));
  CHECK((there.divide_by == 6 && there.decides.mode == staleness::synchronous && there.decides.round.aggregate == 3));
  CHECK((there.of == s.of && there.log->directory == "logs" && there.log->durable));
  s.variables[0].dims = {std::int64_t{1} << 40, 1024};
  const auto large = to_bytes(s);
  bytes_in large_in(large, "recipe");
  CHECK_THROWS_AS(shard_settings_from(large_in), resource_exhausted);
  s.variables[0].dims = {-1, 2};
  const auto below = to_bytes(s);
  bytes_in below_in(below, "recipe");
  CHECK_THROWS_AS(shard_settings_from(below_in), data_loss);
}
