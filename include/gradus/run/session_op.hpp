// A session runs some ops by itself, since they touch state that a session has and a kernel does not have: its
// resources, its feeds, which variables have values. A program may add such ops, as it may add kernels: the card
// defines how the op runs.
//
//   void run_size(gradus::session_call& c);
//   inline constexpr gradus::session_card queue_size{{"QueueSizeV2", 0, gradus::trait::session | ...}, &run_size};
//
// A run goes through its ops in three phases:
//
//   before   in the order of the graph. The run holds no variable, and so may wait as long as it likes; the results are
//            put into placeholders, which depend on the op by a control edge, and the batch's size is taken from them.
//            A node of this phase has no operands and waits for nothing.
//   during   with the kernels, in their order; the run holds its variables, so nothing may wait.
//   after    in the order of the graph, when the run has released its variables. Its operands stay as they were.
//            Only nodes of this phase, and nodes that compute nothing, may wait for it.
#pragma once
#include "../base/build.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "../base/cancellation.hpp"
#include "../graph/graph.hpp"
#include "../tensor/tensor.hpp"
#include "feed.hpp"

namespace gradus::inline GRADUS_BUILD {

class base_session;

enum class run_phase { before, during, after };

// These are the arguments of an op when it runs.
class session_call {
public:
  base_session& session;
  std::span<const int> attributes;              // the words it was built with
  std::span<const const_tensor_view> operands;  // before: none
  tensor_view result;                           // during: the memory of the op's tensor
  std::span<const feed> feeds;                  // of the run; before only
  const blocking_options& wait;                 // calls that may block take it
  std::shared_ptr<void>& memory;                // the op's own, kept from run to run, empty at first; before and after
  std::vector<feed>* given = nullptr;           // before: the values of placeholders in this run

  template <class Attributes>
  Attributes get() const {
    return from_words<Attributes>(attributes.data());
  }
};

// The traits must include trait::session and trait::keeps.
struct session_card : card {
  void (*run)(session_call&) = nullptr;
  run_phase phase = run_phase::during;
  // Lists the variables that the op reads or writes beside operand 0, as nodes, from its attributes; null: there are
  // none.
  void (*touches)(std::span<const int> attributes, std::vector<int>& reads, std::vector<int>& writes) = nullptr;
  bool starts_variables = false;  // it gives variables their first values
};

namespace detail {
// Returns null if a kernel or an optimizer runs the op.
constexpr const session_card* session_card_of(const card* op) {
  return op->is(trait::at_session) ? static_cast<const session_card*>(op) : nullptr;
}
}  // namespace detail

}  // namespace gradus
