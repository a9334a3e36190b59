// A misspelt mask would silently do nothing, so every owner of an update checks its masks when it knows the variables.
#pragma once
#include "../base/build.hpp"

#include <cstdint>
#include <string_view>

#include "../base/error.hpp"
#include "../base/shape.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// Writes the names of variables in a message, without a heap.
struct names_in_message {
  short_text list;
  void add(std::string_view name) {
    if (list.size != 0) list.append(", ", 2);
    list.append("\"", 1), list.append(name.data(), name.size()), list.append("\"", 1);
  }
  bool empty() const { return list.size == 0; }
  operator std::string_view() const { return {list.characters, list.size}; }
};

// Raises invalid_argument if the mask of freeze, of a group of multi, or of a part of a chain (weight_decay) matches no
// variable, and if the mask of freeze matches every variable. each(f) calls f(name, dims) for every variable.
template <class Update, class Each>
void check_masks([[maybe_unused]] const Update& update, [[maybe_unused]] Each each) {
  constexpr std::size_t branches = Update::branches;
  if constexpr (Update::freezes || branches > 1 || Update::masks_parts) {
    bool any = false, left = false, used[branches] = {};
    std::uint32_t unmatched[branches] = {};
    for (std::size_t b = 0; b < branches; ++b) unmatched[b] = update.masked_parts_of(b);
    names_in_message names;
    each([&](std::string_view name, const extents& dims) {
      const bool frozen = update.frozen(name, dims);
      any = any || frozen, left = left || !frozen, used[update.branch_of(name, dims)] = true;
      if constexpr (Update::masks_parts)
        for (std::size_t b = 0; b < branches; ++b) unmatched[b] &= ~update.selections_of(b, name, dims);
      names.add(name);
    });
    if (names.empty()) return;
    if (Update::freezes && !any)
      raise(status::invalid_argument, "the mask of freeze matches no variable of ", std::string_view(names),
            "; mend the mask, or leave freeze out");
    if (Update::freezes && !left)
      raise(status::invalid_argument, "the mask of freeze matches all variables, ", std::string_view(names),
            ", so nothing would be trained; mend the mask");
    for (std::size_t b = 0; b + 1 < branches; ++b)
      if (!used[b])
        raise(status::invalid_argument, "group ", b + 1, " of multi has no variable: its mask matches none of ",
              std::string_view(names), ", or groups before it take them; mend the mask, or leave the group out");
    for (const std::uint32_t parts : unmatched)
      if (parts != 0)
        raise(status::invalid_argument,
              "the mask of a weight_decay, or of another part of a chain, matches no variable of ",
              std::string_view(names), "; mend the mask, or leave the part out");
  }
}

}  // namespace gradus::inline GRADUS_BUILD::detail
