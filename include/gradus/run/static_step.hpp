// A static stepper trains without a heap: the batch is a constant, so the compiler lays out every tensor, and a step is
// straight-line code over one array inside the object. It is meant for a microcontroller, for a real-time thread, and
// for the smallest models.
//
//   static auto trainer = gradus::make_static_stepper<model>(gradus::static_batch<16>{}, gradus::adam{.rate = 0.01});
//   trainer.initialize(42);
//   auto x = trainer.input<"x">();              // std::span<float, 16 * 8>: the placeholder's own memory
//   fill(x), fill(trainer.input<"y">());
//   trainer.step();
//   float loss = trainer.loss();
//
// Every name is a template argument and every size a constant: a wrong one does not compile, and nothing is looked up
// while running. The numbers are those of a stepper (run/stepper.hpp), bit for bit.
#pragma once
#include "device.hpp"
#include "memory_limit.hpp"
#include "static_door.hpp"
#include "static_stepper.hpp"

namespace gradus::inline GRADUS_BUILD {

// Returns the stepper of a model and its policies, in any order.
template <auto Build, class... Policies, class Device = default_device>
auto make_static_stepper(Policies... policies) {
  if constexpr (!detail::static_door_opens<Policies...>::value)
    return detail::refused_stepper{};
  else if constexpr (!detail::static_model_fits<Build, Policies...>::value) {
    static_assert(detail::static_model_fits<Build, Policies...>::page::value);
    return detail::refused_stepper{};
  } else if constexpr (!detail::static_slots_fit_model<Build, Policies...>::value) {
    return detail::refused_stepper{};
  } else if constexpr (!detail::memory_fits<Build, Device, Policies...>::value) {
    static_assert(detail::memory_refusal<Build, Device, Policies...>::value);
    return detail::refused_stepper{};
  } else
    return static_stepper<Build, Device, Policies...>(policies...);
}

}  // namespace gradus
