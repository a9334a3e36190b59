#include <doctest/doctest.h>
#include <gradus/cpu/kernel.hpp>

using namespace gradus;

namespace {
constexpr card some_card{"Some", 1};
constexpr detail::signature some = [] {
  detail::signature s;
  s.op = &some_card;
  s.types[0] = float32, s.types[1] = int64;
  s.dims[0] = 0, s.dims[1] = 7, s.dims[2] = -3;
  return s;
}();
}  // namespace

TEST_CASE("extents: constants, rows, and multiples of the batch, compiled and interpreted alike") {
  const detail::fixed<some> f{5, 4};
  const detail::dynamic d{5, 4, 0, 1, some};
  for (int i = 0; i < 3; ++i) CHECK(f.dim(i) == d.dim(i));
  CHECK(f.dim(0) == 5);
  CHECK(f.dim(1) == 7);
  CHECK(f.dim(2) == 12);
  static_assert(detail::fixed<some>::raw(2) == -3 && detail::fixed<some>::type(1) == int64);
}

TEST_CASE("typed chooses among the types that the kernel names") {
  std::size_t bytes = 0;
  dispatch_type<0, float, double>(detail::fixed<some>{1, 1}, [&]<class T>() { bytes = sizeof(T); });
  CHECK(bytes == 4);
  dispatch_type<1, std::int32_t, std::int64_t>(detail::dynamic{1, 1, 0, 1, some},
                                               [&]<class T>() { bytes = sizeof(T); });
  CHECK(bytes == 8);
  CHECK_THROWS_WITH_AS((dispatch_type<1, float, double>(detail::dynamic{1, 1, 0, 1, some}, []<class T>() {})),
                       "Some has no kernel for int64", unimplemented);
}
