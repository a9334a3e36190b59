// Values of a summary as plain calls: scalars, text, and joining what several calls made. Histograms, images and audio
// have headers of their own.
//
//   const auto all = merge_summaries({scalar_summary("loss", loss), text_summary("notes", "**first** run")});
//   writer.add_summary(all, step);
//
// Tags are taken as they are: `summary_tag` (tag.hpp) makes them as tf.summary.* does, from name, scope and family.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "../base/error.hpp"
#include "event.hpp"

namespace gradus {

// The values of one summary, in order: what one event holds.
using summary_values = std::vector<summary_value>;

namespace detail {
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
// may repeat.
inline summary_values merge_summaries(std::span<const summary_values> summaries) {
  summary_values out;
  std::unordered_set<std::string> seen;
  for (const auto& s : summaries)
    for (const auto& v : s) {
      if (!v.tag.empty() && !seen.insert(v.tag).second)
        raise(status::invalid_argument,
              text("Duplicate tag ", v.tag, " found in summary inputs; give one of them another name"));
      out.push_back(v);
    }
  return out;
}
inline summary_values merge_summaries(std::initializer_list<summary_values> summaries) {
  return merge_summaries(std::span(summaries.begin(), summaries.size()));
}

// What a program summarizes, said once: named collections of calls that make values, as tf.summary's ops stand in a
// graph's collections. `merge_all` runs those of one collection and merges what they made.
class summary_collections {
public:
  using maker = std::function<summary_values()>;
  static constexpr std::string_view summaries = "summaries";  // where TensorFlow puts a summary unless told

  void add(maker make, std::initializer_list<std::string_view> collections = {summaries}) {
    makers_.push_back(std::move(make));
    for (const std::string_view name : collections) members_.emplace_back(name, makers_.size() - 1);
  }
  // None where the collection is empty.
  std::optional<summary_values> merge_all(std::string_view collection = summaries) const {
    std::vector<summary_values> made;
    for (const auto& [name, i] : members_)
      if (name == collection) made.push_back(makers_[i]());
    if (made.empty()) return std::nullopt;
    return merge_summaries(made);
  }

private:
  std::vector<maker> makers_;
  std::vector<std::pair<std::string, std::size_t>> members_;
};

// The part of the elements that is zero: how sparse an activation is. NaN of nothing, as tf.nn.zero_fraction.
template <class T>
float zero_fraction(std::span<const T> x) {
  if (x.empty()) return std::numeric_limits<float>::quiet_NaN();
  std::size_t zeros = 0;
  for (const T v : x) zeros += v == T{} ? 1 : 0;
  return static_cast<float>(static_cast<double>(zeros) / static_cast<double>(x.size()));
}

}  // namespace gradus
