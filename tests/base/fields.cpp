// Members of plain structs, by their number.
#include <gradus/base/fields.hpp>

#include <doctest/doctest.h>

#include <array>
#include <memory>
#include <optional>
#include <string>

using namespace gradus::detail;

namespace {
struct none {};
struct one {
  int a = 1;
};
struct nested {
  one inner = {};
  std::optional<double> maybe = 0.5;
  std::array<float, 3> list = {1, 2, 3};
  std::string name = "x";
};
struct sixteen {
  int a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p;
};
struct seventeen {
  int a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q;
};
struct derived : one {
  int b = 2;
};
struct nameless : one {};
class closed {
public:
  int a = 0;

private:
  [[maybe_unused]] int b = 0;
};
struct needs_a_value {
  std::reference_wrapper<int> a;
};
struct moves_only {
  std::unique_ptr<int> a;
  int b = 7;
};
}  // namespace

TEST_CASE("members are counted, and what is no plain struct is known for one") {
  static_assert(plain_struct<none> && plain_struct<one> && plain_struct<nested> && plain_struct<sixteen>);
  static_assert(field_count<none>() == 0 && field_count<one>() == 1 && field_count<nested>() == 4);
  static_assert(field_count<sixteen>() == 16 && field_count<seventeen>() == most_fields + 1);
  static_assert(!plain_struct<seventeen> && !plain_struct<derived> && !plain_struct<nameless>);
  static_assert(!plain_struct<closed> && !plain_struct<needs_a_value> && !plain_struct<int> && !plain_struct<int[3]>);
  static_assert(plain_struct<moves_only> && field_count<moves_only>() == 2);
}

TEST_CASE("each member is visited in its place, and can be written") {
  sixteen s{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  int expected = 0;
  each_field(s, [&](int& member) {
    CHECK(member == ++expected);
    member = -member;
  });
  CHECK(expected == 16);
  CHECK((s.a == -1 && s.h == -8 && s.p == -16));
  const nested n{};
  static_assert(std::is_same_v<decltype(tie_fields(n)), std::tuple<const one&, const std::optional<double>&,
                                                                   const std::array<float, 3>&, const std::string&>>);
  CHECK(&std::get<3>(tie_fields(n)) == &n.name);
  moves_only m{std::make_unique<int>(3)};
  CHECK(*std::get<0>(tie_fields(m)) == 3);
}
