// This header returns the summaries of a model's graph other than scalars (g.summary_histogram, summary_image,
// summary_audio) as values, after a training step. Trainers and supervisors call it themselves.
//
//   const auto values = summarize_outputs(stepper);
//   if (!values.empty()) writer.add_summary(values, step);
//
// Images need image.hpp (and stb) included somewhere in the program.
#pragma once
#include "../base/build.hpp"

#include <cstdint>
#include <string_view>
#include <utility>

#include "../graph/graph.hpp"
#include "../tensor/tensor.hpp"
#include "audio.hpp"
#include "histogram.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
void require_images(std::string_view tag);
}  // namespace detail

// Returns one output's values. `rate` is the output that follows the clips of audio, its sample rate; it is read for
// audio alone. Raises invalid_argument for a NaN or infinity in a histogram (as TensorFlow's op does), and for a dtype
// that the kind of summary does not support; failed_precondition for an image if the program does not include
// image.hpp. (The functions here are templates, so that a program without such summaries compiles nothing.)
template <class View>
summary_values summarize_output(int kind, std::string_view tag, const View& v, const View& rate = {}) {
  if (kind == output::histogram) switch (v.type) {
    case dtype::float32: return histogram_summary(tag, v.template as<float>());
    case dtype::float64: return histogram_summary(tag, v.template as<double>());
    case dtype::int32: return histogram_summary(tag, v.template as<std::int32_t>());
    case dtype::int64: return histogram_summary(tag, v.template as<std::int64_t>());
    case dtype::uint8: return histogram_summary(tag, v.template as<std::uint8_t>());
    case dtype::boolean: return histogram_summary(tag, v.template as<bool>());
    case dtype::float16: return histogram_summary(tag, v.template as<half>());
    case dtype::bfloat16: return histogram_summary(tag, v.template as<bfloat>());
    default: break;
    }
  if (kind == output::image) {
    detail::require_images(tag);
    if (v.type == dtype::float32 || v.type == dtype::float64 || v.type == dtype::uint8)
      return detail::show_images(tag, v);
  }
  if (kind == output::audio && v.type == dtype::float32) {
    const auto extent = [&](int i) { return i < v.dims.rank ? static_cast<std::int64_t>(v.dims[i]) : 1; };
    return audio_summary(tag, v.template as<float>(), {extent(0), extent(1), extent(2)}, rate.template as<float>()[0]);
  }
  raise(status::invalid_argument,
        text("the summary \"", tag, "\" cannot show ", name_of(v.type), "; cast it to float32 in the model"));
}

// Returns whether this graph has summaries other than scalars. Raises invalid_argument for a tag that occurs twice
// among all its summaries, and failed_precondition for images if the program does not include image.hpp: a run calls it
// at its start, so that it does not fail later.
template <class Runnable>
bool check_summaries(const Runnable& r) {
  bool more = false;
  for (int i = 0; i < r.graph.output_count; ++i) {
    const output& o = r.graph.outputs[i];
    if (!o.is_summary()) continue;
    const auto tag = r.name_at(o.name);
    for (int k = i + 1; k < r.graph.output_count; ++k) {
      const output& other = r.graph.outputs[k];
      const bool rate = o.kind == output::audio && k == i + 1;  // the clips' second output
      if (other.is_summary() && !rate && r.name_at(other.name) == tag)
        raise(status::invalid_argument,
              text("Duplicate tag ", tag, " found in summary inputs; give one of them another name"));
    }
    if (o.kind == output::histogram) {
      bool is_scalar = tag == "loss" || tag == "learning_rate" || tag == "gradient_norm" || tag == "global_step/sec";
      for (int k = 0; k < r.graph.output_count; ++k)
        is_scalar =
            is_scalar || (r.graph.outputs[k].kind == output::metric && r.name_at(r.graph.outputs[k].name) == tag);
      if (is_scalar)
        raise(status::invalid_argument, text("Duplicate tag ", tag,
                                             " found in summary inputs: a run writes a scalar of this name; give the "
                                             "histogram another one"));
    }
    if (o.kind == output::image) detail::require_images(tag);
    if (o.kind == output::audio) ++i;
    more = more || o.kind != output::summary;
  }
  return more;
}

// Returns all values of a step, kind by kind. `Stepper` has graph<mode::train>() and output_of<mode::train>(kind, n).
template <class Stepper>
summary_values summarize_outputs(Stepper& stepper) {
  summary_values all;
  const auto& r = stepper.template graph<mode::train>();
  for (const int kind : {output::histogram, output::image, output::audio})
    for (int i = 0, n = 0; i < r.graph.output_count; ++i) {
      if (r.graph.outputs[i].kind != kind) continue;
      const auto tag = r.name_at(r.graph.outputs[i].name);
      const const_tensor_view view = stepper.template output_of<mode::train>(kind, n++);
      const_tensor_view rate;
      if (kind == output::audio) rate = stepper.template output_of<mode::train>(kind, n++), ++i;
      for (auto& v : summarize_output(kind, tag, view, rate)) all.push_back(std::move(v));
    }
  return all;
}

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "outputs.ipp"
#endif
