// These functions make values of a summary: scalars, text, and the merged values of several calls. Histograms, images
// and audio have headers of their own.
//
//   const auto all = merge_summaries({scalar_summary("loss", loss), text_summary("notes", "**first** run")});
//   writer.add_summary(all, step);
//
// Tags are not changed; `summary_tag` (tag.hpp) makes them as tf.summary.* does, from name, scope and family.
#pragma once
#include "../base/build.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../base/error.hpp"
#include "event.hpp"

namespace gradus::inline GRADUS_BUILD {

// The values of one summary, in order; one event holds them.
using summary_values = std::vector<summary_value>;
struct const_tensor_view;

namespace detail {
// The function that makes values of a graph's images (outputs.hpp). image.hpp sets it, in programs that include that
// header; only these need stb.
inline summary_values (*show_images)(std::string_view tag, const const_tensor_view& images) = nullptr;

// Returns the metadata that name the plugin with which TensorBoard shows a tensor.
std::vector<std::byte> plugin_metadata(std::string_view plugin, std::span<const std::byte> content = {});

void tensor_head(wire_writer& w, std::int64_t data_type, std::span<const std::int64_t> extents);
// Returns a TensorProto of strings.
std::vector<std::byte> string_tensor(std::span<const std::string> values, std::span<const std::int64_t> extents);
// Returns tag i of a v1 image or audio summary. Its form depends on the requested number of outputs, not on the actual
// one.
std::string numbered_tag(std::string_view tag, std::string_view kind, std::int64_t asked, std::int64_t i);
}  // namespace detail

// Returns one point of a curve. NaN and infinities are kept.
summary_values scalar_summary(std::string_view tag, float value);

// Returns several points of one step. Raises invalid_argument if there are not as many values as tags.
summary_values scalar_summary(std::span<const std::string> tags, std::span<const float> values);

// Returns text, which TensorBoard shows as Markdown: the cells, row-major, of a table with these extents. Raises
// invalid_argument if the number of cells does not match the extents.
summary_values text_summary(std::string_view tag, std::span<const std::string> cells,
                            std::span<const std::int64_t> extents);
summary_values text_summary(std::string_view tag, std::string_view markdown);

// Returns the values of several summaries as one, in order. Raises invalid_argument for a tag that occurs twice; empty
// tags may repeat. (This is TensorFlow's merge_summary. collections.hpp merges those of a collection.)
summary_values merge_summaries(std::span<const summary_values> summaries);
summary_values merge_summaries(std::initializer_list<summary_values> summaries);
inline summary_values merge_summary(std::span<const summary_values> inputs) { return merge_summaries(inputs); }
inline summary_values merge_summary(std::initializer_list<summary_values> inputs) { return merge_summaries(inputs); }

// Returns the fraction of the elements that is zero: how sparse an activation is. It is NaN if there are no elements,
// as for tf.nn.zero_fraction.
template <class T>
float zero_fraction(std::span<const T> x) {
  if (x.empty()) return std::numeric_limits<float>::quiet_NaN();
  std::size_t found = 0;
  for (const T v : x) found += v == T{} ? 1 : 0;
  return static_cast<float>(static_cast<double>(found) / static_cast<double>(x.size()));
}

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "values.ipp"
#endif
