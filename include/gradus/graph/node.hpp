// A graph consists of nodes that name an op by the address of its card, and of edges by the numbers of nodes.
#pragma once
#include "../base/build.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "../base/body.hpp"
#include "../base/dtype.hpp"
#include "../base/shape.hpp"

namespace gradus::inline GRADUS_BUILD {

struct graph;
struct inference;
struct lowering;
struct backward;

// The traits of an op that passes use besides its rules.
namespace trait {
inline constexpr unsigned elementwise = 1;   // one formula for every element; operands broadcast as in NumPy
inline constexpr unsigned leaf = 2;          // no operands: placeholder, variable, constant
inline constexpr unsigned keeps = 4;         // has an effect: never removed, never merged with an equal node
inline constexpr unsigned writes = 8;        // changes operand 0, a variable, whose memory its result is: assign
inline constexpr unsigned view = 16;         // its result is operand 0's memory, unchanged: reshape, identity
inline constexpr unsigned blocks = 32;       // no gradient passes: the operands get None
inline constexpr unsigned session = 64;      // run by the session, not by a kernel: updates, the global norm
inline constexpr unsigned control = 128;     // carries edges only: no_op
inline constexpr unsigned expression = 256;  // its last attribute is the number of an expression: what fusion makes
inline constexpr unsigned at_session = 512;  // its card defines how a session runs it (run/session_op.hpp)
inline constexpr unsigned tables = 1024;     // its kernel counts rows in 64 bits (graph/size_limit.hpp)
}  // namespace trait

// The weights of a layer that are constants of the program, in 8 bits (ops/frozen.hpp). dims: [in, units], [height,
// width, in, filters] or [height, width, in, multiplier]; codes in that order, a scale and a bias for each channel of
// the result.
struct frozen_weights {
  enum layers : int { of_dense, of_conv2d, of_depthwise_conv2d };
  int layer = of_dense;
  shape dims;
  int channels = 0;
  const std::int8_t* codes = nullptr;
  const float* scales = nullptr;
  const float* bias = nullptr;
};

// An op, described once; a node names it by address, so a program may add ops.
struct card {
  std::string_view name;  // TensorFlow's op name where there is one
  int operands;           // how many; -1: any number
  unsigned traits = 0;
  // Sets shape and dtype of the result; refuses operands that do not fit.
  void (*infer)(inference&) = nullptr;
  // Adds contributions to the gradients of the operands. If it is nullptr without `blocks`, differentiating the op is
  // an error.
  void (*gradient)(backward&) = nullptr;
  // Sets the extents that a kernel loops over, on which its code depends. nullptr: fused, or not run by a kernel.
  void (*lower)(lowering&) = nullptr;
  // These are the weights of a frozen layer.
  const frozen_weights* frozen = nullptr;

  constexpr bool is(unsigned t) const { return (traits & t) != 0; }
};

struct node {
  const card* op = nullptr;
  int first = 0, inputs = 0, controls = 0;  // edges[first ...]: data edges, then control edges
  int attr = 0, attrs = 0;                  // ints[attr ...]: the op's attributes
  int name = -1;                            // offset into names, or -1: shown by its op's name
  int scope = -1;                           // offset of the name scope's prefix, or -1
  int device = -1;                          // offset of the device string, or -1
  dtype type = dtype::none;
  shape dims;
};

// Attributes are a small struct of ints and floats, kept as ints in the graph's pool.
template <class Attributes>
inline constexpr int words_of = static_cast<int>(sizeof(Attributes) / sizeof(int));
template <class Attributes>
constexpr std::array<int, sizeof(Attributes) / sizeof(int)> to_words(const Attributes& a) {
  return std::bit_cast<std::array<int, sizeof(Attributes) / sizeof(int)>>(a);
}
template <class Attributes>
constexpr Attributes from_words(const int* words) {
  std::array<int, sizeof(Attributes) / sizeof(int)> copy{};
  for (unsigned i = 0; i < copy.size(); ++i) copy[i] = words[i];
  return std::bit_cast<Attributes>(copy);
}

// Returns the attributes of this kind at the end of a node's attributes, or default ones if it has none.
template <class Attributes>
constexpr Attributes last_words(const int* words, int count, int others) {
  return count < others + words_of<Attributes> ? Attributes{}
                                               : from_words<Attributes>(words + count - words_of<Attributes>);
}

// A fused elementwise expression. Locals 0..inputs-1 are its operands, then there is one per step; the last is the
// result. The result's extents are collapsed: neighbouring axes along which every operand behaves alike become one. The
// first is the number of rows, which is known only when a step runs (stored as 0).
inline constexpr int max_operands = 8, max_steps = 12, max_loops = max_rank;
struct expression {
  int inputs = 0, steps = 0, loops = 0;
  int extent[max_loops] = {};                                        // outermost first; extent[0] is 0: the rows
  unsigned char varies[max_operands] = {};                           // bit k: this operand varies along loop k
  dtype type = dtype::none;                                          // the type of the computation
  dtype operand_type[max_operands] = {}, result_type = dtype::none;  // the types in memory
  const card* op[max_steps] = {};
  unsigned char arg[max_steps][3] = {};
  constexpr bool operator==(const expression&) const = default;
};
// The number of a fused node's expression is the last word of its attributes.
constexpr int expression_of(const node& n, const int* ints) { return ints[n.attr + n.attrs - 1]; }

// A signature is everything that a kernel's code depends on, and nothing else: no node, no offset, no batch. Equal
// layers of one graph, or of several, share one kernel. Negative extents hold the batch, 0 is the number of rows; both
// are known at run time.
inline constexpr int max_extents = 16, max_types = 4;
namespace detail {
struct signature {
  const card* op = nullptr;
  dtype types[max_types] = {};  // of the result, then of the first operands
  int dims[max_extents] = {};
  expression formula;  // of a fused node
  constexpr bool operator==(const signature&) const = default;
};
}  // namespace detail

// This is how the runner calls a kernel: args[0] is the result, args[1] ... the operands. The compiled kernel is a
// function of its own for each signature and ignores `what`; the interpreted one reads the signature there.
struct kernel_details {
  const detail::signature* value = nullptr;
  const void* steps = nullptr;  // of a fused expression: its formulas as functions
};
// The run-time arguments of a call. Large calls are divided: each of `parts` callers does its own part of the work.
struct call_size {
  std::int64_t rows = 0, batch_size = 0;
  int part = 0, parts = 1;
};
using kernel_function = void (*)(std::byte* const* args, const call_size& size, const kernel_details* what);

// The ops that a device can run when a graph is interpreted; each kernel header ends with its list.
template <const card*... Ops>
struct op_list {};

// A pass reads a graph through these raw pointers, which are the same for a graph that grows and one that is frozen.
struct graph_view {
  const node* nodes = nullptr;
  int size = 0;
  const int* edges = nullptr;
  int edge_count = 0;
  const int* ints = nullptr;
  int int_count = 0;
  const expression* expressions = nullptr;
  int expression_count = 0;
};

// These are the names of collections, as in TensorFlow's GraphKeys.
namespace collection {
inline constexpr std::string_view global_variables = "variables", trainable_variables = "trainable_variables",
                                  local_variables = "local_variables", losses = "losses", summaries = "summaries",
                                  update_ops = "update_ops", train_op = "train_op",
                                  moving_average_variables = "moving_average_variables", global_step = "global_step";
}

}  // namespace gradus
