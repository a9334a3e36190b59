#include "gradus/checkpoint/var_list.hpp"

#include <doctest/doctest.h>

#include "gradus/checkpoint/saver.hpp"
#include "gradus/testing/faulty_files.hpp"

using namespace gradus;

namespace {
struct state {
  float w[2] = {1, 2}, average[2] = {3, 4};
  std::int64_t step = 5;
  state_list list;
  state() {
    list.tensor("w", {2}, std::span<float>(w));
    list.tensor("w/ExponentialMovingAverage", {2}, std::span<float>(average));
    list.scalar("global_step", step);
  }
};
}  // namespace

TEST_CASE("var_list: a part of the state is saved and restored, the rest stays") {
  const testing::faulty_files fs;
  state a, b;
  saver<flat_binary, testing::faulty_files> s({}, {}, fs);
  const auto path = s.save(only(a.list, {"global_step", "w"}), "m", 5).path;
  b.w[0] = 9, b.average[0] = 9, b.step = 9;
  s.restore(only(b.list, {"w"}), path, {.ignore_extra = true});
  CHECK(b.w[0] == 1);
  CHECK(b.average[0] == 9);
  CHECK(b.step == 9);
  CHECK_THROWS_AS(s.restore(b.list, path), error_of<status::not_found>);
}

TEST_CASE("var_list: restored under other names: averages into their variables") {
  const testing::faulty_files fs;
  state a, b;
  saver<flat_binary, testing::faulty_files> s({}, {}, fs);
  const auto path = s.save(a.list, "m", 5).path;
  s.restore(renamed(b.list, {{"w/ExponentialMovingAverage", "w"}}), path, {.ignore_extra = true});
  CHECK(b.w[0] == 3);
  CHECK(b.w[1] == 4);
}

TEST_CASE("var_list: names that are not there, or stand twice, are refused by name") {
  state a;
  CHECK_THROWS_AS(only(a.list, {"v"}), error_of<status::not_found>);
  CHECK_THROWS_AS(only(a.list, {"w", "w"}), error_of<status::already_exists>);
  CHECK_THROWS_AS(renamed(a.list, {{"x", "v"}}), error_of<status::not_found>);
  CHECK_THROWS_AS(renamed(a.list, {{"x", "w"}, {"y", "w"}}), error_of<status::invalid_argument>);
}
