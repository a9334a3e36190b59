#include <gradus/tensor/clip_operands.hpp>

#include <doctest/doctest.h>

#include <array>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

using namespace gradus;

namespace {
struct slices {
  std::vector<int> rows;
  std::vector<float> values;
};
}  // namespace

// What is clipped in place can be written; what is read may be constant.
static_assert(std::is_convertible_v<std::vector<float>&, clip::gradient>);
static_assert(!std::is_convertible_v<const std::vector<float>&, clip::gradient>);
static_assert(std::is_convertible_v<const std::vector<float>&, clip::source>);
static_assert(std::is_convertible_v<slices&, clip::gradient> && !std::is_convertible_v<slices&, clip::array>);
static_assert(std::is_convertible_v<const slices&, clip::source> && !std::is_convertible_v<const slices&, clip::entry>);
static_assert(std::is_convertible_v<float, clip::limit> && std::is_convertible_v<std::vector<double>&, clip::limit>);
// A destination is named: a clip with two arrays does not guess which is which.
static_assert(std::is_constructible_v<clip::to, std::vector<float>&> &&
              !std::is_convertible_v<std::vector<float>&, clip::to>);

TEST_CASE("operands are views of the caller's elements, of slices their values") {
  std::array<float, 2> a{3, 4};
  slices s{{1, 1}, {5, 6, 7}};
  CHECK(clip::array(a).view.data == reinterpret_cast<const std::byte*>(a.data()));
  CHECK(clip::gradient(s).view.data == reinterpret_cast<const std::byte*>(s.values.data()));
  CHECK(clip::source(s).view.size() == 3);
  const clip::entry in_place(a), apart(s, clip::to(a));
  CHECK(in_place.from.data == in_place.into.data);
  CHECK(apart.from.data != apart.into.data);
}

TEST_CASE("None is nullopt or an empty optional, in a list that is written and in one that is read") {
  std::optional<std::vector<float>> nothing, something{std::vector<float>{1}};
  CHECK(clip::entry(std::nullopt).absent);
  CHECK(clip::entry(nothing).absent);
  CHECK_FALSE(clip::entry(something).absent);
  CHECK(clip::term(std::nullopt).absent);
  CHECK(clip::term(nothing).absent);
  CHECK_FALSE(clip::term(something).absent);
  CHECK(clip::term(clip::entry(nothing)).absent);
  CHECK(clip::term(clip::entry(something)).from.size() == 1);
}

TEST_CASE("a limit keeps whole numbers whole, where a double would round") {
  const clip::limit wide((std::int64_t{1} << 60) + 1), half(0.5);
  CHECK((wide.whole && wide.whole_number == (std::int64_t{1} << 60) + 1));
  CHECK((!half.whole && half.number == 0.5 && !half.is_array));
  CHECK(clip::limit(std::vector<double>{1, 2}).is_array);
}
