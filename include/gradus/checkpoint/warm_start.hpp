// Warm start: a new model begins with values of another's checkpoint. As tf.estimator.WarmStartSettings (TensorFlow
// 1.15).
//
//   warm_start_settings ws{.ckpt_to_initialize_from = "runs/old", .vars_to_warm_start = ".*input_layer.*"};
//   auto done = warm_start(targets, ws, flat_binary{}, posix{});        // done.count variables, from done.source
//
// Everything is checked first: the expressions, the names in both maps, every tensor's type and shape, every
// vocabulary. So an error leaves all variables as they were, where TensorFlow has replaced some by then.
// docs/warm_start.md has the examples.
#pragma once
#include "../store/wire.hpp"
#include "folder.hpp"
#include "match.hpp"
#include "state_file.hpp"
#include "warm_start_settings.hpp"

namespace gradus::inline GRADUS_BUILD {

// What was done. TensorFlow logs "Warm-starting from: <source>", "Warm-started <count> variables.", and the details at
// debug level.
struct warm_started {
  std::string source;
  std::size_t count = 0;
  std::vector<std::string> names;    // full names, in the order of the targets
  std::vector<std::string> details;  // one line for each
  std::string warning;               // of the reader: the checkpoint has no checksums
};

namespace detail {

// TensorFlow's object-based checkpoints (tf.train.Checkpoint) keep a TrackableObjectGraph that says under which key the
// variable of a name is stored: nodes = 1 { attributes = 2 { full_name = 2, checkpoint_key = 3 } }.
inline constexpr std::string_view object_graph_key = "_CHECKPOINTABLE_OBJECT_GRAPH";
std::map<std::string, std::string> keys_of_objects(std::span<const std::byte> object_graph);

// Parts whose places make no sense are the caller's mistake. Raises invalid_argument.
void check_target(const warm_start_target& t);

// What is wrong with a variable that gets a new vocabulary, or nothing.
std::string vocab_problem(const warm_start_group& g, const record& old, const vocab_info& info);

// What a variable will hold, before it does: values laid out for each part, or nothing where they are copied.
struct warm_start_plan {
  const warm_start_group* group = nullptr;
  const record* from = nullptr;
  const vocab_info* vocabulary = nullptr;
  std::vector<std::int64_t> lines = {};  // the old line of each new token
  std::vector<std::vector<float>> values = {};
};

inline matrix_values matrix_of(const record& r) { return {r.dims[0], r.dims.rank == 2 ? r.dims[1] : 1, r.bytes}; }

// The plan's lines stay where they are as long as this is used.
matrix_remapping remapping_of(const warm_start_plan& p);

// A variable that is not partitioned is its own only part.
slice_of slice_of_target(const warm_start_target& t);

// As TensorFlow says it.
std::string details_of(const warm_start_plan& p);

}  // namespace detail

// Warm-starts the targets from a checkpoint that has been read. `source` is its path, for messages. Raises
//   invalid_argument    settings that make no sense; names in a map that nothing uses; types, shapes
//   not_found           tensors that the checkpoint lacks, all of them named
//   and what match_vocabularies raises
// and then has changed nothing. What a backup initializer raises comes through, and has changed nothing either.
template <file_system F>
warm_started warm_start(std::span<const warm_start_target> targets, const warm_start_settings& settings,
                        const std::string& source, const snapshot& content, const F& fs) {
  const auto groups = detail::chosen(targets, settings);
  detail::check_used(settings.var_name_to_prev_var_name, groups, "var_name_to_prev_var_name");
  detail::check_used(settings.var_name_to_vocab_info, groups, "var_name_to_vocab_info");
  std::map<std::string_view, const record*> records;
  for (const auto& r : content.records) records.emplace(r.name, &r);

  // An object-based checkpoint knows the names; a map that is given replaces its own.
  auto previous = settings.var_name_to_prev_var_name;
  const auto objects = records.find(detail::object_graph_key);
  const bool by_objects = previous.empty() && objects != records.end();
  if (by_objects) previous = detail::keys_of_objects(objects->second->bytes);

  std::vector<detail::warm_start_plan> plans;
  std::string missing, other;
  for (const auto& g : groups) {
    const auto info = settings.var_name_to_vocab_info.find(g.name);
    const bool remapped = info != settings.var_name_to_vocab_info.end();
    if (!remapped && settings.vars_to_warm_start.form() == variables_to_warm_start::forms::nothing) continue;
    const auto renamed = previous.find(g.name);
    const std::string& name = renamed == previous.end() ? g.name : renamed->second;
    const auto found = records.find(name);
    if (found == records.end() || (by_objects && renamed == previous.end())) {
      missing += text(missing.empty() ? "" : ", ", '"', name, '"');
      if (name != g.name) missing += text(" (for \"", g.name, "\")");
      continue;
    }
    const record& from = *found->second;
    std::string problem;
    for (const auto* part : g.parts) {
      detail::check_target(*part);
      if (part->type != g.parts.front()->type || !(part->full() == g.parts.front()->full()))
        problem = "has parts of different types or of different wholes";
      else if (!remapped && (from.blob || from.type != part->type || !(from.dims == part->full())))
        problem = text("is ", name_of(part->type), to_text(part->full()), " here, and ", detail::kind_of(from),
                       " in the file");
    }
    if (remapped && problem.empty()) problem = detail::vocab_problem(g, from, info->second);
    if (!problem.empty()) other += text("\n  \"", g.name, "\" ", problem);
    plans.push_back({&g, &from, remapped ? &info->second : nullptr});
  }
  const auto refuse = [&](status kind, const auto&... pieces) {
    raise(kind, text("warm start from \"", source, "\": ", pieces..., "\nNothing was changed."));
  };
  if (!missing.empty())
    refuse(
        status::not_found, "the checkpoint does not hold ", missing,
        "; choose other variables by vars_to_warm_start, or say what they were called by var_name_to_prev_var_name.");
  if (!other.empty()) refuse(status::invalid_argument, "variables that do not fit:", other);

  for (auto& p : plans) {
    if (p.vocabulary == nullptr) continue;
    p.lines = match_vocabularies(*p.vocabulary, fs, settings.limits);
    const matrix_remapping to = detail::remapping_of(p);
    check_remapping(detail::matrix_of(*p.from), to, text('"', p.from->name, '"'));
  }
  for (auto& p : plans) {
    if (p.vocabulary == nullptr) continue;
    const matrix_remapping to = detail::remapping_of(p);
    for (const auto* part : p.group->parts) {
      auto& values = p.values.emplace_back(part->bytes.size() / sizeof(float));
      remap_matrix(detail::matrix_of(*p.from), to, part->slice ? part->slice->start[0] : 0, part->dims[0], values);
    }
  }

  // From here on nothing can fail.
  warm_started out{source, plans.size(), {}, {}, {}};
  for (const auto& p : plans) {
    out.names.push_back(p.group->name);
    out.details.push_back(detail::details_of(p));
  }
  for (const auto& p : plans)
    for (std::size_t i = 0; i < p.group->parts.size(); ++i) {
      const auto& part = *p.group->parts[i];
      if (p.vocabulary != nullptr && !part.bytes.empty())
        std::memcpy(part.bytes.data(), p.values[i].data(), part.bytes.size());
      else if (p.vocabulary == nullptr)
        detail::each_run(detail::slice_of_target(part), size_of(part.type),
                         [&](std::size_t from, std::size_t to, std::size_t bytes) {
                           std::memcpy(part.bytes.data() + to, p.from->bytes.data() + from, bytes);
                         });
    }
  return out;
}

// The checkpoint that ckpt_to_initialize_from names: of a directory the newest, of a path without extension the one
// with the codec's. Raises invalid_argument if it is empty, not_found if there is no checkpoint.
template <codec C, file_system F>
std::string warm_start_source(const warm_start_settings& settings, const F& fs) {
  std::string given = settings.ckpt_to_initialize_from;
  if (given.empty())
    raise(status::invalid_argument,
          "ckpt_to_initialize_from is empty; give the path of a checkpoint, or of a directory with checkpoints");
  while (given.size() > 1 && given.ends_with('/')) given.pop_back();
  std::vector<std::byte> nothing;
  if (try_read(fs, given, 0, nothing).error == EISDIR) {
    const auto state = read_state_file(fs, given);
    std::string moved;
    const std::string newest = state ? listed_path(fs, given, state->newest, moved) : std::string{};
    const auto stem = detail::stem_of(newest, C::extension);
    const std::string proof = stem ? *stem + std::string(C::proof) : newest;
    if (!state || detail::uninterrupted([&] { return fs.exists(proof); }) != 0)
      raise(status::not_found,
            text("no checkpoint to warm-start from: the directory \"", given, "\" has no file \"", state_file_name,
                 "\", or the checkpoint that it names is gone; give the path of a checkpoint"));
    return newest;
  }
  if (given.ends_with(C::extension)) return given;
  return given + std::string(C::extension);
}

// Warm-starts the targets from the checkpoint or directory that the settings name. Raises what the other warm_start
// raises, data_loss for a damaged checkpoint, failed_precondition for one of another codec.
template <codec C, file_system F>
warm_started warm_start(std::span<const warm_start_target> targets, const warm_start_settings& settings, const C& codec,
                        const F& fs) {
  const std::string path = warm_start_source<C>(settings, fs);
  const opened_checkpoint<C, F> opened(codec, fs, path, UINT64_MAX, 1, settings.limits);
  checkpoint_state listed;
  const decoded& read = opened.result();
  if (!read.ok())
    raise(read.kind, text("cannot warm-start from \"", path, "\": ", read.problem, ". Nothing was changed."));
  // Found through a state file, it has to be of the step that is said there.
  if (try_read_state(fs, join_path(settings.ckpt_to_initialize_from, state_file_name), listed).file.error == 0)
    if (const auto other = detail::wrong_step(path, read.content); !other.empty())
      raise(status::data_loss, text("cannot warm-start from \"", path, "\": ", other, ". Nothing was changed."));
  auto out = warm_start(targets, settings, path, read.content, fs);
  out.warning = read.warning;
  return out;
}

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "warm_start.ipp"
#endif
