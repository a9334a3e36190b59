// A kernel called as the interpreter does, whole or in parts.
#pragma once
#include <gradus/cpu/kernel.hpp>
#include <gradus/cpu/number.hpp>

#include <cstring>
#include <initializer_list>
#include <vector>

namespace divided_test {
using namespace gradus;

// The result of `Op`, `bytes` long; dims as lowered, args the operands.
template <const card* Op, class A = fast>
std::vector<std::byte> run(const std::vector<int>& dims, std::int64_t rows, std::size_t bytes,
                           std::initializer_list<dtype> types, const std::vector<const void*>& operands, int parts) {
  detail::signature s;
  s.op = Op;
  std::copy(dims.begin(), dims.end(), s.dims);
  std::copy(types.begin(), types.end(), s.types);
  std::vector<std::byte> y(bytes + 1, std::byte{0xa5});
  std::vector<std::byte*> args{y.data()};
  for (const void* p : operands) args.push_back(static_cast<std::byte*>(const_cast<void*>(p)));
  for (int part = parts - 1; part >= 0; --part)
    op_kernel<Op>::template run<A>(detail::dynamic{rows, 1, part, parts, s}, args.data());
  y.pop_back();
  return y;
}
template <class T>
std::vector<T> as(const std::vector<std::byte>& b) {
  std::vector<T> v(b.size() / sizeof(T));
  if (!b.empty()) std::memcpy(v.data(), b.data(), b.size());
  return v;
}
// Whole; and the same bits in parts.
template <const card* Op, class T, class A = fast>
std::vector<T> same_in_parts(const std::vector<int>& dims, std::int64_t rows, std::size_t count,
                             std::initializer_list<dtype> types, const std::vector<const void*>& operands, bool& same) {
  const auto whole = run<Op, A>(dims, rows, count * sizeof(T), types, operands, 1);
  for (int parts : {2, 3, 4, 7, 16})
    same = same && run<Op, A>(dims, rows, count * sizeof(T), types, operands, parts) == whole;
  return as<T>(whole);
}
}  // namespace divided_test
