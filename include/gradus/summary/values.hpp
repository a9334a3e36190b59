// Values of a summary as plain calls: scalars, text, and joining what several calls made. Histograms, images and audio
// have headers of their own.
//
//   const auto all = merge_summaries({scalar_summary("loss", loss), text_summary("notes", "**first** run")});
//   writer.add_summary(all, step);
//
// Tags are taken as they are: `summary_tag` (tag.hpp) makes them as tf.summary.* does, from name, scope and family.
#pragma once
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

namespace gradus {

// The values of one summary, in order: what one event holds.
using summary_values = std::vector<summary_value>;
struct const_tensor_view;

namespace detail {
// How a graph's images become values (outputs.hpp). image.hpp sets it, in programs that include that header: it brings
// stb, which nobody else has to have.
inline summary_values (*show_images)(std::string_view tag, const const_tensor_view& images) = nullptr;

// Metadata by which TensorBoard knows the plugin that shows a tensor.
inline std::vector<std::byte> plugin_metadata(std::string_view plugin, std::span<const std::byte> content = {}) {
  std::vector<std::byte> out;
  wire_writer w(out);
  w.message(1, [&](wire_writer& data) {
    data.bytes(1, plugin);
    data.bytes_if(2, content);
  });
  return out;
}

inline void tensor_head(wire_writer& w, std::int64_t data_type, std::span<const std::int64_t> extents) {
  w.integer(1, data_type);
  w.message(2, [&](wire_writer& shape) {
    for (const std::int64_t n : extents) shape.message(2, [&](wire_writer& dim) { dim.integer_if(1, n); });
  });
}
// A TensorProto of strings.
inline std::vector<std::byte> string_tensor(std::span<const std::string> values,
                                            std::span<const std::int64_t> extents) {
  constexpr std::int64_t dt_string = 7;
  std::vector<std::byte> out;
  wire_writer w(out);
  tensor_head(w, dt_string, extents);
  for (const auto& v : values) w.bytes(8, v);
  return out;
}
// The tags of a v1 image or audio summary: the number asked for decides, not the number that there is.
inline std::string numbered_tag(std::string_view tag, std::string_view kind, std::int64_t asked, std::int64_t i) {
  return asked > 1 ? text(tag, '/', kind, '/', i) : text(tag, '/', kind);
}
}  // namespace detail

// One point of a curve. NaN and infinities are kept.
inline summary_values scalar_summary(std::string_view tag, float value) {
  summary_value v;
  v.tag = tag;
  v.kind = value_kind::simple_value;
  v.simple_value = value;
  return {std::move(v)};
}

// Several points of one step. Raises invalid_argument where there are not as many values as tags.
inline summary_values scalar_summary(std::span<const std::string> tags, std::span<const float> values) {
  if (tags.size() != values.size())
    raise(status::invalid_argument,
          text("scalar_summary: expected a value for each of the ", tags.size(), " tags, got ", values.size()));
  summary_values out;
  for (std::size_t i = 0; i < tags.size(); ++i) out.push_back(scalar_summary(tags[i], values[i]).front());
  return out;
}

// Text, which TensorBoard shows as Markdown: cells, row-major, of a table with these extents. Raises invalid_argument
// where the number of cells is not what the extents say.
inline summary_values text_summary(std::string_view tag, std::span<const std::string> cells,
                                   std::span<const std::int64_t> extents) {
  std::size_t expected = 1;
  for (const std::int64_t n : extents)
    if (n < 0 || __builtin_mul_overflow(expected, static_cast<std::size_t>(n), &expected))
      raise(status::invalid_argument, text("text_summary(\"", tag, "\"): expected extents from 0 on, got ", n));
  if (cells.size() != expected)
    raise(status::invalid_argument,
          text("text_summary(\"", tag, "\"): expected ", expected, " cells for these extents, got ", cells.size()));
  summary_value v;
  v.tag = tag;
  v.kind = value_kind::tensor;
  v.bytes = detail::string_tensor(cells, extents);
  v.metadata = detail::plugin_metadata("text");
  return {std::move(v)};
}
inline summary_values text_summary(std::string_view tag, std::string_view markdown) {
  const std::string one(markdown);
  return text_summary(tag, std::span(&one, 1), {});
}

// The values of several summaries as one, in order. A tag that stands twice is an error (invalid_argument); empty tags
// may repeat. (TensorFlow's merge_summary. Those of a collection: collections.hpp.)
inline summary_values merge_summaries(std::span<const summary_values> summaries) {
  summary_values out;
  const auto stands = [&](std::string_view tag) {
    return std::any_of(out.begin(), out.end(), [&](const summary_value& v) { return v.tag == tag; });
  };
  for (const auto& s : summaries)
    for (const auto& v : s) {
      if (!v.tag.empty() && stands(v.tag))
        raise(status::invalid_argument,
              text("Duplicate tag ", v.tag, " found in summary inputs; give one of them another name"));
      out.push_back(v);
    }
  return out;
}
inline summary_values merge_summaries(std::initializer_list<summary_values> summaries) {
  return merge_summaries(std::span(summaries.begin(), summaries.size()));
}
inline summary_values merge_summary(std::span<const summary_values> inputs) { return merge_summaries(inputs); }
inline summary_values merge_summary(std::initializer_list<summary_values> inputs) { return merge_summaries(inputs); }

// The part of the elements that is zero: how sparse an activation is. NaN of nothing, as tf.nn.zero_fraction.
template <class T>
float zero_fraction(std::span<const T> x) {
  if (x.empty()) return std::numeric_limits<float>::quiet_NaN();
  std::size_t found = 0;
  for (const T v : x) found += v == T{} ? 1 : 0;
  return static_cast<float>(static_cast<double>(found) / static_cast<double>(x.size()));
}

}  // namespace gradus
