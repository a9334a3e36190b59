// This header includes and lists every schedule, for gradus.hpp, the tables in docs/schedules.md, and tests that run
// over all schedules.
#pragma once
#include "schedules/cosine.hpp"
#include "schedules/decay.hpp"
#include "schedules/one_cycle.hpp"
#include "schedules/plateau.hpp"
#include "schedules/sequence.hpp"
#include "schedules/warmup.hpp"

namespace gradus::inline GRADUS_BUILD {

template <class... Schedules>
struct schedule_list {
  static constexpr std::size_t size = sizeof...(Schedules);
  // Calls f(std::type_identity<schedule>{}) for each.
  template <class F>
  static constexpr void for_each(F&& f) {
    (f(std::type_identity<Schedules>{}), ...);
  }
};

// The schedules that are functions of the step alone, in the order of the page. (reduce_on_plateau is not in the list,
// since it observes a value; nor are those of sequence.hpp, which combine other schedules.)
using all_schedules =
    schedule_list<constant, exponential_decay, natural_exp_decay, inverse_time_decay, polynomial_decay,
                  piecewise_constant, cosine_decay, cosine_decay_restarts, linear_cosine_decay,
                  noisy_linear_cosine_decay, linear_warmup, warmup_cosine_decay, warmup_stable_decay, inverse_sqrt,
                  noam, one_cycle, cosine_onecycle, linear_onecycle>;

}  // namespace gradus
