// With warm_start_columns the tables of embedding columns begin with the rows in checkpoints that their
// ckpt_to_load_from and tensor_name_in_ckpt name. tf.feature_column.embedding_column does so by itself; here it is a
// policy of the trainer:
//
//   embedding_column(word, 300, {.ckpt_to_load_from = "runs/words", .tensor_name_in_ckpt = "emb"})  ... in a layout
//   make_trainer(model, adagrad{.rate = 0.1}, warm_start_columns{layout}, run_config{.model_dir = "runs/after"});
//   warm_start_columns{layout, tensor_bundle{}}                       checkpoints of another codec
//
// As every warm start it is only for a new run: if model_dir has a checkpoint, nothing is taken over. Columns without a
// checkpoint start with their initializers.
#pragma once
#include "../base/build.hpp"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "../columns/feature_layout.hpp"
#include "warm_start.hpp"

namespace gradus::inline GRADUS_BUILD {

// This policy loads the embedding tables of feature columns from the checkpoints that the columns name.
template <codec Codec = flat_binary>
class warm_start_columns {
public:
  using policy_for = kind::warm_start;

  // `input_layer` is the name of the layer in the graph. Raises invalid_argument if no column has a checkpoint.
  explicit warm_start_columns(const feature_layout& layout, Codec from = {},
                              std::string_view input_layer = "input_layer")
      : from_(std::move(from)) {
    std::set<std::string> seen;  // columns share tables
    for (const auto& c : layout.input_layer()) {
      const embedding_column* e = c.embedding();
      if (e == nullptr || e->options().ckpt_to_load_from.empty() || !seen.insert(e->table_name()).second) continue;
      const std::string variable = text(input_layer, '/', e->table_name(), "/embedding_weights");
      const auto& o = e->options();
      warm_start_settings s{.ckpt_to_initialize_from = o.ckpt_to_load_from,
                            .vars_to_warm_start = {variable_named{variable}}};
      if (o.tensor_name_in_ckpt != variable) s.var_name_to_prev_var_name = {{variable, o.tensor_name_in_ckpt}};
      settings_.push_back(std::move(s));
    }
    if (settings_.empty())
      raise(status::invalid_argument,
            "warm_start_columns: no embedding_column of the layout's input_layer has a ckpt_to_load_from");
  }

  // Raises the errors of warm_start (checkpoint/warm_start.hpp), and not_found for a table that the model does not
  // have.
  template <class Trainable, file_system F>
  warm_started apply(const state_list& list, Trainable&& trainable, const F& fs) const {
    warm_started all;
    for (const auto& s : settings_) {
      const warm_started one = warm_start_from<Codec>(s, from_).apply(list, trainable, fs);
      all.source += text(all.source.empty() ? "" : ", ", one.source);
      all.count += one.count;
      all.names.insert(all.names.end(), one.names.begin(), one.names.end());
      all.details.insert(all.details.end(), one.details.begin(), one.details.end());
      if (!one.warning.empty()) all.warning += text(all.warning.empty() ? "" : "; ", one.warning);
    }
    return all;
  }

private:
  std::vector<warm_start_settings> settings_;
  Codec from_;
};
warm_start_columns(const feature_layout&) -> warm_start_columns<flat_binary>;
template <codec Codec>
warm_start_columns(const feature_layout&, Codec) -> warm_start_columns<Codec>;
template <codec Codec>
warm_start_columns(const feature_layout&, Codec, std::string_view) -> warm_start_columns<Codec>;

}  // namespace gradus
