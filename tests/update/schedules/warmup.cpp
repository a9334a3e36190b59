#include <gradus/update/schedules/warmup.hpp>

#include <doctest/doctest.h>

#include <gradus/update/schedules/cosine.hpp>

#include "../schedule_cases.hpp"

using namespace gradus;
using golden::json, golden::take;

TEST_CASE("linear_warmup and warmup_cosine_decay give Optax's rates") {
  CHECK(golden::check_cases("linear_warmup", [](const json& a) {
          linear_warmup s{.peak = a["peak"].get<double>()};
          take(a, "warmup_steps", s.warmup_steps), take(a, "init", s.initial);
          return s;
        }) == 1);
  CHECK(golden::check_cases("warmup_cosine", [](const json& a) {
          warmup_cosine_decay s{.peak = a["peak"].get<double>()};
          take(a, "init", s.initial), take(a, "warmup_steps", s.warmup_steps), take(a, "decay_steps", s.decay_steps);
          take(a, "end", s.end);
          return s;
        }) == 2);
  constexpr linear_warmup up{.initial = 1, .peak = 3, .warmup_steps = 8};
  static_assert(up(0) == 1 && up(4) == 2 && up(8) == 3 && up(1'000'000'000'000) == 3);
  static_assert(linear_warmup{.initial = 1, .peak = 3, .warmup_steps = 0}(0) == 3);
  constexpr warmup_cosine_decay all{.peak = 2, .warmup_steps = 4, .decay_steps = 12, .end = 1};
  static_assert(all(0) == 0 && all(2) == 1 && all(4) == 2 && all(8) == 1.5 && all(12) == 1 && all(99) == 1);
  static_assert(warmup_cosine_decay{.peak = 2, .warmup_steps = 4, .decay_steps = 4, .end = 1}(4) == 1);
  golden::check_pure(all);
}

TEST_CASE("a warm-up and then a cosine is Optax's warm-up cosine") {
  const auto parts = linear_warmup{.initial = 0.01, .peak = 0.2, .warmup_steps = 30}.then(
      cosine_decay{.initial = 0.2, .decay_steps = 60});
  const warmup_cosine_decay whole{.initial = 0.01, .peak = 0.2, .warmup_steps = 30, .decay_steps = 90};
  for (std::int64_t s = 0; s < 200; ++s) CHECK(parts(s) == doctest::Approx(whole(s)).epsilon(1e-14));
  golden::check_pure(parts);
}

TEST_CASE("warmup_stable_decay gives Hugging Face's rates") {
  const auto make = [](const json& a) {
    warmup_stable_decay s{.peak = a["peak"].get<double>()};
    take(a, "warmup", s.warmup_steps), take(a, "stable", s.stable_steps), take(a, "decay", s.decay_steps);
    take(a, "min_ratio", s.min_ratio);
    const auto type = a.value("decay_type", "linear");
    s.decay_type = type == "linear"   ? decay_type::linear
                   : type == "cosine" ? decay_type::cosine
                                      : decay_type::one_minus_sqrt;
    return s;
  };
  CHECK(golden::check_cases("wsd", make) == 2);
  const warmup_stable_decay root{.peak = 2,
                                 .warmup_steps = 2,
                                 .stable_steps = 3,
                                 .decay_steps = 16,
                                 .min_ratio = 0.5,
                                 .decay_type = decay_type::one_minus_sqrt};
  CHECK(root(0) == 1);  // the warm-up starts at min_ratio
  CHECK(root(1) == 1.5);
  CHECK(root(2) == 2);
  CHECK(root(4) == 2);
  CHECK(root(5) == 2);
  CHECK(root(9) == 1.5);    // 1 - sqrt(4 / 16) = 1/2 of the way
  CHECK(root(14) == 1.25);  // 1 - sqrt(9 / 16) = 1/4
  CHECK(root(21) == 1);
  CHECK(root(1'000'000'000'000) == 1);
  golden::check_pure(root);
}

TEST_CASE("inverse_sqrt and noam") {
  CHECK(golden::check_cases("inverse_sqrt", [](const json& a) {
          inverse_sqrt s{.peak = a["peak"].get<double>()};
          take(a, "warmup", s.warmup_steps), take(a, "timescale", s.timescale);
          return s;
        }) == 1);
  const inverse_sqrt cold{.peak = 3};  // no warm-up: a timescale of 10000
  CHECK(cold(0) == 3);
  CHECK(cold(30000) == 1.5);
  const inverse_sqrt own{.peak = 2, .warmup_steps = 10, .timescale = 100};
  CHECK(own(5) == 1);
  CHECK(own(10) == 2);
  CHECK(own(310) == 1);
  CHECK(golden::check_cases("noam", [](const json& a) {
          noam s{};
          take(a, "d_model", s.d_model), take(a, "warmup", s.warmup_steps);
          return s;
        }) == 1);
  const noam n{.d_model = 64, .warmup_steps = 16, .factor = 2};
  CHECK(n(0) == 0);
  CHECK(n(16) == 2.0 / 32);
  CHECK(n(4) == 2.0 / 128);
  CHECK(n(64) == 2.0 / 64);
  golden::check_pure(own);
  golden::check_pure(n);
}
