// The bodies of saved_model.hpp.
#pragma once
#include <algorithm>
#include <set>

#include "../base/body.hpp"
#include "../store/file.hpp"
#include "export_saved_model.hpp"
#include "saved_model.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {

template <class List, class Name>
std::string quoted_names(const List& list, const Name& name_of_one) {
  std::string out;
  for (const auto& one : list) out += text(out.empty() ? "" : ", ", '"', name_of_one(one), '"');
  return out.empty() ? "none" : out;
}
template <class Map>
std::string keys_of(const Map& map) {
  return quoted_names(map, [](const auto& e) -> const std::string& { return e.first; });
}

GRADUS_BODY meta_graph graph_with_tags(const std::string& directory, const saved_model_load_options& o) {
  const any_file_system& fs = o.imports.files;
  const std::string path = join_path(directory, "saved_model.pb");
  if (uninterrupted([&] { return fs.exists(path); }) != 0) {
    const auto below = exports_in(fs, directory);
    raise(status::not_found, text("no export is at \"", directory, "\": there is no file saved_model.pb",
                                  below.empty() ? "" : "; it has exports in it, of which the newest is \"",
                                  below.empty() ? "" : below.back(), below.empty() ? "" : "\""));
  }
  auto graphs = decode_saved_model(read_file(fs, path, o.imports.limits), o.imports.limits);
  const std::set<std::string> wanted(o.tags.begin(), o.tags.end());
  const auto tags_of = [](const auto& list) { return quoted_names(list, [](const std::string& t) { return t; }); };
  std::string there;
  for (meta_graph& m : graphs) {
    if (std::set<std::string>(m.tags.begin(), m.tags.end()) == wanted) return std::move(m);
    there += text(there.empty() ? "" : "; ", tags_of(m.tags));
  }
  raise(status::not_found, text("the export \"", directory, "\" has no graph for the tags ", tags_of(wanted),
                                "; it has graphs for ", there.empty() ? "none" : there));
}

}  // namespace detail

GRADUS_BODY const const_tensor_view& named_predictions::operator[](std::string_view key) const {
  for (std::size_t i = 0; i < keys_.size(); ++i)
    if (keys_[i] == key) return all_[i];
  raise(status::not_found, text("there is no output \"", key, "\"; there are ",
                                detail::quoted_names(keys_, [](const std::string& k) { return k; })));
}

GRADUS_BODY saved_model::saved_model(std::string directory, const saved_model_load_options& o, const open_session& open)
    : directory_(std::move(directory)), imported_(detail::graph_with_tags(directory_, o), o.imports) {
  const meta_graph& m = imported_.about();
  for (const auto& [name, s] : m.signatures) {
    found_signature& f = found_[name];
    try {
      for (const auto& [key, t] : s.inputs) {
        const value v = imported_[t.tensor];
        if (imported_.of().nodes[v.id].op != &placeholder_card)
          raise(status::unimplemented, text("the input \"", key, "\" is \"", t.tensor, "\", which is no placeholder"));
        f.inputs.emplace(key, v);
      }
      for (const auto& [key, t] : s.outputs) f.keys.push_back(key), f.outputs.emplace_back(imported_[t.tensor]);
    } catch (const error& e) {
      f.problem = e.what(), f.kind = e.kind();
    }
  }
  for (const asset_def& a : m.assets)
    if (a.filename.find('/') == std::string::npos) assets_[a.filename] = join_path(directory_, "assets/" + a.filename);
  if (const auto c = m.collections.find(std::string(detail::features_collection));
      c != m.collections.end() && !c->second.messages.empty())
    features_ = decode_feature_defs(c->second.messages[0], o.imports.limits);
  imported_.of().finalize();
  session_ = open(imported_.of());
  if (m.saver) imported_.restore(*session_, join_path(directory_, "variables/variables"));
  session_->initialize();  // local variables, which no export holds
}

GRADUS_BODY named_predictions saved_model::predict(std::string_view signature, std::span<const feed> feeds) const {
  const auto found = found_.find(signature);
  if (found == found_.end())
    raise(status::not_found, text("the export \"", directory_, "\" has no signature \"", signature, "\"; it has ",
                                  detail::keys_of(found_)));
  const found_signature& f = found->second;
  if (!f.problem.empty()) raise(f.kind, text("the signature \"", signature, "\" cannot be computed: ", f.problem));
  std::vector<feed> given;
  std::set<std::string_view> fed;
  for (const feed& one : feeds) {
    const auto input = f.inputs.find(one.name);
    if (input == f.inputs.end())
      raise(status::not_found, text("the signature \"", signature, "\" has no input \"", one.name, "\"; it has ",
                                    detail::keys_of(f.inputs)));
    if (!fed.insert(input->first).second)
      raise(status::invalid_argument, text("the input \"", one.name, "\" is fed twice"));
    given.emplace_back(input->second, one.data);
  }
  for (const auto& [key, v] : f.inputs)
    if (!fed.contains(key))
      raise(status::invalid_argument, text("the signature \"", signature, "\" needs the input \"", key, "\" (",
                                           gradus::name_of(v.type()), " ", to_text(v.dims()), "), which is not fed"));
  return {f.keys, session_->run(std::span<const fetch>(f.outputs), std::span<const feed>(given))};
}

}  // namespace gradus
