// A canned estimator is an estimator whose model_fn builds layers over feature columns under a head, and whose input_fn
// gives data as they are read, one component for each feature; columns turn them into the model's inputs.
//
//   gradus::dnn_classifier people({.feature_columns = {age, gradus::embedding_column(town, 8)},
//                                  .hidden_units = {64, 32}, .model_dir = "runs/people"});
//   people.train([] { return gradus::labelled(csv("people.csv", ...).repeat().padded_batch(100), {"likes"}); },
//                {.steps = 2000});
//   for (const gradus::prediction& p : people.predict(input_fn)) say(people.class_of(p));
//
// Everything else is as in any estimator: train, evaluate, predict, train_and_evaluate, export. An exported model takes
// the output of the columns, that is, ids and numbers.
#pragma once
#include "../../base/build.hpp"

#include <optional>
#include <string>
#include <vector>

#include "../estimator.hpp"
#include "../serving_input.hpp"
#include "canned_model.hpp"

namespace gradus::inline GRADUS_BUILD {

class canned_estimator : public estimator {
public:
  // A stage in the options is called before the columns read the data.
  canned_estimator(canned_model model, estimator_options o);

  // Returns the names of the head's classes: its vocabulary, or "0", "1", ...; a regression has none.
  const std::vector<std::string>& class_names() const { return classes_; }
  // Returns the class name of a prediction of one example. Graphs hold no strings, so a prediction has only "class_ids"
  // where TensorFlow has "classes" too. Raises not_found if the prediction has no "class_ids", invalid_argument if it
  // is that of a batch.
  std::string class_of(const prediction& p) const;
  // Returns the serving input function of an export, which makes a placeholder for each component that the columns
  // make, such as "age" or "town/ids".
  serving_input_function serving() const { return raw_serving_input(model_.parts()); }
  // Returns the features that the columns read from a tf.train.Example, for saved_model_options::features;
  // saved_model::features() gives them to a program that loads the export.
  example_spec examples() const { return model_.examples(); }

private:
  canned_model model_;
  std::vector<std::string> classes_;
};

namespace detail {
// Returns the head of a classifier: that of two classes, or of more. Raises invalid_argument for fewer than 2.
any_head classifier_head(int n_classes, const std::string& weight_column, const std::vector<std::string>& vocabulary,
                         losses::reduction r);
any_head regressor_head(int label_dimension, const std::string& weight_column, losses::reduction r);
// Returns the head. Raises invalid_argument if there is none.
any_head given_head(const std::optional<any_head>& head);
// Returns the options of the estimator itself from those of a canned estimator.
estimator_options options_of(const auto& o) {
  estimator_options all = o.estimator;
  all.model_dir = o.model_dir, all.config = o.config, all.warm_start_from = o.warm_start_from;
  return all;
}
}  // namespace detail

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "canned_estimator.ipp"
#endif
