// A model that was refused does not compile, and the compiler prints the reason: the graph's error message, cut into
// template arguments.
#pragma once
#include "../base/build.hpp"

#include <cstddef>
#include <utility>

namespace gradus::inline GRADUS_BUILD {

template <int N>
struct text_piece {
  char c[static_cast<std::size_t>(N)];
};
template <text_piece... Reason>
struct this_model_was_refused {
  static_assert(sizeof...(Reason) == 0,
                "gradus: the model was refused; the reason stands in the template arguments, in pieces");
  static constexpr bool value = sizeof...(Reason) == 0;
};
namespace detail {
inline constexpr int piece_length = 28;  // clang cuts off longer ones
// Returns where the piece that begins at `from` ends: after a word if one ends in its second half.
constexpr int piece_end(const char* reason, int size, int from) {
  if (size - from <= piece_length) return size;
  for (int k = from + piece_length; k > from + piece_length / 2; --k)
    if (reason[k - 1] == ' ') return k;
  return from + piece_length;
}
template <class Stage>
constexpr int piece_begin(int piece) {  // of the piece after the last, this is the size
  int at = 0;
  while (piece-- > 0) at = piece_end(Stage::value.refusal, Stage::value.size.refusal, at);
  return at;
}
// The result has exactly the piece's length, because clang prints characters as numbers where zeros follow.
template <class Stage, int I>
consteval auto piece_of() {
  constexpr int first = piece_begin<Stage>(I), length = piece_begin<Stage>(I + 1) - first;
  text_piece<length + 1> t{};
  for (int k = 0; k < length; ++k) t.c[k] = Stage::value.refusal[first + k];
  return t;
}
template <class Stage>
consteval int piece_count() {
  int n = 0;
  for (int at = 0; at < Stage::value.size.refusal; ++n)
    at = piece_end(Stage::value.refusal, Stage::value.size.refusal, at);
  return n;
}
template <class Stage, class = std::make_integer_sequence<int, piece_count<Stage>()>>
struct accepted;
template <class Stage, int... I>
struct accepted<Stage, std::integer_sequence<int, I...>> {
  using reason = this_model_was_refused<piece_of<Stage, I>()...>;
  static constexpr bool value = reason::value;
};
}  // namespace detail

}  // namespace gradus
