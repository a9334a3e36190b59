// This header includes and lists every rule, for gradus.hpp, the tables in docs/optimizers.md, and tests that run over
// all rules.
#pragma once
#include "../base/build.hpp"

#include <utility>

#include "rules/adadelta.hpp"
#include "rules/adafactor.hpp"
#include "rules/adagrad.hpp"
#include "rules/adagrad_da.hpp"
#include "rules/adam.hpp"
#include "rules/adamax.hpp"
#include "rules/adamw.hpp"
#include "rules/add_sign.hpp"
#include "rules/amsgrad.hpp"
#include "rules/ftrl.hpp"
#include "rules/gradient_descent.hpp"
#include "rules/lamb.hpp"
#include "rules/lars.hpp"
#include "rules/lazy_adam.hpp"
#include "rules/lion.hpp"
#include "rules/momentum.hpp"
#include "rules/momentumw.hpp"
#include "rules/muon.hpp"
#include "rules/nadam.hpp"
#include "rules/power_sign.hpp"
#include "rules/proximal_adagrad.hpp"
#include "rules/proximal_gradient_descent.hpp"
#include "rules/rmsprop.hpp"
#include "rules/schedule_free.hpp"
#include "rules/soap.hpp"
#include "rules/sophia.hpp"

namespace gradus::inline GRADUS_BUILD {

template <class... Rules>
struct rule_list {
  static constexpr std::size_t size = sizeof...(Rules);
  // Calls f(std::type_identity<rule>{}) for each.
  template <class F>
  static constexpr void for_each(F&& f) {
    (f(std::type_identity<Rules>{}), ...);
  }
};

// lazy_adam is adam, so it is not listed twice.
using all_rules = rule_list<gradient_descent, momentum, adagrad, adagrad_da, adadelta, rmsprop, centered_rmsprop, adam,
                            ftrl, proximal_gradient_descent, proximal_adagrad, momentumw, adamw, nadam, adamax, amsgrad,
                            add_sign, power_sign, lars, lamb, lion, sophia, schedule_free_adamw, adafactor, muon, soap>;

}  // namespace gradus
