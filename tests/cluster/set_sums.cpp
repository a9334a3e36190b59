#include <gradus/cluster/set_sums.hpp>

#include <doctest/doctest.h>

#include <string>

using namespace gradus;
using detail::matched_gradient;
using detail::store_variable;
using detail::wire_slice;

namespace {
template <class T>
wire_slice slice(const std::vector<T>& x, detail::slice_role role = detail::slice_role::dense) {
  return {"w", dtype_of<T>, 0, std::as_bytes(std::span(x)), role};
}
template <class T>
std::vector<T> values_of(const const_tensor_view& v) {
  return {v.as<T>().begin(), v.as<T>().end()};
}
}  // namespace

TEST_CASE("a sum by pieces has the additions of one over whole arrays: the tree's, however many pieces there are") {
  // With 2^24 and ones the order shows: (1 + 2^24) + (1 + 1) is 2^24 + 2, from the left it is 2^24.
  const float big = 16777216.0f;
  detail::dense_sum sum;
  for (const std::size_t size : {std::size_t{0}, std::size_t{3}, std::size_t{4096}, std::size_t{10000}}) {
    INFO(size);
    std::vector<std::vector<float>> of{std::vector<float>(size, 1), std::vector<float>(size, big),
                                       std::vector<float>(size, 1), std::vector<float>(size, 1)};
    std::vector<float> to(size, 9);
    const auto from = [&](std::size_t k) { return reinterpret_cast<const std::byte*>(of[k].data()); };
    sum(to.data(), size, 4, 1, from);
    CHECK(to == std::vector<float>(size, big + 2));
    sum(to.data(), size, 4, 2, from);
    CHECK(to == std::vector<float>(size, big / 2 + 1));
    sum(to.data(), size, 2, 1, from);  // 1 + 2^24 is 2^24: ties go to even
    CHECK(to == std::vector<float>(size, big));
  }
}
TEST_CASE("one contribution is used where it lies, if it is aligned and not divided") {
  const store_variable w{.name = "w", .dims = {2}};
  const std::vector<float> x{1, 2}, y{4, 8};
  detail::set_sums one({&w}, 1), halves({&w}, 2);
  const wire_slice a = slice(x), b = slice(y);
  const matched_gradient first{&a, nullptr}, second{&b, nullptr};
  one.add(std::span(&first, 1));
  CHECK(one.gradients()[0].name == "w");
  CHECK(one.gradients()[0].values.data == a.bytes.data());
  halves.add(std::span(&first, 1));
  CHECK(values_of<float>(halves.gradients()[0].values) == std::vector<float>{0.5f, 1});
  halves.add(std::span(&second, 1));
  CHECK(values_of<float>(halves.gradients()[0].values) == std::vector<float>{2.5f, 5});
  halves.clear(), one.clear();
  std::vector<std::byte> odd(9);
  std::memcpy(odd.data() + 1, x.data(), 8);
  const wire_slice shifted{"w", float32, 0, std::span(odd).subspan(1)};
  const matched_gradient third{&shifted, nullptr};
  one.add(std::span(&third, 1));
  CHECK(values_of<float>(one.gradients()[0].values) == x);
  CHECK_THROWS_WITH_AS(detail::set_sums({&w}, 0), "the sum of a set is divided by 0; expected 1 or more",
                       invalid_argument);
}
TEST_CASE("rows are put behind one another in the order of the set, their values divided") {
  const store_variable w{.name = "w", .type = float64, .dims = {4, 2}, .takes_rows = true};
  using numbers = std::vector<std::int64_t>;
  const numbers r1{3, 0}, r2, r3{3};
  const std::vector<double> v1{1, 2, 3, 4}, v2, v3{5, 6};

  const wire_slice at[] = {slice(r1, detail::slice_role::rows), slice(r2, detail::slice_role::rows),
                           slice(r3, detail::slice_role::rows)};
  const wire_slice own[] = {slice(v1, detail::slice_role::values), slice(v2, detail::slice_role::values),
                            slice(v3, detail::slice_role::values)};
  detail::set_sums s({&w}, 2), single({&w}, 1);
  for (std::size_t k = 0; k < 3; ++k) {
    const matched_gradient g{&own[k], &at[k]};
    s.add(std::span(&g, 1));
  }
  const named_gradient g = s.gradients()[0];
  CHECK(g.sparse);
  CHECK(values_of<std::int64_t>(g.rows) == numbers{3, 0, 3});
  CHECK(values_of<double>(g.values) == std::vector<double>{0.5, 1, 1.5, 2, 2.5, 3});
  const matched_gradient only{&own[0], &at[0]};
  single.add(std::span(&only, 1));
  CHECK(single.gradients()[0].rows.data == at[0].bytes.data());
  CHECK(single.gradients()[0].values.data == own[0].bytes.data());
}
TEST_CASE("of a table's first part, which has all rows, the gradient is its own rows, and the values of all are kept") {
  const store_variable w{
      .name = "w/part_0", .dims = {2, 2}, .takes_rows = true, .whole = "w", .whole_dims = {5, 2}, .all_rows = true};
  const std::vector<std::int64_t> rows{4, 1, 0};
  const std::vector<float> values{1, 2, 3, 4, 5, 6};
  const wire_slice at[] = {slice(rows, detail::slice_role::rows), slice(values, detail::slice_role::values)};
  const matched_gradient part{&at[1], &at[0]};
  for (const std::int64_t n : {1, 2}) {
    detail::set_sums sums({&w}, n);
    for (std::int64_t k = 0; k < n; ++k) sums.add(std::span(&part, 1));
    const named_gradient g = sums.gradients()[0];
    const std::vector<float> all = values_of<float>(sums.all_values(0)), own = values_of<float>(g.values);
    if (n == 1) {
      CHECK(all == values);
      CHECK(values_of<std::int64_t>(g.rows) == std::vector<std::int64_t>{1, 0});
      CHECK(own == std::vector<float>{3, 4, 5, 6});
    } else {
      CHECK(all == std::vector<float>{0.5f, 1, 1.5f, 2, 2.5f, 3, 0.5f, 1, 1.5f, 2, 2.5f, 3});
      CHECK(values_of<std::int64_t>(g.rows) == std::vector<std::int64_t>{1, 0, 1, 0});
      CHECK(own == std::vector<float>{1.5f, 2, 2.5f, 3, 1.5f, 2, 2.5f, 3});
    }
  }
}
