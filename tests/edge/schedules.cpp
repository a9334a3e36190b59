// Every schedule, and the functions they are made of, has the same bits on every machine. No heap, no C library.
// boards: with a standard library
// boards: M0 too
// links no heap and no exceptions
// flash at most: m4f 14380, m3 13910
// ram at most: 110
#include <gradus/update/schedules/cosine.hpp>
#include <gradus/update/schedules/decay.hpp>
#include <gradus/update/schedules/one_cycle.hpp>
#include <gradus/update/schedules/plateau.hpp>
#include <gradus/update/schedules/warmup.hpp>

#include "../../examples/starter/board/board.hpp"

namespace gradus {
void on_error(status, const char* message) {
  board::say(message);
  board::leave(1);
}
}  // namespace gradus

using namespace gradus;

namespace {
void add(board::hash& h, double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  h.add(static_cast<std::uint32_t>(bits));
  h.add(static_cast<std::uint32_t>(bits >> 32));
}
template <class S>
void say(const char* name, const S& schedule) {
  board::hash h;
  for (std::int64_t s = 0; s < 300; s += 7) add(h, schedule(s));
  board::say(name, h.word);
}
}  // namespace

int main() {
  board::hash functions;
  random_stream stream{.seed = 2026};
  for (int i = 0; i < 200; ++i) {
    const double x = stream.uniform() * 20, y = stream.uniform() * 30;
    add(functions, portable_math::exp(y));
    add(functions, portable_math::log(x));
    add(functions, portable_math::log2(x));
    add(functions, portable_math::pow(x, y));
    add(functions, portable_math::cos_pi(y));
    add(functions, portable_math::sin_pi(y));
    add(functions, portable_math::cos(y));
  }
  board::say("functions", functions.word);

  say("exponential_decay", exponential_decay{.initial = 0.1, .decay_steps = 30, .decay_rate = 0.7});
  say("natural_exp_decay", natural_exp_decay{.initial = 0.1, .decay_steps = 30, .decay_rate = 0.7});
  say("inverse_time_decay", inverse_time_decay{.initial = 0.1, .decay_steps = 30, .decay_rate = 0.7});
  say("polynomial_decay", polynomial_decay{.initial = 0.1, .decay_steps = 90, .power = 1.7, .cycle = true});
  say("piecewise_constant", piecewise_constant{.boundaries = {50, 99}, .values = {0.3, 0.2, 0.1}});
  say("cosine_decay", cosine_decay{.initial = 0.1, .decay_steps = 250, .alpha = 0.1});
  say("cosine_decay_restarts", cosine_decay_restarts{.initial = 0.1, .first_decay_steps = 20, .m_mul = 0.7});
  say("linear_cosine_decay", linear_cosine_decay{.initial = 0.1, .decay_steps = 250, .alpha = 0.1});
  say("noisy_linear_cosine_decay", noisy_linear_cosine_decay{.initial = 0.1, .decay_steps = 250, .seed = 3});
  say("warmup_cosine_decay", warmup_cosine_decay{.peak = 0.1, .warmup_steps = 50, .decay_steps = 250, .end = 0.01});
  say("warmup_stable_decay", warmup_stable_decay{.peak = 0.1,
                                                 .warmup_steps = 50,
                                                 .stable_steps = 50,
                                                 .decay_steps = 150,
                                                 .min_ratio = 0.1,
                                                 .decay_type = decay_type::one_minus_sqrt});
  say("inverse_sqrt", inverse_sqrt{.peak = 0.1, .warmup_steps = 50});
  say("noam", noam{.d_model = 192, .warmup_steps = 70});
  say("one_cycle", one_cycle{.peak = 0.1, .total_steps = 250});
  say("cosine_onecycle", cosine_onecycle{.transition_steps = 250, .peak = 0.1});
  say("linear_onecycle", linear_onecycle{.transition_steps = 250, .peak = 0.1});

  reduce_on_plateau plateau{.initial = 0.1, .factor = 0.3, .patience = 1};
  for (int i = 0; i < 20; ++i) plateau.observe(static_cast<double>(i % 7));
  say("composition",
      product_of(
          scaled(linear_warmup{.peak = 1, .warmup_steps = 40}.then(cosine_decay{.initial = 1, .decay_steps = 200}),
                 1.3),
          plateau));
  return 0;
}
