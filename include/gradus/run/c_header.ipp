// The bodies of c_header.hpp.
#pragma once
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <vector>

#include "../base/body.hpp"
#include "../ops/conv.hpp"
#include "../ops/depthwise_conv.hpp"
#include "../ops/frozen.hpp"
#include "../ops/matmul.hpp"
#include "../ops/softmax.hpp"
#include "c_functions.hpp"
#include "c_header.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {

// A formula of numbers, `#` and `$` standing for its operands.
struct c_formula {
  const card* op;
  std::string_view text;
};
inline constexpr c_formula c_formulas[] = {{&cards::add, "# + $"},
                                           {&cards::sub, "# - $"},
                                           {&cards::mul, "@_mul(#, $)"},
                                           {&cards::div, "# / $"},
                                           {&cards::maximum, "@_max(#, $)"},
                                           {&cards::minimum, "@_min(#, $)"},
                                           {&cards::squared_difference, "@_mul(# - $, # - $)"},
                                           {&cards::neg, "-#"},
                                           {&cards::exp, "@_exp(#)"},
                                           {&cards::log, "@_log(#)"},
                                           {&cards::sqrt, "sqrtf(#)"},
                                           {&cards::rsqrt, "1.0f / sqrtf(#)"},
                                           {&cards::square, "@_mul(#, #)"},
                                           {&cards::abs, "@_abs(#)"},
                                           {&cards::tanh, "@_tanh(#)"},
                                           {&cards::sigmoid, "@_sigmoid(#)"},
                                           {&cards::relu, "@_relu(#)"},
                                           {&cards::elu, "@_elu(#)"},
                                           {&cards::gelu, "@_gelu(#)"}};

inline std::string replaced(std::string_view text, char mark, std::string_view by) {
  std::string out;
  for (char c : text) c == mark ? out += by : out += c;
  return out;
}
// Returns a name with '_' in place of every character that is no letter, digit or '_'.
inline std::string c_identifier(std::string_view name) {
  std::string out;
  for (char c : name)
    out += (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ? c : '_';
  if (out.empty() || (out[0] >= '0' && out[0] <= '9')) out.insert(out.begin(), '_');
  return out;
}
// Returns a float as a literal that C99 reads back bit for bit, except for a NaN's payload.
inline std::string c_literal(float x) {
  if (x != x) return "NAN";
  if (std::isinf(x)) return x < 0 ? "-INFINITY" : "INFINITY";
  char digits[40];
  const auto end = std::to_chars(digits, digits + sizeof digits, std::fabs(x), std::chars_format::hex).ptr;
  return (std::signbit(x) ? "-0x" : "0x") + std::string(digits, end) + "f";
}

class c_writer {
public:
  c_writer(const graph& g, const state_list& values, const c_header_options& options)
      : g_(g), values_(values), o_(options) {}

  std::string text() {
    if (o_.name.empty() || c_identifier(o_.name) != o_.name)
      raise(status::invalid_argument,
            gradus::text("\"", o_.name, "\" is no name for a C header: it needs letters, digits and _"));
    if (o_.batch < 1) raise(status::invalid_argument, gradus::text("a batch of ", o_.batch, "; expected 1 or more"));
    find_needed();
    for (int id = 0; id < g_.nodes.count; ++id)
      if (last_use_[at(id)] >= 0) write(id);
    write_outputs();
    if (work_ > most_numbers) cannot(g_.nodes.count - 1, too_many());
    std::string out = "/* " + o_.name + ": a model of " + "gradus as C99. Written by c_header; do not edit. */\n";
    out += "#ifndef " + o_.name + "_MODEL_H\n#define " + o_.name + "_MODEL_H\n#include <math.h>\n#include <string.h>\n";
    out += replaced(c_functions, '@', o_.name) + constants_;
    out += "\nenum {\n  @_batch = " + gradus::text(o_.batch) + extents_ +
           ",\n  @_work = " + gradus::text(std::max<std::int64_t>(work_, 1)) +
           " /* floats that a call works on */\n};\n\n";
    out += "static inline void @_predict(" + inputs_ + outputs_ + "float *work) {\n  int i, j;\n" + body_ +
           "  (void)i, (void)j, (void)work;\n}\n#endif\n";
    return replaced(out, '@', o_.name);
  }

private:
  const graph& g_;
  const state_list& values_;
  const c_header_options& o_;
  std::vector<int> last_use_;       // of each node: the last node that reads it, or -1
  std::vector<std::string> where_;  // the expression of its first number
  struct room {
    std::int64_t first, size;
    int until;
  };
  std::vector<room> rooms_;  // areas of the work array, by place
  std::int64_t work_ = 0;
  std::string constants_, extents_, inputs_, outputs_, body_;
  std::map<std::string, std::string, std::less<>> arguments_;  // the model's name of each

  static std::size_t at(int id) { return static_cast<std::size_t>(id); }
  const node& of(int id) const { return g_.nodes.first[id]; }
  int operand(int id, int i) const { return g_.edges.first[of(id).first + i]; }
  extents dims(int id) const { return resolve(of(id).dims, o_.batch); }
  std::int64_t size(int id) const { return gradus::count(dims(id)); }
  std::string label(int id) const {
    const auto name = g_.name_of(id);
    return gradus::text("the op ", of(id).op->name, name.empty() ? "" : " \"", name, name.empty() ? "" : "\"");
  }
  [[noreturn]] void cannot(int id, std::string_view why) const {
    raise(status::unimplemented, gradus::text(label(id), " cannot be written as C: ", why));
  }
  static constexpr std::int64_t most_numbers = std::numeric_limits<std::int32_t>::max();
  std::string too_many() const {
    return gradus::text(
        "a call would have more than 2^31 - 1 numbers, and the header counts with int; choose a batch "
        "below ",
        o_.batch);
  }
  static bool is_view(const node& n) { return n.op->is(trait::view); }

  void find_needed() {
    const auto n = at(g_.nodes.count);
    last_use_.assign(n, -1), where_.assign(n, "");
    int predictions = 0;
    for (int k = 0; k < g_.outputs.count; ++k)
      if (const output& out = g_.outputs.first[k]; out.kind == output::prediction)
        last_use_[at(out.node)] = g_.nodes.count, ++predictions;
    if (predictions == 0)
      raise(status::invalid_argument, "the graph has no predictions, so there is nothing to write as C");
    for (int id = g_.nodes.count; id-- > 0;) {
      if (last_use_[at(id)] < 0) continue;
      // What a view reads must stay as long as the view.
      for (int i = 0; i < of(id).inputs; ++i) {
        int& use = last_use_[at(operand(id, i))];
        use = std::max(use, is_view(of(id)) ? last_use_[at(id)] : id);
      }
    }
  }
  // Returns where a node's numbers are written: the first hole in the work array that is no longer read.
  std::string place(int id) {
    std::int64_t first = 0;
    std::erase_if(rooms_, [id](const room& r) { return r.until < id; });
    std::size_t k = 0;
    const bool codes = of(id).type == uint8;
    const std::int64_t floats = codes ? (size(id) + 3) / 4 : size(id);
    for (; k < rooms_.size() && rooms_[k].first < first + floats; ++k) first = rooms_[k].first + rooms_[k].size;
    rooms_.insert(rooms_.begin() + static_cast<std::ptrdiff_t>(k), {first, floats, last_use_[at(id)]});
    work_ = std::max(work_, first + floats);
    return gradus::text(codes ? "(unsigned char *)" : "", "(work + ", first, ")");
  }

  void write(int id) {
    const node& n = of(id);
    const node& shown = is_view(n) ? of(operand(id, 0)) : n;
    if (size(id) > most_numbers) cannot(id, too_many());
    if (n.type != float32 && shown.op != &cards::quantize)
      cannot(id, gradus::text("it is ", name_of(n.type), ", and a header computes in float32"));
    if (n.op == &placeholder_card)
      write_input(id);
    else if (n.op == &variable_card)
      write_variable(id);
    else if (n.op == &constant_card)
      write_constant(id);
    else if (n.op == &cards::reshape || n.op == &cards::identity)
      where_[at(id)] = where_[at(operand(id, 0))];
    else
      write_op(id);
    for (int i = 0; i < g_.outputs.count; ++i)
      if (const output& out = g_.outputs.first[i]; out.kind == output::prediction && out.node == id)
        body_ += gradus::text("  memcpy(", argument("out_", g_.text_at(out.name)), ", ", where_[at(id)], ", ", size(id),
                              " * sizeof(float));\n");
  }
  static std::string argument(std::string_view prefix, std::string_view name) {
    return std::string(prefix) + c_identifier(name);
  }
  // Adds a parameter to the function and its size to the constants.
  void write_argument(std::string& list, std::string_view type, std::string_view prefix, std::string_view name,
                      int id) {
    const std::string is = argument(prefix, name);
    if (const auto [other, is_new] = arguments_.emplace(is, name); !is_new)
      raise(status::invalid_argument, gradus::text("\"", name, "\" and \"", other->second, "\" would both be called ",
                                                   is, " in C; rename one of them in the model"));
    list += gradus::text(type, is, ", ");
    extents_ += gradus::text(",\n  @_", is, " = ", size(id));
  }
  // The predictions in the model's order, whatever the order in which they are computed.
  void write_outputs() {
    for (int i = 0; i < g_.outputs.count; ++i)
      if (const output& out = g_.outputs.first[i]; out.kind == output::prediction)
        write_argument(outputs_, "float *", "out_", g_.text_at(out.name), out.node);
  }
  void write_input(int id) {
    where_[at(id)] = argument("in_", g_.name_of(id));
    write_argument(inputs_, "const float *", "in_", g_.name_of(id), id);
  }
  void write_array(int id, std::string_view about, const std::vector<float>& numbers) {
    where_[at(id)] = gradus::text("@_c", id);
    constants_ += gradus::text("\n/* ", about, " ", to_text(dims(id)), " */");
    write_list("float", where_[at(id)], std::span(numbers), 8, c_literal);
  }
  template <class T, class F>
  void write_list(std::string_view type, const std::string& name, std::span<const T> numbers, std::size_t line,
                  F literal) {
    constants_ += gradus::text("\nstatic const ", type, " ", name, "[", numbers.size(), "] = {");
    for (std::size_t i = 0; i < numbers.size(); ++i)
      constants_ += (i == 0 ? "" : ",") + std::string(i % line == 0 ? "\n  " : " ") + literal(numbers[i]);
    constants_ += "};\n";
  }
  void write_variable(int id) {
    const auto name = g_.name_of(id);
    const state_entry* e = values_.find(name);
    if (e == nullptr)
      raise(status::not_found,
            gradus::text("the model reads the variable \"", name,
                         "\", and the list does not hold it; give the list of what a stepper of this "
                         "model remembers"));
    if (e->type != float32 || e->dims != dims(id))
      raise(status::failed_precondition,
            gradus::text("the variable \"", name, "\" is float32", to_text(dims(id)), " in the model, and ",
                         name_of(e->type), to_text(e->dims), " in the list"));
    std::vector<float> numbers(e->bytes.size() / sizeof(float));
    std::memcpy(numbers.data(), e->bytes.data(), e->bytes.size());
    std::string about(name);
    for (char& c : about)
      if (c == '*' || static_cast<unsigned char>(c) < 0x20) c = '_';  // so that no name ends a comment
    write_array(id, about, numbers);
  }
  void write_constant(int id) {
    const node& n = of(id);
    std::vector<float> numbers(static_cast<std::size_t>(size(id)));
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const int* words = g_.ints.first + n.attr + (n.attrs > 2 ? 2 * static_cast<int>(i) : 0);
      numbers[i] = static_cast<float>(std::bit_cast<double>(std::array<int, 2>{words[0], words[1]}));
    }
    write_array(id, "a constant", numbers);
  }
  // Returns the place of an operand's number for place i of the result: "i", "0", "i % 16", or a sum over the axes.
  std::string index_of(int id, int from) const {
    const extents out = dims(id), in = dims(from);
    if (size(from) == size(id)) return "i";
    if (size(from) == 1) return "0";
    std::string sum;
    std::int64_t stride = 1, inner = 1;
    bool trailing = true;
    for (int k = 1; k <= out.rank; ++k) {
      const std::int64_t o = out[out.rank - k], mine = k <= in.rank ? in[in.rank - k] : 1;
      if (mine != 1) {
        trailing = trailing && mine == o && stride == inner;
        sum += gradus::text(sum.empty() ? "" : " + ", "i / ", inner, " % ", o, " * ", stride);
      }
      stride *= mine, inner *= o;
    }
    return trailing ? gradus::text("i % ", size(from)) : sum;
  }
  void write_op(int id) {
    const node& n = of(id);
    const auto in = [&](int i) -> const std::string& { return where_[at(operand(id, i))]; };
    const std::string y = place(id);
    where_[at(id)] = y;
    for (const c_formula& f : c_formulas) {
      if (f.op != n.op) continue;
      std::string t(f.text);
      t = replaced(t, '#', in(0) + "[" + index_of(id, operand(id, 0)) + "]");
      if (n.inputs == 2) t = replaced(t, '$', in(1) + "[" + index_of(id, operand(id, 1)) + "]");
      body_ += gradus::text("  for (i = 0; i < ", size(id), "; ++i) ", y, "[i] = ", t, ";\n");
      return;
    }
    if (n.op == &cards::matmul) return write_matmul(id, y);
    if (n.op == &cards::softmax || n.op == &cards::log_softmax) {
      const auto row = dims(id)[of(id).dims.rank - 1];
      body_ += gradus::text(n.op == &cards::softmax ? "  @_softmax(" : "  @_log_softmax(", y, ", ", in(0), ", ",
                            row == 0 ? 0 : size(id) / row, ", ", row, ");\n");
      return;
    }
    const graph_view v = g_.view();
    lowering l{v, n};
    if (n.op->lower != nullptr) n.op->lower(l);
    if (n.op == &cards::mean || n.op == &cards::sum) return write_sums(id, y, l);
    const auto parts = resolve(l.rows, o_.batch);
    if (n.op == &cards::quantization || n.op == &cards::quantize) {
      body_ += gradus::text(n.op == &cards::quantize ? "  @_quantize(" : "  @_quantization(", y, ", ", in(0), ", ",
                            n.inputs == 2 ? in(1) + ", " : "", parts, ", ", l.dims[1], ");\n");
    } else if (n.op->frozen != nullptr) {
      write_frozen(id, y, l);
    } else if (n.op == &cards::max_pool) {
      body_ += gradus::text("  @_max_pool(", y, ", ", in(0), ", ", parts, windows(l, 6), ");\n");
    } else if (n.op == &cards::conv2d || n.op == &cards::depthwise_conv2d) {
      body_ += gradus::text("  @_conv2d(", y, ", ", in(0), ", ", in(1), n.op == &cards::conv2d ? ", 0, " : ", 1, ",
                            parts, windows(l), ");\n");
    } else {
      cannot(id, "there is no C for it; docs/edge.md lists what there is");
    }
  }
  // Returns, as arguments, what ops/conv.hpp lowers.
  static std::string windows(const lowering& l, int without = 0) {
    std::string list;
    for (int k = 1; k < 13; ++k)
      if (k != without) list += gradus::text(", ", l.dims[k]);
    return list;
  }
  void write_frozen(int id, const std::string& y, const lowering& l) {
    const frozen_weights& w = *of(id).op->frozen;
    const std::string name = gradus::text("@_c", id);
    const auto channels = static_cast<std::size_t>(w.channels);
    constants_ += gradus::text("\n/* a frozen layer ", to_text(resolve(w.dims, 1)), " */");
    write_list("signed char", name, std::span(w.codes, static_cast<std::size_t>(gradus::count(w.dims))), 24,
               [](std::int8_t code) { return gradus::text(static_cast<int>(code)); });
    write_list("float", name + "_scales", std::span(w.scales, channels), 8, c_literal);
    write_list("float", name + "_bias", std::span(w.bias, channels), 8, c_literal);
    const bool dense = w.layer == frozen_weights::of_dense;
    body_ += gradus::text(
        "  @_frozen_conv2d(", y, ", ", where_[at(operand(id, 0))], ", ", where_[at(operand(id, 1))], ", ", name, ", ",
        name, "_scales, ", name, "_bias, ", w.layer == frozen_weights::of_depthwise_conv2d ? 1 : 0, ", ",
        resolve(l.rows, o_.batch),
        dense ? gradus::text(", 1, 1, ", w.dims[0], ", 1, 1, ", w.dims[1], ", 1, 1, 1, 1, 0, 0") : windows(l), ");\n");
  }
  // Writes sums and means over the last axes, or over axes of which one group follows (see cpu/reduce.hpp for which of
  // them are trees).
  void write_sums(int id, const std::string& y, const lowering& l) {
    const int groups = l.dims[1];
    const bool last = (groups % 2 != 0) == (l.dims[0] != 0);
    const auto extent = [&](int group) {
      const int d = l.dims[2 + group];
      return resolve(d == 0 ? l.rows : d, o_.batch);
    };
    if (groups > (last ? 2 : 3)) cannot(id, "its axes lie apart; C is written for axes that lie side by side");
    const std::int64_t n = extent(groups - (last ? 1 : 2)), m = last ? 1 : extent(groups - 1);
    const std::int64_t rows = n * m == 0 ? 0 : size(operand(id, 0)) / (n * m);
    const bool trees = last ? n > 1 : m <= 16 && n >= 256;
    if (size(id) != 0 && rows == 0) cannot(id, "it is a sum of no number");
    body_ += gradus::text("  for (i = 0; i < ", rows, "; ++i)\n    for (j = 0; j < ", m, "; ++j)\n      ", y, "[i * ",
                          m, " + j] = ", trees ? "@_dot(" : "@_chain(", where_[at(operand(id, 0))], " + i * ", n * m,
                          " + j, ", m, ", @_one(), 0, ", n, ")");
    body_ += of(id).op == &cards::mean ? gradus::text(" / ", n, ".0f;\n") : ";\n";
  }
  // Writes a product with one matrix on the right and all rows on the left (see docs/arithmetic.md for which sums are
  // trees).
  void write_matmul(int id, const std::string& y) {
    const auto t = from_words<matmul_attr>(g_.ints.first + of(id).attr);
    const int a = operand(id, 0), b = operand(id, 1);
    const extents db = dims(b);
    if (db.rank > 2) cannot(id, "its second operand is a stack of matrices");
    const std::int64_t nn = dims(id)[of(id).dims.rank - 1], m = nn == 0 ? 0 : size(id) / nn;
    const std::int64_t k = t.transpose_b != 0 ? db[1] : db[0];
    const bool trees = k >= 8 && (nn == 1 || (m == 1 && nn <= 16));
    const std::int64_t row_a = t.transpose_a != 0 ? 1 : k, step_a = t.transpose_a != 0 ? m : 1;
    const std::int64_t column_b = t.transpose_b != 0 ? k : 1, step_b = t.transpose_b != 0 ? 1 : nn;
    body_ += gradus::text("  for (i = 0; i < ", m, "; ++i)\n    for (j = 0; j < ", nn, "; ++j)\n      ", y, "[i * ", nn,
                          " + j] = ", trees ? "@_dot(" : "@_chain(", where_[at(a)], " + i * ", row_a, ", ", step_a,
                          ", ", where_[at(b)], " + j * ", column_b, ", ", step_b, ", ", k, ");\n");
  }
};

}  // namespace detail

GRADUS_BODY std::string c_header(const graph& predict, const state_list& values, const c_header_options& options) {
  return detail::c_writer(predict, values, options).text();
}

}  // namespace gradus
