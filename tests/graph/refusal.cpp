#include <gradus/graph/refusal.hpp>

#include <doctest/doctest.h>

#include <string>

using namespace gradus;

namespace {
constexpr detail::seq<char> sentence(std::initializer_list<detail::refusal_piece> pieces) {
  detail::seq<char> out;
  for (const auto& p : pieces) detail::put_piece(out, p);
  return out;
}
constexpr bool says(const detail::seq<char>& s, std::string_view expected) {
  return std::string_view(s.first, static_cast<std::size_t>(s.count)) == expected;
}
static_assert(says(sentence({"takes ", 2, " operands of ", float32}), "takes 2 operands of float32"));
}  // namespace

TEST_CASE("a sentence of words, numbers and shapes") {
  CHECK(says(sentence({shape{}}), "[]"));
  CHECK(says(sentence({"x ", shape{batch, 3}, std::string_view(" y")}), "x [batch, 3] y"));
  CHECK(says(sentence({shape{2 * batch, 0}}), "[2*batch, 0]"));
  CHECK(says(sentence({0, " ", -7, " ", 2147483647, " ", -2147483647 - 1}), "0 -7 2147483647 -2147483648"));
}
