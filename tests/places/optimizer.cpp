// A template: tests/places/places.py adds it.
#include <gradus/update/rules/sliding_mean.hpp>

#include "../../whole/reference.hpp"

using namespace gradus;

TEST_CASE("sliding_mean agrees with its formula, a thousand steps, rows that are not listed left alone") {
  reference::agree(sliding_mean{.rate = 0.1, .beta = 0.8}, reference::elementwise(
                                                               {0},
                                                               [](double& w, double g, double* m, int) {
                                                                 *m = 0.8 * *m + 0.2 * g;
                                                                 w -= 0.1 * *m;
                                                               },
                                                               true));
}
