#include <gradus/cpu/sweeps.hpp>

#include <doctest/doctest.h>

#include <gradus/update/rules/momentum.hpp>

using namespace gradus;

TEST_CASE("a device's passes are the sweeps with its arithmetic") {
  const auto update = composed{momentum{.rate = 0.5, .decay = 0.5}}.single();
  const auto c = update.prepare<double>(0);
  double theta[] = {1, 2, 3}, a[] = {0, 0, 0};
  const double g[] = {2, 4, 6};
  double* mirrors[] = {a};
  sweeps<portable>::sweep(update, c, 1.0, theta, g, mirrors, 3);
  CHECK((theta[0] == 0 && theta[1] == 0 && theta[2] == 0));
  CHECK((a[0] == 2 && a[1] == 4 && a[2] == 6));
  double sum[] = {1, 1, 1};
  sweeps<portable>::add_to(sum, g, 3);
  CHECK((sum[0] == 3 && sum[1] == 5 && sum[2] == 7));
  const std::int64_t rows[] = {1, 1};
  const double values[] = {1, 2};
  sweeps<portable>::add_rows(sum, values, rows, 2, 1);
  CHECK(sum[1] == 8);
  CHECK(sweeps<portable>::sum_of_squares(g, 3) == 56);
}
