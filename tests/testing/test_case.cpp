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
