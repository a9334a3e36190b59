// This header measures the gradients of a static stepper's step: it computes the sum of squares whose root is the
// global norm.
#pragma once
#include "../base/build.hpp"

#include <array>
#include <type_traits>
#include <utility>

#include "static_layout.hpp"
#include "update_step.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// Where an update's gradient is, and how many elements it has.
struct static_operand {
  std::size_t offset, count;
};
template <class Train, const auto& Layout, const auto& Updates, std::int64_t CallSize, bool Summed>
consteval auto gradients_of() {
  std::array<static_operand, Updates.size()> all{};
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i] = {Layout.template gradient<Train>(Updates[i], Summed),
              static_cast<std::size_t>(Train::count(Train::input(Updates[i], 1), CallSize))};
  return all;
}
template <class Device, class Update, class Train, const auto& Layout, const auto& Updates, std::int64_t CallSize,
          bool Summed>
measured_sums<Update> squares_of_all(const std::byte* memory) {
  static constexpr auto gradients = gradients_of<Train, Layout, Updates, CallSize, Summed>();
  measured_sums<Update> sums;
  const auto add = [&]<class T>(std::type_identity<T>, const static_operand& g) {
    sums.squares += squares_of<Device>(reinterpret_cast<const T*>(memory + g.offset), g.count);
  };
  if constexpr (Train::template trains<float>() && Train::template trains<double>()) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (add(std::type_identity<element_t<Train::graph.nodes[Updates[I]].type>>{}, gradients[I]), ...);
    }(std::make_index_sequence<Updates.size()>{});
  } else {
    for (const static_operand& g : gradients)
      add(std::type_identity<element_t<Train::graph.nodes[Updates[0]].type>>{}, g);
  }
  return sums;
}

}  // namespace gradus::detail
