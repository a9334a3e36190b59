// What a model's graph shows besides scalars (g.summary_histogram, summary_image, summary_audio), as values of a
// summary, after a training step:
//
//   const auto values = summarize_outputs(stepper);
//   if (!values.empty()) writer.add_summary(values, step);
#pragma once
#include <cstdint>
#include <string_view>
#include <utility>

#include "../graph/graph.hpp"
#include "../tensor/tensor.hpp"
#include "audio.hpp"
#include "histogram.hpp"
#include "image.hpp"

namespace gradus {

// One output's values. `rate` is the output behind audio's clips; it is read for those alone. Raises invalid_argument
// for a histogram's NaN or infinity, and for a type that the kind has no rule for.
inline summary_values summarize_output(int kind, std::string_view tag, const const_tensor_view& v,
                                       const const_tensor_view& rate = {}) {
  const auto extent = [&](int i) { return i < v.dims.rank ? static_cast<std::int64_t>(v.dims[i]) : 1; };
  if (kind == output::histogram) switch (v.type) {
    case dtype::float32: return histogram_summary(tag, v.as<float>());
    case dtype::float64: return histogram_summary(tag, v.as<double>());
    case dtype::int32: return histogram_summary(tag, v.as<std::int32_t>());
    case dtype::int64: return histogram_summary(tag, v.as<std::int64_t>());
    case dtype::uint8: return histogram_summary(tag, v.as<std::uint8_t>());
    case dtype::boolean: return histogram_summary(tag, v.as<bool>());
    case dtype::float16: return histogram_summary(tag, v.as<half>());
    case dtype::bfloat16: return histogram_summary(tag, v.as<bfloat>());
    case dtype::none: break;
    }
  if (kind == output::image) {
    const image_extents e{extent(0), extent(1), extent(2), extent(3)};
    switch (v.type) {
    case dtype::float32: return image_summary(tag, v.as<float>(), e);
    case dtype::float64: return image_summary(tag, v.as<double>(), e);
    case dtype::uint8: return image_summary(tag, v.as<std::uint8_t>(), e);
    default: break;
    }
  }
  if (kind == output::audio && v.type == dtype::float32)
    return audio_summary(tag, v.as<float>(), {extent(0), extent(1), extent(2)}, rate.as<float>()[0]);
  raise(status::invalid_argument,
        text("the summary \"", tag, "\" cannot show ", name_of(v.type), "; cast it to float32 in the model"));
}

// All of a step's, kind by kind: `Stepper` has graph<mode::train>() and output_of<mode::train>(kind, n).
template <class Stepper>
summary_values summarize_outputs(Stepper& stepper) {
  summary_values all;
  const auto& r = stepper.template graph<mode::train>();
  for (const int kind : {output::histogram, output::image, output::audio})
    for (int i = 0, n = 0; i < r.graph.output_count; ++i) {
      if (r.graph.outputs[i].kind != kind) continue;
      const auto tag = r.name_at(r.graph.outputs[i].name);
      const auto view = stepper.template output_of<mode::train>(kind, n++);
      const_tensor_view rate;
      if (kind == output::audio) rate = stepper.template output_of<mode::train>(kind, n++), ++i;
      for (auto& v : summarize_output(kind, tag, view, rate)) all.push_back(std::move(v));
    }
  return all;
}

}  // namespace gradus
