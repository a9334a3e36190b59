// The bodies of tf_example.hpp.
#pragma once
#include "../base/body.hpp"
#include "tf_example.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY components example_components(const example_spec& spec) {
  using shape_of = example_spec::shape_of;
  components out;
  for (const auto& e : spec.entries()) {
    const dtype type = e.kind == feature_kind::float32 ? float32 : e.kind == feature_kind::int64 ? int64 : uint8;
    const bool is_text = e.kind == feature_kind::text;
    if (is_text && (e.how == shape_of::sequence || e.how == shape_of::sparse || e.count != 1))
      raise(status::invalid_argument, text("feature \"", e.name,
                                           "\": a component holds one string, not several; read this one with "
                                           "parse_example"));
    out.push_back({e.name, type, {any_extent}});
    if (e.how == shape_of::fixed && !is_text) out.back().dims = e.dims;
    if (e.how == shape_of::sequence) out.back().dims = detail::with_lead(any_extent, e.dims);
    if (e.how == shape_of::sparse) out.push_back({text(e.name, "_indices"), int64, {any_extent}});
  }
  for (std::size_t a = 0; a < out.size(); ++a)
    for (std::size_t b = 0; b < a; ++b)
      if (out[a].name == out[b].name)
        raise(status::invalid_argument, text("two components are called \"", out[a].name, "\""));
  return out;
}

}  // namespace gradus

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY void example_decoder::copy(const void* from, std::size_t bytes, std::byte* to) {
  if (bytes != 0) std::memcpy(to, from, bytes);
}

}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY void example_parser::operator()(const datum& from, datum& to) const {
  detail::example_decoder(spec_).parse(detail::message_of(from), {}, detail::memory_of(to));
}

GRADUS_BODY parsed_examples<tf_record_dataset> tf_example(file_list files, example_spec spec,
                                                          const tf_record_options& options, const any_file_system& fs) {
  return {tf_record(std::move(files), options, fs), std::move(spec), options.ignore_errors};
}

}  // namespace gradus
