#include <gradus/summary/attr_value.hpp>

#include <doctest/doctest.h>

#include <string>
#include <type_traits>
#include <utility>
#include <vector>

using namespace gradus;
using kind = attr_value::kind;

// A number of a narrower type is taken, one that might not fit is not.
static_assert(std::is_convertible_v<int, attr_value> && std::is_convertible_v<short, attr_value>);
static_assert(!std::is_convertible_v<std::size_t, attr_value> && !std::is_convertible_v<double, attr_value>);
static_assert(!std::is_convertible_v<int*, attr_value>);
static_assert(std::is_nothrow_move_constructible_v<attr_value>);

namespace {
// Longer than what a string holds in itself, so that a copy that shares memory, or leaks it, is seen by a sanitizer.
const std::string long_text(100, 'x');

struct one_of_each {
  kind is;
  attr_value value;
};
std::vector<one_of_each> all() {
  std::vector<one_of_each> list;
  list.push_back({kind::integer, std::int64_t{1} << 40});
  list.push_back({kind::real, 0.5F});
  list.push_back({kind::flag, true});
  list.push_back({kind::type, float16});
  list.push_back({kind::shape, shape_def{{-1, 3}, false}});
  list.push_back({kind::text, long_text});
  list.push_back({kind::tensor, tensor_def{string_in_graphs, {2}, {}, {long_text, "b"}}});
  list.push_back({kind::integers, std::vector<std::int64_t>{1, 2, 3}});
  list.push_back({kind::reals, std::vector<float>{0.5F, 2}});
  list.push_back({kind::texts, std::vector<std::string>{long_text, "b"}});
  list.push_back({kind::types, std::vector<dtype>{int32, int64}});
  list.push_back({kind::shapes, std::vector<shape_def>{{{4}}, {{}, true}}});
  return list;
}
bool same(const shape_def& a, const shape_def& b) { return a.dims == b.dims && a.unknown_rank == b.unknown_rank; }
bool same(const tensor_def& a, const tensor_def& b) {
  return a.type == b.type && a.dims == b.dims && a.content == b.content && a.strings == b.strings;
}
bool same(const std::vector<shape_def>& a, const std::vector<shape_def>& b) {
  return a.size() == b.size() && same(a[0], b[0]) && same(a[1], b[1]);
}
template <class T>
bool same(const T& a, const T& b) {
  return a == b;
}
bool same(const attr_value& a, const attr_value& b) {
  return a.holds() == b.holds() && a.visit([&]<class T>(const T& x) { return same(x, b.get<T>()); });
}
}  // namespace

TEST_CASE("each of the twelve types is held as itself, and as no other") {
  const auto list = all();
  for (const auto& [is, v] : list) {
    CHECK(v.holds() == is);
    const int found = (v.get_if<std::int64_t>() != nullptr) + (v.get_if<float>() != nullptr) +
                      (v.get_if<bool>() != nullptr) + (v.get_if<dtype>() != nullptr) +
                      (v.get_if<shape_def>() != nullptr) + (v.get_if<std::string>() != nullptr) +
                      (v.get_if<tensor_def>() != nullptr) + (v.get_if<std::vector<std::int64_t>>() != nullptr) +
                      (v.get_if<std::vector<float>>() != nullptr) + (v.get_if<std::vector<std::string>>() != nullptr) +
                      (v.get_if<std::vector<dtype>>() != nullptr) + (v.get_if<std::vector<shape_def>>() != nullptr);
    CHECK(found == 1);
  }
  CHECK(list[0].value.get<std::int64_t>() == std::int64_t{1} << 40);
  CHECK(list[5].value.get<std::string>() == long_text);
  CHECK_THROWS_AS(list[5].value.get<bool>(), internal);
  CHECK(attr_value().get<std::int64_t>() == 0);
  CHECK(attr_value("a literal").get<std::string>() == "a literal");  // and no boolean, which a pointer converts to
}

TEST_CASE("copies are equal and apart, moves leave nothing twice, and every type is assigned over every other") {
  const auto list = all();
  for (const auto& from : list) {
    attr_value copy = from.value;
    CHECK(same(copy, from.value));
    const attr_value moved = std::move(copy);
    CHECK(same(moved, from.value));
    for (const auto& to : list) {
      attr_value over = to.value;
      over = from.value;
      CHECK(same(over, from.value));
      attr_value from_there = to.value;
      over = std::move(from_there);
      CHECK(same(over, to.value));
      const attr_value& itself = over;
      over = itself;
      CHECK(same(over, to.value));
    }
  }
}
