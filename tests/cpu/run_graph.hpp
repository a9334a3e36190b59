// Runs a graph of placeholders, constants, reshapes and the ops of some lists, node by node: kernels without a session.
#pragma once
#include <gradus/cpu/kernel.hpp>
#include <gradus/cpu/number.hpp>
#include <gradus/ops/reduce.hpp>

#include <cstring>
#include <map>
#include <numeric>
#include <vector>

namespace kernel_test {
using namespace gradus;

using bytes = std::vector<std::byte>;

template <class T>
bytes to_bytes(const std::vector<T>& v) {
  bytes b(v.size() * sizeof(T));
  for (std::size_t i = 0; i < v.size(); ++i) {
    const T x = v[i];
    std::memcpy(b.data() + i * sizeof(T), &x, sizeof(T));
  }
  return b;
}
template <class T>
std::vector<T> from_bytes(const bytes& b) {
  std::vector<T> v(b.size() / sizeof(T));
  for (std::size_t i = 0; i < v.size(); ++i) {
    T x;
    std::memcpy(&x, b.data() + i * sizeof(T), sizeof(T));
    v[i] = x;
  }
  return v;
}
template <class T>
bytes numbers(const graph& g, const node& n, std::int64_t count) {
  std::vector<T> v(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < v.size(); ++i) {
    const int* w = g.ints.first + n.attr + (n.attrs == 2 ? 0 : 2 * static_cast<int>(i));
    v[i] = static_cast<T>(std::bit_cast<double>(std::array<int, 2>{w[0], w[1]}));
  }
  return to_bytes(v);
}

template <class A, const card*... Ops>
void run_node(op_list<Ops...>, const detail::signature& s, std::int64_t rows, std::int64_t batch_size,
              std::byte* const* args) {
  const bool found =
      ((s.op == Ops ? (op_kernel<Ops>::template run<A>(detail::dynamic{rows, batch_size, 0, 1, s}, args), true)
                    : false) ||
       ...);
  if (!found) raise(status::unimplemented, text("no kernel here for ", s.op->name));
}

template <class A = fast, class List>
bytes run(List list, graph& g, value wanted, std::int64_t batch_size, const std::map<int, bytes>& feeds) {
  std::vector<bytes> results(static_cast<std::size_t>(wanted.id) + 1);
  const graph_view view = g.view();
  for (int i = 0; i <= wanted.id; ++i) {
    const node& n = g.nodes[i];
    const std::int64_t many = count(resolve(n.dims, batch_size));
    bytes& out = results[static_cast<std::size_t>(i)];
    if (n.op == &placeholder_card || n.op == &variable_card) {
      out = feeds.at(i);
    } else if (n.op == &constant_card) {
      out = n.type == float32   ? numbers<float>(g, n, many)
            : n.type == float64 ? numbers<double>(g, n, many)
            : n.type == int32   ? numbers<std::int32_t>(g, n, many)
            : n.type == int64   ? numbers<std::int64_t>(g, n, many)
                                : numbers<std::uint8_t>(g, n, many);
    } else if (n.op == &cards::reshape) {
      out = results[static_cast<std::size_t>(g.edges[n.first])];
    } else {
      out.assign(static_cast<std::size_t>(many) * size_of(n.type), std::byte{0xa5});
      detail::signature s;
      lowering l{view, n};
      n.op->lower(l);
      s.op = n.op, s.types[0] = n.type;
      std::copy(l.dims, l.dims + max_extents, s.dims);
      std::vector<std::byte*> args{out.data()};
      for (int k = 0; k < n.inputs; ++k) {
        const int operand = g.edges[n.first + k];
        if (k + 1 < max_types) s.types[k + 1] = g.nodes[operand].type;
        args.push_back(results[static_cast<std::size_t>(operand)].data());
      }
      run_node<A>(list, s, resolve(l.rows, batch_size), batch_size, args.data());
    }
  }
  return results.back();
}

// 0, 1, 2, ... or any other numbers from a small linear generator.
template <class T>
std::vector<T> counting(std::size_t n) {
  std::vector<T> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = static_cast<T>(i % 251);
  return v;
}
struct lcg {
  std::uint32_t state = 1;
  std::uint32_t operator()(std::uint32_t below) {
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % below;
  }
  double real() { return static_cast<double>((*this)(20001)) / 10000.0 - 1.0; }
  template <class T>
  std::vector<T> reals(std::size_t n) {
    std::vector<T> v(n);
    for (auto& x : v) x = static_cast<T>(real());
    return v;
  }
};
inline std::size_t at(const std::vector<int>& dims, const std::vector<int>& place) {
  std::size_t i = 0;
  for (std::size_t k = 0; k < dims.size(); ++k)
    i = i * static_cast<std::size_t>(dims[k]) + static_cast<std::size_t>(place[k]);
  return i;
}
// Every place of an array, last axis fastest.
template <class F>
void places(const std::vector<int>& dims, F f) {
  for (int d : dims)
    if (d == 0) return;
  std::vector<int> place(dims.size(), 0);
  for (;;) {
    f(place);
    std::size_t k = dims.size();
    while (k > 0 && ++place[k - 1] == dims[k - 1]) place[--k] = 0;
    if (k == 0) return;
  }
}
inline std::size_t total(const std::vector<int>& dims) {
  std::size_t n = 1;
  for (int d : dims) n *= static_cast<std::size_t>(d);
  return n;
}
inline shape to_shape(const std::vector<int>& dims, int batched_axis = -1, int batch_size = 1) {
  shape s;
  for (std::size_t k = 0; k < dims.size(); ++k)
    s.push(static_cast<int>(k) == batched_axis ? -dims[k] / batch_size : dims[k]);
  return s;
}
}  // namespace kernel_test
