// A layout configures TensorBoard's page CUSTOM SCALARS: which curves share a chart, and in which order the charts
// appear.
//
//   writer.add_summary(layout_summary({{"losses", {{.title = "loss", .lines = {"loss/train", "loss/eval"}}}}}), 0);
#pragma once
#include "../base/build.hpp"

#include <string>
#include <utility>
#include <vector>

#include "values.hpp"

namespace gradus::inline GRADUS_BUILD {

// A curve between two others, such as a mean and its limits. All three are tags.
struct margin_series {
  std::string value, lower, upper;
};
// A chart shows either lines, for every tag that matches one of the regular expressions, or margins.
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

// Returns the layout, of which a run needs one: the plugin reads the first. Raises invalid_argument for a chart of both
// kinds, which the plugin cannot show.
summary_values layout_summary(const std::vector<layout_category>& categories);

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "layout.ipp"
#endif
