// A device function gives nodes their devices, as TensorFlow's device functions do, which take an Operation:
//
//   const auto on = g.device([](const gradus::placed_op& op) {
//     return std::string(op.type == "VariableV2" ? "/job:ps" : "/job:worker");
//   });                                                         // holds until the end of the block
//
// The function gets the device of a g.device("/cpu:0") inside its block. The node's device is the function's result,
// completed by a device string around the block; a function around the block then gets that. cluster/device_setter.hpp
// has the function of parameter servers. Graphs that the compiler builds accept none.
#pragma once
#include "../base/build.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "../base/dtype.hpp"
#include "../base/shape.hpp"
#include "device_spec.hpp"
#include "graph.hpp"

namespace gradus::inline GRADUS_BUILD {

struct placed_op {
  std::string_view name = {};    // with its scope; empty if it has none of its own
  std::string_view type = {};    // the op's name: "VariableV2", "MatMul"
  std::string_view device = {};  // the device of a g.device inside the block; empty: none
  dtype output = dtype::none;
  shape dims = {};
};

// Returns the node's device string, empty if it has none. An empty function does not change the devices of nodes.
using device_function = std::function<std::string(const placed_op& op)>;

namespace detail {

template <class F>
class device_scope : placer {
public:
  device_scope(graph& g, placer_slot& slot, int& asked, F f)
      : placer{&call}, g_(&g), slot_(&slot), asked_(&asked), f_(std::move(f)), outer_(slot.now), around_(asked) {
    slot_->now = this;
    *asked_ = -1;
  }
  device_scope(const device_scope&) = delete;
  ~device_scope() { slot_->now = outer_, *asked_ = around_; }

private:
  graph* g_;
  placer_slot* slot_;
  int* asked_;  // the current device of g.device(string)
  device_function f_;
  placer* outer_;
  int around_;

  static void call(placer& self, graph& g, int node) { static_cast<device_scope&>(self).place(g, node); }
  void place(graph& g, int id) {
    const auto text_of = [&](int offset) { return offset < 0 ? std::string() : std::string(g.text_at(offset)); };
    std::string given = text_of(g.nodes[id].device);
    if (f_) {
      const auto& n = g.nodes[id];
      const std::string name = text_of(n.name), asked = given;
      given = f_(placed_op{name, n.op->name, asked, n.type, n.dims});
    }
    if (around_ >= 0)
      given = device_spec::from_string(text_of(around_)).merged(device_spec::from_string(given)).to_string();
    g.nodes[id].device = given.empty() ? -1 : g.intern(given);
    if (outer_ != nullptr) outer_->place(*outer_, g, id);
  }
};

}  // namespace detail

}  // namespace gradus
