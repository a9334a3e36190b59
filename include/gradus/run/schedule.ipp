// The bodies of schedule.hpp.
#pragma once
#include "../base/body.hpp"
#include "schedule.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY int work_division::parts_of(double ns, int threads) const {
  const int parts = part_ns <= 0 ? threads : static_cast<int>(std::min<double>(threads, ns / part_ns));
  return parts < 1 ? 1 : parts;
}

}  // namespace gradus

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY double elements_of(const node& n, std::int64_t batch_size) {
  return static_cast<double>(gradus::count(resolve(n.dims, batch_size)));
}

GRADUS_BODY double formula_ns(const card& op) {
  for (std::string_view slow : {"Exp", "Log", "Log1p", "Tanh", "Sigmoid", "Erf", "Pow", "Elu", "Gelu", "GeluGrad",
                                "Softplus", "Div", "Sqrt", "Rsqrt"})
    if (op.name == slow) return 0.5;
  return 0.03;
}

}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY detail::work work_of(const runnable& r, int call_index, std::int64_t batch_size) {
  const detail::call& c = r.program.calls[call_index];
  const detail::signature& s = r.program.signatures[c.signature];
  const node& n = r.at(c.node);
  const auto extent = [&](int i) {
    const std::int64_t d = s.dims[i];
    return static_cast<double>(d != 0 ? resolve(d, batch_size) : resolve(c.rows, batch_size));
  };
  const auto bytes = [&](int i) {
    return detail::elements_of(r.at(i), batch_size) * static_cast<double>(size_of(r.at(i).type));
  };
  const std::string_view op = n.op->name;
  detail::work w{detail::call_ns, 0};
  if (op == "MatMul" || op == "FusedMatMul")
    w.flops = 2 * extent(0) * extent(1) * extent(2) * extent(3);
  else if (op.starts_with("Conv2D"))
    w.flops = 2 * extent(0) * extent(4) * extent(5) * extent(6) * extent(7) * extent(8) * extent(3);
  else if (op.starts_with("Attention"))
    w.flops = (op.ends_with("Grad") ? 8 : 2) * extent(0) * extent(1) * extent(2) * extent(2) * (extent(3) + 16);
  w.ns += w.flops / detail::flops_in_ns;
  if (n.op == &cards::apply) {  // of rows, no more is touched than comes
    const double gradient = bytes(r.graph.view.edges[n.first + 1]);
    w.ns = n.inputs == 2 ? dense_update_ns(gradient) : w.ns + 9 * gradient / detail::bytes_in_ns;
    return w;
  }
  w.ns += bytes(c.node) / detail::bytes_in_ns;
  if (w.flops != 0) return w;
  for (int e = n.first, end = e + n.inputs; e < end; ++e)
    if (const int u = r.graph.view.edges[e]; !(op.starts_with("Gather") && e == n.first))
      w.ns += bytes(u) / detail::bytes_in_ns;
  if (n.op->is(trait::expression)) {
    double most = detail::elements_of(n, batch_size);
    for (int e = n.first, end = e + n.inputs; e < end; ++e)
      most = std::max(most, detail::elements_of(r.at(r.graph.view.edges[e]), batch_size));
    for (int k = 0; k < s.formula.steps; ++k) w.ns += most * detail::formula_ns(*s.formula.op[k]);
  } else if (op.starts_with("Softmax") || op.starts_with("SparseSoftmax")) {
    w.ns += detail::elements_of(r.at(r.graph.view.edges[n.first]), batch_size) * 0.5;
  } else if (op.starts_with("Random")) {
    w.ns += detail::elements_of(n, batch_size) * 2;
  }
  return w;
}

}  // namespace gradus
