#include <gradus/estimator/evaluation_result.hpp>

#include <doctest/doctest.h>

#include <vector>

using namespace gradus;

TEST_CASE("numbers and tensors by name, and the step that is one of them") {
  evaluation_result r;
  CHECK(r.empty());
  const float loss = 0.5f;
  const std::vector<double> two{1, 2};
  r.set("loss", const_tensor_view(std::span<const float>(&loss, 1), {}));
  r.set("curve", const_tensor_view(std::span<const double>(two)));
  r.set_global_step(7);
  CHECK(r["loss"] == 0.5);
  CHECK(r["global_step"] == 7);
  CHECK(r.global_step() == 7);
  CHECK(r.tensor("curve").as<double>()[1] == 2);
  CHECK(r.contains("curve"));
  CHECK_FALSE(r.contains("accuracy"));
  CHECK_THROWS_AS(r["curve"], invalid_argument);
  CHECK_THROWS_WITH_AS(
      r["accuracy"], "the evaluation has no \"accuracy\"; there are: \"curve\", \"global_step\", \"loss\"", not_found);
}
