#include <gradus/run/refused_model.hpp>

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

using namespace gradus;

namespace {
struct length {
  int refusal = 0;
};
template <std::size_t N>
struct sentence {
  char refusal[N];
  length size{static_cast<int>(N) - 1};
  constexpr sentence(const char (&text)[N]) {
    for (std::size_t i = 0; i < N; ++i) refusal[i] = text[i];
  }
};
template <sentence Text>
struct stage {
  static constexpr const auto& value = Text;
};
template <class Stage>
std::vector<std::string> pieces() {
  return []<int... I>(std::integer_sequence<int, I...>) {
    return std::vector<std::string>{detail::piece_of<Stage, I>().c...};
  }(std::make_integer_sequence<int, detail::piece_count<Stage>()>{});
}
template <sentence Text>
void check_pieces(std::size_t expected) {
  std::string all;
  const auto found = pieces<stage<Text>>();
  CHECK(found.size() == expected);
  for (const std::string& p : found) {
    CHECK(!p.empty());
    CHECK(p.size() <= 28);  // clang cuts longer ones
    all += p;
  }
  CHECK(all == Text.refusal);
}
}  // namespace

static_assert(detail::accepted<stage<"">>::value);

TEST_CASE("the pieces of a reason are the reason, each short enough for a compiler to print whole") {
  check_pieces<"">(0);
  check_pieces<"short">(1);
  check_pieces<"exactly twenty-eight letters">(1);
  check_pieces<"exactly twenty-eight letters.">(2);
  check_pieces<"dense: takes [batch, features], got float32 [batch, 28, 28] of \"image\"; use flatten">(4);
  check_pieces<"anameofmorethantwentyeightletterswithoutanyspacewhatever">(2);
}

TEST_CASE("a piece ends behind a word if one ends in its second half") {
  CHECK(pieces<stage<"the rate must be in [0, 1), got 100% of it">>() ==
        std::vector<std::string>{"the rate must be in [0, 1), ", "got 100% of it"});
  CHECK(pieces<stage<"a bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb">>() ==
        std::vector<std::string>{"a bbbbbbbbbbbbbbbbbbbbbbbbbb", "bbbbbbbbbbbb"});
}
