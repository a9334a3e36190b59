// The bodies of import_meta_graph.hpp.
#pragma once
#include <cstring>

#include "../base/body.hpp"
#include "../codec/open.hpp"
#include "../codec/tensor_bundle.hpp"
#include "../store/file.hpp"
#include "import_meta_graph.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY imported_graph::imported_graph(meta_graph m, import_options o) : about_(std::move(m)), o_(std::move(o)) {
  std::map<std::string, detail::imported_variable> variables;
  std::string global_step;
  const auto collect = [&](const std::string& name, const auto& use) {
    const auto found = about_.collections.find(name);
    if (found == about_.collections.end()) return;
    for (const auto& message : found->second.messages)
      if (const variable_def v = decode_variable_def(message); !v.name.empty()) use(v);
  };
  collect("variables", [&](const variable_def& v) { variables[v.name] = {v.trainable, false, v.initial_value}; });
  collect("local_variables", [&](const variable_def& v) {
    if (!variables.contains(v.name)) variables[v.name] = {false, true, v.initial_value};
  });
  // In a file of an older TensorFlow only the collection marks variables as trainable.
  const bool listed = about_.collections.contains("trainable_variables");
  if (listed) {
    for (auto& [name, v] : variables) v.trainable = false;
    collect("trainable_variables", [&](const variable_def& v) {
      if (const auto found = variables.find(v.name); found != variables.end())
        found->second.trainable = !found->second.local;
    });
  }
  importer_ = std::make_unique<detail::graph_importer>(std::move(about_.graph), std::move(variables), o_.placeholders);
  about_.graph = {};

  const detail::graph_index& nodes = importer_->nodes();
  for (int i = 0; i < nodes.size(); ++i) {
    const std::string& op = nodes.node(i).op;
    if (op == "VariableV2" || op == "Variable" || op == "VarHandleOp" || op == "Placeholder")
      ask(nodes.node(i).name, {});
  }
  for (const auto& [key, s] : about_.signatures) {
    for (const auto& [name, t] : s.inputs) ask(t.tensor, {});
    for (const auto& [name, t] : s.outputs) ask(t.tensor, {});
  }
  bool any = !about_.signatures.empty();
  for (const auto& [name, c] : about_.collections) {
    if (name == main_op_collection) continue;  // initialize() does it
    for (const std::string& t : c.nodes) ask(t, name), any = true;
    if (name != collection::global_step) continue;
    for (const auto& message : c.messages)
      if (const variable_def v = decode_variable_def(message); !v.name.empty()) ask(v.name, name);
  }
  // A graph without signatures and collections computes the tensors that no other node reads.
  if (!any)
    for (int i = 0; i < nodes.size(); ++i)
      if (!nodes.is_used(i)) ask(nodes.node(i).name, {});
}

GRADUS_BODY void imported_graph::ask(std::string_view tensor, std::string_view to) {
  std::string why = importer_->problem(tensor);
  if (!why.empty()) {
    left_out_.emplace(std::string(tensor), std::move(why));
    return;
  }
  if (!to.empty()) of().add_to(to, importer_->tensor(tensor));
}

GRADUS_BODY std::vector<std::string> imported_graph::placeholders() const {
  std::vector<std::string> out;
  const graph& g = of();
  for (int i = 0; i < g.nodes.count; ++i)
    if (g.nodes.first[i].op == &placeholder_card) out.emplace_back(g.name_of(i));
  return out;
}

GRADUS_BODY std::vector<std::string> imported_graph::variables() const {
  std::vector<std::string> out;
  const graph& g = of();
  for (int i = 0; i < g.nodes.count; ++i)
    if (g.nodes.first[i].op == &variable_card) out.emplace_back(g.name_of(i));
  return out;
}

GRADUS_BODY std::shared_ptr<detail::any_saver> imported_graph::saver() const {
  if (!about_.saver) return nullptr;
  saver_options s;
  s.max_to_keep = about_.saver->max_to_keep;
  s.keep_checkpoint_every_n_hours = static_cast<double>(about_.saver->keep_checkpoint_every_n_hours);
  return std::make_shared<detail::any_saver>(s, any_codec(tensor_bundle{}), o_.files, any_clock(system_clock{}));
}

GRADUS_BODY void imported_graph::restore(base_session& s, const std::string& prefix) const {
  const detail::opened_files opened(any_codec(tensor_bundle{}), o_.files, prefix, UINT64_MAX, 1, o_.limits);
  const decoded& read = opened.result();
  if (!read.ok()) raise(read.kind, text("cannot restore from \"", prefix, "\": ", read.problem));
  const graph& g = of();
  std::string missing, other;
  std::vector<std::pair<std::string, const record*>> found;
  for (int i = 0; i < g.nodes.count; ++i) {
    const node& n = g.nodes.first[i];
    if (n.op != &variable_card || from_words<variable_attr>(g.ints.first + n.attr).local != 0) continue;
    const std::string name(g.name_of(i));
    const auto& all = read.content.records;
    const auto at = std::find_if(all.begin(), all.end(), [&](const record& r) { return r.name == name; });
    const bool own = name == collection::random_seed || name == collection::random_step;  // TensorFlow has none
    if (at == all.end() && own) continue;
    if (at == all.end()) {
      missing += text(missing.empty() ? "" : ", ", '"', name, '"');
      continue;
    }
    if (at->type != n.type || !(at->dims == resolve(n.dims, 1)))
      other += text(other.empty() ? "" : ", ", '"', name, "\" (here ", gradus::name_of(n.type), " ", to_text(n.dims),
                    ", there ", gradus::name_of(at->type), " ", to_text(at->dims), ")");
    found.emplace_back(name, &*at);
  }
  if (!missing.empty())
    raise(status::not_found, text("the checkpoint \"", prefix, "\" has no ", missing, "; nothing was restored"));
  if (!other.empty())
    raise(status::invalid_argument,
          text("the checkpoint \"", prefix, "\" does not fit ", other, "; nothing was restored"));
  const auto still = s.pause_runs();
  for (const auto& [name, r] : found) {
    const tensor_view to = s.mutable_variable(name);
    if (!r->bytes.empty()) std::memcpy(to.mutable_data(), r->bytes.data(), r->bytes.size());
  }
}

GRADUS_BODY imported_graph import_meta_graph(std::span<const std::byte> bytes, const import_options& o) {
  return imported_graph(decode_meta_graph(bytes, o.limits), o);
}

GRADUS_BODY imported_graph import_meta_graph(const std::string& path, const import_options& o) {
  return import_meta_graph(read_file(o.files, path, o.limits), o);
}

GRADUS_BODY imported_graph import_graph_def(std::span<const std::byte> bytes, const import_options& o) {
  meta_graph m;
  m.graph = decode_graph_def(bytes, o.limits);
  m.saver.reset();
  return imported_graph(std::move(m), o);
}

}  // namespace gradus
