#include <gradus/tensor/access.hpp>

#include <doctest/doctest.h>

#include <string>

using namespace gradus;

namespace {
struct matrix {  // a type of the user's
  float at[2][3] = {{1, 2, 3}, {4, 5, 6}};
};
}  // namespace
template <>
struct gradus::array_access<matrix> {
  static const_tensor_view read(const matrix& m) { return {float32, {2, 3}, reinterpret_cast<const std::byte*>(m.at)}; }
  static tensor_view write(matrix& m) { return {float32, {2, 3}, reinterpret_cast<std::byte*>(m.at)}; }
};

TEST_CASE("spans, vectors, arrays and views are arrays") {
  std::vector<float> v{1, 2, 3};
  std::array<double, 2> a{1, 2};
  const std::vector<std::int32_t> c{7};
  const auto view = write_view(v);
  CHECK(view.type == float32);
  CHECK(view.dims == extents{3});
  view.mutable_as<float>()[1] = 20;
  CHECK(v[1] == 20);
  CHECK(read_view(a).as<double>()[1] == 2);
  CHECK(read_view(c).as<std::int32_t>()[0] == 7);
  CHECK(read_view(std::span<const float>(v)).size() == 3);
  CHECK(write_view(view).data == view.data);
  auto span = std::span<float>(v);
  CHECK(write_view(span).data == view.data);
}

TEST_CASE("what may not be written is not writable, and strangers are no arrays") {
  static_assert(readable_array<const std::vector<float>> && !writable_array<const std::vector<float>>);
  static_assert(readable_array<std::span<const float>> && !writable_array<std::span<const float>>);
  static_assert(readable_array<const_tensor_view> && !writable_array<const_tensor_view>);
  static_assert(!readable_array<std::vector<bool>> && !readable_array<std::string> && !readable_array<int>);
}

TEST_CASE("a type of the user's, by specialization") {
  matrix m;
  const auto view = write_view(m);
  CHECK(view.dims == extents{2, 3});
  CHECK(view.as<float>()[5] == 6);
}
