#include <gradus/run/updater.hpp>
// After the updater on purpose: the order of the headers does not matter.
#include <gradus/tensor/xtensor.hpp>

#include <doctest/doctest.h>

#include <gradus/cpu/sweeps.hpp>
#include <gradus/update/rules/momentum.hpp>

using namespace gradus;

TEST_CASE("xtensor's containers are arrays") {
  xt::xtensor<float, 2> a = {{1, 2, 3}, {4, 5, 6}};
  const auto v = write_view(a);
  CHECK(v.type == float32);
  CHECK(v.dims == extents{2, 3});
  v.mutable_as<float>()[4] = 50;
  CHECK(a(1, 1) == 50);
  xt::xarray<double> b = {1.0, 2.0};
  CHECK(read_view(b).dims == extents{2});
  const xt::xtensor_fixed<std::int32_t, xt::xshape<2, 1, 2>> c = {{{1, 2}}, {{3, 4}}};
  CHECK(read_view(c).dims == extents{2, 1, 2});
  CHECK(read_view(c).as<std::int32_t>()[3] == 4);
  std::vector<float> memory(6);
  auto d = xt::adapt(memory, std::vector<std::size_t>{3, 2});
  CHECK(write_view(d).mutable_data() == reinterpret_cast<std::byte*>(memory.data()));
  const xt::xtensor<double, 0> scalar = 3.0;
  CHECK(read_view(scalar).dims == extents{});
  CHECK(read_view(scalar).as<double>()[0] == 3.0);
  const xt::xtensor<float, 2> empty({0, 3});
  CHECK(read_view(empty).size() == 0);
  static_assert(!writable_array<const xt::xtensor<float, 2>>);
  static_assert(!readable_array<decltype(a * 2.0f)>);
}

TEST_CASE("what is not row-major and contiguous is refused") {
  const xt::xtensor<float, 2, xt::layout_type::column_major> a = {{1, 2, 3}, {4, 5, 6}};
  CHECK_THROWS_WITH_AS(
      read_view(a),
      "expected a row-major contiguous array, found stride 2 instead of 1 on axis 1 of [2, 3]; copy it "
      "into an xt::xtensor or xt::xarray first",
      invalid_argument);
  const xt::xarray<float> seven(std::vector<std::size_t>(7, 1));
  CHECK_THROWS_WITH_AS(read_view(seven), "a shape has at most 6 extents, this one has 7", invalid_argument);
}

TEST_CASE("and back: views as xtensor expressions over the same memory") {
  std::vector<float> memory{1, 2, 3, 4, 5, 6};
  const tensor_view v(std::span<float>(memory), {2, 3});
  auto m = as_xtensor<float, 2>(v);
  m(1, 2) = 60;
  CHECK(memory[5] == 60);
  auto any = as_xarray<float>(v);
  CHECK(any.dimension() == 2);
  any(0, 0) = 10;
  CHECK(memory[0] == 10);
  const const_tensor_view read = v;
  CHECK(as_xtensor<float, 2>(read)(0, 1) == 2);
  CHECK(as_xarray<float>(read)(1, 0) == 4);
  CHECK_THROWS_WITH_AS((as_xtensor<float, 1>(v)), "expected an array of rank 1, this one is [2, 3]", invalid_argument);
  CHECK_THROWS_WITH_AS((as_xtensor<double, 2>(v)),
                       "this tensor holds float32, not float64; read it as float32, or make it float64",
                       invalid_argument);
}

TEST_CASE("an updater tracks xtensor's arrays and takes their gradients") {
  xt::xtensor<float, 2> w = {{1, 1}, {1, 1}};
  xt::xarray<double> b = {1.0, 1.0};
  updater<sweeps<fast>, momentum> u{momentum{.rate = 0.5}};
  u.track("w", w);
  u.track("b", b);
  const xt::xtensor<float, 2> dw = {{1, 0}, {0, 1}};
  const xt::xarray<double> db = {0.0, 2.0};
  u.apply({{"w", dw}, {"b", db}});
  CHECK(w(0, 0) == 0.5f);
  CHECK(w(0, 1) == 1.0f);
  CHECK(b(1) == 0.0);
  const xt::xtensor<std::int64_t, 1> rows = {1};
  const xt::xtensor<float, 2> values = {{2, 2}};
  u.apply({{"w", indexed_slices{rows, values}}});
  CHECK(w(0, 0) == 0.5f);
  CHECK(as_xtensor<float, 2>(u.slot("w", "momentum"))(1, 0) == 2.0f);
  const xt::xtensor<float, 2> wrong = {{1, 0}};
  CHECK_THROWS_WITH_AS(u.apply({{"w", wrong}}), "the gradient of \"w\" is [1, 2]; expected [2, 2], as the variable",
                       invalid_argument);
}
