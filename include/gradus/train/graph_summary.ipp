// The bodies of graph_summary.hpp.
#pragma once
#include <optional>

#include "../base/body.hpp"
#include "../summary/outputs.hpp"
#include "graph_summary.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
// Returns the number that a scalar holds; none if its type is not numeric.
GRADUS_BODY std::optional<float> shown_number(const const_tensor_view& x) {
  std::optional<float> number;
  if (x.type != boolean) with_element_type(x.type, [&]<class T>() { number = static_cast<float>(x.as<T>()[0]); });
  return number;
}
}  // namespace detail

GRADUS_BODY void graph_summary::add(int kind, std::string_view tag, value v) {
  constexpr std::int64_t no_number[1] = {};
  if (kind == output::summary &&
      (v.dims().rank != 0 || !detail::shown_number({v.type(), {}, reinterpret_cast<const std::byte*>(no_number)})))
    raise(status::invalid_argument, text("a scalar summary: expected one number for \"", tag, "\", got ",
                                         name_of(v.type()), " ", to_text(v.dims())));
  if (kind == output::image) detail::require_images(tag);
  shown_.push_back({kind, std::string(tag), fetches_.size()});
  fetches_.emplace_back(v);
}

GRADUS_BODY graph_summary::graph_summary(std::vector<std::pair<std::string, value>> scalars) {
  for (const auto& [tag, v] : scalars) add(output::summary, tag, v);
}

GRADUS_BODY graph_summary merge_all(graph& g) {
  graph_summary all;
  for (int i = 0; i < g.outputs.count; ++i) {
    const output& o = g.outputs[i];
    if (!o.is_summary()) continue;
    all.add(o.kind, g.text_at(o.name), {&g, o.node});
    if (o.kind == output::audio) all.fetches_.emplace_back(value{&g, g.outputs[++i].node});
  }
  return all;
}

GRADUS_BODY summary_values graph_summary::values(std::span<const const_tensor_view> results) const {
  summary_values all;
  const auto take = [&](summary_values more) {
    for (auto& v : more) all.push_back(std::move(v));
  };
  for (const shown& s : shown_) {
    const const_tensor_view& x = results[s.at];
    if (s.kind == output::summary)
      take(scalar_summary(s.tag, detail::shown_number(x).value_or(0)));
    else
      take(summarize_output(s.kind, s.tag, x, s.kind == output::audio ? results[s.at + 1] : const_tensor_view{}));
  }
  return all;
}

}  // namespace gradus
