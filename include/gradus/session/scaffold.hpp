// A scaffold holds the ops that make a session of a graph ready: given ops, those of the graph's collections, or new
// ones. It is tf.train.Scaffold (1.15).
//
//   gradus::scaffold parts({.init_fn = [](gradus::scaffold&, gradus::base_session& s) { ... }});
//   parts.finalize(g);            // fills what is missing and finalizes the graph
//
// TensorFlow differs: here savers are no nodes, so no collection holds them, and each scaffold without a saver gets a
// saver of its own. Summaries are the graph's outputs and need no op.
#pragma once
#include "../base/build.hpp"

#include <functional>
#include <memory>
#include <vector>

#include "../checkpoint/saver.hpp"
#include "../run/variable_ops.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace collection {
inline constexpr std::string_view init_op = "init_op", ready_op = "ready_op",
                                  ready_for_local_init_op = "ready_for_local_init_op", local_init_op = "local_init_op";
}

class scaffold;
struct scaffold_options {
  value init_op = {};  // default: gives all variables but local ones their first values
  std::vector<feed> init_feed_dict = {};
  std::function<void(scaffold&, base_session&)> init_fn = nullptr;
  value ready_op = {};                 // default: reports variables without a value
  value ready_for_local_init_op = {};  // default: the same for all but local ones
  value local_init_op = {};            // default: initializes local variables and tables
  std::shared_ptr<detail::any_saver> saver = nullptr;
};

class scaffold {
public:
  explicit scaffold(scaffold_options o = {}) : o_(std::move(o)) {}
  // Copies another scaffold: takes its parts where `o` gives none.
  scaffold(const scaffold& copy_from, scaffold_options o);

  // Fills what is missing, from the graph's collections or by default, and finalizes the graph. A second call does
  // nothing. Raises failed_precondition if a collection that is read has several ops, or if an op is missing and the
  // graph is finalized already.
  scaffold& finalize(graph& g);
  bool is_finalized() const { return finalized_; }

  // Returns the op; it is empty before finalize, unless it was given.
  value init_op() const { return o_.init_op; }
  const std::vector<feed>& init_feed_dict() const { return o_.init_feed_dict; }
  // Returns init_fn, bound to this scaffold; an empty function if none was given.
  std::function<void(base_session&)> init_fn();
  value ready_op() const { return o_.ready_op; }
  value ready_for_local_init_op() const { return o_.ready_for_local_init_op; }
  value local_init_op() const { return o_.local_init_op; }
  const std::shared_ptr<detail::any_saver>& saver() const { return o_.saver; }
  // Takes this saver unless the scaffold has one; for callers that have a better default than that of finalize.
  void give_saver(std::shared_ptr<detail::any_saver> s) {
    if (o_.saver == nullptr) o_.saver = std::move(s);
  }

  // Returns the op of a collection; if there is none, `make` makes it. Raises failed_precondition if there are several.
  static value get_or_default(graph& g, std::string_view collection, const std::function<value()>& make);

private:
  scaffold_options o_;
  bool finalized_ = false;
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "scaffold.ipp"
#endif
