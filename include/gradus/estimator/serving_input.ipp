// The bodies of serving_input.hpp.
#pragma once
#include "../base/body.hpp"
#include "estimator_input.hpp"
#include "serving_input.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY serving_input_function raw_serving_input(components features, components labels) {
  return
      [features = detail::announced(std::move(features), "raw_serving_input"), labels = std::move(labels)](graph& g) {
        serving_input made;
        const auto scope = g.name_scope(detail::input_scope);
        for (const component& c : features)
          made.features.add(c.name, g.placeholder(c.name, detail::shape_of_batch(c), c.type));
        for (const component& c : labels)
          made.labels.add(c.name, g.placeholder(c.name, detail::shape_of_batch(c), c.type));
        return made;
      };
}

}  // namespace gradus
