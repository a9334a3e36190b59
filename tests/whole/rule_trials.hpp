// What the suites that run over all rules (conformance_*, convergence*) try of each. A rule of update/rules.hpp is in
// them without a word here: with its defaults, and at the first of some rates that converges. Here stand the rules of
// which another form has code of its own, or which need a setting.
#pragma once
#include <gradus/update/rules.hpp>

#include <cstddef>
#include <type_traits>

namespace rule_trials {
using namespace gradus;

// conforms(rule, conform_options) and converges(rule, allowance), as often as there is something to try.
struct by_default {
  template <class Rule>
  static void conformance(std::type_identity<Rule>, auto conforms) {
    conforms(Rule{});
  }
  template <class Rule>
  static void convergence(std::type_identity<Rule>, auto converges) {
    converges.at_a_rate(Rule{});
  }
};
template <class Rule>
struct of : by_default {};

template <>
struct of<gradient_descent> : by_default {
  static void convergence(auto, auto converges) { converges(gradient_descent{.rate = 0.05}); }
};
template <>
struct of<momentum> {
  static void conformance(auto, auto conforms) {
    conforms(momentum{});
    conforms(momentum{.use_nesterov = true}, {.wrappers = false});
  }
  static void convergence(auto, auto converges) {
    converges(momentum{.rate = 0.02});
    converges(momentum{.rate = 0.02, .use_nesterov = true});
  }
};
template <>
struct of<adagrad> : by_default {
  static void convergence(auto, auto converges) { converges(adagrad{.rate = 1}); }
};
template <>
struct of<adagrad_da> {
  static void conformance(auto, auto conforms) { conforms(adagrad_da{.l1 = 0.01, .l2 = 0.02}); }
  static void convergence(auto, auto converges) { converges(adagrad_da{.rate = 1}); }
};
template <>
struct of<adadelta> : by_default {
  static void convergence(auto, auto converges) { converges(adadelta{.rate = 0.1, .epsilon = 0.01}); }
};
template <>
struct of<rmsprop> {
  static void conformance(auto, auto conforms) {
    conforms(rmsprop{});
    conforms(rmsprop{.momentum = 0.9, .initial_rms = 0}, {.wrappers = false});
  }
  static void convergence(auto, auto converges) {
    converges(rmsprop{.rate = 0.005});
    converges(rmsprop{.rate = 0.001, .momentum = 0.9});
  }
};
template <>
struct of<centered_rmsprop> {
  static void conformance(auto, auto conforms) { conforms(centered_rmsprop{.momentum = 0.9}); }
  static void convergence(auto, auto converges) { converges(centered_rmsprop{.rate = 0.005}); }
};
template <>
struct of<adam> {
  static void conformance(auto, auto conforms) {
    conforms(adam{});
    conforms(adam{.sparse = sparse_mode::decay_all});
  }
  static void convergence(auto, auto converges) { converges(adam{.rate = 0.05}); }
};
template <>
struct of<ftrl> {
  static void conformance(auto, auto conforms) {
    conforms(ftrl{.l1 = 0.01, .l2 = 0.02, .l2_shrinkage = 0.01});
    conforms(ftrl{.learning_rate_power = -0.7, .beta = 0.1}, {.wrappers = false});
  }
  static void convergence(auto, auto converges) { converges(ftrl{.rate = 1}); }
};
template <>
struct of<proximal_gradient_descent> {
  static void conformance(auto, auto conforms) { conforms(proximal_gradient_descent{.l1 = 0.1, .l2 = 0.2}); }
  static void convergence(auto, auto converges) { converges(proximal_gradient_descent{.rate = 0.05}); }
};
template <>
struct of<proximal_adagrad> {
  static void conformance(auto, auto conforms) { conforms(proximal_adagrad{.l1 = 0.01, .l2 = 0.02}); }
  static void convergence(auto, auto converges) { converges(proximal_adagrad{.rate = 1}); }
};
template <>
struct of<momentumw> {
  static void conformance(auto, auto conforms) {
    conforms(momentumw{.weight_decay = 0.01});
    conforms(momentumw{.use_nesterov = true, .weight_decay = 0.01}, {.wrappers = false});
  }
  static void convergence(auto, auto converges) { converges(momentumw{.rate = 0.02}); }
};
template <>
struct of<adamw> {
  static void conformance(auto, auto conforms) {
    conforms(adamw{});
    for (const auto form : {adamw_form::keras, adamw_form::tensorflow})
      for (const auto sparse : {sparse_mode::lazy, sparse_mode::decay_all})
        conforms(adamw{.form = form, .sparse = sparse}, {.wrappers = false});
  }
  static void convergence(auto, auto converges) { converges(adamw{.rate = 0.05, .weight_decay = 1e-6}); }
};
template <>
struct of<nadam> {
  static void conformance(auto, auto conforms) {
    conforms(nadam{});
    for (const auto form : {nadam_form::constant, nadam_form::tensorflow})
      for (const auto sparse : {sparse_mode::lazy, sparse_mode::decay_all})
        conforms(nadam{.weight_decay = 0.1, .form = form, .sparse = sparse}, {.wrappers = false});
  }
  static void convergence(auto, auto converges) {
    for (const auto form : {nadam_form::torch, nadam_form::constant, nadam_form::tensorflow})
      converges(nadam{.rate = 0.05, .form = form}, {.rosenbrock = 2e-3});
  }
};
template <>
struct of<adamax> {
  static void conformance(auto, auto conforms) {
    conforms(adamax{});
    conforms(adamax{.form = adamax_form::tensorflow}, {.wrappers = false});
  }
  static void convergence(auto, auto converges) { converges(adamax{.rate = 0.05}); }
};
template <>
struct of<amsgrad> {
  static void conformance(auto, auto conforms) {
    conforms(amsgrad{});
    for (const auto form : {amsgrad_form::corrected, amsgrad_form::raw_eps_hat})
      conforms(amsgrad{.form = form, .sparse = sparse_mode::lazy}, {.wrappers = false});
  }
  static void convergence(auto, auto converges) {
    for (const auto form : {amsgrad_form::raw, amsgrad_form::corrected, amsgrad_form::raw_eps_hat})
      converges(amsgrad{.rate = 0.05, .form = form});
  }
};
template <>
struct of<add_sign> {
  static void conformance(auto, auto conforms) {
    conforms(add_sign{});
    conforms(add_sign{.sparse = sparse_mode::lazy}, {.wrappers = false});
  }
  static void convergence(auto, auto converges) { converges(add_sign{.rate = 0.05}); }
};
template <>
struct of<power_sign> {
  static void conformance(auto, auto conforms) {
    conforms(power_sign{});
    conforms(power_sign{.sparse = sparse_mode::lazy}, {.wrappers = false});
  }
  static void convergence(auto, auto converges) { converges(power_sign{.rate = 0.05}); }
};
template <>
struct of<lars> {
  static void conformance(auto, auto conforms) {
    conforms(lars{}, {.sparse_is_dense = false});  // in TensorFlow's form a sparse gradient is plain momentum's
    conforms(lars{.use_nesterov = true, .form = lars_form::optax});
    conforms(lars{.form = lars_form::optax, .sparse = sparse_mode::lazy, .skip_list = {"a"}}, {.wrappers = false});
  }
  static void convergence(auto, auto converges) { converges(lars{.rate = 1, .weight_decay = 0}); }
};
template <>
struct of<lamb> {
  static void conformance(auto, auto conforms) {
    conforms(lamb{.weight_decay = 0.01});
    conforms(lamb{.sparse = sparse_mode::lazy}, {.wrappers = false});
  }
  static void convergence(auto, auto converges) { converges(lamb{.rate = 0.01}, {.parabola = 2e-3}); }
};
template <>
struct of<lion> {
  static void conformance(auto, auto conforms) {
    conforms(lion{.weight_decay = 0.1});
    conforms(lion{.sparse = sparse_mode::lazy}, {.wrappers = false});
  }
  static void convergence(auto, auto converges) { converges(lion{.rate = 0.003}); }
};
template <>
struct of<sophia> {
  static void conformance(auto, auto conforms) {
    conforms(sophia{});
    conforms(sophia{.form = sophia_form::optax, .sparse = sparse_mode::lazy}, {.wrappers = false});
  }
  // Without observations it steps by signs, and hovers by the rate.
  static void convergence(auto, auto converges) {
    converges(sophia{.rate = 0.003, .weight_decay = 0}, {.parabola = 1e-3});
  }
};
template <>
struct of<schedule_free_adamw> {
  static void conformance(auto, auto conforms) {
    conforms(schedule_free_adamw{.weight_decay = 0.01, .warmup_steps = 3});
    conforms(schedule_free_adamw{.r = 1, .sparse = sparse_mode::lazy}, {.wrappers = false});
  }
  static void convergence(auto, auto converges) { converges(schedule_free_adamw{.rate = 0.1}); }
};
template <>
struct of<adafactor> {
  static void conformance(auto, auto conforms) {
    conforms(adafactor{.rate = 0.01, .min_dim_size_to_factor = 2});
    conforms(adafactor{.rate = 0.01, .momentum = 0.9}, {.wrappers = false});
    conforms(adafactor{.rate = 0.01, .form = adafactor_form::relative});
  }
  static void convergence(auto, auto converges) {
    converges(adafactor{.rate = 0.01, .min_dim_size_to_factor = 2});
    converges(adafactor{.rate = 0.01, .form = adafactor_form::relative});
  }
};
template <>
struct of<muon> {
  static void conformance(auto, auto conforms) {
    conforms(muon{});
    for (const auto form : {muon_form::original, muon_form::keras}) conforms(muon{.form = form}, {.wrappers = false});
  }
  static void convergence(auto, auto converges) { converges(muon{.rate = 0.005}); }
};
template <>
struct of<soap> {
  static void conformance(auto, auto conforms) { conforms(soap{.precondition_frequency = 2}); }
  static void convergence(auto, auto converges) { converges(soap{.rate = 0.02, .weight_decay = 0}); }
};

// Each file takes some of the list, for compile time: of the rules on numbers every third, those that measure their
// tensor first, those on whole matrices.
enum class family { numbers, norms, matrices };
template <class Rule>
inline constexpr family family_of = detail::steps_tensors<Rule> ? family::matrices
                                    : detail::has_adapt<Rule>   ? family::norms
                                                                : family::numbers;
// f(std::type_identity<rule>{}) for each rule of this family, or of it those whose number among them is Part modulo
// Parts.
template <family Family, std::size_t Part = 0, std::size_t Parts = 1, class... Rules>
std::size_t for_each_of(rule_list<Rules...>, auto f) {
  std::size_t taken = 0;
  const auto one = [&]<class Rule, std::size_t Before>() {
    if constexpr (family_of<Rule> == Family && Before % Parts == Part) f(std::type_identity<Rule>{}), ++taken;
  };
  constexpr auto before = [] {
    std::array<std::size_t, sizeof...(Rules)> out{};
    const bool in[] = {(family_of<Rules> == Family)...};
    for (std::size_t i = 1; i < out.size(); ++i) out[i] = out[i - 1] + (in[i - 1] ? 1 : 0);
    return out;
  }();
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (one.template operator()<Rules, before[I]>(), ...);
  }(std::index_sequence_for<Rules...>{});
  return taken;
}

}  // namespace rule_trials
