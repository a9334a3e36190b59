#include <gradus/graph/node.hpp>

#include <doctest/doctest.h>

using namespace gradus;

namespace {
struct settings {
  int axis;
  float rate;
};
static_assert(words_of<settings> == 2);
static_assert(from_words<settings>(to_words(settings{3, 0.5f}).data()).rate == 0.5f);
static_assert(card{.name = "Op", .operands = 1, .traits = trait::view | trait::blocks}.is(trait::blocks));
static_assert(!card{.name = "Op", .operands = 1}.is(trait::leaf));

// A signature is a template argument: equal ones are one type.
template <detail::signature S>
struct kernel_of {
  static int code;
};
template <detail::signature S>
int kernel_of<S>::code = 0;
}  // namespace

TEST_CASE("equal signatures share a kernel, any difference parts them") {
  static constexpr card op{.name = "Op", .operands = 1};
  constexpr auto sign = [](int extent) {
    detail::signature s;
    s.op = &op, s.types[0] = float32, s.dims[1] = extent;
    return s;
  };
  constexpr detail::signature a = sign(4), b = sign(4), c = sign(5);
  CHECK(&kernel_of<a>::code == &kernel_of<b>::code);
  CHECK(&kernel_of<a>::code != &kernel_of<c>::code);
}
