// Trainers and supervisors write the event file of a run: the graph at its start, then the summaries of steps.
#pragma once
#include "../base/build.hpp"

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../base/deferred.hpp"
#include "../base/optional_library.hpp"
#include "../codec/codec.hpp"
#include "../summary/outputs.hpp"
#include "../summary/variable_def.hpp"
#include "../summary/writer.hpp"
#include "measure.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// Returns true if the model's graph may show histograms, images or audio. This is known for a compiled model; for an
// interpreted one it is not known before it runs.
template <class Model>
consteval bool may_show_more_than_scalars() {
  if constexpr (requires { Model::template frozen<mode::train>::graph; }) {
    constexpr const auto& g = Model::template frozen<mode::train>::graph;
    for (int i = 0; i < g.size.outputs; ++i)
      if (g.outputs[i].kind >= output::histogram) return true;
    return false;
  } else {
    return true;
  }
}

// Returns the summaries of a step besides scalars.
template <class Steps>
summary_values show_outputs(Steps& steps) {
  if constexpr (may_show_more_than_scalars<std::remove_cvref_t<decltype(steps.model())>>())
    return summarize_outputs(steps);
  else
    return {};
}

void append_scalars(std::vector<scalar_value>& to, std::span<const scalar_value> more);
void append_scalars(summary_values& to, const std::vector<scalar_value>& more);
// Returns all summaries of a step as one.
template <class Steps>
summary_values merged_summary(Steps& steps, double loss, double rate, std::vector<scalar_value>& scratch) {
  collect_scalars(steps, loss, rate, scratch);
  summary_values all = show_outputs(steps);
  append_scalars(all, scratch);
  return all;
}

// Returns the bytes of a model's GraphDef.
std::vector<std::byte> encoded_graph(const graph_parts& parts, const char* names);
// Writes the graph as graph.pbtxt into the directory, which is made if it is missing.
void publish_pbtxt(const graph_parts& parts, const char* names, const any_file_system& fs,
                   const std::string& directory);
// Returns the bytes of a MetaGraphDef; `refusal` as in to_meta_graph.
std::vector<std::byte> encoded_meta_graph(const graph_parts& parts, const char* names, std::vector<saved_tensor> saved,
                                          std::string_view refusal);

template <class FileSystem, class Clock>
class run_log {
public:
  using writer = summary_writer<FileSystem, Clock>;

  // Makes the event file.
  run_log(const std::string& logdir, const summary_writer_options& options, const FileSystem& fs, const Clock& clock)
      : to_(logdir, options, fs, clock) {}

  // Writes the model with its gradients and updates. Raises invalid_argument for two summaries of one tag, and
  // failed_precondition for images if nothing in the program can make PNG of them.
  template <class Steps>
  void add_graph(Steps& steps) {
    steps.model().template show<mode::train>([&](const graph_parts& parts, const char* names) {
      to_.add_graph(encoded_graph(parts, names), steps.global_step());
    });
    shows_more_ = check_summaries(steps.template graph<mode::train>());
  }

  // Writes, after a training step, its scalars and those of `more` as one event, and the model's other summaries as
  // another. Raises invalid_argument for a NaN or an infinity in a histogram, as TensorFlow's op does; nothing of the
  // step is written then.
  template <class Steps>
  void add_step(Steps& steps, double loss, double rate, std::span<const scalar_value> more = {}) {
    const std::int64_t step = steps.global_step();
    collect_scalars(steps, loss, rate, scalars_);
    append_scalars(scalars_, more);
    const summary_values shown = shows_more_ ? show_outputs(steps) : summary_values();
    to_.add_summary(const_span(scalars_), step);
    if (!shown.empty()) to_.add_summary(shown, step);
  }
  // Ends the log of a call of the run: all its events are in the file, which is closed until a later call continues it.
  // Reports the events that were lost since the last time, if the queue was full at times.
  template <class Say>
  void pause(Say say) {
    if (const std::string lost = to_.lost_events(); !lost.empty()) say(lost);
    to_.close();
  }
  // Does the same after an error, which goes on: what cannot be written is reported, too.
  template <class Say>
  void end(Say say) noexcept {
    try {
      try {
        pause(say);
      } catch (const error& e) {
        say(text("the end of the events is not on file: ", e.what()));
      }
    } catch (...) {  // what the sink raises
    }
  }
  void resume() { to_.resume(); }
  writer& events() { return to_; }

private:
  writer to_;
  std::vector<scalar_value> scalars_;
  bool shows_more_ = true;
};

// Returns the tensors of a list of state, under their own names.
std::vector<saved_tensor> tensors_of(const state_list& list, void* steps,
                                     bool (*is_trainable)(void* steps, std::string_view name));
// Returns the contents of a checkpoint of these steps, under the names that the codec gives them, except the input's
// position, which no other program could use.
template <class Steps, class Codec>
std::vector<saved_tensor> saved_tensors(Steps& steps, const Codec& codec) {
  state_list list;
  steps.remembers(list);
  std::vector<saved_tensor> out = tensors_of(
      list, &steps, [](void* s, std::string_view name) -> bool { return static_cast<Steps*>(s)->is_trainable(name); });
  if constexpr (requires(snapshot content) { codec.stored(std::move(content)); }) {
    snapshot content;
    for (const state_entry& e : list.entries())
      if (e.dynamic == nullptr) append_to(content.records, record{e.name, e.type, e.dims, e.bytes});
    const auto stored = codec.stored(std::move(content));
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i].key = stored[i].name, out[i].type = stored[i].type, out[i].slice = stored[i].slice;
      const auto list_of = [](const extents& e) { return std::vector<std::int64_t>(e.dims, e.dims + e.rank); };
      if (const auto& part = stored[i].part)
        out[i].part = {part->full_name, list_of(part->full), list_of(part->start), list_of(part->length)};
    }
  }
  return out;
}

// Writes graph.pbtxt into the directory: the training step, described in this library's ops. Returns the .meta file of
// a checkpoint: inference, in TensorFlow's ops; it is empty in a program that was compiled without protozero.
template <class Steps, class FileSystem, class Codec>
std::vector<std::byte> publish_graph(Steps& steps, const std::string& directory, const FileSystem& fs,
                                     const Codec& codec) {
  steps.model().template show<mode::train>(
      [&](const graph_parts& parts, const char* names) { publish_pbtxt(parts, names, fs, directory); });
  std::vector<std::byte> meta;
  if constexpr (has_protozero)
    steps.model().template show_forward<mode::predict>(
        [&](const graph_parts& parts, const char* names, std::string_view refusal) {
          meta = encoded_meta_graph(parts, names, saved_tensors(steps, codec), refusal);
        });
  return meta;
}

// This is the log of evaluations: each name is a run of its own in TensorBoard, with its own directory and file.
class any_evaluation_logs {
public:
  any_evaluation_logs();
  any_evaluation_logs(any_evaluation_logs&&) noexcept;
  any_evaluation_logs& operator=(any_evaluation_logs&&) noexcept;
  ~any_evaluation_logs();

  // An evaluation of the newest checkpoint takes the place of those of its step and of later ones, also of an earlier
  // process. One of an older checkpoint (is_newest_checkpoint) stands beside the others: a start would make TensorBoard
  // hide the results of later steps.
  void add(const std::string& logdir, const summary_values& values, std::int64_t step, bool is_newest,
           const any_file_system& fs, const any_clock& clock);
  void add(const std::string& logdir, std::span<const std::pair<std::string, double>> values, std::int64_t step,
           bool is_newest, const any_file_system& fs, const any_clock& clock);

private:
  struct one;
  std::vector<one> all_;
};
template <class FileSystem, class Clock>
class evaluation_logs : public any_evaluation_logs {
public:
  template <class Values>
  void add(const std::string& logdir, const Values& values, std::int64_t step, bool is_newest,
           const FileSystem& fs = {}, const Clock& clock = {}) {
    any_evaluation_logs::add(logdir, values, step, is_newest, fs, clock);
  }
};

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "run_log.ipp"
#endif
