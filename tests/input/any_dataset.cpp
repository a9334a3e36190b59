#include <gradus/input/any_dataset.hpp>

#include "data.hpp"

using namespace data_tests;

#include <gradus/input/dataset.hpp>
#include <gradus/input/generator.hpp>

TEST_CASE("any dataset, elements or batches") {
  any_dataset d = range_dataset(7);
  CHECK(all_of(d) == ints{0, 1, 2, 3, 4, 5, 6});  // a copy was read
  d = range_dataset(2, 9).batch(3);
  CHECK(to_text(d.element_spec()) == "value int64 [-1]");
  CHECK(lists_of(d) == std::vector<ints>{{2, 3, 4}, {5, 6, 7}, {8}});
  any_batches b = range_dataset(7).batch(3);
  CHECK(b.batch_size() == 3);
  CHECK(b.cardinality() == 3);
  std::int64_t values[3];
  const tensor_view view(std::span<std::int64_t>(values), {3});
  CHECK(b.next({&view, 1}) == 3);
  CHECK(values[2] == 2);
  const tensor_view one(std::span<std::int64_t>(values).first(1), {1});
  CHECK(message_of(status::invalid_argument, [&] { d.next({&one, 1}); }).find("differ in size") != std::string::npos);
  d = range_dataset(3).prefetch(1);
  CHECK(message_of(status::failed_precondition, [&] { any_dataset copy = d; }).find("cannot be copied") !=
        std::string::npos);
}

TEST_CASE("it has the policy for external state of the dataset that it holds") {
  const auto counting = [] {
    return from_generator(scalar,
                          [] { return [k = 0](datum& e) mutable { return e.set(0, std::int64_t{k++}), true; }; });
  };
  std::vector<std::byte> at;
  std::string said;
  const auto log = [&](std::string_view line) { said = line; };
  any_batches b = counting().batch(2).on_external_state(external_state_policy::ignore);
  const any_batches copy = b;
  any_dataset stacked = b, element = counting().on_external_state(external_state_policy::warn, log);
  CHECK_NOTHROW((b.save(at), copy.save(at), stacked.save(at), element.save(at)));
  CHECK(said.find("from_generator; restored, it may continue differently") != std::string::npos);
  const any_batches none = counting().batch(2);
  CHECK_THROWS_AS(none.save(at), failed_precondition);
  // The policy is of the last stage: a stage behind it has its own.
  const auto longer = std::move(b).take(3);
  CHECK_THROWS_AS(longer.save(at), failed_precondition);
}

TEST_CASE("positions") {
  resumes([] { return range_dataset(9).shuffle(4, 1).repeat(2).batch(4); });
}
