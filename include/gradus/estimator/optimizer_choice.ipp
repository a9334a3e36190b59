// The bodies of optimizer_choice.hpp.
#pragma once
#include "../base/body.hpp"
#include "../cpu/device.hpp"
#include "../update/rules/adagrad.hpp"
#include "../update/rules/adam.hpp"
#include "../update/rules/ftrl.hpp"
#include "../update/rules/gradient_descent.hpp"
#include "../update/rules/rmsprop.hpp"
#include "optimizer_choice.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY value chosen_optimizer::minimize(value loss, const optimize_options& o) const {
  const auto list = compute_gradients(loss, detail::gradients_part(o));
  if (list.empty() || !detail::some_gradient(list, loss)) return {loss.g, 0};
  return apply_gradients(list, {o.global_step, o.name});
}

GRADUS_BODY optimizer_choice::optimizer_choice(std::string_view name) {
  const auto by = [this](auto rule) {
    make_ = [rule](double rate) mutable {
      rule.rate = rate;
      return made_of(optimizer(rule));
    };
  };
  if (name == "Adagrad")
    by(adagrad{});
  else if (name == "Adam")
    by(adam{.sparse = sparse_mode::decay_all});
  else if (name == "Ftrl")
    by(ftrl{});
  else if (name == "RMSProp")
    by(rmsprop{});
  else if (name == "SGD")
    by(gradient_descent{});
  else
    raise(status::invalid_argument,
          text("Unsupported optimizer name: \"", name,
               "\". Supported names are: Adagrad, Adam, Ftrl, RMSProp, SGD; or give an optimizer{...}"));
}

}  // namespace gradus
