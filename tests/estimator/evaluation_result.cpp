#include <gradus/estimator/evaluation_result.hpp>

#include <gradus/summary/values.hpp>
#include <gradus/summary/writer.hpp>
#include <gradus/testing/temp_dir.hpp>

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

TEST_CASE("an evaluation comes back from its events, with its arrays; texts and other tensors are no metrics") {
  testing::temp_dir dir;
  CHECK(detail::evaluations_in(dir.path() + "/none").empty());
  const std::vector<std::int64_t> counts{1, 2, 3, 4, 5, 6};
  const double loss = 0.25;
  evaluation_result r;
  r.set("confusion", const_tensor_view(std::span<const std::int64_t>(counts), {2, 3}));
  r.set("loss", const_tensor_view(std::span<const double>(&loss, 1), {}));
  r.set("empty", const_tensor_view(float32, {0, 2}, nullptr));
  r.set_global_step(7);
  summary_writer<> log(dir.path());
  auto all = detail::summaries_of(r);
  CHECK(all.size() == 3);
  all.push_back(text_summary("checkpoint_path", "model-7.ckpt").front());
  summary_value odd = all.front();
  odd.tag = "odd", odd.bytes.clear();  // without a dtype
  all.push_back(odd);
  log.add_summary(all, 7);
  log.close();
  const auto found = detail::evaluations_in(dir.path());
  REQUIRE(found.size() == 1);
  const evaluation_result& same = found.at(7);
  CHECK(same.global_step() == 7);
  CHECK(same["loss"] == 0.25);
  CHECK(same.tensor("confusion").type == int64);
  CHECK(same.tensor("confusion").dims == extents{2, 3});
  CHECK(same.tensor("confusion").as<std::int64_t>()[5] == 6);
  CHECK(same.tensor("empty").dims == extents{0, 2});
  CHECK_FALSE(same.contains("checkpoint_path"));
  CHECK_FALSE(same.contains("odd"));
}
