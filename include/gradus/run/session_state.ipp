// The bodies of session_state.hpp.
#pragma once
#include "../base/body.hpp"
#include "session_state.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY void variables_without_value::save(std::vector<std::byte>& out) const {
  for (const resource_variable* const v : variables_) {
    if (v->local || v->initialized) continue;
    const auto* p = reinterpret_cast<const std::byte*>(v->name.data());
    out.insert(out.end(), p, p + v->name.size());
    out.push_back(std::byte{0});
  }
}

GRADUS_BODY void variables_without_value::load(std::span<const std::byte> in) {
  std::vector<bool> without(variables_.size());
  std::string_view rest(reinterpret_cast<const char*>(in.data()), in.size());
  while (!rest.empty()) {
    const std::size_t end = rest.find('\0');
    std::size_t at = 0;
    while (at < variables_.size() && (end == rest.npos || variables_[at]->name != rest.substr(0, end))) ++at;
    if (at == variables_.size())
      raise(status::data_loss,
            "the list of a session's variables without a value names none of its variables; expected the state of a "
            "session of the same graph");
    without[at] = true;
    rest.remove_prefix(end + 1);
  }
  for (std::size_t i = 0; i < variables_.size(); ++i)
    if (!variables_[i]->local) variables_[i]->initialized = !without[i];
}

GRADUS_BODY void variables_without_value::load_lacking(const state_list& list) {
  for (resource_variable* const v : variables_) {
    if (v->local || v->initialized || list.find(v->name) == nullptr) continue;
    v->initialized = true;
    if (v->name == "random_step") *reinterpret_cast<std::int64_t*>(v->value()) = -1;  // no run has drawn yet
  }
}

GRADUS_BODY std::int64_t take_number(std::int64_t& last) {
  if constexpr (__atomic_always_lock_free(sizeof last, nullptr))
    return __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
  else  // a 32-bit board, where nothing runs side by side
    return ++last;
}

GRADUS_BODY std::int64_t last_number(const std::int64_t& last) {
  if constexpr (__atomic_always_lock_free(sizeof last, nullptr))
    return __atomic_load_n(&last, __ATOMIC_RELAXED);
  else
    return last;
}

GRADUS_BODY void set_number(std::int64_t& last, std::int64_t to) {
  if constexpr (__atomic_always_lock_free(sizeof last, nullptr))
    __atomic_store_n(&last, to, __ATOMIC_RELAXED);
  else
    last = to;
}

GRADUS_BODY bool draws_numbers(const runnable& r) {
  const graph_view& v = r.graph.view;
  for (int i = 0; i < v.size; ++i) {
    bool seed = false, step = false;
    for (int e = v.nodes[i].first, end = e + v.nodes[i].inputs; e < end; ++e) {
      if (v.nodes[v.edges[e]].op != &variable_card) continue;
      seed = seed || r.name_of(v.edges[e]) == "random_seed", step = step || r.name_of(v.edges[e]) == "random_step";
    }
    if (seed && step) return true;
  }
  return false;
}

}  // namespace gradus::detail
