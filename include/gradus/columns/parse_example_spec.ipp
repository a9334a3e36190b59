// The bodies of parse_example_spec.hpp.
#pragma once
#include "../base/body.hpp"
#include "parse_example_spec.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY example_spec make_parse_example_spec(const std::vector<feature_need>& needs,
                                                 const std::vector<example_feature>& more) {
  std::vector<example_feature> list;
  for (const auto& n : needs) {
    if (!n.one_default)
      raise(status::invalid_argument, text("make_parse_example_spec: columns have different default values for the "
                                           "feature \"",
                                           n.key, "\", and a parser can fill in only one; give them the same"));
    if (n.ragged) {
      list.push_back({n.key, var_len_feature{n.kind}});
    } else {
      const default_values value = n.default_value.empty() ? default_values() : default_values(n.default_value);
      list.push_back({n.key, fixed_len_feature{n.dims, n.kind, value}});
    }
  }
  list.insert(list.end(), more.begin(), more.end());
  return example_spec(list);
}

GRADUS_BODY example_spec make_parse_example_spec(const feature_columns& columns,
                                                 const std::vector<example_feature>& more) {
  return make_parse_example_spec(columns.needs(), more);
}

GRADUS_BODY example_spec make_parse_example_spec(const feature_layout& layout,
                                                 const std::vector<example_feature>& more) {
  std::vector<feature_need> needs = layout.needs();
  for (const component& c : layout.kept()) {
    feature_need need{.key = c.name, .kind = detail::kept_kind(c), .ragged = false, .dims = c.dims};
    for (const feature_need& read : needs)
      if (read.key == c.name) need.default_value = read.default_value;  // what is kept has no default of its own
    detail::join_needs(needs, {need});
  }
  return make_parse_example_spec(needs, more);
}

GRADUS_BODY example_columns::example_columns(feature_layout layout)
    : layout_(std::move(layout)), spec_(make_parse_example_spec(layout_)) {}

GRADUS_BODY void example_columns::operator()(const datum& record, datum& to) const {
  const const_tensor_view bytes = record[0];
  const std::span<const std::byte> message[] = {{bytes.data, bytes.size_bytes()}};
  datum row;
  layout_.write(parse_example(message, spec_), row);
  for (std::size_t k = 0; k < row.size(); ++k) {
    const const_tensor_view from = std::as_const(row)[k];
    if (from.size_bytes() != 0) std::memcpy(to[k].mutable_data(), from.data, from.size_bytes());
  }
}

}  // namespace gradus
