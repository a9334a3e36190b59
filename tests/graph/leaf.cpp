#include <gradus/graph/leaf.hpp>

#include <doctest/doctest.h>

#include <array>

using namespace gradus;

static_assert(placeholder_card.is(trait::leaf) && variable_card.is(trait::leaf) && constant_card.is(trait::leaf));
static_assert(placeholder_card.is(trait::keeps) && variable_card.is(trait::keeps) && !constant_card.is(trait::keeps));
static_assert(no_op_card.is(trait::control) && !no_op_card.is(trait::leaf));
static_assert(output{output::summary, 0, 0}.is_summary() && output{output::audio, 0, 0}.is_summary());
static_assert(!output{output::loss, 0, 0}.is_summary() && !output{output::fetch, 0, 0}.is_summary());

TEST_CASE("a variable's constraint follows its attributes; without one there is none") {
  constexpr auto attributes = words_of<variable_attr>, more = words_of<constraint>;
  std::array<int, static_cast<std::size_t>(attributes + more)> words{};
  const auto limit = to_words(max_norm(3));
  for (int i = 0; i < more; ++i) words[static_cast<std::size_t>(attributes + i)] = limit[static_cast<std::size_t>(i)];
  node n;
  n.op = &variable_card, n.attrs = attributes + more;
  CHECK(to_words(constraint_of(n, words.data())) == limit);
  n.attrs = attributes;
  CHECK(!constraint_of(n, words.data()));
}
