// This header checks hooks and saving listeners (hook.hpp) when they are compiled: a type does not compile if it has
// none of their member names, a right name with a wrong signature, or a name that is near to one. A member of any other
// name is not checked, since it may serve the hook itself.
#pragma once
#include "../base/build.hpp"

#include <type_traits>

#include "hook.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {

// names_x<T> is true if T has a member x, callable or not: x is then ambiguous in a class derived from T and has_x_too.
// For a final class only a member that is neither overloaded nor a template is found.
#define GRADUS_NAMES(x)                      \
  struct has_##x##_too {                     \
    void x();                                \
  };                                         \
  template <class T>                         \
  struct with_##x : T, has_##x##_too {};     \
  template <class T>                         \
  consteval bool looks_for_##x() {           \
    if constexpr (std::is_final_v<T>)        \
      return requires { &T::x; };            \
    else                                     \
      return !requires { &with_##x<T>::x; }; \
  }                                          \
  template <class T>                         \
  inline constexpr bool names_##x = looks_for_##x<T>()

namespace hook_names {
GRADUS_NAMES(begin);
GRADUS_NAMES(after_create_session);
GRADUS_NAMES(before_run);
GRADUS_NAMES(after_run);
GRADUS_NAMES(end);
GRADUS_NAMES(before_save);
GRADUS_NAMES(after_save);
// These names are near to the right ones: they are those of other frameworks, or slips.
GRADUS_NAMES(on_begin);
GRADUS_NAMES(on_end);
GRADUS_NAMES(before_step);
GRADUS_NAMES(after_step);
GRADUS_NAMES(on_step);
GRADUS_NAMES(on_step_begin);
GRADUS_NAMES(on_step_end);
GRADUS_NAMES(on_train_begin);
GRADUS_NAMES(on_train_end);
GRADUS_NAMES(on_save);
GRADUS_NAMES(beforeRun);
GRADUS_NAMES(afterRun);
GRADUS_NAMES(before_runs);
GRADUS_NAMES(after_runs);
GRADUS_NAMES(begins);
GRADUS_NAMES(ends);
GRADUS_NAMES(create_session);
GRADUS_NAMES(after_session_created);
GRADUS_NAMES(after_create_sess);
GRADUS_NAMES(beforeSave);
GRADUS_NAMES(afterSave);
}  // namespace hook_names
#undef GRADUS_NAMES

template <class H>
inline constexpr bool has_a_near_name =
    hook_names::names_on_begin<H> || hook_names::names_on_end<H> || hook_names::names_before_step<H> ||
    hook_names::names_after_step<H> || hook_names::names_on_step<H> || hook_names::names_on_step_begin<H> ||
    hook_names::names_on_step_end<H> || hook_names::names_on_train_begin<H> || hook_names::names_on_train_end<H> ||
    hook_names::names_on_save<H> || hook_names::names_beforeRun<H> || hook_names::names_afterRun<H> ||
    hook_names::names_before_runs<H> || hook_names::names_after_runs<H> || hook_names::names_begins<H> ||
    hook_names::names_ends<H> || hook_names::names_create_session<H> || hook_names::names_after_session_created<H> ||
    hook_names::names_after_create_sess<H> || hook_names::names_beforeSave<H> || hook_names::names_afterSave<H>;

// Lists the hook members that H has, and whether each can be called as hooks are.
template <class H>
struct hook_seen {
  static constexpr bool any = hook_names::names_begin<H> || hook_names::names_after_create_session<H> ||
                              hook_names::names_before_run<H> || hook_names::names_after_run<H> ||
                              hook_names::names_end<H>;
  static constexpr bool near_by =
      has_a_near_name<H> || hook_names::names_before_save<H> || hook_names::names_after_save<H>;
  static constexpr bool begins = !hook_names::names_begin<H> || detail::begins<H>;
  static constexpr bool begins_in_session = begins || begins_in_graph<H>;
  static constexpr bool sees_session = !hook_names::names_after_create_session<H> || is_told_of_session<H>;
  static constexpr bool comes_before = !hook_names::names_before_run<H> || is_called_before_run<H>;
  static constexpr bool comes_after = !hook_names::names_after_run<H> || is_called_after_run<H>;
  static constexpr bool ends = !hook_names::names_end<H> || detail::ends<H>;
  // before_run returns nothing, as a run over a model requires.
  static constexpr bool asks_nothing = [] {
    if constexpr (is_called_before_run<H>)
      return std::is_void_v<decltype(std::declval<H&>().before_run(std::declval<run_context&>()))>;
    else
      return true;
  }();

  static constexpr bool all_but_begin = !near_by && any && sees_session && comes_before && comes_after && ends;
  static constexpr bool value = all_but_begin && begins;
};
}  // namespace detail

// This check of a hook fails to compile for a member that would never be called. A member of any other name is
// accepted, since it cannot be distinguished from one that serves the hook itself. `InSession` is true for the hook of
// a monitored session, where before_run may request tensors.
template <class H, bool InSession = false>
struct hook_fits {
private:
  using seen = detail::hook_seen<H>;
  static_assert(InSession || seen::asks_nothing,
                "gradus: this hook's `before_run` returns what a run shall fetch, and a trainer has no such fetches; "
                "return nothing and ask `values.result(name)` in after_run, or give the hook to a monitored session.");
  static_assert(!seen::near_by,
                "gradus: this hook has a member whose name is near to one of a hook's, and it would never be called; a "
                "hook has begin, after_create_session, before_run, after_run, end. What is called around saves is a "
                "policy of kind::saving_listener.");
  static_assert(seen::near_by || seen::any,
                "gradus: this hook has none of a hook's members; add `void after_run(gradus::run_context&, const "
                "gradus::run_values&)`, or begin, after_create_session, before_run, end.");
  static_assert(InSession ? seen::begins_in_session : seen::begins,
                "gradus: this hook's `begin` cannot be called with (), so it would never be called; write `void "
                "begin()`.");
  static_assert(seen::sees_session,
                "gradus: this hook's `after_create_session` cannot be called with (gradus::hooked_session&), so it "
                "would never be called; write `void after_create_session(gradus::hooked_session&)`.");
  static_assert(seen::comes_before,
                "gradus: this hook's `before_run` cannot be called with (gradus::run_context&), so it would never be "
                "called; write `void before_run(gradus::run_context&)`.");
  static_assert(seen::comes_after,
                "gradus: this hook's `after_run` cannot be called with (gradus::run_context&, const "
                "gradus::run_values&), so it would never be called; write `void after_run(gradus::run_context&, const "
                "gradus::run_values&)`.");
  static_assert(seen::ends,
                "gradus: this hook's `end` cannot be called with (gradus::hooked_session&), so it would never be "
                "called; write `void end(gradus::hooked_session&)`.");

public:
  static constexpr bool value =
      InSession ? seen::all_but_begin && seen::begins_in_session : seen::value && seen::asks_nothing;
};

namespace detail {
// Does the same for a saving listener.
template <class L>
struct listener_seen {
  static constexpr bool any = hook_names::names_begin<L> || hook_names::names_before_save<L> ||
                              hook_names::names_after_save<L> || hook_names::names_end<L>;
  static constexpr bool near_by = has_a_near_name<L> || hook_names::names_before_run<L> ||
                                  hook_names::names_after_run<L> || hook_names::names_after_create_session<L>;
  static constexpr bool begins = !hook_names::names_begin<L> || detail::begins<L>;
  static constexpr bool comes_before = !hook_names::names_before_save<L> || is_called_before_save<L>;
  static constexpr bool comes_after = !hook_names::names_after_save<L> || is_called_after_save<L>;
  static constexpr bool ends = !hook_names::names_end<L> || detail::ends_saving<L>;

  static constexpr bool value = !near_by && any && begins && comes_before && comes_after && ends;
};
}  // namespace detail

// This is the check of a saving listener.
template <class L>
struct saving_listener_fits {
private:
  using seen = detail::listener_seen<L>;
  static_assert(!seen::near_by,
                "gradus: this saving listener has a member whose name is near to one of a listener's, and it would "
                "never be called; a listener has begin, before_save, after_save, end. What is called around steps is a "
                "policy of kind::hook.");
  static_assert(seen::near_by || seen::any,
                "gradus: this saving listener has none of a listener's members; add `bool "
                "after_save(gradus::hooked_session&, std::int64_t step)`, or begin, before_save, end.");
  static_assert(seen::begins,
                "gradus: this saving listener's `begin` cannot be called with (), so it would never be called; write "
                "`void begin()`.");
  static_assert(seen::comes_before,
                "gradus: this saving listener's `before_save` cannot be called with (gradus::hooked_session&, "
                "std::int64_t), so it would never be called; write `void before_save(gradus::hooked_session&, "
                "std::int64_t step)`.");
  static_assert(seen::comes_after,
                "gradus: this saving listener's `after_save` cannot be called with (gradus::hooked_session&, "
                "std::int64_t), or it gives neither bool nor void; write `bool after_save(gradus::hooked_session&, "
                "std::int64_t step)`, where true asks the run to stop.");
  static_assert(seen::ends,
                "gradus: this saving listener's `end` cannot be called with (gradus::hooked_session&, std::int64_t), "
                "so it would never be called; write `void end(gradus::hooked_session&, std::int64_t step)`.");

public:
  static constexpr bool value = seen::value;
};

namespace detail {

// Checks P if it is a hook or a listener.
template <class P>
consteval bool hook_is_accepted() {
  if constexpr (is_of<kind::hook, P>())
    return hook_fits<std::remove_cvref_t<P>>::value;
  else if constexpr (is_of<kind::saving_listener, P>())
    return saving_listener_fits<std::remove_cvref_t<P>>::value;
  else
    return true;
}
// Checks the same without an error message.
template <class P>
consteval bool hook_is_right() {
  if constexpr (is_of<kind::hook, P>())
    return hook_seen<std::remove_cvref_t<P>>::value;
  else if constexpr (is_of<kind::saving_listener, P>())
    return listener_seen<std::remove_cvref_t<P>>::value;
  else
    return true;
}
template <class... Policies>
struct hooks_fit {
  static constexpr bool value = (hook_is_accepted<Policies>() && ...);
};

}  // namespace detail

}  // namespace gradus
