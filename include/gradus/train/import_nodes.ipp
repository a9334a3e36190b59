// The bodies of import_nodes.hpp.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>

#include "../base/body.hpp"
#include "import_nodes.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY void import_nodes::refuse(int i, std::string_view why, status kind) const {
  raise(kind, text(said_of(index_.node(i)), ": ", why));
}

GRADUS_BODY value import_nodes::have(tensor_place t) {
  made_node& m = at(t.node);
  if (!m.problem.empty()) raise(m.kind, m.problem);
  if (t.output != 0)
    refuse(t.node, text("its output ", t.output, " is asked for; this library computes output 0 alone"),
           status::unimplemented);
  if (!m.v) needs_.push_back(t.node);
  return m.v;
}

GRADUS_BODY bool import_nodes::have_all(const std::vector<tensor_place>& list, std::vector<value>& out) {
  for (const tensor_place t : list) out.push_back(have(t));
  return needs_.empty();
}

GRADUS_BODY value import_nodes::input(int i, std::size_t k) {
  const auto& list = index_.inputs(i);
  if (k >= list.size()) refuse(i, text("has ", list.size(), " inputs, this op takes more"));
  return have(list[k]);
}

GRADUS_BODY dtype import_nodes::type_of(int i, std::string_view key) const {
  const dtype t = index_.need<dtype>(i, key);
  if (t == string_in_graphs) refuse(i, "is of strings, which no tensor of this library holds", status::unimplemented);
  if (size_of(t) == 0 || is_for_files(t))
    refuse(i, text("is of TensorFlow's dtype ", static_cast<int>(t), ", which no graph of this library has"),
           status::unimplemented);
  return t;
}

GRADUS_BODY void import_nodes::check_extents(int i, const shape& s) const {
  for (int k = 0; k < s.rank; ++k)
    if (s.dims[k] > most_extent || s.dims[k] < -most_extent)
      refuse(i, text("its extents ", to_text(s), " are too large"), status::resource_exhausted);
}

GRADUS_BODY shape import_nodes::shape_of(int i, std::string_view key) const {
  const shape_def& d = index_.need<shape_def>(i, key);
  if (d.unknown_rank || d.dims.size() > max_rank)
    refuse(i,
           d.unknown_rank ? "its rank is not known; give it a shape, or let a placeholder of one stand for it"
                          : "has more than 6 extents",
           status::unimplemented);
  shape s;
  for (const std::int64_t n : d.dims) {
    if (n < -1 || n == 0 || n > most_extent) refuse(i, text("an extent of ", n, " is none that a tensor here has"));
    s.push(n < 0 ? batch : static_cast<int>(n));
  }
  int open = 0;
  for (int k = 0; k < s.rank; ++k) open += s.dims[k] < 0;
  if (open > 1)
    refuse(i, text("several of its extents are not known, ", to_text(s), "; one alone may be, the batch"),
           status::unimplemented);
  // This attribute has the multiple of the batch that an extent is, which TensorFlow's shape does not hold.
  if (const auto* own = index_.as<std::vector<std::int64_t>>(i, "_gradus_shape");
      own != nullptr && own->size() == d.dims.size())
    for (int k = 0; k < s.rank; ++k)
      if (const std::int64_t n = (*own)[static_cast<std::size_t>(k)]; s.dims[k] < 0 && n < 0 && n >= -most_extent)
        s.dims[k] = static_cast<int>(n);
  return s;
}

GRADUS_BODY const tensor_def* import_nodes::constant_at(tensor_place t) const {
  if (t.output != 0) return nullptr;
  // An Identity of a constant counts as the constant.
  for (int steps = 0; index_.node(t.node).op == "Identity" && !index_.inputs(t.node).empty() && steps < 8; ++steps)
    t = index_.inputs(t.node)[0];
  return index_.node(t.node).op == "Const" ? &index_.need<tensor_def>(t.node, "value") : nullptr;
}

GRADUS_BODY const tensor_def& import_nodes::constant_of(int i, tensor_place t) const {
  if (const tensor_def* c = constant_at(t)) return *c;
  refuse(i, text("\"", index_.name_of(t), "\" has to be a constant"), status::unimplemented);
}

GRADUS_BODY std::vector<std::int64_t> whole_numbers_in(const tensor_def& t) {
  std::vector<std::int64_t> out;
  const auto read = [&]<class T>(T) {
    for (std::size_t k = 0; k + sizeof(T) <= t.content.size(); k += sizeof(T)) {
      T x;
      std::memcpy(&x, t.content.data() + k, sizeof x);
      out.push_back(x);
    }
  };
  if (t.type == int32) read(std::int32_t{});
  if (t.type == int64) read(std::int64_t{});
  return out;
}

GRADUS_BODY bool import_nodes::whole_numbers(int i, tensor_place t, numbers& out, int depth) {
  constexpr std::size_t most = 64;  // numbers of a shape, and steps in which they are computed
  const auto no = [&](std::string_view why) {
    refuse(i, text("\"", index_.name_of(t), "\" has to be known before the graph runs: ", why), status::unimplemented);
  };
  // Both operands of a product may lead to one node, so the number of steps is not bounded by the number of nodes.
  steps_ = depth == 0 ? 0 : steps_ + 1;
  if (depth > static_cast<int>(most) || steps_ > 4096) no("it takes too many steps to compute it");
  if (t.output != 0) no("it is a second output");
  const graph_def_node& n = index_.node(t.node);
  const auto& in = index_.inputs(t.node);
  const auto part = [&](std::size_t k, numbers& to) {
    if (k >= in.size()) no(text(said_of(n), " has too few inputs"));
    return whole_numbers(i, in[k], to, depth + 1);
  };
  out = {};
  if (n.op == "Const") {
    const tensor_def& c = index_.need<tensor_def>(t.node, "value");
    if (c.type != int32 && c.type != int64) no("it is no constant of whole numbers");
    if (c.content.size() / size_of(c.type) > most) no("it has more than 64 numbers");
    for (const std::int64_t v : whole_numbers_in(c)) out.list.push_back({v, false});
    out.scalar = c.dims.empty();
    return true;
  }
  if (n.op == "Shape" || n.op == "Size") {
    if (in.empty()) no("it has no input");
    const value x = have(in[0]);
    if (!x) return false;
    for (int k = 0; k < x.dims().rank; ++k)
      out.list.push_back({std::abs(std::int64_t{x.dims().dims[k]}), x.dims().dims[k] < 0});
    if (n.op == "Shape") return true;
    number all{1, false};
    for (const number& e : out.list) all = {all.n * e.n, all.batch || e.batch};
    out = {{all}, true};
    return true;
  }
  if (n.op == "Identity" || n.op == "Cast") return part(0, out);
  if (n.op == "Pack" || n.op == "ConcatV2") {
    const std::size_t pieces = n.op == "Pack" ? in.size() : in.size() - std::min<std::size_t>(in.size(), 1);
    for (std::size_t k = 0; k < pieces; ++k) {
      numbers one;
      if (!part(k, one)) return false;
      out.list.insert(out.list.end(), one.list.begin(), one.list.end());
      if (out.list.size() > most) no("it has more than 64 numbers");
    }
    return true;
  }
  if (n.op == "GatherV2" || n.op == "Gather") {
    numbers from, which;
    if (!part(0, from) || !part(1, which)) return false;
    for (const number& w : which.list) {
      const std::int64_t k = w.n < 0 ? w.n + static_cast<std::int64_t>(from.list.size()) : w.n;
      if (w.batch || k < 0 || k >= static_cast<std::int64_t>(from.list.size()))
        no("it takes a number that is not there");
      out.list.push_back(from.list[static_cast<std::size_t>(k)]);
    }
    out.scalar = which.scalar;
    return true;
  }
  if (n.op == "StridedSlice") {
    numbers from, begin, end, step;
    if (!part(0, from) || !part(1, begin) || !part(2, end) || !part(3, step)) return false;
    const auto mask = [&](std::string_view key) {
      const auto* m = index_.as<std::int64_t>(t.node, key);
      return m != nullptr && (*m & 1) != 0;
    };
    const auto many = static_cast<std::int64_t>(from.list.size());
    if (begin.list.size() != 1 || end.list.size() != 1 || step.list.size() != 1 || step.list[0].n != 1)
      no("it is cut in steps");
    const auto place = [&](std::int64_t k) { return std::clamp(k < 0 ? k + many : k, std::int64_t{0}, many); };
    const bool one = mask("shrink_axis_mask");
    const std::int64_t first = mask("begin_mask") ? 0 : place(begin.list[0].n);
    const std::int64_t last = one ? first + 1 : mask("end_mask") ? many : place(end.list[0].n);
    for (std::int64_t k = first; k < std::min(last, many); ++k)
      out.list.push_back(from.list[static_cast<std::size_t>(k)]);
    if (one && out.list.size() != 1) no("it takes a number that is not there");
    out.scalar = one;
    return true;
  }
  if (n.op == "Prod") {
    numbers from;
    if (!part(0, from)) return false;
    number all{1, false};
    for (const number& e : from.list) {
      if ((all.batch && e.batch) || __builtin_mul_overflow(all.n, e.n, &all.n)) no("it is no multiple of the batch");
      all.batch = all.batch || e.batch;
    }
    out = {{all}, true};
    return true;
  }
  if (n.op == "Mul" || n.op == "FloorDiv" || n.op == "Add" || n.op == "AddV2" || n.op == "Sub") {
    numbers a, b;
    if (!part(0, a) || !part(1, b)) return false;
    if (a.list.size() != 1 || b.list.size() != 1) no("only single numbers are computed with");
    const number x = a.list[0], y = b.list[0];
    number z;
    bool fine = true;
    if (n.op == "Mul")
      fine = !(x.batch && y.batch) && !__builtin_mul_overflow(x.n, y.n, &z.n), z.batch = x.batch || y.batch;
    else if (n.op == "FloorDiv")
      fine = !y.batch && y.n > 0 && x.n >= 0 && (!x.batch || x.n % y.n == 0), z = {fine ? x.n / y.n : 0, x.batch};
    else if (n.op == "Sub")
      fine = x.batch == y.batch && !__builtin_sub_overflow(x.n, y.n, &z.n), z.batch = x.batch;
    else
      fine = x.batch == y.batch && !__builtin_add_overflow(x.n, y.n, &z.n), z.batch = x.batch;
    if (!fine) no("it is no multiple of the batch");
    out = {{z}, a.scalar && b.scalar};
    return true;
  }
  no(text(said_of(n), " is not computed beforehand"));
  return false;
}

GRADUS_BODY int import_nodes::to_extent(const import_nodes& self, int i, const number& n) {
  if (n.n <= 0 || n.n > most_extent) self.refuse(i, text("an extent of ", n.n, " is none that a tensor here has"));
  return n.batch ? -static_cast<int>(n.n) : static_cast<int>(n.n);
}

GRADUS_BODY bool import_nodes::shape_numbers(int i, tensor_place t, shape& out) {
  numbers list;
  if (!whole_numbers(i, t, list)) return false;
  if (list.list.size() > max_rank) refuse(i, "has more than 6 extents", status::unimplemented);
  for (const number& n : list.list) out.push(to_extent(*this, i, n));
  return true;
}

GRADUS_BODY bool import_nodes::axes_of(int i, tensor_place t, int rank, int& mask, bool all_if_empty) {
  numbers list;
  if (!whole_numbers(i, t, list)) return false;
  mask = list.list.empty() && all_if_empty ? (1 << rank) - 1 : 0;
  for (const number& n : list.list) {
    const std::int64_t axis = n.n < 0 ? n.n + rank : n.n;
    if (n.batch || axis < 0 || axis >= rank) refuse(i, text("the axis ", n.n, " is outside of rank ", rank));
    mask |= 1 << axis;
  }
  return true;
}

GRADUS_BODY value import_nodes::constant(int i, const tensor_def& t, std::string_view name) {
  if (t.dims.size() > max_rank) refuse(i, "has more than 6 extents", status::unimplemented);
  if (is_for_files(t.type))
    refuse(i,
           text("holds ", name_of(t.type), ", which no graph of this library has; cast it to int32, uint8 or float32"),
           status::unimplemented);
  shape s;
  for (const std::int64_t n : t.dims) {
    if (n <= 0 || n > most_extent) refuse(i, text("an extent of ", n, " is none that a tensor here has"));
    s.push(static_cast<int>(n));
  }
  std::vector<double> list;
  bool exact = true;
  with_element_type(t.type, [&]<class T>() {
    for (std::size_t k = 0; k + sizeof(T) <= t.content.size(); k += sizeof(T)) {
      if constexpr (std::is_same_v<T, bool>) {
        list.push_back(t.content[k] != std::byte{0});
      } else {
        T x;
        std::memcpy(&x, t.content.data() + k, sizeof x);
        if constexpr (is_16_bit_float(dtype_of<T>))
          list.push_back(static_cast<double>(static_cast<float>(x)));
        else
          list.push_back(static_cast<double>(x));
        if constexpr (std::is_same_v<T, std::int64_t>)
          exact = exact && x <= std::int64_t{1} << 53 && x >= -(std::int64_t{1} << 53);
      }
    }
  });
  if (!exact)
    refuse(i, "holds a whole number above 2^53, which no constant of this library does", status::unimplemented);
  if (static_cast<std::int64_t>(list.size()) != count(s) || list.empty())
    refuse(i, text("holds ", list.size(), " elements for extents ", to_text(s)));
  const value v = s.rank == 0 ? g_->constant(list[0], t.type) : g_->constant(std::span<const double>(list), s, t.type);
  if (!name.empty()) g_->nodes[v.id].name = g_->names.unique(-1, name, false);
  return v;
}

GRADUS_BODY value import_nodes::add(const card& op, const std::vector<value>& operands, const std::vector<int>& words,
                                    int i) {
  return g_->add(op, operands.data(), static_cast<int>(operands.size()), words.data(), static_cast<int>(words.size()),
                 index_.node(i).name);
}

}  // namespace gradus::detail
