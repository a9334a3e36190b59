// The bodies of run_log.hpp.
#pragma once
#include "../base/body.hpp"
#include "../summary/graph.hpp"
#include "../summary/run_graph.hpp"
#include "run_log.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY void append_scalars(std::vector<scalar_value>& to, std::span<const scalar_value> more) {
  for (const scalar_value& s : more) to.push_back(s);
}
GRADUS_BODY void append_scalars(summary_values& to, const std::vector<scalar_value>& more) {
  for (const auto& s : more) to.push_back(scalar_summary(s.tag, s.value).front());
}

GRADUS_BODY std::vector<std::byte> encoded_graph(const graph_parts& parts, const char* names) {
  std::vector<std::byte> bytes;
  encode_graph_def(bytes, to_graph_def(parts, names));
  return bytes;
}

GRADUS_BODY void publish_pbtxt(const graph_parts& parts, const char* names, const any_file_system& fs,
                               const std::string& directory) {
  make_directories(fs, directory);
  publish(fs, join_path(directory, "graph.pbtxt"), to_pbtxt(to_graph_def(parts, names)));
}

GRADUS_BODY std::vector<std::byte> encoded_meta_graph(const graph_parts& parts, const char* names,
                                                      std::vector<saved_tensor> saved, std::string_view refusal) {
  std::vector<std::byte> meta;
  encode_meta_graph(meta, to_meta_graph(parts, names, std::move(saved), refusal));
  return meta;
}

GRADUS_BODY std::vector<saved_tensor> tensors_of(const state_list& list, void* steps,
                                                 bool (*is_trainable)(void* steps, std::string_view name)) {
  std::vector<saved_tensor> out;
  for (const state_entry& e : list.entries())
    if (e.dynamic == nullptr)
      out.push_back({e.name, e.type, {e.dims.dims, e.dims.dims + e.dims.rank}, is_trainable(steps, e.name)});
  return out;
}

struct any_evaluation_logs::one {
  std::string logdir;
  owned<any_summary_writer> log;
  std::int64_t last = std::numeric_limits<std::int64_t>::max();
};

GRADUS_BODY any_evaluation_logs::any_evaluation_logs() = default;
GRADUS_BODY any_evaluation_logs::any_evaluation_logs(any_evaluation_logs&&) noexcept = default;
GRADUS_BODY any_evaluation_logs& any_evaluation_logs::operator=(any_evaluation_logs&&) noexcept = default;
GRADUS_BODY any_evaluation_logs::~any_evaluation_logs() = default;

GRADUS_BODY void any_evaluation_logs::add(const std::string& logdir, const summary_values& values, std::int64_t step,
                                          bool is_newest, const any_file_system& fs, const any_clock& clock) {
  one* to = nullptr;
  for (one& o : all_)
    if (o.logdir == logdir) to = &o;
  if (to == nullptr)
    to = &all_.emplace_back(
        one{logdir, std::make_unique<any_summary_writer>(logdir, summary_writer_options{}, fs, clock)});
  to->log->resume();
  if (is_newest && step <= std::exchange(to->last, step)) to->log->start(step);
  to->log->add_summary(values, step);
  to->log->close();
}

GRADUS_BODY void any_evaluation_logs::add(const std::string& logdir,
                                          std::span<const std::pair<std::string, double>> values, std::int64_t step,
                                          bool is_newest, const any_file_system& fs, const any_clock& clock) {
  summary_values all;
  for (const auto& [name, v] : values) all.push_back(scalar_summary(name, static_cast<float>(v)).front());
  try {
    add(logdir, all, step, is_newest, fs, clock);
  } catch (const error& e) {
    raise(e.kind(), text("evaluate: its events cannot be written: ", e.what(),
                         "; evaluate(data, {.name = \"\"}) writes none and returns the values"));
  }
}

}  // namespace gradus::detail
