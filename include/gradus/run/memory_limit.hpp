// This policy of a static stepper states how much memory the stepper may take; a larger one does not compile, and the
// error names the bytes and the policies that would help.
//
//   static auto trainer = gradus::make_static_stepper<model>(gradus::static_batch<4>{}, gradus::adam{.rate = 0.01},
//                                                            gradus::memory_at_most<40'000>{});
#pragma once
#include "../base/build.hpp"

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
    char refusal[1000] = {};
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
  static constexpr std::size_t allowed = policy_of<kind::memory_limit, any_memory, Policies...>::bytes;

  // ---- what one more policy would make of it; 0 where it may not be given
  template <bool Allowed, class... More>
  static consteval std::size_t bytes_beside() {
    if constexpr (Allowed)
      return bytes_with<Build, Device, Policies..., More...>();
    else
      return 0;
  }
  template <bool Allowed, class... More>
  static consteval std::size_t bytes_of_one() {
    if constexpr (Allowed)
      return bytes_with<Build, Device, typename with_batch_of_one<Policies>::type..., More...>();
    else
      return 0;
  }
  static consteval bool slots_may_be_stored() {
    if constexpr (policies_of<kind::slot_storage, Policies...> == 0 && updates_numbers<Policies...> &&
                  !slots_copy_variables<Policies...>)
      return updates_are_plain<placed_graph<frozen_model<Build, static_options<mode::train, Policies...>>>>();
    else
      return false;
  }
  static constexpr bool lives = policies_of<kind::gradient_life, Policies...> == 0;
  static constexpr bool releases = lives && !needs_norm_of_all<Policies...> && !gates_graph<Policies...>;
  static constexpr bool stores = slots_may_be_stored();
  static constexpr bool encodes = stores && slots_may_be_codes<Policies...>;
  static constexpr bool recomputes = policies_of<kind::recomputation, Policies...> == 0;
  static constexpr bool of_many = static_stepper<Build, Device, Policies...>::batch_size != 1;
  static constexpr std::size_t single = bytes_of_one<of_many>();
  static constexpr std::size_t each = bytes_beside<lives, one_by_one>();
  static constexpr std::size_t released = bytes_beside<releases, release_gradients>();
  static constexpr std::size_t halves = bytes_beside<stores, slots<bfloat16>>();
  static constexpr std::size_t codes = bytes_beside<encodes, slots<int8>>();
  static constexpr std::size_t recomputed = bytes_beside<recomputes, recompute<2>>();

  // ---- what several of them would make of it together
  static constexpr std::size_t not_given = static_cast<std::size_t>(-1);
  static constexpr std::size_t helped(std::size_t with) { return with == 0 || with >= bytes ? not_given : with; }
  // The policy that leaves fewer bytes, or the default, which changes nothing.
  template <std::size_t WithFirst, class First, std::size_t WithSecond, class Second, class Default>
  using lesser = std::conditional_t<helped(WithFirst) == not_given && helped(WithSecond) == not_given, Default,
                                    std::conditional_t<(helped(WithFirst) <= helped(WithSecond)), First, Second>>;
  using life = lesser<each, one_by_one, released, release_gradients, keep_gradients>;
  using storage = lesser<codes, slots<int8>, halves, slots<bfloat16>, float_slots>;
  using recomputing = lesser<recomputed, recompute<2>, 0, void, recompute_nothing>;
  // With a batch of one, one_by_one is no help.
  using release = lesser<0, void, released, release_gradients, keep_gradients>;
  template <class Policy>
  static constexpr std::string_view word() {
    if constexpr (std::is_same_v<Policy, one_by_one>) return "one_by_one";
    if constexpr (std::is_same_v<Policy, release_gradients>) return "release_gradients";
    if constexpr (std::is_same_v<Policy, slots<bfloat16>>) return "slots<bfloat16>";
    if constexpr (std::is_same_v<Policy, slots<int8>>) return "slots<int8>";
    if constexpr (std::is_same_v<Policy, recompute<2>>) return "recompute<2>";
    return "";
  }
  struct combination {
    std::size_t bytes = not_given;
    std::array<std::string_view, 4> words;
  };
  template <class Life, class Recomputing>
  static consteval combination together() {
    return {helped(bytes_beside<true, Life, storage, Recomputing>()),
            {word<Life>(), word<storage>(), word<Recomputing>()}};
  }
  template <class Life, class Recomputing>
  static consteval combination together_of_one() {
    return {helped(bytes_of_one<of_many, Life, storage, Recomputing>()),
            {"static_batch<1>", word<Life>(), word<storage>(), word<Recomputing>()}};
  }
  // The one with the fewest bytes; one that leaves the batch as it is, if that is enough.
  static consteval combination best() {
    combination found = together<life, recompute_nothing>();
    const auto or_else = [&](const combination& c) {
      if (c.bytes < found.bytes) found = c;
    };
    if constexpr (!std::is_same_v<recomputing, recompute_nothing>) or_else(together<life, recomputing>());
    if constexpr (!std::is_same_v<life, release>) {  // what two policies save together is not what each saves alone
      or_else(together<release, recompute_nothing>());
      if constexpr (!std::is_same_v<recomputing, recompute_nothing>) or_else(together<release, recomputing>());
    }
    if (found.bytes <= allowed) return found;
    or_else(together_of_one<release, recompute_nothing>());
    if constexpr (!std::is_same_v<recomputing, recompute_nothing>) or_else(together_of_one<release, recomputing>());
    return found;
  }

  static consteval text make() {
    constexpr static_memory parts = static_stepper<Build, Device, Policies...>::memory_parts;
    text t;
    const auto part = [&](std::string_view name, std::size_t n) { t.add(name), t.add(n); };
    part("it takes ", bytes), part(" bytes, allowed are ", allowed);
    part(": variables ", parts.variables), part(", gradients ", parts.gradients), part(", slots ", parts.slots);
    part(", inputs ", parts.inputs), part(", a step ", parts.step);
    std::size_t least = not_given;
    const auto offer = [&](std::string_view policy, std::size_t with) {
      if (helped(with) == not_given) return;
      t.add(least == not_given ? ". It takes, with " : ", with ");
      t.add(policy), t.add(" "), t.add(with);
      least = with < least ? with : least;
    };
    offer("static_batch<1>", single);
    offer("one_by_one", each), offer("release_gradients", released);
    offer("slots<bfloat16>", halves), offer("slots<int8>", codes);
    offer("recompute<2>", recomputed);
    if (least > allowed) {
      constexpr combination c = best();
      if (c.bytes < least) {
        std::string_view between = ", with ";
        for (const std::string_view policy : c.words)
          if (!policy.empty()) t.add(between), t.add(policy), between = " and ";
        part(" together ", c.bytes);
      }
    }
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
