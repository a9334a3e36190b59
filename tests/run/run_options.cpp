#include <gradus/run/run_options.hpp>

#include <gradus/base/cancellation.hpp>

#include <doctest/doctest.h>

#include <optional>
#include <vector>

using namespace gradus;

TEST_CASE("options of several who ask for one run: the longer timeout and the higher trace level, in either order") {
  const std::vector<std::optional<double>> timeouts{std::nullopt, 0.0, 5.0, 60.0};
  const std::vector<trace_level> levels{trace_level::no_trace, trace_level::software_trace, trace_level::hardware_trace,
                                        trace_level::full_trace};
  for (std::size_t i = 0; i < timeouts.size(); ++i)
    for (std::size_t k = 0; k < timeouts.size(); ++k)
      for (std::size_t a = 0; a < levels.size(); ++a)
        for (std::size_t b = 0; b < levels.size(); ++b) {
          const run_options both = merged_options({timeouts[i], levels[a]}, {timeouts[k], levels[b]});
          CHECK(both.timeout_secs == timeouts[i > k ? i : k]);
          CHECK(both.trace == levels[a > b ? a : b]);
        }
}

TEST_CASE("options of several who ask for one run: the first stop that there is") {
  cancellation a, b;
  CHECK(merged_options({}, {}).stop == nullptr);
  CHECK(merged_options({.stop = &a}, {}).stop == &a);
  CHECK(merged_options({}, {.stop = &b}).stop == &b);
  CHECK(merged_options({.stop = &a}, {.stop = &b}).stop == &a);
}
