#include <gradus/store/wire.hpp>
#include <gradus/summary/histogram.hpp>

#include <doctest/doctest.h>

#include <cmath>

using namespace gradus;

namespace {
std::string hex(std::span<const std::byte> bytes) {
  std::string out;
  for (const std::byte b : bytes) {
    out += "0123456789abcdef"[std::to_integer<int>(b) >> 4];
    out += "0123456789abcdef"[std::to_integer<int>(b) & 15];
  }
  return out;
}
}  // namespace

TEST_CASE("the limits: 1551 of them, as recorded from TensorFlow") {
  const auto limits = histogram_limits();
  REQUIRE(limits.size() == 1551);
  CHECK(limits.front() == -DBL_MAX);
  CHECK(limits.back() == DBL_MAX);
  CHECK(limits[775] == 0);
  CHECK(limits[776] == 1e-12);
  CHECK(limits[777] == 1.1000000000000002e-12);
  CHECK(limits[1549] < 1e20);
  CHECK(limits[1549] * 1.1 >= 1e20);
  for (std::size_t i = 0; i < limits.size(); ++i) REQUIRE(limits[i] == -limits[limits.size() - 1 - i]);
  for (const double recorded : {-1.0089710279437536, -0.917246389039776, 2.379100905625872, 2.6170109961884593})
    CHECK(std::binary_search(limits.begin(), limits.end(), recorded));
}

TEST_CASE("the specification's example, byte for byte") {
  const std::vector<float> x{-1, 0, 0, 2.5f};
  const auto v = histogram_summary("h", x);
  REQUIRE(v.size() == 1);
  CHECK(v[0].kind == value_kind::histogram);
  CHECK(hex(v[0].bytes) ==
        "09000000000000f0bf1100000000000004401900000000000010402100000000"
        "0000f83f290000000000001d4032382b14facdbe24f0bf08996919155aedbf00"
        "0000000000000011ea2d819997713d77603c0e66080340ea360f76a3ef0440ff"
        "ffffffffffef7f3a380000000000000000000000000000f03f00000000000000"
        "0000000000000000400000000000000000000000000000f03f00000000000000"
        "00");
  const auto read = decode_histogram(v[0].bytes);
  CHECK(read == count_histogram(std::span<const float>(x)));
  CHECK(read.limits == std::vector<double>{-1.0089710279437536, -0.917246389039776, 0, 1e-12, 2.379100905625872,
                                           2.6170109961884593, DBL_MAX});
  CHECK(read.counts == std::vector<double>{0, 1, 0, 2, 0, 1, 0});
}

TEST_CASE("edges: nothing, the largest double, a limit itself, integers") {
  const auto nothing = count_histogram(std::span<const double>());
  CHECK(nothing.min == DBL_MAX);
  CHECK(nothing.max == -DBL_MAX);
  CHECK(nothing.limits == std::vector<double>{DBL_MAX});
  CHECK(nothing.counts == std::vector<double>{0});

  const std::vector<double> ends{-DBL_MAX, DBL_MAX, DBL_MAX};
  const auto h = count_histogram(std::span<const double>(ends));
  CHECK(h.counts.back() == 2);
  CHECK(h.limits.back() == DBL_MAX);
  CHECK(h.num == 3);

  const std::vector<double> at{1e-12};  // belongs to the bucket above it
  const auto on = count_histogram(std::span<const double>(at));
  CHECK(on.limits == std::vector<double>{1e-12, 1.1000000000000002e-12, DBL_MAX});
  CHECK(on.counts == std::vector<double>{0, 1, 0});

  const std::vector<std::int32_t> integers{1, 2, 3};
  CHECK(count_histogram(std::span<const std::int32_t>(integers)).sum_squares == 14);
}

TEST_CASE("refusals: what is not finite, and damaged messages") {
  const std::vector<float> nan{1, NAN}, infinite{-INFINITY};
  CHECK_THROWS_WITH_AS(histogram_summary("w", nan),
                       "Nan in summary histogram for: w; look for the step that made it, or leave such elements out",
                       invalid_argument);
  CHECK_THROWS_AS(histogram_summary("w", infinite), invalid_argument);

  auto bytes = histogram_summary("w", std::vector<float>{1, 2})[0].bytes;
  for (std::size_t n = 0; n < bytes.size(); ++n) try {
      decode_histogram(std::span(bytes).first(n));
    } catch (const data_loss&) {
    }
  std::vector<std::byte> unpacked;  // readers accept both forms
  {
    wire_writer w(unpacked);
    w.float64(6, 1.0), w.float64(6, 2.0), w.float64(7, 3.0), w.float64(7, 4.0);
  }
  CHECK(decode_histogram(unpacked).counts == std::vector<double>{3, 4});
  {
    wire_writer w(unpacked);
    w.float64(7, 5.0);
  }
  CHECK_THROWS_AS(decode_histogram(unpacked), data_loss);
}

TEST_CASE("a bucket is found by bits as by searching: at every limit, and just beside it") {
  const auto limits = histogram_limits();
  const detail::bucket_finder find;
  std::size_t wrong = 0;
  const auto look = [&](double x) {
    const auto at = static_cast<std::size_t>(std::upper_bound(limits.begin(), limits.end(), x) - limits.begin());
    wrong += find(x) != std::min(at, limits.size() - 1) ? 1 : 0;
  };
  for (const double limit : limits)
    for (const double x : {limit, std::nextafter(limit, 0.0), std::nextafter(limit, 2 * limit), limit * 1.0001})
      if (std::isfinite(x)) look(x);
  for (const double x : {0.0, -0.0, 5e-324, -5e-324, DBL_MIN, 1e-13, -1e-13, 1e21, -1e21, 1e300, -DBL_MAX, DBL_MAX})
    look(x);
  for (double x = 1e-14; x < 1e23; x *= 1.0007) look(x), look(-x);
  CHECK(wrong == 0);
}
