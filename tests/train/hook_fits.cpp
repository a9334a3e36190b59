// What the error pages take; what they refuse, and in which words, is in tests/refuse/hook_*.cpp.
#include <gradus/train/hook_fits.hpp>

#include <doctest/doctest.h>

using namespace gradus;

namespace {
struct every_name {
  using policy_for = kind::hook;
  void begin() {}
  void after_create_session(hooked_session&) {}
  void before_run(run_context&) {}
  void after_run(run_context&, const run_values&) {}
  void end(hooked_session&) {}
};
// What can be called as a hook is called is enough.
struct other_words {
  using policy_for = kind::hook;
  int begin(int = 0) const { return 0; }
  static void before_run(auto&) {}
  void after_run(const run_context&, run_values) const {}
  void end(const hooked_session&) const {}
};
struct listener {
  using policy_for = kind::saving_listener;
  bool after_save(hooked_session&, std::int64_t) { return false; }
};
struct silent_listener {
  using policy_for = kind::saving_listener;
  void before_save(const hooked_session&, double) {}
  void after_save(hooked_session&, const std::int64_t&) const {}
  void end(hooked_session&, std::int64_t) {}
};
struct final_one final {
  using policy_for = kind::hook;
  void begin() {}
};
// A hook's own business may have any name that is no near one.
struct with_business {
  using policy_for = kind::hook;
  void end(hooked_session&) {}
  void report() {}
  int run = 0, beginning = 0, session = 0;
};
static_assert(hook_fits<every_name>::value && hook_fits<other_words>::value && hook_fits<final_one>::value);
static_assert(hook_fits<with_business>::value);
static_assert(saving_listener_fits<listener>::value && saving_listener_fits<silent_listener>::value);
static_assert(detail::hooks_fit<every_name, int, const listener&>::value);
// What a page would refuse, seen by what it asks.
template <class T>
constexpr bool near_name = detail::has_a_near_name<T>;
struct afterRun_of_java {
  void afterRun() {}
};
struct on_step_end_of_keras {
  void on_step_end(int, int) {}
};
struct overloaded {
  void ends() {}
  void ends(int) {}
};
class hidden : overloaded {};
static_assert(near_name<afterRun_of_java> && near_name<on_step_end_of_keras> && near_name<overloaded>);
static_assert(!near_name<listener> && !near_name<with_business> && !near_name<every_name>);
static_assert(near_name<hidden>);
}  // namespace

TEST_CASE("the pages of hooks are asked when this file is compiled") { CHECK(hook_fits<every_name>::value); }
