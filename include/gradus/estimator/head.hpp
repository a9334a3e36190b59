// A head takes the logits of a model and makes the loss, the predictions, the metrics and the train op. tf.estimator's
// heads (1.15) are in binary_class_head.hpp, multi_class_head.hpp, regression_head.hpp.
//
//   const gradus::multi_class_head head{10};
//   return head.create_estimator_spec({.features = features, .mode = m, .logits = logits, .labels = labels,
//                                      .optimizer = gradus::adam{.rate = 0.01}});
//
// A head of your own is any type with two functions, and those of the others that it needs:
//
//   int logits_dimension() const;
//   gradus::estimator_spec create_estimator_spec(const gradus::head_arguments&) const;
//   std::string weight_column() const;                     the feature that weighs examples; empty: none
//   std::vector<std::string> label_vocabulary() const;     labels are these texts; empty: numbers
//   int label_classes() const;                             labels are whole numbers below this; 0: any numbers
//
// Graphs hold numbers and no strings. So a label that is a string is replaced by its number before it enters a graph
// (canned/canned_input.hpp), and predicted classes are numbers: class_names returns their names.
#pragma once
#include "../base/build.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "../ops/loss.hpp"
#include "estimator_spec.hpp"
#include "optimizer_choice.hpp"

namespace gradus::inline GRADUS_BUILD {

struct head_arguments {
  named_tensors features = {};  // the weight column is looked for here
  gradus::mode mode = gradus::mode::train;
  value logits = {};  // [batch, ..., logits_dimension]
  value labels =
      {};  // shaped as the logits but for the last extent, which may be left out if it is 1. Not in mode predict
  std::function<value(value loss)> train_op_fn = {};  // mode train needs this or an optimizer
  std::optional<optimizer_choice> optimizer = {};     // minimizes the loss and adds 1 to the global step
  std::vector<value> regularization_losses = {};      // scalars, added to the loss
};

// Replaces a head's own loss: from labels [..., n] and logits it returns the loss of each example, [..., 1] (for a
// regression [..., n]).
using head_loss_fn = std::function<value(value labels, value logits)>;

namespace detail {

struct head_loss {
  value labels, unreduced, weights, training;  // weights: none, or [..., 1]
  losses::reduction how;
};
// The checks of all heads on their settings and arguments. They raise invalid_argument, with the shapes.
void check_reduction(losses::reduction r, std::string_view head);
value checked_logits(const head_arguments& a, int dimension, std::string_view head);
value checked_labels(const head_arguments& a, int dimension, std::string_view head);
value weights_of(const head_arguments& a, const std::string& column, bool each_logit, std::string_view head);
value unreduced_by(const head_loss_fn& f, value labels, value logits, int dimension, std::string_view head);
value label_range(value labels, int n_classes);
head_loss reduced(const head_arguments& a, value labels, value unreduced, value weights, losses::reduction r);
// Returns the key of a metric: "average_loss", or, for a head that has a name, "average_loss/name".
std::string key_of(std::string_view key, const std::string& head_name);
// Makes the parts of a spec that all heads share: regularization, summaries, the train op with the ops in "update_ops".
estimator_spec head_spec(const head_arguments& a, const std::string& head_name, named_tensors predictions,
                         export_outputs_map exports, const std::function<head_loss()>& loss,
                         const std::function<named_metrics(const head_loss&)>& metrics_of);
// Returns the class numbers of each example, [batch, n].
value all_class_ids(value logits, int n);
std::vector<std::string> class_names(const std::vector<std::string>& vocabulary, int n);
void check_vocabulary(const std::vector<std::string>& vocabulary, int n, std::string_view head);

}  // namespace detail

// `any_head` is a type-erased head.
class any_head {
public:
  template <class Head>
    requires(!std::is_same_v<std::remove_cvref_t<Head>, any_head> &&
             requires(const Head& h, const head_arguments& a) {
               { h.logits_dimension() } -> std::convertible_to<int>;
               { h.create_estimator_spec(a) } -> std::convertible_to<estimator_spec>;
             })
  any_head(Head h) : head_(std::make_shared<body<Head>>(std::move(h))) {}

  int logits_dimension() const { return head_->logits_dimension(); }
  estimator_spec create_estimator_spec(const head_arguments& a) const { return head_->create_estimator_spec(a); }
  std::string weight_column() const { return head_->weight_column(); }
  std::vector<std::string> label_vocabulary() const { return head_->label_vocabulary(); }
  int label_classes() const { return head_->label_classes(); }

private:
  struct face {
    virtual ~face() = default;
    virtual int logits_dimension() const = 0;
    virtual estimator_spec create_estimator_spec(const head_arguments& a) const = 0;
    virtual std::string weight_column() const = 0;
    virtual std::vector<std::string> label_vocabulary() const = 0;
    virtual int label_classes() const = 0;
  };
  template <class Head>
  struct body final : face {
    explicit body(Head from) : h(std::move(from)) {}
    int logits_dimension() const override { return h.logits_dimension(); }
    estimator_spec create_estimator_spec(const head_arguments& a) const override { return h.create_estimator_spec(a); }
    std::string weight_column() const override {
      if constexpr (requires { h.weight_column(); }) return h.weight_column();
      return {};
    }
    std::vector<std::string> label_vocabulary() const override {
      if constexpr (requires { h.label_vocabulary(); }) return h.label_vocabulary();
      return {};
    }
    int label_classes() const override {
      if constexpr (requires { h.label_classes(); }) return h.label_classes();
      return 0;
    }
    Head h;
  };
  std::shared_ptr<const face> head_;
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "head.ipp"
#endif
