// This policy of a static stepper states how much memory the stepper may take; a larger one does not compile, and the
// error names the bytes and the policies that would help.
//
//   static auto trainer = gradus::make_static_stepper<model>(gradus::static_batch<4>{}, gradus::adam{.rate = 0.01},
//                                                            gradus::memory_at_most<40'000>{});
#pragma once
#include <array>
#include <cstddef>
#include <string_view>
#include <type_traits>

#include "../pass/recompute.hpp"
#include "refused_model.hpp"
#include "static_door.hpp"
#include "static_stepper.hpp"

namespace gradus::inline GRADUS_BUILD {

// The stepper, as an object, takes at most so many bytes: its tensors (memory_bytes, by parts memory_parts) and what
// its optimizer remembers beside them. The program's stack and its other variables are not counted, so a board needs
// more (docs/edge.md lists examples). TensorFlow and PyTorch know what a step needs only when it runs.
template <std::size_t Bytes>
struct memory_at_most {
  using policy_for = kind::memory_limit;
  static constexpr std::size_t bytes = Bytes;
};

namespace detail {
struct any_memory {
  using policy_for = kind::memory_limit;
  static constexpr std::size_t bytes = static_cast<std::size_t>(-1);
};

template <text_piece... Reason>
struct memory_is_exceeded {
  static_assert(sizeof...(Reason) == 0,
                "gradus: the stepper takes more memory than memory_at_most allows; its bytes, and the policies that "
                "would help, stand in the template arguments, in pieces");
  static constexpr bool value = sizeof...(Reason) == 0;
};

// Returns the bytes of a stepper with these policies, or 0 if the model cannot have them.
template <auto Build, class Device, class... Policies>
consteval std::size_t bytes_with() {
  if constexpr (static_model_fits<Build, Policies...>::value)
    return sizeof(static_stepper<Build, Device, Policies...>);
  else
    return 0;
}
template <class Policy>
struct with_batch_of_one {
  using type = Policy;  // a schedule may be a lambda
};
template <std::int64_t N>
struct with_batch_of_one<static_batch<N>> {
  using type = static_batch<1>;
};

// The sentence, in the form that refused_model.hpp cuts into pieces.
template <auto Build, class Device, class... Policies>
struct memory_sentence {
  struct text {
    char refusal[800] = {};
    struct {
      int refusal = 0;
    } size;
    constexpr void add(std::string_view words) {
      for (char c : words) refusal[size.refusal++] = c;
    }
    constexpr void add(std::size_t number) {
      char digits[20] = {};
      std::size_t n = 0;
      do digits[n++] = static_cast<char>('0' + number % 10);
      while ((number /= 10) != 0);
      while (n != 0) refusal[size.refusal++] = digits[--n];
    }
  };
  static constexpr std::size_t bytes = bytes_with<Build, Device, Policies...>();

  static consteval text make() {
    using stepper = static_stepper<Build, Device, Policies...>;
    constexpr static_memory parts = stepper::memory_parts;
    text t;
    const auto part = [&](std::string_view name, std::size_t n) { t.add(name), t.add(n); };
    part("it takes ", bytes), t.add(" bytes, allowed are ");
    t.add(policy_of<kind::memory_limit, any_memory, Policies...>::bytes);
    part(": variables ", parts.variables), part(", gradients ", parts.gradients), part(", slots ", parts.slots);
    part(", inputs ", parts.inputs), part(", a step ", parts.step);
    bool any = false;
    const auto offer = [&](std::string_view policy, std::size_t with) {
      if (with == 0 || with >= bytes) return;
      t.add(any ? ", with " : ". It takes, with "), any = true;
      t.add(policy), t.add(" "), t.add(with);
    };
    if constexpr (stepper::batch_size != 1)
      offer("static_batch<1>", bytes_with<Build, Device, typename with_batch_of_one<Policies>::type...>());
    if constexpr (policies_of<kind::gradient_life, Policies...> == 0) {
      offer("one_by_one", bytes_with<Build, Device, Policies..., one_by_one>());
      if constexpr (!needs_norm_of_all<Policies...> && !gates_graph<Policies...>)
        offer("release_gradients", bytes_with<Build, Device, Policies..., release_gradients>());
    }
    if constexpr (policies_of<kind::slot_storage, Policies...> == 0 && updates_numbers<Policies...> &&
                  !slots_copy_variables<Policies...> &&
                  updates_are_plain<placed_graph<frozen_model<Build, static_options<mode::train, Policies...>>>>()) {
      offer("slots<bfloat16>", bytes_with<Build, Device, Policies..., slots<bfloat16>>());
      if constexpr (slots_may_be_codes<Policies...>)
        offer("slots<int8>", bytes_with<Build, Device, Policies..., slots<int8>>());
    }
    if constexpr (policies_of<kind::recomputation, Policies...> == 0)
      offer("recompute<2>", bytes_with<Build, Device, Policies..., recompute<2>>());
    t.add(
        ". A step may take fewer with fused_pooling (convolutions below a pool), activations<bfloat16> (deep models)");
    return t;
  }
  static constexpr text value = make();
};
template <class Sentence, class = std::make_integer_sequence<int, piece_count<Sentence>()>>
struct memory_page;
template <class Sentence, int... I>
struct memory_page<Sentence, std::integer_sequence<int, I...>> {
  static constexpr bool value = memory_is_exceeded<piece_of<Sentence, I>()...>::value;
};

template <auto Build, class Device, class... Policies>
struct memory_fits {
  using limit = policy_of<kind::memory_limit, any_memory, Policies...>;
  static constexpr bool value = [] {
    if constexpr (std::is_same_v<limit, any_memory>)
      return true;
    else
      return sizeof(static_stepper<Build, Device, Policies...>) <= limit::bytes;
  }();
};
// Apart, so that the layouts of other policies are computed only where a stepper is refused.
template <auto Build, class Device, class... Policies>
struct memory_refusal {
  static constexpr bool value = memory_page<memory_sentence<Build, Device, Policies...>>::value;
};
}  // namespace detail

}  // namespace gradus
