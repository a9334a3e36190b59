#include <gradus/train/train_options.hpp>

#include <doctest/doctest.h>

#include <gradus/input/memory.hpp>

using namespace gradus;

TEST_CASE("train_options: neither count is given unless it is said; an evaluation reads all data into eval/") {
  CHECK(train_options{}.max_steps == 0);
  CHECK(train_options{}.steps == 0);
  CHECK(evaluate_options{}.steps == 0);
  CHECK_FALSE(evaluate_options{}.use_averages);
  CHECK(evaluate_options{}.name == "eval");
}

TEST_CASE("train_options: a trainer takes batches that may change") {
  const std::vector<float> x{1, 2, 3, 4};
  auto elements = from_spans("x", x, extents{1});
  auto batches = from_spans("x", x, extents{1}).batch(2);
  using one_by_one = decltype(elements);
  using batched = decltype(batches);
  static_assert(detail::batches_to_change<batched> && detail::batches_to_change<batched&>);
  static_assert(!detail::batches_to_change<const batched&>);
  static_assert(!detail::batches_to_change<one_by_one> && !detail::batches_to_change<int>);
}

TEST_CASE("train_options: what stands in for a refused trainer does nothing") {
  detail::refused_trainer none_was_made;
  none_was_made.train(1, {});
  none_was_made.predict(1, 2);
  CHECK(none_was_made.evaluate(1).values().empty());
  CHECK(none_was_made.global_step() == 0);
}
