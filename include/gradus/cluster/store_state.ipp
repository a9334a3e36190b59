// The bodies of store_state.hpp.
#pragma once
#include <algorithm>
#include <cstring>

#include "../base/body.hpp"
#include "store_state.hpp"
#include "store_variables.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY std::vector<std::span<const std::byte>> find_stored(std::span<const state_entry> entries,
                                                                std::span<const wire_slice> parts) {
  static constexpr std::byte nothing{};
  std::vector<const wire_slice*> sorted;
  for (const wire_slice& s : parts) sorted.push_back(&s);
  const auto before = [](const wire_slice* s, std::string_view name) { return s->name < name; };
  std::sort(sorted.begin(), sorted.end(), [](const wire_slice* a, const wire_slice* b) { return a->name < b->name; });
  std::vector<std::span<const std::byte>> out(entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const state_entry& e = entries[i];
    for (const std::string& name : {e.name, own_state_name(e.name)}) {
      for (auto at = std::lower_bound(sorted.begin(), sorted.end(), std::string_view(name), before);
           at != sorted.end() && (*at)->name == name; ++at) {
        const wire_slice& s = **at;
        if (const std::string problem = detail::problem_of(s); !problem.empty())
          raise(status::data_loss, text("the state \"", name, "\" ", problem));
        if (s.role != slice_role::dense || s.begin != 0 || s.type != e.type || s.bytes.size() != e.bytes.size())
          raise(status::data_loss,
                text("the state \"", name, "\" has ", s.count(), " elements of ", gradus::name_of(s.type),
                     s.begin != 0                  ? ", not from its first on"
                     : s.role != slice_role::dense ? ", which are no values"
                                                   : "",
                     "; expected ", e.bytes.size() / size_of(e.type), " of ", gradus::name_of(e.type)));
        if (out[i].data() != nullptr && !e.bytes.empty() &&
            std::memcmp(out[i].data(), s.bytes.data(), s.bytes.size()) != 0)
          raise(status::data_loss, text("the state \"", name, "\" is listed twice, with different values"));
        out[i] = s.bytes.empty() ? std::span(&nothing, 0) : s.bytes;
      }
    }
  }
  return out;
}

GRADUS_BODY void refuse_half(std::span<const state_entry> entries, std::span<const std::span<const std::byte>> found,
                             std::size_t a, std::size_t b) {
  if ((found[a].data() == nullptr) == (found[b].data() == nullptr)) return;
  if (found[a].data() == nullptr) std::swap(a, b);
  raise(status::data_loss,
        text("there is \"", entries[a].name, "\" and no \"", entries[b].name, "\"; expected both, or neither"));
}

GRADUS_BODY void save_stored(bytes_out out, std::span<const wire_slice> state) {
  out.number(static_cast<std::uint32_t>(state.size()));
  for (const wire_slice& s : state) out.string(s.name), out.number(s.type), out.lent_bytes(s.bytes);
}
GRADUS_BODY std::vector<wire_slice> load_stored(bytes_in& in, std::span<const wire_slice> state) {
  const std::size_t n = in.count(13);
  std::vector<wire_slice> out;
  for (std::size_t i = 0; i < n; ++i) {
    const std::string name = in.string();
    if (i == state.size() || name != state[i].name)
      in.refuse(text("it goes on with \"", name, "\"; expected ",
                     i == state.size() ? std::string("its end") : text('"', state[i].name, '"')));
    const auto type = in.number<dtype>();
    out.push_back({state[i].name, type, 0, in.bytes()});
  }
  if (n < state.size()) in.refuse(text("it ends before \"", state[n].name, '"'));
  return out;
}

}  // namespace gradus::detail
