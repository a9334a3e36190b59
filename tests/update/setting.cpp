#include <gradus/update/setting.hpp>

#include <gradus/update/accumulate.hpp>
#include <gradus/update/average.hpp>
#include <gradus/update/clip.hpp>
#include <gradus/update/composed.hpp>
#include <gradus/update/lookahead.hpp>
#include <gradus/update/loss_scale.hpp>
#include <gradus/update/noise.hpp>
#include <gradus/update/rules.hpp>
#include <gradus/update/weight_decay.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <tuple>

using namespace gradus;

TEST_CASE("check_setting names rule, setting, what was expected and what came") {
  check_setting(true, "Rule", "size", 0, "> 0");
  CHECK_THROWS_WITH_AS(check_setting(false, "Rule", "size", -2.5, "> 0"), "Rule: expected `size` > 0, found -2.5",
                       invalid_argument);
}

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity(), least = std::numeric_limits<double>::denorm_min(),
                 most = std::numeric_limits<double>::max(), not_a_number = std::numeric_limits<double>::quiet_NaN();

// ---- How many numbers an aggregate has for a user to set, read off the type and not off its table: the fields that a
// braced list takes a number for.
struct anything {
  template <class T>
  operator T() const {
    return {};
  }
};
template <class T>
struct only {
  operator T() const { return {}; }
};
template <class R, std::size_t Before, class Here, std::size_t After>
consteval bool takes_list() {
  return []<std::size_t... B, std::size_t... A>(std::index_sequence<B...>, std::index_sequence<A...>) {
    return requires { R{(void(B), anything{})..., Here{}, (void(A), anything{})...}; };
  }(std::make_index_sequence<Before>{}, std::make_index_sequence<After>{});
}
template <class R, std::size_t N = 1>
consteval std::size_t fields() {
  if constexpr (takes_list<R, N, anything, 0>())
    return fields<R, N + 1>();
  else
    return N;
}
template <class R, std::size_t I, class T>
consteval bool is_field_of() {
  constexpr std::size_t after = fields<R>() - I - 1;
  // With one more in the list it would be the first of a nested aggregate.
  return takes_list<R, I, only<T>, after>() && !takes_list<R, I, only<T>, after + 1>();
}
template <class R>
consteval std::size_t numbers() {
  return []<std::size_t... I>(std::index_sequence<I...>) {
    return (std::size_t{0} + ... +
            std::size_t{is_field_of<R, I, double>() || is_field_of<R, I, std::int64_t>() || is_field_of<R, I, int>() ||
                        is_field_of<R, I, std::uint64_t>()});
  }(std::make_index_sequence<fields<R>()>{});
}
struct sample {
  double a = 0;
  std::optional<double> b = {};
  bool c = false;
  newton_schulz_coefficients d = {};
  std::int64_t e = 0;
  sparse_mode f = {};
  int g = 0;
};
static_assert(fields<sample>() == 7 && numbers<sample>() == 4);

using all_parts = std::tuple<clip_by_value, clip_by_norm, clip_by_average_norm, clip_by_global_norm, adaptive_clip,
                             lookahead, exponential_moving_average, stochastic_weight_average, accumulate,
                             gradient_noise, dynamic_loss_scale, static_loss_scale>;
template <class F>
void each_part(F f) {
  [&]<class... P>(std::type_identity<std::tuple<P...>>) {
    (f(std::type_identity<P>{}), ...);
  }(std::type_identity<all_parts>{});
}
// What a loss scale keeps from step to step lies beside its settings.
template <class P>
constexpr std::size_t state_numbers = std::is_same_v<P, dynamic_loss_scale> ? 2 : 0;

// Numbers of which each range has some inside and some outside.
constexpr double probes[] = {not_a_number, -infinity, -most, -1.5, -1,   -0.5, -least, -0.0,     0.0,  least,
                             0.5,          1 - 1e-16, 1,     1.5,  99.5, 100,  2,      infinity, most, 3};
bool inside(setting_range range, double x) {  // the words, as they are read
  const bool finite = std::isfinite(x);
  switch (range) {
  case setting_range::number: return !std::isnan(x);
  case setting_range::finite: return finite;
  case setting_range::not_negative: return finite && x >= 0;
  case setting_range::positive: return finite && x > 0;
  case setting_range::not_positive: return finite && x <= 0;
  case setting_range::one_or_more: return finite && x >= 1;
  case setting_range::below_one: return finite && x < 1;
  case setting_range::below_hundred: return x >= 0 && x < 100;
  case setting_range::unit: return x >= 0 && x <= 1;
  case setting_range::half_open: return x >= 0 && x < 1;
  case setting_range::positive_unit: return x > 0 && x <= 1;
  }
  return false;
}

// Making this raises invalid_argument and names what is wrong.
template <class F>
void refused(const std::string& owner, std::string_view setting, double value, F make) {
  INFO(owner, " ", std::string(setting), " ", value);
  try {
    make();
    FAIL_CHECK("nothing was refused");
  } catch (const invalid_argument& e) {
    const std::string said = e.what();
    INFO(said);
    CHECK(said.find(owner + ": expected `" + std::string(setting) + "` ") == 0);
    CHECK(said.find(", found " + text(value) + "; give a value in that range") != std::string::npos);
  }
}
template <class P, class F>
void every_line_is_checked(const P& fine, F make) {
  make(fine);
  for (const auto& line : detail::settings_of<P>)
    for (const double x : probes) {
      P wrong = fine;
      if (line.takes(x) || (line.whole() && !(x >= -100 && x <= 100))) continue;
      line.set(wrong, x);
      if (line.value(wrong) != x && !std::isnan(x)) continue;  // its type does not hold x
      refused(std::string(detail::setting_owner<P>()), line.name, *line.value(wrong), [&] { make(wrong); });
    }
}

}  // namespace

TEST_CASE("ranges are what their words say") {
  for (int r = 0; r <= static_cast<int>(setting_range::positive_unit); ++r)
    for (const double x : probes) {
      const auto range = static_cast<setting_range>(r);
      INFO(std::string(detail::range_words(range)), " of ", x);
      CHECK(detail::is_in_range(range, x) == inside(range, x));
    }
}
TEST_CASE("the tables of the rules have every number that can be set") {
  all_rules::for_each([]<class R>(std::type_identity<R>) {
    INFO(R::name);
    CHECK(R::settings().size() == numbers<R>());
    static const R rule{};  // g++ 12 takes the number of an empty optional of a temporary for one that is used
    for (const auto& line : R::settings()) {
      const auto usual = line.value(rule);
      if (usual.has_value()) CHECK(line.takes(*usual));  // defaults are allowed
    }
  });
  each_part([]<class P>(std::type_identity<P>) {
    INFO(std::string(P::called));
    CHECK(P::settings().size() == numbers<P>() - state_numbers<P>);
  });
  CHECK(weight_decay<>::settings().size() == 1);
}
TEST_CASE("every rule refuses every setting outside of its range") {
  all_rules::for_each([]<class R>(std::type_identity<R>) {
    R fine{};
    fine.rate = 0.5;
    every_line_is_checked(fine, [](const R& r) { composed u{r}; });
  });
}
TEST_CASE("so does every part, wherever it stands") {
  const gradient_descent rule{.rate = 1};
  each_part([&]<class P>(std::type_identity<P>) {
    every_line_is_checked(P{}, [&](const P& p) {
      if constexpr (std::is_same_v<P, lookahead>)
        composed u{chain{rule, p}};
      else
        composed u{p, rule};
    });
  });
  every_line_is_checked(weight_decay{0.5}, [&](const weight_decay<>& p) { composed u{chain{p, rule}}; });
  every_line_is_checked(clip_by_norm{}, [&](const clip_by_norm& p) {
    composed u{multi{on{named{"a"}, chain{chain{p, rule}}}, rule}};
  });
}
TEST_CASE("the remedy is in the message") {
  CHECK_THROWS_WITH_AS(
      (composed{adam{.beta1 = 1.5}}),
      "Adam: expected `beta1` in [0, 1), found 1.5; give a value in that range, or leave it out for 0.9",
      invalid_argument);
  CHECK_THROWS_WITH_AS((composed{momentum{.rate = -1}}),
                       "Momentum: expected `rate` >= 0, found -1; give a value in that range", invalid_argument);
  CHECK_THROWS_WITH_AS((composed{muon{.fallback = {.epsilon = -1}}}),
                       "Muon: expected `fallback.epsilon` >= 0, found -1", invalid_argument);
}
