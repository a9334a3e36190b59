// The bodies of layout.hpp.
#pragma once
#include "../base/body.hpp"
#include "../store/wire.hpp"
#include "layout.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY summary_values layout_summary(const std::vector<layout_category>& categories) {
  std::string layout;
  {
    std::vector<std::byte> bytes;
    wire_writer w(bytes);
    for (const auto& c : categories)
      w.message(2, [&](wire_writer& category) {
        category.bytes_if(1, c.title);
        for (const auto& chart : c.charts) {
          if (!chart.lines.empty() && !chart.margins.empty())
            raise(status::invalid_argument,
                  text("layout_summary: the chart \"", chart.title, "\" has lines and margins; make two charts of it"));
          category.message(2, [&](wire_writer& to) {
            to.bytes_if(1, chart.title);
            if (chart.margins.empty())
              to.message(2, [&](wire_writer& lines) {
                for (const auto& tag : chart.lines) lines.bytes(1, tag);
              });
            else
              to.message(3, [&](wire_writer& margins) {
                for (const auto& m : chart.margins)
                  margins.message(1, [&](wire_writer& series) {
                    series.bytes_if(1, m.value);
                    series.bytes_if(2, m.lower);
                    series.bytes_if(3, m.upper);
                  });
              });
          });
        }
        category.boolean_if(3, c.closed);
      });
    layout.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  summary_value v;
  v.tag = "custom_scalars__config__";
  v.kind = value_kind::tensor;
  v.bytes = detail::string_tensor({&layout, 1}, {});
  v.metadata = detail::plugin_metadata("custom_scalars");
  return {std::move(v)};
}

}  // namespace gradus
