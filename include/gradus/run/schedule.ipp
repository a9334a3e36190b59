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
  else if (op.starts_with("DepthwiseConv2d"))
    w.flops = 2 * extent(0) * extent(4) * extent(5) * extent(6) * extent(7) * extent(8);
  else if (op.starts_with("Attention"))
    w.flops = (op.ends_with("Grad") ? 8 : 2) * extent(0) * extent(1) * extent(2) * extent(2) * (extent(3) + 16);
  w.ns += w.flops / detail::flops_in_ns;
  if (n.op == &cards::apply) {  // an update of rows touches no more than its gradient has
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

GRADUS_BODY schedule::schedule(const runnable& r, std::int64_t batch_size, int threads, const work_division& d,
                               const void* session, bool (*session_divides)(const void*, const node&)) {
  const graph_view& v = r.graph.view;
  const int count = r.program.call_count;
  const auto at = [](auto& x, int i) -> auto& { return x[static_cast<std::size_t>(i)]; };
  // What every call waits for: calls, also through views and groups. And for how many it still waits.
  std::vector<std::vector<int>> behind(static_cast<std::size_t>(v.size)), before(static_cast<std::size_t>(count)),
      after(static_cast<std::size_t>(count));
  std::vector<int> call_of(static_cast<std::size_t>(v.size), -1), open(static_cast<std::size_t>(count), 0);
  for (int c = 0; c < count; ++c) at(call_of, r.program.calls[c].node) = c;
  for (int i = 0; i < v.size; ++i) {
    const node& n = v.nodes[i];
    std::vector<int>& mine = at(behind, i);
    for (int e = n.first, end = e + n.inputs + n.controls; e < end; ++e)
      mine.insert(mine.end(), at(behind, v.edges[e]).begin(), at(behind, v.edges[e]).end());
    std::sort(mine.begin(), mine.end());
    mine.erase(std::unique(mine.begin(), mine.end()), mine.end());
    const int c = at(call_of, i);
    if (c < 0) continue;
    at(before, c) = std::move(mine), mine.assign(1, c);
    at(open, c) = static_cast<int>(at(before, c).size());
    for (int b : at(before, c)) at(after, b).push_back(c);
  }
  lists.resize(static_cast<std::size_t>(threads));
  std::vector<double> busy(lists.size(), 0);
  std::vector<std::vector<place>> places(static_cast<std::size_t>(count));
  std::vector<int> seen(lists.size() * lists.size(), 0);  // how many finished tasks of thread u thread t knows of
  std::vector<int> ready;
  const auto put = [&](int c) {
    const detail::work w = work_of(r, c, batch_size);
    one_ns += w.ns;
    const node& n = r.at(r.program.calls[c].node);
    const int s = r.program.calls[c].signature;
    const bool divides = n.op->is(trait::session) ? session_divides(session, n) : r.divides != nullptr && r.divides[s];
    const int parts = divides ? d.parts_of(w.ns, threads) : 1;
    const auto start_on = [&](int t) {
      double start = at(busy, t);
      for (int b : at(before, c))
        for (const place& p : at(places, b)) start = std::max(start, p.end + (p.thread == t ? 0 : d.hand_over_ns));
      return start;
    };
    int first = 0;  // parts are on threads 0, 1, ..., so that an array's parts stay where they were made
    if (parts == 1)
      for (int t = 1; t < threads; ++t)
        if (start_on(t) < start_on(first)) first = t;
    for (int part = 0; part < parts; ++part) {
      const int t = first + part;
      const double end = start_on(t) + w.ns / parts;
      task k{c, part, parts, static_cast<int>(waits.size()), 0, false};
      for (int b : at(before, c))
        for (const place& p : at(places, b)) {
          int& known = seen[static_cast<std::size_t>(t) * lists.size() + static_cast<std::size_t>(p.thread)];
          if (p.thread == t || p.tasks <= known) continue;
          known = p.tasks;
          waits.push_back({p.thread, p.tasks}), ++k.wait_count;
          at(lists, p.thread)[static_cast<std::size_t>(p.tasks) - 1].awaited = true;
        }
      at(lists, t).push_back(k);
      at(busy, t) = end;
      at(places, c).push_back({t, static_cast<int>(at(lists, t).size()), end});
    }
    for (int a : at(after, c))
      if (--at(open, a) == 0 && is_update(r, a)) ready.push_back(a);
  };
  for (int c = 0; c < count; ++c) {
    if (at(places, c).empty() && at(open, c) == 0) put(c);
    while (!ready.empty()) {  // updates as early as possible: their gradients are still in the cache
      const int update = ready.back();
      ready.pop_back();
      if (at(places, update).empty()) put(update);
    }
  }
  all_ns = d.start_ns + *std::max_element(busy.begin(), busy.end());
  serial = threads == 1 || !(all_ns < d.worth * one_ns);
}

}  // namespace gradus
