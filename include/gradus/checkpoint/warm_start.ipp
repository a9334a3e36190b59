// The bodies of warm_start.hpp.
#pragma once
#include "../base/body.hpp"
#include "../codec/tensor_bundle.hpp"
#include "warm_start.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY std::map<std::string, std::string> keys_of_objects(std::span<const std::byte> object_graph) {
  std::map<std::string, std::string> keys;
  for (wire_reader graph(object_graph); graph.next();) {
    if (graph.key() != field(1, wire::length)) continue;
    for (auto node = graph.message(); node.next();) {
      if (node.key() != field(2, wire::length)) continue;
      std::string name, key;
      for (auto attribute = node.message(); attribute.next();) {
        if (attribute.key() == field(2, wire::length)) name = attribute.string();
        if (attribute.key() == field(3, wire::length)) key = attribute.string();
      }
      if (!name.empty() && !key.empty()) keys.emplace(std::move(name), std::move(key));
    }
  }
  return keys;
}

GRADUS_BODY void check_target(const warm_start_target& t) {
  std::uint64_t bytes = 0;
  const bool good = bytes_of(t.type, t.dims, bytes) && bytes == t.bytes.size() &&
                    (!t.slice || (t.slice->length == t.dims && problem_of(*t.slice).empty()));
  if (!good)
    raise(status::invalid_argument,
          text("the variable \"", t.name, "\" cannot be warm-started: its bytes or its place in \"", t.full_name(),
               "\" do not fit its extents ", to_text(t.dims)));
}

GRADUS_BODY std::string vocab_problem(const warm_start_group& g, const record& old, const vocab_info& info) {
  const extents& full = g.parts.front()->full();
  const int tokens = info.axis, other = 1 - info.axis;
  if (g.parts.front()->type != float32 || full.rank < 1 || full.rank > 2)
    return text("is ", name_of(g.parts.front()->type), to_text(full),
                "; a vocabulary belongs to a float32 variable of rank 2, or of rank 1");
  if (tokens >= full.rank) return text("has rank 1, and so no axis 1; set vocab_info::axis to 0");
  if (old.blob || old.type != float32 || old.dims.rank != full.rank)
    return text("is float32", to_text(full), " here, and \"", old.name, "\" is ", name_of(old.type), to_text(old.dims),
                " in the file");
  if (full[tokens] - info.num_oov_buckets != info.new_vocab_size)
    return text("is ", to_text(full), ", but its axis ", tokens,
                " needs new_vocab_size + num_oov_buckets = ", info.new_vocab_size, " + ", info.num_oov_buckets);
  if (full.rank == 2 && full[other] != old.dims[other])
    return text("is ", to_text(full), " here, and \"", old.name, "\" is ", to_text(old.dims),
                " in the file; only the extent of the vocabulary may differ");
  for (const auto* part : g.parts)
    if (full.rank == 2 && part->dims[1] != full[1])
      return "is partitioned by columns; only partitions by rows can be given a new vocabulary";
  return {};
}

GRADUS_BODY matrix_remapping remapping_of(const warm_start_plan& p) {
  matrix_remapping to{.backup_initializer = p.vocabulary->backup_initializer};
  (p.vocabulary->axis == 0 ? to.rows : to.columns) = &p.lines;
  (p.vocabulary->axis == 0 ? to.row_oov : to.column_oov) = p.vocabulary->num_oov_buckets;
  return to;
}

GRADUS_BODY std::string nothing_chosen(std::span<const warm_start_target> targets, const warm_start_settings& s) {
  std::string given, known;
  for (const auto& e : s.vars_to_warm_start.elements()) given += text(given.empty() ? "" : ", ", '"', e.text, '"');
  for (const auto& t : targets)
    if (t.trainable) known += text(known.empty() ? "" : ", ", '"', t.full_name(), '"');
  if (known.empty()) return {};
  return text("nothing was warm-started: vars_to_warm_start, ", given, ", matches no variable of ", known,
              "; an expression is matched from the start of a name, \".*\" takes all");
}

GRADUS_BODY slice_of slice_of_target(const warm_start_target& t) {
  if (t.slice) return *t.slice;
  slice_of all{t.name, t.dims, {}, t.dims};
  all.start.rank = t.dims.rank;
  return all;
}

GRADUS_BODY partition_map parts_in(const snapshot& content, const std::vector<warm_start_group>& groups,
                                   const std::map<std::string, std::string>& renamed) {
  std::set<std::string_view> there;
  for (const auto& r : content.records) there.insert(r.name);
  partition_map parts;
  for (const auto& g : groups)
    for (const auto* part : g.parts)
      if (part->slice && !there.contains(g.name) && there.contains(part->name) && !renamed.contains(g.name))
        parts.emplace(part->name, *part->slice);
  return parts;
}

GRADUS_BODY std::string details_of(const warm_start_plan& p) {
  const std::string_view previous = p.from->name == p.group->name ? "Unchanged" : std::string_view(p.from->name);
  if (p.vocabulary == nullptr) return text("Warm-starting variable: ", p.group->name, "; prev_var_name: ", previous);
  const auto& v = *p.vocabulary;
  return text("Warm-starting variable: ", p.group->name, "; current_vocab: ", v.new_vocab,
              "; current_vocab_size: ", v.new_vocab_size, "; prev_vocab: ", v.old_vocab,
              "; prev_vocab_size: ", v.old_vocab_size < 0 ? std::string("All") : text(v.old_vocab_size),
              "; current_oov: ", v.num_oov_buckets, "; prev_tensor: ", previous,
              "; initializer: ", v.backup_initializer ? "given" : "zeros");
}

}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY warm_started warm_start(std::span<const warm_start_target> targets, const warm_start_settings& settings,
                                    const std::string& source, const snapshot& content, const any_file_system& fs) {
  const auto groups = detail::chosen(targets, settings);
  detail::check_used(settings.var_name_to_prev_var_name, groups, "var_name_to_prev_var_name");
  detail::check_used(settings.var_name_to_vocab_info, groups, "var_name_to_vocab_info");
  const auto refuse = [&](status kind, const auto&... pieces) {
    raise(kind, text("warm start from \"", source, "\": ", pieces..., "\nNothing was changed."));
  };
  std::deque<std::vector<std::byte>> owned;
  std::optional<snapshot> joined;
  if (const auto parts = detail::parts_in(content, groups, settings.var_name_to_prev_var_name); !parts.empty())
    if (const auto problem = join_parts(joined.emplace(content), parts, owned); !problem.empty())
      refuse(status::invalid_argument, problem, "; warm-start all parts, cut as the codec cuts them.");
  std::map<std::string_view, const record*> records;
  for (const auto& r : (joined ? *joined : content).records) records.emplace(r.name, &r);

  // An object-based checkpoint maps names to keys itself; a map in the settings replaces that one.
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

  // Nothing can fail from here on.
  warm_started out{source, plans.size(), {}, {}, {}};
  if (groups.empty() && !targets.empty()) out.warning = detail::nothing_chosen(targets, settings);
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

GRADUS_BODY std::optional<std::string> variables_of_export(const std::string& directory, const any_file_system& fs) {
  std::string at = directory;
  while (at.size() > 1 && at.ends_with('/')) at.pop_back();
  const auto is_there = [&](const std::string& path) {
    return detail::uninterrupted([&] { return fs.exists(path); }) == 0;
  };
  const std::string variables = join_path(at, "variables/variables");
  if (at.empty() || !is_there(variables + ".index")) return std::nullopt;
  if (!is_there(join_path(at, "saved_model.pb")) && !is_there(join_path(at, "saved_model.pbtxt"))) return std::nullopt;
  return variables;
}

GRADUS_BODY std::string warm_start_source(const any_codec& c, const warm_start_settings& settings,
                                          const any_file_system& fs) {
  std::string given = settings.ckpt_to_initialize_from;
  if (given.empty())
    raise(status::invalid_argument,
          "ckpt_to_initialize_from is empty; give the path of a checkpoint, or of a directory with checkpoints");
  while (given.size() > 1 && given.ends_with('/')) given.pop_back();
  if (auto variables = variables_of_export(given, fs)) return *std::move(variables);
  std::vector<std::byte> nothing;
  if (try_read(fs, given, 0, nothing).error == EISDIR) {
    const auto state = read_state_file(fs, given);
    std::string moved;
    const std::string newest = state ? listed_path(fs, given, state->newest, moved) : std::string{};
    const auto stem = detail::stem_of(newest, c.extension);
    const std::string proof = stem ? *stem + std::string(c.proof) : newest;
    if (!state || detail::uninterrupted([&] { return fs.exists(proof); }) != 0)
      raise(status::not_found,
            text("no checkpoint to warm-start from: the directory \"", given, "\" has no file \"", state_file_name,
                 "\", or the checkpoint that it names is gone; give the path of a checkpoint"));
    return newest;
  }
  if (given.ends_with(c.extension)) return given;
  return given + std::string(c.extension);
}

GRADUS_BODY warm_started warm_start(std::span<const warm_start_target> targets, const warm_start_settings& settings,
                                    const any_codec& codec, const any_file_system& fs) {
  const std::string path = warm_start_source(codec, settings, fs);
  const bool exported = variables_of_export(settings.ckpt_to_initialize_from, fs).has_value();
  const detail::opened_files opened(exported ? any_codec(tensor_bundle{}) : codec, fs, path, UINT64_MAX, 1,
                                    settings.limits);
  checkpoint_state listed;
  const decoded& read = opened.result();
  if (!read.ok()) {
    std::string_view given = settings.ckpt_to_initialize_from;
    while (given.size() > 1 && given.ends_with('/')) given.remove_suffix(1);
    const bool guessed = path == text(given, codec.extension);
    raise(read.kind,
          text("cannot warm-start from \"", path, "\": ", read.problem,
               guessed ? text(" (and \"", given, "\" is no directory)") : std::string(), ". Nothing was changed."));
  }
  // A checkpoint that was found through a state file has to be of the step that its name contains.
  if (try_read_state(fs, join_path(settings.ckpt_to_initialize_from, state_file_name), listed).file.error == 0)
    if (const auto other = detail::wrong_step(path, read.content); !other.empty())
      raise(status::data_loss, text("cannot warm-start from \"", path, "\": ", other, ". Nothing was changed."));
  auto out = warm_start(targets, settings, path, read.content, fs);
  if (!read.warning.empty()) out.warning += text(out.warning.empty() ? "" : "; ", read.warning);
  return out;
}

}  // namespace gradus
