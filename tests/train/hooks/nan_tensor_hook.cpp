#include <gradus/train/hooks/nan_tensor_hook.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "hooked.hpp"

using namespace gradus;

namespace {
template <class T>
bool stops(bool fails, const std::vector<T>& losses) {
  hooked m;
  const value x = m.g.placeholder("x", {static_cast<int>(losses.size())}, dtype_of<T>);
  const value loss = m.g.variable("loss", {static_cast<int>(losses.size())}, {.init = zeros, .type = dtype_of<T>});
  session<> s{m.g};
  s.run(assign(loss, x), {{x, losses}});
  const any_hook h = nan_tensor_hook(loss, fails);
  const auto args = h.before_run(m.calls.context());
  const run_results results = s.run(args.fetches, {});
  m.calls.clear_stop(), m.calls.values().results = results;
  h.after_run(m.calls.context(), m.calls.values());
  return m.calls.context().stop_requested();
}
constexpr float nan_of = std::numeric_limits<float>::quiet_NaN(), endless = std::numeric_limits<float>::infinity();
}  // namespace

TEST_CASE("K17 a NaN is an error or a stop by option; what is no NaN is neither") {
  for (const std::vector<float>& bad : {std::vector{nan_of}, std::vector{1.0f, nan_of, 2.0f}}) {
    CHECK_THROWS_AS(stops(true, bad), nan_loss_during_training_error);
    CHECK(stops(false, bad));
    CHECK(stops(false, std::vector<double>(bad.begin(), bad.end())));
  }
  for (const std::vector<float>& good : {std::vector{0.0f}, std::vector{endless}, std::vector{-endless, 1.0f}}) {
    CHECK(!stops(true, good));
    CHECK(!stops(false, good));
  }
  try {
    stops(true, std::vector{nan_of});
  } catch (const failed_precondition&) {
    CHECK_MESSAGE(false, "it is a class of its own");
  } catch (const error& e) {
    CHECK(e.kind() == status::failed_precondition);
    CHECK(std::string(e.what()).find("NaN loss during training") == 0);
  }
}

TEST_CASE("K17 a tensor that can hold no NaN is refused") {
  graph g;
  CHECK_THROWS_AS(nan_tensor_hook(g.constant(1.0, int32)), invalid_argument);
}
