// load_saved_model reads an export to predict with it: this library's (train/export_saved_model.hpp) or TensorFlow
// 1.x's, as far as its ops are known here.
//
//   auto model = gradus::load_saved_model("export/census/1700000000");
//   const auto y = model.predict("serving_default", {{"x", data}});
//   const float first = y["scores"].as<float>()[0];
//
// Several threads may call `predict` at once.
// TensorFlow: tf.saved_model.loader.load, tf.contrib.predictor.from_saved_model (1.15).
#pragma once
#include "../base/build.hpp"

#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "../run/session.hpp"
#include "import_meta_graph.hpp"

namespace gradus::inline GRADUS_BUILD {

struct saved_model_load_options {
  std::vector<std::string> tags = {"serve"};  // all tags of the graph that is wanted, in any order
  import_options imports = {};                // limits, the file system, and substitutes for unknown ops
};

// These are the outputs of one call, by their keys in the signature, as views that are valid while this object lives.
class named_predictions {
public:
  named_predictions(std::vector<std::string> keys, run_results all) : keys_(std::move(keys)), all_(std::move(all)) {}
  // Raises not_found, with the known keys.
  const const_tensor_view& operator[](std::string_view key) const;
  const std::vector<std::string>& keys() const { return keys_; }

private:
  std::vector<std::string> keys_;
  run_results all_;
};

class saved_model {
public:
  using open_session = std::function<std::unique_ptr<base_session>(graph&)>;

  // Programs call load_saved_model.
  saved_model(std::string directory, const saved_model_load_options& o, const open_session& open);

  // Returns the signatures: inputs and outputs by key, with dtypes and extents (-1: the batch), and the method's name.
  const std::map<std::string, signature_def>& signatures() const { return imported_.about().signatures; }
  // Returns the outputs of a signature; feeds are named by the signature's keys. Raises not_found for a signature or a
  // key that is not there, with the known ones; invalid_argument for an input that is not fed; unimplemented for an
  // output that needs an op that this library does not have; and the errors of base_session::run.
  named_predictions predict(std::string_view signature, std::initializer_list<feed> feeds) const {
    return predict(signature, std::span<const feed>(feeds.begin(), feeds.size()));
  }
  named_predictions predict(std::string_view signature, std::span<const feed> feeds) const;

  // Returns the paths of the files in assets/, by name.
  const std::map<std::string, std::string>& assets() const { return assets_; }
  // Returns the features that the model reads from a tf.train.Example, or none if the export does not list them.
  const std::vector<feature_def>& features() const { return features_; }
  // Return the session with the variables, and the graph with the file's other contents.
  base_session& session() const { return *session_; }
  const imported_graph& imported() const { return imported_; }
  const std::string& directory() const { return directory_; }

private:
  // This is one signature, found in the graph.
  struct found_signature {
    std::map<std::string, value, std::less<>> inputs;
    std::vector<std::string> keys;
    std::vector<fetch> outputs;
    std::string problem;  // why it cannot be computed
    status kind = status::unimplemented;
  };
  std::string directory_;
  imported_graph imported_;
  std::unique_ptr<base_session> session_;
  std::map<std::string, found_signature, std::less<>> found_;
  std::map<std::string, std::string> assets_;
  std::vector<feature_def> features_;
};

// Loads the graph with these tags and its variables. Policies are those of a session (run/session.hpp). Raises
// not_found if there is no export at this path, for tags that no graph of it has, and for variables that are not in it;
// data_loss; and the errors of import_meta_graph.
template <class Device = default_device, class... Policies>
saved_model load_saved_model(const std::string& directory, const saved_model_load_options& o = {},
                             Policies... policies) {
  return saved_model(directory, o, [policies...](graph& g) -> std::unique_ptr<base_session> {
    return std::make_unique<session<Device, Policies...>>(g, policies...);
  });
}

namespace detail {
// Returns the graph of an export with these tags.
meta_graph graph_with_tags(const std::string& directory, const saved_model_load_options& o);
}  // namespace detail

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "saved_model.ipp"
#endif
