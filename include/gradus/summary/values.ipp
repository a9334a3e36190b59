// The bodies of values.hpp.
#pragma once
#include "../base/body.hpp"
#include "../store/wire.hpp"
#include "values.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY std::vector<std::byte> plugin_metadata(std::string_view plugin, std::span<const std::byte> content) {
  std::vector<std::byte> out;
  wire_writer w(out);
  w.message(1, [&](wire_writer& data) {
    data.bytes(1, plugin);
    data.bytes_if(2, content);
  });
  return out;
}

GRADUS_BODY void tensor_head(wire_writer& w, std::int64_t data_type, std::span<const std::int64_t> extents) {
  w.integer(1, data_type);
  w.message(2, [&](wire_writer& shape) {
    for (const std::int64_t n : extents) shape.message(2, [&](wire_writer& dim) { dim.integer_if(1, n); });
  });
}

GRADUS_BODY std::vector<std::byte> string_tensor(std::span<const std::string> values,
                                                 std::span<const std::int64_t> extents) {
  constexpr std::int64_t dt_string = 7;
  std::vector<std::byte> out;
  wire_writer w(out);
  tensor_head(w, dt_string, extents);
  for (const auto& v : values) w.bytes(8, v);
  return out;
}

GRADUS_BODY std::string numbered_tag(std::string_view tag, std::string_view kind, std::int64_t asked, std::int64_t i) {
  return asked > 1 ? text(tag, '/', kind, '/', i) : text(tag, '/', kind);
}

}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY summary_values scalar_summary(std::string_view tag, float value) {
  summary_value v;
  v.tag = tag;
  v.kind = value_kind::simple_value;
  v.simple_value = value;
  return {std::move(v)};
}

GRADUS_BODY summary_values scalar_summary(std::span<const std::string> tags, std::span<const float> values) {
  if (tags.size() != values.size())
    raise(status::invalid_argument,
          text("scalar_summary: expected a value for each of the ", tags.size(), " tags, got ", values.size()));
  summary_values out;
  for (std::size_t i = 0; i < tags.size(); ++i) out.push_back(scalar_summary(tags[i], values[i]).front());
  return out;
}

GRADUS_BODY summary_values text_summary(std::string_view tag, std::span<const std::string> cells,
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

GRADUS_BODY summary_values text_summary(std::string_view tag, std::string_view markdown) {
  const std::string one(markdown);
  return text_summary(tag, std::span(&one, 1), {});
}

GRADUS_BODY summary_values merge_summaries(std::span<const summary_values> summaries) {
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

GRADUS_BODY summary_values merge_summaries(std::initializer_list<summary_values> summaries) {
  return merge_summaries(std::span(summaries.begin(), summaries.size()));
}

}  // namespace gradus
