// A name_table stores each name of a graph once, finds it by its text, and makes it unique in its scope as TensorFlow
// does. A name is the offset of its characters, which end with a NUL.
#pragma once
#include "../base/build.hpp"

#include <string_view>
#include <utility>

#include "refusal.hpp"
#include "seq.hpp"

namespace gradus::inline GRADUS_BUILD {

class name_table {
public:
  detail::seq<char> chars;

  constexpr std::string_view text_at(int offset) const {
    if (offset < 0) return {};
    int n = 0;
    while (chars.first[offset + n] != '\0') ++n;
    return {chars.first + offset, static_cast<std::size_t>(n)};
  }
  constexpr bool is(int offset, std::string_view text) const {
    return equals(offset, text.data(), static_cast<int>(text.size()));
  }
  // Functions that describe a graph are cold: in most programs only the compiler runs them.
  constexpr int intern(std::string_view text) {
    const int slot = slot_of(text);
    if (table_[slot].end == 0) take(slot, text);
    return table_[slot].end - 1;
  }

  // Returns, as an offset, the full name in this scope (an offset, or negative: none), with _1, _2, ... if it is taken.
  // A scope ends with its '/'.
  [[gnu::cold]] constexpr int unique(int scope, std::string_view wanted, bool is_scope) {
    detail::seq<char> full;
    const std::string_view prefix = text_at(scope);
    full.append(prefix.data(), static_cast<int>(prefix.size()));
    full.append(wanted.data(), static_cast<int>(wanted.size()));
    const int stem = full.count;
    const auto as_text = [&] { return std::string_view(full.first, static_cast<std::size_t>(full.count)); };
    const int slot = slot_of(as_text());
    entry& first = table_[slot];
    if (first.end == 0) take(slot, as_text());
    int at = first.end - 1;
    if (first.taken != 0) {
      int number = first.next;
      for (;;) {
        full.count = stem;
        full.push('_');
        detail::put(full, ++number);
        const int other = slot_of(as_text());
        if (table_[other].end == 0) take(other, as_text());
        if (table_[other].taken == 0) {
          table_[other].taken = 1, at = table_[other].end - 1;
          break;
        }
      }
      full.count = stem;
      table_[slot_of(as_text())].next = number;
    } else
      first.taken = 1;
    if (!is_scope) return at;
    const std::string_view name = text_at(at);
    full.count = 0;
    full.append(name.data(), static_cast<int>(name.size()));
    full.push('/');
    return intern(as_text());
  }

private:
  struct entry {
    // end: 1 + the name's offset, 0 if free; next: the number to try when the name is wanted again; taken: whether it
    // names a node
    int end, next, taken;
    unsigned hash;
  };
  detail::seq<entry> table_;
  int table_used_ = 0;

  constexpr int store(std::string_view text) {
    const int at = chars.count;
    chars.append(text.data(), static_cast<int>(text.size()));
    chars.push('\0');
    return at;
  }
  constexpr void take(int slot, std::string_view text) {
    const int at = store(text);
    table_[slot].end = at + 1, ++table_used_;
  }
  // Names take most of a builder's time, so this function has few statements, as in seq.hpp.
  static constexpr unsigned hash_of(const char* p, int n) {
    unsigned h = 2166136261u;
    for (; n >= 4; n -= 4, p += 4)
      h = (h ^ (unsigned(p[0]) + (unsigned(p[1]) << 8) + (unsigned(p[2]) << 16) + (unsigned(p[3]) << 24))) *
          2654435761u,
      h ^= h >> 15;
    for (; n > 0; --n, ++p) h = (h ^ unsigned(*p)) * 16777619u;
    return h ^ h >> 15;
  }
  constexpr bool equals(int at, const char* text, int n) const {
    const char* p = chars.first + at;
    if (chars.count - at <= n || p[n] != '\0') return false;
    int i = 0;
    for (; i + 4 <= n; i += 4)
      if (p[i] != text[i] || p[i + 1] != text[i + 1] || p[i + 2] != text[i + 2] || p[i + 3] != text[i + 3])
        return false;
    for (; i < n; ++i)
      if (p[i] != text[i]) return false;
    return true;
  }
  // Returns the slot of this name, or a free one, into which only the name's hash is written.
  [[gnu::cold]] constexpr int slot_of(std::string_view text) {
    if (2 * (table_used_ + 1) > table_.count) rehash();
    const char* p = text.data();
    const int n = static_cast<int>(text.size()), mask = table_.count - 1;
    const unsigned h = hash_of(p, n);
    entry* table = table_.first;
    int slot = static_cast<int>(h & static_cast<unsigned>(mask));
    while (table[slot].end != 0 && (table[slot].hash != h || !equals(table[slot].end - 1, p, n)))
      slot = (slot + 1) & mask;
    table[slot].hash = h;
    return slot;
  }
  constexpr void rehash() {
    const detail::seq<entry> old = std::move(table_);
    table_ = detail::seq<entry>::zeroed(old.count == 0 ? 64 : 4 * old.count);
    const unsigned mask = static_cast<unsigned>(table_.count - 1);
    for (int i = 0; i < old.count; ++i) {
      if (old.first[i].end == 0) continue;
      unsigned slot = old.first[i].hash & mask;
      while (table_.first[slot].end != 0) slot = (slot + 1) & mask;
      table_.first[slot] = old.first[i];
    }
  }
};

namespace detail {
// Returns the name of a layer or scope: the one that is given, or the default of its options where that is empty.
template <class Options>
constexpr std::string_view layer_name(const Options& o) {
  return o.name.empty() ? Options{}.name : o.name;
}
}  // namespace detail

}  // namespace gradus
