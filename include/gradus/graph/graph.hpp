// A graph is a plain class that both the compiler and the program can run. A model is an ordinary function that builds
// a graph; if the compiler runs it, the result is frozen and compiled, if the program runs it, it is interpreted. Both
// have the same nodes, in the same order, and the same numbers.
#pragma once
#include "../base/build.hpp"

#include <bit>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "../base/error.hpp"
#include "leaf.hpp"
#include "mode.hpp"
#include "name_table.hpp"
#include "placer.hpp"
#include "refusal.hpp"
#include "seq.hpp"
#include "size_limit.hpp"
#include "value.hpp"

namespace gradus::inline GRADUS_BUILD {

struct graph {
  detail::seq<node> nodes;
  detail::seq<int> edges;
  detail::seq<int> ints;
  name_table names;
  detail::seq<expression> expressions;
  detail::seq<output> outputs;
  struct member {
    int collection, node;
  };
  detail::seq<member> members;
  detail::seq<int> gates;  // {how many, ids...}: gradients of one op, all made before any is used (pass/gate.hpp)
  // Constant evaluation cannot throw, so the first refusal is kept here and becomes the compiler's error message.
  detail::seq<char> refusal;
  bool keeps_refusal = false;  // keep it at run time too (graph/law.hpp calls the shape rules, and needs no exception)

  constexpr graph() = default;
  constexpr explicit graph(gradus::mode m) : mode_(m) {}

  constexpr gradus::mode mode() const { return mode_; }
  constexpr graph_view view() const {
    return {nodes.first, nodes.count, edges.first,       edges.count,
            ints.first,  ints.count,  expressions.first, expressions.count};
  }

  // ---- refusals: text and shapes in any order. At run time they raise an exception; at compile time the text becomes
  // the compiler's error message. They come first in the class, because clang can evaluate a template only where its
  // body was seen before its use. (There is one array of pieces and one function, because a function for each kind of
  // sentence would be most of what a small program compiles.)
  template <class... Pieces>
  constexpr void refuse(const Pieces&... pieces) {
    const detail::refusal_piece list[] = {detail::refusal_piece(pieces)...};
    refuse_pieces(list, static_cast<int>(sizeof...(Pieces)));
  }
  [[gnu::cold, gnu::noinline]] constexpr void refuse_pieces(const detail::refusal_piece* list, int n) {
    detail::seq<char> message;
    for (int i = 0; i < n; ++i) detail::put_piece(message, list[i]);
    refuse_text(message);
  }
  [[gnu::cold, gnu::noinline]] constexpr void refuse_text(detail::seq<char>& message) {
    if (!std::is_constant_evaluated() && !keeps_refusal)
      raise(status::invalid_argument, std::string(message.first, static_cast<std::size_t>(message.count)));
    if (refusal.empty()) refusal = std::move(message);
  }

  // ---- leaves
  // Returns an input of the step, which feeds give. At most one extent is `batch`. If the name is empty it is
  // "Placeholder".
  constexpr value placeholder(std::string_view name, const shape& dims, dtype type = float32) {
    return leaf(placeholder_card, name.empty() ? "Placeholder" : name, dims, type, nullptr, 0);
  }
  // Returns memory that lasts between steps. It is named in its scope ("Variable" if the name is empty), and the name
  // is made unique as TensorFlow does: w, w_1, ... Names that differ only in case are different names; in TensorFlow
  // 1.15, W beside w is W_1.
  [[gnu::cold]] constexpr value variable(std::string_view name, const shape& dims, variable_options o = {}) {
    if (!is_float(o.type) && !is_16_bit_float(o.type) && o.init.kind == initializer::variance_scaling)
      o.init = zeros;  // as in TensorFlow, numbers that are not drawn begin with 0
    if (is_batched(dims)) refuse("variable \"", name, "\" cannot have a batch extent: ", dims);
    if (const char* problem = detail::initializer_problem(o.init, dims, o.type))
      refuse("variable \"", name, "\" ", dims, ": ", problem);
    const auto words = to_words(variable_attr{o.trainable && !o.local, o.local, o.init.kind, o.init.a, o.init.b,
                                              o.init.fan, o.init.distribution});
    const value v = leaf(variable_card, name.empty() ? "Variable" : name, dims, o.type, words.data(),
                         static_cast<int>(words.size()));
    if (o.constraint) add_constraint(v, name, o.constraint);
    add_to(o.local ? collection::local_variables : collection::global_variables, v);
    if (o.trainable && !o.local) add_to(collection::trainable_variables, v);
    return v;
  }
  // Returns a constant of one value everywhere, or of as many values as the shape holds. A value that the type cannot
  // hold is refused: 0.5 or 300 as uint8.
  constexpr value constant(double fill, dtype type = float32, const shape& dims = {}) {
    if (!can_hold(type, fill)) fill = refuse_number(type);
    const auto bits = std::bit_cast<std::array<int, 2>>(fill);
    return leaf(constant_card, {}, dims, type, bits.data(), 2);
  }
  // A graph keeps its numbers as double: a whole number of 64 bits that this would change is refused for int64.
  template <class N>
    requires(std::is_integral_v<N> && sizeof(N) == sizeof(std::int64_t))
  constexpr value constant(N fill, dtype type = float32, const shape& dims = {}) {
    if (type == int64 && !detail::fits_in_bits(fill, 53)) fill = 0, refuse_rounded();
    return constant(static_cast<double>(fill), type, dims);
  }
  constexpr value constant(std::initializer_list<double> list, const shape& dims, dtype type = float32) {
    return constant(list.begin(), list.size(), dims, type);
  }
  constexpr value constant(std::span<const double> list, const shape& dims, dtype type = float32) {
    return constant(list.data(), list.size(), dims, type);
  }
  constexpr value constant(const double* list, std::size_t count, const shape& dims, dtype type = float32) {
    if (count > detail::most_constants)
      return refuse("constant: more than 2^28 values; feed them, or let a variable hold them"), constant(0);
    if (!check_leaf({}, constant_card, dims, type)) return constant(0);
    if (is_batched(dims) || static_cast<std::int64_t>(count) != gradus::count(dims))
      refuse("constant: ", static_cast<int>(count), " values do not fill ", dims);
    if (finalized_) refuse_finalized("Const");
    const int at = ints.count;
    for (std::size_t i = 0; i < count; ++i) {
      double d = list[i];
      if (!can_hold(type, d)) d = refuse_number(type);
      const auto bits = std::bit_cast<std::array<int, 2>>(d);
      ints.append(bits.data(), 2);
    }
    node n;
    n.op = &constant_card, n.first = edges.count, n.attr = at, n.attrs = ints.count - at;
    n.scope = scope_, n.device = device_, n.type = type, n.dims = dims;
    return made(n);
  }

  // ---- ops
  // Adds any op by its card, with its operands and its attributes. The functions in `ops/` call this.
  constexpr value add(const card& op, const value* operands, int count, const int* words = nullptr, int word_count = 0,
                      std::string_view name = {});
  constexpr value add(const card& op, std::initializer_list<value> operands, std::string_view name = {}) {
    return add(op, operands.begin(), static_cast<int>(operands.size()), nullptr, 0, name);
  }
  template <class Attributes>
  constexpr value add_with(const card& op, std::initializer_list<value> operands, const Attributes& a,
                           std::string_view name = {}) {
    const auto words = to_words(a);
    return add(op, operands.begin(), static_cast<int>(operands.size()), words.data(), static_cast<int>(words.size()),
               name);
  }

  // Adds a no-op node that waits for all values of the list (tf.group).
  constexpr value group(std::initializer_list<value> list, std::string_view name = {}) {
    const value v = add(no_op_card, nullptr, 0, nullptr, 0, name);
    for (const value& w : list) depend(v, w);
    return v;
  }
  // Adds a control edge: `after` does not start before `before` is done. `after` must be the newest node.
  constexpr void depend(value after, value before) {
    const bool foreign = detail::looks_at_values() && (before.g != this || before.id < 0);
    if (foreign || after.id != nodes.count - 1 || before.id >= after.id)
      refuse("a control edge can only be added to the newest node, from an older one");
    else
      edges.push(before.id), ++nodes[after.id].controls;
  }

  // After this no node can be added, as after tf.Graph.finalize, so a graph that threads share does not change.
  constexpr void finalize() { finalized_ = true; }
  constexpr void unsafe_unfinalize() { finalized_ = false; }  // for a caller that finalized it for a while
  constexpr bool is_finalized() const { return finalized_; }

  // ---- scopes: `auto s = g.name_scope("tower");` holds until the end of the block
  class scope {
  public:
    constexpr scope(int& slot, int value) : slot_(&slot), previous_(slot) { slot = value; }
    constexpr scope(const scope&) = delete;
    constexpr ~scope() { *slot_ = previous_; }

  private:
    int* slot_;
    int previous_;
  };
  // The scope is unique among its siblings: the second "tower" is "tower_1".
  constexpr scope name_scope(std::string_view name) {
    if (name.empty()) refuse("name_scope: the name is empty, and names in it would begin with \"/\"; give it a name");
    return {scope_, name.empty() ? scope_ : names.unique(scope_, name, true)};
  }
  // Takes one of TensorFlow's device strings: "/job:ps/task:0/device:CPU:0".
  constexpr scope device(std::string_view name) { return {device_, intern(name)}; }
  // Takes a function that is called with each node (placed_op.hpp).
  template <class F>
    requires(!std::is_convertible_v<F, std::string_view>)
  detail::device_scope<F> device(F f) {
    return {*this, placer_, device_, std::move(f)};
  }

  // Ops made in the block wait for these values (tf.control_dependencies), and for those of the blocks around it.
  constexpr scope control_dependencies(std::initializer_list<value> list) {
    const int before = waits_.count;
    for (const value& v : list) {
      if (v.g != this) refuse("control_dependencies: a value belongs to another graph");
      waits_.push(v.id);
    }
    return {waits_.count, std::exchange(waits_.count, before)};
  }

  // Passes work on graphs without names; their nodes are in this scope, shown as "gradients/".
  static constexpr int gradient_scope = -2;
  constexpr void enter_gradient_scope() { scope_ = gradient_scope; }

  // ---- collections and outputs
  constexpr void add_to(std::string_view name, value v) { members.push({intern(name), v.id}); }
  template <class Visit>
  constexpr void for_each_in(std::string_view name, Visit visit) {
    for (int i = 0; i < members.count; ++i)  // threads may read at once, so nothing is interned
      if (names.is(members[i].collection, name)) visit(value{this, members[i].node});
  }
  constexpr void add_output(int kind, std::string_view name, value v) {
    if (detail::looks_at_values() && (v.g != this || v.id < 0))
      refuse(kind == output::metric && v.g == nullptr ? "the metric \"" : "the output \"", name,
             kind == output::metric && v.g == nullptr
                 ? "\" has no value to report; give a metric (accuracy(labels, p), metrics::mean(v)), not a value alone"
                 : "\" is no tensor of this graph; give one that the model made");
    else
      outputs.push({kind, intern(name), v.id});
  }
  // Adds a scalar that the trainer writes for TensorBoard every save_summary_steps.
  constexpr void summary_scalar(std::string_view tag, value v) {
    if (v.dims().rank != 0) refuse("summary_scalar(\"", tag, "\"): expected a scalar, got ", v.dims());
    add_output(output::summary, tag, v);
    add_to(collection::summaries, v);
  }
  // A step may also output these (summary/outputs.hpp makes summary values of them): the numbers of a tensor as a
  // histogram; images [n, height, width, channels] and clips [n, frames] or [n, frames, channels], the first three of
  // each.
  constexpr void summary_histogram(std::string_view tag, value v) {
    add_output(output::histogram, tag, v);
    add_to(collection::summaries, v);
  }
  constexpr void summary_image(std::string_view tag, value v) {
    const shape s = v.dims();
    if (s.rank != 4 || (s[3] != 1 && s[3] != 3 && s[3] != 4))
      refuse("summary_image(\"", tag, "\"): expected [n, height, width, channels], channels 1, 3 or 4, got ", s);
    add_output(output::image, tag, v);
    add_to(collection::summaries, v);
  }
  // sample_rate is in Hz; it is an output of its own, after the clips.
  constexpr void summary_audio(std::string_view tag, value v, double sample_rate) {
    if (v.dims().rank != 2 && v.dims().rank != 3)
      refuse("summary_audio(\"", tag, "\"): expected [n, frames] or [n, frames, channels], got ", v.dims());
    add_output(output::audio, tag, v);
    add_output(output::audio, tag, constant(sample_rate));
    add_to(collection::summaries, v);
  }

  // ---- names
  constexpr std::string_view text_at(int offset) const { return names.text_at(offset); }
  constexpr std::string_view name_of(int id) const { return text_at(nodes.first[id].name); }
  // Returns the node of this full name, or -1.
  constexpr int find(std::string_view name) const {
    for (int i = 0; i < nodes.count; ++i)
      if (nodes[i].name >= 0 && text_at(nodes[i].name) == name) return i;
    return -1;
  }
  constexpr value by_name(std::string_view name) {
    const int id = find(name);
    if (id < 0) refuse("no node is named \"", name, "\"");
    return {this, id};
  }

  constexpr int intern(std::string_view text) { return names.intern(text); }

private:
  gradus::mode mode_ = gradus::mode::train;
  int scope_ = -1, device_ = -1;
  detail::placer_slot placer_;
  detail::seq<int> waits_;  // control_dependencies
  bool finalized_ = false;

  [[gnu::cold, gnu::noinline]] constexpr double refuse_number(dtype type) {
    refuse("constant: ", type,
           " cannot hold this number; cast the tensor that it stands beside, or give a whole number "
           "in the range of ",
           type);
    return 0;
  }
  [[gnu::cold, gnu::noinline]] constexpr void refuse_rounded() {
    refuse(
        "constant: this whole number is beyond +-2^53 and would be rounded, since a graph keeps its numbers as double; "
        "feed it to a placeholder of int64, or cast it, static_cast<double>(n), where the nearest double will do");
  }
  constexpr value made(const node& n) {
    nodes.push(n);
    if (placer_.now != nullptr) placer_.now->place(*placer_.now, *this, nodes.count - 1);
    return {this, nodes.count - 1};
  }
  [[gnu::cold, gnu::noinline]] constexpr void refuse_finalized(std::string_view what) {
    if (!std::is_constant_evaluated())
      raise(status::failed_precondition, text("the graph is finalized and cannot be modified: make \"", what,
                                              "\" before finalize(), which a scaffold and a supervisor call"));
  }
  [[gnu::cold]] constexpr void add_constraint(value v, std::string_view name, const gradus::constraint& c) {
    node& n = nodes[v.id];
    if (const char* problem = detail::constraint_problem(c, n.dims.rank))
      refuse("variable \"", name, "\" ", n.dims, ": ", problem);
    if (!is_float(n.type)) refuse("variable \"", name, "\": a constraint is for float32 and float64, not ", n.type);
    const auto words = to_words(c);
    ints.append(words.data(), static_cast<int>(words.size()));
    n.attrs += static_cast<int>(words.size());
  }
  [[gnu::cold]] constexpr value leaf(const card& op, std::string_view name, const shape& dims, dtype type,
                                     const int* words, int count) {
    if (finalized_) refuse_finalized(name);
    node n;
    n.op = &op, n.first = edges.count, n.attr = ints.count, n.attrs = count;
    n.scope = scope_, n.device = device_, n.type = type, n.dims = dims;
    if (!name.empty()) n.name = names.unique(scope_, name, false);
    ints.append(words, count);
    if (batch_extents(dims) > 1) refuse("\"", name, "\": at most one extent may be batch, got ", dims);
    if (!check_leaf(name, op, dims, type)) n.dims = detail::without_size(dims);
    return made(n);
  }
  constexpr bool check_leaf(std::string_view name, const card& op, const shape& dims, dtype type) {
    const bool fits = detail::takes(op, dims);
    if (!fits)
      refuse(op.name, name.empty() ? "" : " \"", name, name.empty() ? ": " : "\": ", dims,
             detail::size_problem(op, dims));
    if (is_for_files(type)) refuse("\"", name, "\": ", type, " stands in files only; use int32, uint8 or float32");
    return fits;
  }
};

constexpr shape value::dims() const { return g->nodes[id].dims; }
constexpr dtype value::type() const { return g->nodes.first[id].type; }

// These are the arguments of an op's shape rule: the operands, the attributes, and the shape and dtype of the result.
struct inference {
  graph& g;
  const card& op;
  const value* operands;
  int count;
  const int* words;
  int word_count;
  shape dims = {};
  dtype type = dtype::none;

  constexpr shape in(int i) const { return operands[i].dims(); }
  constexpr dtype in_type(int i) const { return operands[i].type(); }
  template <class Attributes>
  constexpr Attributes attributes() const {
    return from_words<Attributes>(words);
  }
  // Refuses with the message "MatMul: <pieces> (operands: h/kernel [784, 128], ...)".
  template <class... Pieces>
  constexpr void refuse(const Pieces&... pieces) {
    const detail::refusal_piece list[] = {detail::refusal_piece(pieces)...};
    refuse_pieces(list, static_cast<int>(sizeof...(Pieces)));
  }
  [[gnu::cold, gnu::noinline]] constexpr void refuse_pieces(const detail::refusal_piece* list, int n) {
    detail::seq<char> message;
    detail::put(message, op.name), detail::put(message, ": ");
    for (int i = 0; i < n; ++i) detail::put_piece(message, list[i]);
    for (int i = 0; i < count && i < 3; ++i)
      detail::put(message, i == 0 ? " (" : ", "), detail::put(message, label(i)), detail::put(message, in(i));
    if (count > 0) detail::put(message, ")");
    g.refuse_text(message);
  }
  // Refuses a result, and an operand, that the op cannot count (graph/size_limit.hpp).
  constexpr bool sizes_fit(std::string_view name) {
    if (!detail::takes(op, dims)) return refuse_size(name, "the result ", dims), false;
    const int counted = detail::takes_tables(op) ? 0 : count;
    for (int i = 0; i < counted; ++i)
      if (const shape& s = g.nodes.first[operands[i].id].dims; !detail::is_counted(s))
        return refuse_size(name, "an operand ", s), false;
    return true;
  }

private:
  [[gnu::cold]] constexpr void refuse_size(std::string_view name, const char* what, const shape& s) {
    const char* const quote = name.empty() ? "" : "\"";
    refuse(quote, name, quote, name.empty() ? "" : ": ", what, s, detail::size_problem(op, s));
  }
  constexpr std::string_view label(int i) const { return g.name_of(operands[i].id); }
};

constexpr value graph::add(const card& op, const value* operands, int count, const int* words, int word_count,
                           std::string_view name) {
  if (finalized_) refuse_finalized(op.name);
  node n;
  n.op = &op, n.first = edges.count, n.inputs = count, n.attr = ints.count, n.attrs = word_count;
  n.scope = scope_, n.device = device_;
  for (int i = 0; i < count; ++i) {
    if (operands[i].g != this) {
      if (operands[i].g == nullptr)
        refuse(op.name, ": operand ", i, " is an empty value; give a tensor (labels are empty where none are named)");
      else
        refuse(op.name, ": operand ", i, " belongs to another graph; give a tensor of this one");
      return {this, 0};
    }
  }
  if (op.operands >= 0 && op.operands != count)
    refuse(op.name, ": takes ", op.operands, " operands, got ", count);
  else if (op.infer != nullptr) {
    inference rule{*this, op, operands, count, words, word_count};
    op.infer(rule);
    if (batch_extents(rule.dims) > 1)
      rule.refuse("the result would be ", rule.dims, ", and at most one extent may be batch; reshape an operand");
    if (!rule.sizes_fit(name)) rule.dims = detail::without_size(rule.dims);
    n.dims = rule.dims, n.type = rule.type;
  }
  if (!name.empty()) n.name = names.unique(scope_, name, false);
  if (edges.count + count > edges.capacity) edges.reserve(2 * (edges.count + count) + 16);
  for (int i = 0; i < count; ++i) edges.first[edges.count++] = operands[i].id;
  for (int i = 0; i < waits_.count && !op.is(trait::leaf); ++i) edges.push(waits_[i]), ++n.controls;
  if (word_count != 0) ints.append(words, word_count);
  return made(n);
}

}  // namespace gradus
