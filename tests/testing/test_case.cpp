#include <gradus/ops/elementwise.hpp>
#include <gradus/testing/test_case.hpp>

#include <doctest/doctest.h>

#include <sys/stat.h>
#include <array>
#include <limits>

using namespace gradus;

namespace {
template <class Call>
std::string failure(Call call) {
  try {
    call();
  } catch (const failed_precondition& e) {
    return e.what();
  }
  return "";
}
}  // namespace

TEST_CASE("the square of the documentation") {
  testing::test_case t;
  graph g;
  const value x = square(g.constant({2, 3}, {2}, int32));
  t.assert_all_equal(t.test_session(g).run(x), std::array{4, 9});
  CHECK(&t.test_session(g) == &t.test_session(g));
}

TEST_CASE("arrays are compared, and a difference is told") {
  const testing::test_case t;
  const std::array a{1.0f, 2.0f, 3.0f}, b{1.0f, 2.5f, 3.5f};
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  t.assert_all_equal(a, std::vector<double>{1, 2, 3});  // by value, whatever the dtype
  CHECK(failure([&] { t.assert_all_equal(b, a); }) ==
        "2 of 3 elements are not equal; the first at 1: got 2.5, expected 2");
  t.assert_all_close(b, a, 0, 0.5);
  CHECK(failure([&] { t.assert_all_close(b, a, 0, 0.4); }).starts_with("2 of 3 elements are not close"));
  t.assert_all_close(std::array{1.1}, std::array{1.0}, 0.11, 0);
  CHECK(failure([&] { t.assert_all_equal(a, std::array{1.0f}); }) == "extents differ: got [3], expected [1]");
  t.assert_all_equal(std::array{nan, inf}, std::array{nan, inf});
  CHECK(failure([&] { t.assert_all_close(std::array{nan}, std::array{1.0f}); }) != "");
  CHECK(failure([&] { t.assert_all_close(std::array{inf}, std::array{-inf}, 1e9, 1e9); }) != "");
  const const_tensor_view matrix(std::span<const float>(a), {3, 1}), row(std::span<const float>(a), {1, 3});
  t.assert_all_equal(matrix, a);
  CHECK(failure([&] { t.assert_all_equal(matrix, row); }) == "extents differ: got [3, 1], expected [1, 3]");
  t.assert_near(1.0, 1.05, 0.1);
  CHECK(failure([&] { t.assert_near(1.0, 1.2, 0.1); }) == "expected 1.2 within 0.1, got 1");
}

TEST_CASE("integers are compared as integers, however large, with their signs") {
  const testing::test_case t;
  const auto equal = [&](auto a, auto b) { return failure([&] { t.assert_all_equal(std::array{a}, std::array{b}); }); };
  const std::int64_t big = std::int64_t{1} << 53, least = std::numeric_limits<std::int64_t>::min();
  const std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  CHECK(equal(big + 1, big + 1) == "");
  CHECK(equal(big + 1, big) ==
        "1 of 1 elements are not equal; the first at 0: got 9007199254740993, expected "
        "9007199254740992");
  CHECK(equal(-big - 1, -big) != "");
  CHECK(equal(static_cast<std::uint64_t>(big) + 1, big + 1) == "");
  CHECK(equal(static_cast<std::uint64_t>(big) + 1, big) != "");
  CHECK(equal(most, most) == "");
  CHECK(equal(most, most - 1) != "");
  // The same 64 bits are two numbers.
  CHECK(equal(std::int64_t{-1}, most) ==
        "1 of 1 elements are not equal; the first at 0: got -1, expected 18446744073709551615");
  CHECK(equal(static_cast<std::uint64_t>(least), least) != "");
  CHECK(equal(std::int8_t{-3}, std::int64_t{-3}) == "");
  CHECK(equal(std::uint8_t{200}, std::int16_t{200}) == "");
  CHECK(equal(true, std::uint32_t{1}) == "");
  CHECK(equal(true, std::uint16_t{2}) != "");
  // Beside a floating-point number an integer is a double.
  CHECK(equal(big + 1, static_cast<double>(big)) == "");
  CHECK(equal(std::int32_t{-2}, -2.0f) == "");
  CHECK(equal(std::int32_t{-2}, -2.5f) != "");
  // Distances are exact too.
  const auto within = [&](auto a, auto b, double atol) {
    return failure([&] { t.assert_all_close(std::array{a}, std::array{b}, 0, atol); });
  };
  CHECK(within(big + 1, big, 0.5) != "");
  CHECK(within(big + 1, big, 1) == "");
  CHECK(within(std::int64_t{-1}, std::uint64_t{1}, 1.5) != "");
  CHECK(within(std::int64_t{-1}, std::uint64_t{1}, 2) == "");
}

TEST_CASE("an array of halves is refused") {
  const testing::test_case t;
  const std::array<std::uint16_t, 1> bits{};
  const const_tensor_view halves(float16, {1}, reinterpret_cast<const std::byte*>(bits.data()));
  CHECK_THROWS_WITH_AS(
      t.assert_all_equal(halves, halves),
      "an array to compare holds float16; expected float32, float64, bool or an integer type: cast it first",
      invalid_argument);
}

TEST_CASE("errors are expected by kind and text") {
  const testing::test_case t;
  t.assert_raises(status::not_found, "no w", [] { raise(status::not_found, "there is no w"); });
  CHECK(failure([&] { t.assert_raises(status::not_found, "x", [] { raise(status::not_found, "no w"); }); }) ==
        "expected an error of kind not_found that says \"x\"; got not_found: no w");
  CHECK(failure([&] { t.assert_raises(status::not_found, "x", [] {}); }) ==
        "expected an error of kind not_found that says \"x\"");
}

TEST_CASE("the scratch folder is there for the test, and gone after it") {
  std::string path;
  struct stat s {};
  {
    testing::test_case t;
    path = t.get_temp_dir();
    CHECK(t.get_temp_dir() == path);
    CHECK(::stat(path.c_str(), &s) == 0);
  }
  CHECK(::stat(path.c_str(), &s) != 0);
}

TEST_CASE("main runs tests and counts") {
  std::string said;
  const auto say = [&](std::string_view line) { said += text(line, "\n"); };
  CHECK(testing::main({{"good", [](testing::test_case&) {}}}, say) == 0);
  CHECK(said == "1 of 1 tests passed\n");
  said.clear();
  CHECK(testing::main(
            {{"good", [](testing::test_case&) {}}, {"bad", [](testing::test_case& t) { t.assert_near(1, 2, 0.5); }}},
            say) == 1);
  CHECK(said == "FAILED bad: expected 2 within 0.5, got 1\n1 of 2 tests passed\n");
  CHECK(!testing::is_built_with_cuda());
}
