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

#include "../base/body.hpp"
#include "../graph/graph.hpp"
#include "../tensor/tensor.hpp"
#include "audio.hpp"
#include "histogram.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
void require_images(std::string_view tag);
GRADUS_RARE bool check_summaries(const output* outputs, int count, const char* names);
}  // namespace detail

// Returns one output's values. `rate` is the output that follows the clips of audio, its sample rate; it is read for
// audio alone. Raises invalid_argument for a NaN or infinity in a histogram (as TensorFlow's op does), and for a dtype
// that the kind of summary does not support; failed_precondition for an image if the program does not include
// image.hpp.
GRADUS_RARE summary_values summarize_output(int kind, std::string_view tag, const const_tensor_view& v,
                                            const const_tensor_view& rate = {});

// Returns whether this graph has summaries other than scalars. Raises invalid_argument for a tag that occurs twice
// among all its summaries, and failed_precondition for images if the program does not include image.hpp: a run calls it
// at its start, so that it does not fail later.
template <class Runnable>
bool check_summaries(const Runnable& r) {
  return detail::check_summaries(r.graph.outputs, r.graph.output_count, r.names);
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
