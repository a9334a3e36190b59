// one thread: nothing here runs at the same time
#include <gradus/run/moving_average.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "../golden/golden.hpp"

using namespace gradus;

namespace {

template <class T>
void replay(const golden::json& c, double rtol, double atol) {
  INFO(c["id"].get<std::string>());
  const bool variable = !c["initial"].is_null();
  std::vector<T> x(c["values"][0].size());
  if (variable) x = golden::numbers<T>(c["initial"]);
  moving_averages averages{
      {.decay = c["decay"].get<double>(), .zero_debias = c["zero_debias"].get<bool>(), .name = "average"}};
  if (variable)
    averages.track("x", x);
  else
    averages.track_tensor("x", x);
  for (std::size_t i = 0; i < c["values"].size(); ++i) {
    const auto value = golden::numbers<T>(c["values"][i]);
    std::copy(value.begin(), value.end(), x.begin());
    if (c["num_updates"].is_null())
      averages.apply();
    else
      averages.apply(c["num_updates"][i].template get<double>());
    const auto got = averages.average("x")->template as<T>();
    const auto want = golden::numbers<double>(c["expect"][i]);
    REQUIRE(got.size() == want.size());
    for (std::size_t k = 0; k < got.size(); ++k) CHECK(golden::near(static_cast<double>(got[k]), want[k], rtol, atol));
  }
}

// The same through the bare function.
template <class T>
void replay_bare(const golden::json& c, double rtol, double atol) {
  INFO(c["id"].get<std::string>());
  std::vector<T> shadow(c["values"][0].size()), biased(shadow.size());
  if (!c["initial"].is_null()) shadow = golden::numbers<T>(c["initial"]);
  zero_debias<T> state{.biased = biased};
  for (std::size_t i = 0; i < c["values"].size(); ++i) {
    double decay = c["decay"].get<double>();
    if (!c["num_updates"].is_null()) {
      const double n = c["num_updates"][i].template get<double>();
      decay = std::min(decay, (1 + n) / (10 + n));
    }
    const auto value = golden::numbers<T>(c["values"][i]);
    if (c["zero_debias"].get<bool>())
      assign_moving_average<T>(shadow, value, decay, state);
    else
      assign_moving_average<T>(shadow, value, decay);
    const auto want = golden::numbers<double>(c["expect"][i]);
    for (std::size_t k = 0; k < shadow.size(); ++k)
      CHECK(golden::near(static_cast<double>(shadow[k]), want[k], rtol, atol));
  }
}

}  // namespace

TEST_CASE("averages are TensorFlow's, in float64 to the case's tolerance and in float32 to 2e-6") {
  int n = 0;
  for (const auto& c : golden::read("schedules.json")) {
    if (c["kind"] != "ema") continue;
    const double rtol = c["rtol"].get<double>(), atol = c["atol"].get<double>();
    replay<double>(c, rtol, atol);
    replay_bare<double>(c, rtol, atol);
    replay<float>(c, rtol + 2e-6, atol + 2e-6);
    replay_bare<float>(c, rtol + 2e-6, atol + 2e-6);
    ++n;
  }
  CHECK(n == 11);
}

TEST_CASE("a variable's average starts at its value and is not debiased, a tensor's starts at 0") {
  std::array<double, 2> w{8, -8};
  double loss[1] = {4};
  moving_averages averages{{.decay = 0.5, .zero_debias = true}};
  averages.track("w", w);
  averages.track_tensor("loss", std::span<const double>(loss));
  CHECK(averages.average("w")->as<double>()[1] == -8);
  CHECK(averages.average("loss")->as<double>()[0] == 0);
  CHECK(!averages.average("v").has_value());
  averages.apply();
  CHECK(averages.average("w")->as<double>()[0] == 8);
  CHECK(averages.average("loss")->as<double>()[0] == 4);
  w = {0, 0}, loss[0] = 1;
  averages.apply();
  CHECK(averages.average("w")->as<double>()[0] == 4);
  CHECK(averages.average("loss")->as<double>()[0] == 2);  // (4 + 2 * 1) / 3
  averages.apply({"w"});
  CHECK(averages.average("w")->as<double>()[0] == 2);
  CHECK(averages.average("loss")->as<double>()[0] == 2);
  averages.apply({"w"}, 0);  // d = 1/10
  CHECK(averages.average("w")->as<double>()[0] == doctest::Approx(0.2));
  CHECK(averages.moving_average_variables() == std::vector<std::string>{"w"});
}

TEST_CASE("the bits are those of the formula without fused operations") {
  std::vector<float> w(1001), shadow;
  moving_averages averages{{.decay = 0.99}};
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = 1 / (static_cast<float>(i) + 3);
  averages.track("w", w);
  shadow = w;
  for (int s = 0; s < 5; ++s) {
    for (std::size_t i = 0; i < w.size(); ++i) w[i] = w[i] * 1.7f;
    averages.apply();
    for (std::size_t i = 0; i < w.size(); ++i) {
      volatile float product = static_cast<float>(1 - 0.99) * (shadow[i] - w[i]);
      shadow[i] = shadow[i] - product;
    }
    CHECK(std::memcmp(shadow.data(), averages.average("w")->data, shadow.size() * sizeof(float)) == 0);
  }
}

TEST_CASE("names are TensorFlow's") {
  float w[2] = {}, other[2] = {};
  moving_averages averages;
  CHECK(averages.options().decay == 0.9999);
  CHECK(averages.average_name("w") == "w/ExponentialMovingAverage");
  averages.track("w", std::span(w));
  CHECK(averages.average_name("w") == "w/ExponentialMovingAverage");
  averages.track("v/ExponentialMovingAverage", std::span(other));
  CHECK(averages.average_name("v") == "v/ExponentialMovingAverage_1");
  averages.track("w", std::span(w));  // again: the same average
  CHECK(averages.moving_average_variables().size() == 2);
}

TEST_CASE("variables_to_restore") {
  float w[2] = {}, loss[1] = {}, frozen[1] = {};
  moving_averages averages{{.zero_debias = true, .name = "ema"}};
  averages.track("w", std::span(w));
  averages.track("frozen", std::span(frozen));
  averages.track_tensor("loss", std::span(loss));
  using pairs = std::vector<moving_averages::restored>;
  const pairs shadows{
      {"loss/ema", "loss/ema"}, {"loss/ema/biased", "loss/ema/biased"}, {"loss/ema/local_step", "loss/ema/local_step"}};
  const auto with = [&](pairs first) {
    first.insert(first.end(), shadows.begin(), shadows.end());
    return first;
  };
  // b is trainable but was never tracked: it is read from its average all the same.
  CHECK(averages.variables_to_restore({"w", "b"}, {"w", "b", "frozen", "global_step"}) ==
        with({{"w/ema", "w"}, {"b/ema", "b"}, {"frozen/ema", "frozen"}, {"global_step", "global_step"}}));
  // Given by name: the tracked ones come as themselves, and so does the shadow of frozen.
  CHECK(averages.variables_to_restore_of({"w", "w"}, {"w", "b", "frozen"}) ==
        with({{"w/ema", "w"}, {"b", "b"}, {"frozen", "frozen"}, {"frozen/ema", "frozen/ema"}}));
  // A list of everything names the shadows too: nothing comes twice.
  CHECK(averages.variables_to_restore({"w"}, {"w", "w/ema", "frozen", "frozen/ema", "loss/ema"}) ==
        with({{"w/ema", "w"}, {"frozen/ema", "frozen"}}));
}

TEST_CASE("swapped in and out, every bit is back") {
  const float payload = std::bit_cast<float>(0x7fc12345u);  // a NaN with a message
  std::vector<float> w{1, -0.0f, payload, std::numeric_limits<float>::infinity(), 1e-45f};
  float loss[1] = {3};
  moving_averages averages{{.decay = 0.5}};
  averages.track("w", w);
  averages.track_tensor("loss", std::span(loss));
  w[0] = 3;
  averages.apply();
  const std::vector<float> mine = w;
  {
    moving_averages::in_place evaluation(averages);
    CHECK(averages.swapped());
    CHECK(w[0] == 2);
    CHECK(loss[0] == 3);
    CHECK(averages.average("w")->as<float>()[0] == 3);
    CHECK_THROWS_WITH_AS(averages.apply(), "the averages are swapped in; expected swap_out before apply",
                         failed_precondition);
    state_list list;
    CHECK_THROWS_AS(averages.remembers(list), failed_precondition);
    CHECK_THROWS_AS(averages.swap_in(), failed_precondition);
    CHECK_THROWS_AS(averages.track("v", std::span(loss)), failed_precondition);
  }
  CHECK(!averages.swapped());
  CHECK(std::memcmp(w.data(), mine.data(), w.size() * sizeof(float)) == 0);
  CHECK(averages.average("w")->as<float>()[0] == 2);
  averages.swap_in();
  averages.swap_out();
  CHECK(std::memcmp(w.data(), mine.data(), w.size() * sizeof(float)) == 0);
  CHECK_THROWS_AS(averages.swap_out(), failed_precondition);
}

TEST_CASE("one array under two names, or in parts, is back after an evaluation") {
  std::vector<float> w{1, 2};
  moving_averages averages{{.decay = 0.5}};
  averages.track("w", w);
  averages.track("tied", w);
  averages.track("half", std::span(w).first(1));
  w = {3, 6};
  averages.apply();
  averages.swap_in();
  CHECK(w == std::vector<float>{2, 4});
  averages.swap_out();
  CHECK(w == std::vector<float>{3, 6});
  for (const char* name : {"w", "tied", "half"}) CHECK(averages.average(name)->as<float>()[0] == 2);
}

TEST_CASE("the state goes on where it was saved, to the bit") {
  const auto value = [](int i) { return std::array<double, 2>{1.0 / (i + 1), std::sqrt(i + 2.0)}; };
  struct run {
    std::array<double, 2> w{0.5, 0.25}, x{};
    moving_averages averages{{.decay = 0.9, .zero_debias = true}};
    run() { averages.track("w", w), averages.track_tensor("x", x); }
    void step(const std::array<double, 2>& v, int i) {
      w = x = v;
      averages.apply(i);
    }
  };
  run whole, first, second;
  for (int i = 0; i < 20; ++i) {
    whole.step(value(i), i);
    (i < 9 ? first : second).step(value(i), i);
    if (i != 8) continue;
    state_list from, to;
    first.averages.remembers(from), second.averages.remembers(to);
    REQUIRE(from.entries().size() == 4);
    CHECK(from.find("x/ExponentialMovingAverage/local_step")->type == float64);
    for (const auto& e : from.entries()) {
      REQUIRE(to.find(e.name) != nullptr);
      std::memcpy(to.find(e.name)->bytes.data(), e.bytes.data(), e.bytes.size());
    }
  }
  for (const char* name : {"w", "x"})
    CHECK(std::memcmp(whole.averages.average(name)->data, second.averages.average(name)->data, 16) == 0);
}

TEST_CASE("errors") {
  std::int32_t whole[2] = {};
  float w[2] = {}, v[2] = {};
  moving_averages averages;
  CHECK_THROWS_WITH_AS(averages.track("n", std::span(whole)), "expected float32 or float64 for \"n\", found int32",
                       invalid_argument);
  CHECK_THROWS_AS(averages.track("", std::span(w)), invalid_argument);
  averages.track("w", std::span(w));
  CHECK_THROWS_AS(averages.track("w", std::span(v)), already_exists);
  CHECK_THROWS_AS(averages.track_tensor("w", std::span(w)), already_exists);
  w[0] = 1;
  CHECK_THROWS_AS(averages.apply({"w", "v"}), not_found);
  CHECK(averages.average("w")->as<float>()[0] == 0);  // nothing was done
  float one[1] = {};
  CHECK_THROWS_AS(assign_moving_average<float>(w, one, 0.5), invalid_argument);
  zero_debias<float> state{.biased = one};
  CHECK_THROWS_AS(assign_moving_average<float>(w, v, 0.5, state), invalid_argument);
  CHECK(state.local_step == 0);
}
