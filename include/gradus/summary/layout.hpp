// The page CUSTOM SCALARS of TensorBoard: which curves share a chart, and in which order the charts stand.
//
//   writer.add_summary(layout_summary({{"losses", {{.title = "loss", .lines = {"loss/train", "loss/eval"}}}}}), 0);
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "values.hpp"

namespace gradus {

// A curve between two others: a mean and its limits, say. All three are tags.
struct margin_series {
  std::string value, lower, upper;
};
// Lines: every tag that matches one of these regular expressions; or margins.
struct layout_chart {
  std::string title;
  std::vector<std::string> lines = {};
  std::vector<margin_series> margins = {};
};
struct layout_category {
  std::string title;
  std::vector<layout_chart> charts = {};
  bool closed = false;  // folded at first
};

// One a run: the plugin reads the first. Raises invalid_argument for a chart of both kinds, which it cannot show.
inline summary_values layout_summary(const std::vector<layout_category>& categories) {
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
