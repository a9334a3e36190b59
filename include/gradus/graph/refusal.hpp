// This header builds the message with which a graph is refused, in the compiler and in the program: words, numbers,
// shapes.
#pragma once
#include "../base/build.hpp"

#include <string_view>

#include "../base/dtype.hpp"
#include "../base/shape.hpp"
#include "seq.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

struct refusal_piece {
  enum kinds : int { words, extents, integer };
  int kind = words, number = 0;
  std::string_view text = {};
  const shape* dims = nullptr;
  constexpr refusal_piece(std::string_view s) : text(s) {}
  constexpr refusal_piece(const char* s) : text(s) {}
  constexpr refusal_piece(dtype t) : text(gradus::name_of(t)) {}
  constexpr refusal_piece(int n) : kind(integer), number(n) {}
  constexpr refusal_piece(const shape& s) : kind(extents), dims(&s) {}
};
[[gnu::cold]] constexpr void put(seq<char>& out, std::string_view s) {
  out.append(s.data(), static_cast<int>(s.size()));
}
[[gnu::cold]] constexpr void put(seq<char>& out, unsigned n) {
  char digits[12];
  int k = 0;
  do digits[k++] = static_cast<char>('0' + n % 10);
  while ((n /= 10) != 0);
  while (k > 0) out.push(digits[--k]);
}
[[gnu::cold]] constexpr void put(seq<char>& out, int n) {
  if (n < 0) out.push('-');
  put(out, n < 0 ? 0u - static_cast<unsigned>(n) : static_cast<unsigned>(n));
}
[[gnu::cold]] constexpr void put(seq<char>& out, const shape& s) {
  out.push('[');
  for (int i = 0; i < s.rank; ++i) {
    if (i != 0) put(out, ", ");
    if (s.dims[i] >= 0)
      put(out, s.dims[i]);
    else if (s.dims[i] == batch)
      put(out, "batch");
    else
      put(out, 0u - static_cast<unsigned>(s.dims[i])), put(out, "*batch");
  }
  out.push(']');
}
[[gnu::cold]] constexpr void put_piece(seq<char>& out, const refusal_piece& p) {
  if (p.kind == refusal_piece::words)
    put(out, p.text);
  else if (p.kind == refusal_piece::integer)
    put(out, p.number);
  else
    put(out, *p.dims);
}

}  // namespace gradus::detail
