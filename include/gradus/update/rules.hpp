// Every rule, and the list of them: for the umbrella, the tables in docs/optimizers.md, and tests that run over all.
#pragma once
#include <utility>

#include "adadelta.hpp"
#include "adafactor.hpp"
#include "adagrad.hpp"
#include "adagrad_da.hpp"
#include "adam.hpp"
#include "adamax.hpp"
#include "adamw.hpp"
#include "add_sign.hpp"
#include "amsgrad.hpp"
#include "ftrl.hpp"
#include "gradient_descent.hpp"
#include "lamb.hpp"
#include "lars.hpp"
#include "lazy_adam.hpp"
#include "lion.hpp"
#include "momentum.hpp"
#include "momentumw.hpp"
#include "muon.hpp"
#include "nadam.hpp"
#include "power_sign.hpp"
#include "proximal_adagrad.hpp"
#include "proximal_gradient_descent.hpp"
#include "rmsprop.hpp"
#include "schedule_free.hpp"
#include "soap.hpp"
#include "sophia.hpp"

namespace gradus::inline GRADUS_BUILD {

template <class... Rules>
struct rule_list {
  static constexpr std::size_t size = sizeof...(Rules);
  // f(std::type_identity<rule>{}) for each.
  template <class F>
  static constexpr void for_each(F&& f) {
    (f(std::type_identity<Rules>{}), ...);
  }
};

// lazy_adam is adam, and not listed twice.
using all_rules = rule_list<gradient_descent, momentum, adagrad, adagrad_da, adadelta, rmsprop, centered_rmsprop, adam,
                            ftrl, proximal_gradient_descent, proximal_adagrad, momentumw, adamw, nadam, adamax, amsgrad,
                            add_sign, power_sign, lars, lamb, lion, sophia, schedule_free_adamw, adafactor, muon, soap>;

}  // namespace gradus
