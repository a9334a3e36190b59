// The bodies of export_saved_model.hpp.
#pragma once
#include <algorithm>
#include <cmath>
#include <set>

#include "../base/body.hpp"
#include "../codec/tensor_bundle.hpp"
#include "../store/directory_tree.hpp"
#include "../summary/feature_def.hpp"
#include "../summary/run_graph.hpp"
#include "export_saved_model.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY std::string export_name(double secs) {
  const std::string digits = text(static_cast<std::int64_t>(std::floor(std::max(secs, 0.0))));
  return digits.size() < 10 ? std::string(10 - digits.size(), '0') + digits : digits;
}

GRADUS_BODY bool is_export_name(std::string_view name) {
  return name.size() == 10 && std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

GRADUS_BODY std::vector<std::string> exports_in(const any_file_system& fs, const std::string& base) {
  std::vector<std::string> names, out;
  if (uninterrupted([&] { return fs.list(base, names); }) != 0) return out;
  std::sort(names.begin(), names.end());
  for (const std::string& n : names)
    if (is_export_name(n)) out.push_back(join_path(base, n));
  return out;
}

GRADUS_BODY dtype dtype_of_kind(feature_kind k) {
  return k == feature_kind::float32 ? float32 : k == feature_kind::int64 ? int64 : string_in_graphs;
}

// Returns the default value of a feature as a constant: one value for all places, or one for each.
GRADUS_BODY tensor_def default_of(const example_spec::entry& e) {
  tensor_def t{dtype_of_kind(e.kind), {}, {}};
  for (int i = 0; i < e.dims.rank; ++i) t.dims.push_back(e.dims.dims[i]);
  const feature& f = e.default_value;
  const auto put = [&t](const auto& values) {
    const auto bytes = std::as_bytes(std::span(values));
    t.content.assign(bytes.begin(), bytes.end());
  };
  if (e.kind == feature_kind::float32)
    put(f.floats);
  else if (e.kind == feature_kind::int64)
    put(f.ints);
  else
    for (std::size_t i = 0; i < f.texts.size(); ++i) t.strings.emplace_back(f.texts[i]);
  return t;
}

GRADUS_BODY std::vector<std::byte> encode_features(const example_spec& spec) {
  std::vector<feature_def> list;
  for (const example_spec::entry& e : spec.entries()) {
    if (e.how != example_spec::shape_of::fixed && e.how != example_spec::shape_of::var)
      raise(status::unimplemented,
            text("the feature \"", e.name, "\" is a ",
                 e.how == example_spec::shape_of::sparse ? "sparse_feature" : "fixed_len_sequence_feature",
                 ", which an export cannot describe; give fixed_len_feature and var_len_feature"));
    feature_def& d = list.emplace_back(feature_def{e.name, dtype_of_kind(e.kind)});
    d.any_length = e.how == example_spec::shape_of::var;
    if (d.any_length) continue;
    for (int i = 0; i < e.dims.rank; ++i) d.dims.push_back(e.dims.dims[i]);
    if (e.may_be_missing) d.default_value = default_of(e);
  }
  return encode_feature_defs(list);
}

// Returns the variables of a graph as a bundle has them, and with `all` everything else in the state too.
GRADUS_BODY std::vector<saved_tensor> variables_of(const graph& g, const state_list& state, bool all,
                                                   std::string& missing) {
  std::vector<saved_tensor> out;
  std::set<std::string> seen;
  const auto dims_of = [](const extents& e) { return std::vector<std::int64_t>(e.dims, e.dims + e.rank); };
  for (const shown_node& n : describe(g)) {
    if (n.source->op != &variable_card) continue;
    const auto a = from_words<variable_attr>(g.ints.first + n.source->attr);
    seen.insert(n.name);
    if (a.local != 0) continue;
    const state_entry* e = state.find(n.name);
    const shape_def here = to_shape_def(n.dims);
    if (e == nullptr || e->dynamic != nullptr || e->type != n.type || dims_of(e->dims) != here.dims) {
      missing += text(missing.empty() ? "" : ", ", '"', n.name, "\" (", name_of(n.type), " ", to_text(n.dims), ')');
      continue;
    }
    out.push_back({n.name, n.type, here.dims, a.trainable != 0});
  }
  if (all)
    for (const state_entry& e : state.entries())
      if (e.dynamic == nullptr && seen.insert(e.name).second) out.push_back({e.name, e.type, dims_of(e.dims)});
  return out;
}

GRADUS_BODY int node_of(const export_graph& g, std::string_view signature, const std::string& key, const value& v) {
  if (v.g != g.of)
    raise(status::invalid_argument, text("signature \"", signature, "\": the value of \"", key,
                                         v ? "\" belongs to another graph" : "\" is empty"));
  return v.id;
}

// Returns the graphs of an export, and adds to `saved` the names of the variables that they need.
GRADUS_BODY std::vector<meta_graph> graphs_to_export(std::span<const export_graph> graphs, const state_list& state,
                                                     const export_options& o, std::set<std::string>& saved) {
  if (graphs.empty()) raise(status::invalid_argument, "an export needs a graph; none was given");
  std::vector<meta_graph> out;
  std::set<std::set<std::string>> tags_seen;
  for (const export_graph& g : graphs) {
    if (g.of == nullptr) raise(status::invalid_argument, "an export_graph without a graph: set `of`");
    if (g.tags.empty())
      raise(status::invalid_argument, "a graph of an export needs a tag by which it is loaded, as \"serve\"");
    std::set<std::string> tags(g.tags.begin(), g.tags.end());
    const bool trains = tags.contains(std::string(saved_model_tag::training));
    std::string listed, missing;
    for (const auto& tag : tags) listed += text(listed.empty() ? "" : ", ", '"', tag, '"');
    if (!tags_seen.insert(std::move(tags)).second)
      raise(status::invalid_argument, text("two graphs of this export have the tags ", listed,
                                           "; a program that loads one by its tags could not tell which"));
    auto variables = variables_of(*g.of, state, trains, missing);
    if (!missing.empty())
      raise(status::invalid_argument,
            text("the graph ", listed, " has variables that are not among those saved: ", missing,
                 "; restore or train a model that has them, of these dtypes and "
                 "shapes"));
    for (const saved_tensor& v : variables) saved.insert(v.name);
    std::map<std::string, node_signature> signatures;
    for (const auto& [name, s] : g.signatures) {
      if (s.outputs.empty()) raise(status::invalid_argument, text("signature \"", name, "\" has no outputs"));
      node_signature& to = signatures[name];
      to.method = s.method_name;
      for (const auto& [key, v] : s.inputs) to.inputs[key] = node_of(g, name, key, v);
      for (const auto& [key, v] : s.outputs) to.outputs[key] = node_of(g, name, key, v);
    }
    meta_graph m = to_meta_graph(parts_of(*g.of), g.of->names.chars.first, std::move(variables), signatures);
    m.tags = g.tags;
    m.tensorflow_version = "1.15.0";  // these ops are of that version
    if (o.features) m.collections[std::string(features_collection)].messages.push_back(encode_features(*o.features));
    for (std::size_t i = 0; i < o.assets.size(); ++i) {
      const std::string file(file_name_of(o.assets[i]));
      const std::string node = text("gradus_assets/file_", i);
      m.graph.nodes.push_back({node,
                               "Const",
                               {},
                               {},
                               {{"dtype", string_in_graphs}, {"value", tensor_def{string_in_graphs, {}, {}, {file}}}}});
      m.assets.push_back({node + ":0", file});
    }
    out.push_back(std::move(m));
  }
  return out;
}

// Returns true for a path that stays below the directory to which it is relative.
GRADUS_BODY bool is_inner_path(const std::string& path) {
  const std::string closed = text("/", path, "/");
  return !path.empty() && closed.find("//") == std::string::npos && closed.find("/../") == std::string::npos &&
         closed.find("/./") == std::string::npos;
}

GRADUS_BODY void write_variables(staged_directory& to, const state_list& state, const std::set<std::string>& saved) {
  if (saved.empty()) return;
  snapshot content;
  content.about["library"] = written_by;
  content.about["codec"] = tensor_bundle::name;
  for (const state_entry& e : state.entries())
    if (saved.contains(e.name)) content.records.push_back({e.name, e.type, e.dims, e.bytes});
  const encoded files = tensor_bundle{}.encode(content);
  for (const encoded_file& f : files.files) to.write("variables/variables" + f.suffix, f.pieces);
}

GRADUS_BODY void write_assets(staged_directory& to, const export_options& o) {
  std::set<std::string, std::less<>> names;
  for (const std::string& path : o.assets) {
    const std::string name(file_name_of(path));
    if (!names.insert(name).second)
      raise(status::invalid_argument, text("two assets are called \"", name, "\"; rename one of the files"));
    to.write("assets/" + name, read_file(o.files, path));
  }
  for (const auto& [name, path] : o.assets_extra) {
    if (!is_inner_path(name))
      raise(status::invalid_argument, text("assets_extra: \"", name, "\" is no path below assets.extra"));
    to.write("assets.extra/" + name, read_file(o.files, path));
  }
  if (!o.source.empty())
    to.write(text("assets.extra/", export_source_name), std::as_bytes(std::span<const char>(o.source)));
}

// Returns true if an export has the same files as one that is not revealed yet. The source is compared first: it
// differs unless a process repeats what one before it did. The index holds the tensors' checksums, so that the tensors
// themselves, which may be large, are not read.
GRADUS_BODY bool is_same_export(staged_directory& staged, const std::string& there, const export_options& o,
                                bool has_variables) {
  std::vector<std::string> files{text("assets.extra/", export_source_name), "saved_model.pb"};
  if (has_variables) files.emplace_back("variables/variables.index");
  for (const std::string& path : o.assets) files.push_back(text("assets/", file_name_of(path)));
  for (const auto& [name, path] : o.assets_extra) files.push_back("assets.extra/" + name);
  return std::all_of(files.begin(), files.end(), [&](const std::string& file) {
    const std::vector<std::byte> here = read_file(o.files, staged.place_for(file));
    std::vector<std::byte> other;
    return !try_read(o.files, join_path(there, file), here.size(), other) && other == here;
  });
}

}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY std::string export_saved_model(const std::string& base, const state_list& state,
                                           std::span<const export_graph> graphs, const export_options& o) {
  std::set<std::string> saved;
  const std::vector<meta_graph> written = detail::graphs_to_export(graphs, state, o, saved);
  std::vector<std::byte> message;
  encode_saved_model(message, written);
  detail::staged_directory out(o.files, join_path(base, detail::export_name(o.tasks.now())));
  detail::write_variables(out, state, saved);
  detail::write_assets(out, o);
  out.write("saved_model.pb", message);
  if (!o.source.empty())
    if (const auto all = detail::exports_in(o.files, base);
        !all.empty() && detail::is_same_export(out, all.back(), o, !saved.empty()))
      return all.back();
  constexpr int tries = 10;
  for (int i = 0; i < tries; ++i) {
    if (i > 0) o.tasks.sleep(1);
    std::string path = join_path(base, detail::export_name(o.tasks.now()));
    if (out.reveal(path)) return path;
  }
  raise(status::deadline_exceeded, text("no export was written to \"", base, "\": the names of ", tries,
                                        " seconds in a row were taken; do others export there?"));
}

GRADUS_BODY std::string export_saved_model(const std::string& base, base_session& s,
                                           std::span<const export_graph> graphs, const export_options& o) {
  std::string missing;
  const auto needs = [&](const std::string& name) {
    return std::any_of(graphs.begin(), graphs.end(), [&](const export_graph& g) {
      const int id = g.of == nullptr ? -1 : g.of->find(name);
      return id >= 0 && g.of->nodes.first[id].op == &variable_card &&
             from_words<variable_attr>(g.of->ints.first + g.of->nodes.first[id].attr).local == 0;
    });
  };
  for (const std::string& name : s.report_uninitialized_variables())
    if (needs(name)) missing += text(missing.empty() ? "" : ", ", '"', name, '"');
  if (!missing.empty())
    raise(status::failed_precondition,
          text("no export is written of variables without a value: ", missing, "; initialize or restore them before"));
  const auto still = s.pause_runs();
  state_list list;
  s.remembers(list);
  return export_saved_model(base, list, graphs, o);
}

GRADUS_BODY std::string export_saved_model(const std::string& base, base_session& s,
                                           std::map<std::string, export_signature> signatures,
                                           const export_options& o) {
  const export_graph own{&s.of(), std::move(signatures)};
  return export_saved_model(base, s, std::span<const export_graph>(&own, 1), o);
}

}  // namespace gradus
