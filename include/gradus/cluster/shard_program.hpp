// A shard_program is the work of a parameter server, which finds the code for it in its own executable.
//
// The type of the update is written where a worker makes its trainer. Every task of a cluster runs the same executable,
// so a parameter server has that type as well, though it makes no trainer: each type is registered in a list before
// main, by its name (shard_maker). A worker sends the name and the recipe, which holds the program's settings.
#pragma once
#include "../base/build.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "../base/subnormals.hpp"
#include "hello.hpp"
#include "plain_bytes.hpp"
#include "protocol/staleness.hpp"
#include "recovery.hpp"
#include "store_variables.hpp"

namespace gradus::inline GRADUS_BUILD {
template <class... Policies>
class composed;
}

namespace gradus::inline GRADUS_BUILD::detail {

class message_network;

struct shard_program {
  cluster_fingerprint of = {};  // of the run
  // Serves until the cluster's end.
  std::function<void(message_network& network, std::uint32_t shard)> serve = {};
  std::string name = {};               // of its maker
  std::vector<std::byte> recipe = {};  // the maker's input
  bool survives = false;               // its acknowledged updates survive a restart of its process
  std::string cannot_be_sent = {};     // a policy that cannot be sent as bytes; empty: the recipe is whole
};

// These are the settings of a program, beside the policies of its update.
struct shard_settings {
  cluster_fingerprint of = {};
  std::vector<store_variable> variables = {};
  std::int64_t divide_by = 1;
  decider_options decides = {};
  std::optional<recovery::log> log = {};
  subnormal_mode numbers = subnormal_mode::keep;
};
std::vector<std::byte> to_bytes(const shard_settings& s);
// Raises data_loss for malformed bytes, resource_exhausted for variables that no machine can hold.
shard_settings shard_settings_from(bytes_in& in);

// An entry of the list of programs that this executable has.
class shard_maker {
public:
  using function = shard_program (*)(std::span<const std::byte> recipe);
  shard_maker(std::string_view name, function make) : name_(name), make_(make), next_(std::exchange(first(), this)) {}
  // Returns the maker of this name; null if there is none, or if two have the name, which is ambiguous then.
  static function find(std::string_view name);

private:
  std::string_view name_;
  function make_;
  shard_maker* next_;

  static shard_maker*& first() {
    static shard_maker* one = nullptr;
    return one;
  }
};

template <class T>
constexpr std::string_view name_of_type() {
#if defined(__clang__) || defined(__GNUC__)
  return __PRETTY_FUNCTION__;
#else
  return "";
#endif
}

// Returns the part of it that is the type's own name, for messages.
template <class T>
constexpr std::string_view type_in_words() {
  std::string_view all = name_of_type<T>();
  if (const auto from = all.find("T = "); from != all.npos) all.remove_prefix(from + 4);
  const auto end = all.rfind("; std::string_view = ");  // g++ explains its own return type behind the name
  return all.substr(0, end != all.npos ? end : all.rfind(']'));
}

// The policies that an update is composed of.
template <class Update>
struct policies_of_update;
template <class... Policies>
struct policies_of_update<composed<Policies...>> {
  using type = std::tuple<Policies...>;
};

// Program makes the function of a program from (settings, update) by its `serve_by`.
template <class Program, class Update>
class sent_program {
  using policies = typename policies_of_update<Update>::type;

public:
  static constexpr bool can_be_sent = can_send<policies>;

  static std::string name() { return std::string(name_of_type<Program>()); }
  // Makes the program from a whole recipe: settings, then policies, as written to bytes.
  static shard_program make(std::span<const std::byte> recipe) {
    if constexpr (can_be_sent) {
      bytes_in in(recipe, "recipe of a parameter server");
      const auto texts = std::make_shared<kept_texts>();
      shard_settings s = shard_settings_from(in);
      const policies given = take_plain<policies>(in, *texts);
      in.end();
      shard_program made{.of = s.of, .survives = s.log.has_value()};
      Update update = std::apply([](const auto&... p) { return Update(p...); }, given);
      made.serve = [texts, serve = Program::serve_by(std::move(s), std::move(update))](
                       message_network& network, std::uint32_t shard) { serve(network, shard); };
      return made;
    } else {
      (void)recipe;
      return {};
    }
  }
  static inline const shard_maker known{name_of_type<Program>(), &make};
};

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "shard_program.ipp"
#endif
