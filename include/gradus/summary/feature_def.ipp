// The bodies of feature_def.hpp.
#pragma once
#include "../base/body.hpp"
#include "feature_def.hpp"
#include "graph_def.ipp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY std::vector<std::byte> encode_feature_defs(std::span<const feature_def> features) {
  std::vector<std::byte> out;
  wire_writer w(out);
  detail::wire_sink to(w);
  using detail::field_sink;
  for (const feature_def& d : features)
    to.message(1, "feature_map", [&](field_sink& entry) {
      entry.string(1, "key", d.name);
      entry.message(2, "value", [&](field_sink& configuration) {
        if (d.any_length) {
          configuration.message(2, "var_len_feature", [&](field_sink& f) { f.type(1, "dtype", d.type); });
          return;
        }
        configuration.message(1, "fixed_len_feature", [&](field_sink& f) {
          f.type(1, "dtype", d.type);
          f.message(2, "shape", [&](field_sink& s) { detail::write_shape(s, d.dims, false); });
          if (d.default_value)
            f.message(3, "default_value", [&](field_sink& t) { detail::write_tensor(t, *d.default_value); });
        });
      });
    });
  return out;
}

}  // namespace gradus
