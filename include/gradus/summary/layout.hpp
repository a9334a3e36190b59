// A layout sets TensorBoard's page CUSTOM SCALARS: which curves share a chart, and in which order the charts stand.
//
//   writer.add_summary(layout_summary({{"losses", {{.title = "loss", .lines = {"loss/train", "loss/eval"}}}}}), 0);
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "values.hpp"

namespace gradus::inline GRADUS_BUILD {

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
summary_values layout_summary(const std::vector<layout_category>& categories);

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "layout.ipp"
#endif
