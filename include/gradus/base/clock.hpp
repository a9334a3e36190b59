// Time is a policy: code that waits, writes time stamps or measures takes a clock, and tests pass a clock that they set
// by hand (testing/clock.hpp). A clock has `now()`, seconds since the epoch, and `elapsed()`, monotonic seconds.
#pragma once
#include "build.hpp"

#include <concepts>
#include <memory>
#include <type_traits>

#include "contract.hpp"

namespace gradus::inline GRADUS_BUILD {

template <class C>
concept clock = requires(const C& c) {
  { c.now() } -> std::convertible_to<double>;
  { c.elapsed() } -> std::convertible_to<double>;
};

// Gives the system's time of day and its monotonic clock.
struct system_clock {
  using policy_for = kind::clock;
  double now() const;
  double elapsed() const;
};
static_assert(clock<system_clock>);

// `any_clock` is a type-erased clock, for code that reads the time once per file or per save.
class any_clock {
public:
  using policy_for = kind::clock;

  template <class C>
    requires(!std::same_as<C, any_clock> && clock<C>)
  any_clock(const C& c) : now_(&now_of<C>), elapsed_(&elapsed_of<C>) {
    if constexpr (!std::is_empty_v<C>) state_ = std::make_shared<const C>(c);
  }
  double now() const { return now_(state_.get()); }
  double elapsed() const { return elapsed_(state_.get()); }

private:
  template <class C>
  static const C& in(const void* state) {
    if constexpr (std::is_empty_v<C>) {
      static const C one{};
      return one;
    } else {
      return *static_cast<const C*>(state);
    }
  }
  template <class C>
  static double now_of(const void* state) {
    return in<C>(state).now();
  }
  template <class C>
  static double elapsed_of(const void* state) {
    return in<C>(state).elapsed();
  }

  double (*now_)(const void*);
  double (*elapsed_)(const void*);
  std::shared_ptr<const void> state_;  // null for a clock without state
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "clock.ipp"
#endif
