// The bodies of var_list.hpp.
#pragma once
#include "../base/body.hpp"
#include "var_list.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY void copy_entry(state_list& to, const state_entry& e, std::string_view name) {
  if (e.dynamic != nullptr)
    to.dynamic(name, *e.dynamic, e.may_lack);
  else
    to.tensor(name, e.type, e.dims, e.bytes, e.may_lack);
}

GRADUS_BODY const state_entry& entry_named(const state_list& list, std::string_view name) {
  if (const auto* e = list.find(name)) return *e;
  raise(status::not_found,
        text("var_list: there is no state \"", name, "\"; the list has ", list.entries().size(),
             list.entries().empty() ? "" : text(" entries, from \"", list.entries().front().name, "\" on")));
}

}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY state_list only(const state_list& list, const std::vector<std::string>& names) {
  state_list out;
  out.mirrored_as(list);
  for (const auto& name : names) detail::copy_entry(out, detail::entry_named(list, name), name);
  return out;
}

GRADUS_BODY state_list renamed(const state_list& list, const std::map<std::string, std::string>& names) {
  state_list out;
  out.mirrored_as(list);
  std::map<std::string_view, std::string_view> meant;
  for (const auto& [key, name] : names) {
    if (const auto [at, fresh] = meant.emplace(name, key); !fresh)
      raise(status::invalid_argument,
            text("var_list: \"", at->second, "\" and \"", key, "\" both mean \"", name, "\"; keep one"));
    detail::copy_entry(out, detail::entry_named(list, name), key);
  }
  return out;
}

}  // namespace gradus
