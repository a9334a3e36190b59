#include <gradus/session/queue/any_queue.hpp>

#include <doctest/doctest.h>

#include <string_view>

#include <gradus/session/queue/fifo_queue.hpp>
#include <gradus/session/queue/priority_queue.hpp>

#include "queue_calls.hpp"

using namespace gradus;

namespace {
fifo_queue named() { return {10, {int32, float32}, {.shapes = {{}, {2}}, .names = {"i", "j"}, .name = "q"}}; }
const std::vector<float> pair{15.0F, 16.0F};
}  // namespace

TEST_CASE("F20 names of components allow a dictionary to be enqueued and dequeued") {
  fifo_queue q = named();
  const std::int32_t five = 5;
  const const_tensor_view i(int32, {}, reinterpret_cast<const std::byte*>(&five)), j(std::span<const float>(pair), {2});
  q.enqueue({{"j", j}, {"i", i}});
  datum e;
  e.add("j", float32, {2});
  e.add("i", int32);
  e.set<std::int32_t>("i", 6);
  q.enqueue(e);
  const std::vector<std::int32_t> seven{7, 8};
  const std::vector<float> pairs{1, 2, 3, 4};
  q.enqueue_many({{"j", {std::span<const float>(pairs), {2, 2}}}, {"i", std::span<const std::int32_t>(seven)}});
  datum got = q.dequeue();
  CHECK(got.value<std::int32_t>("i") == 5);
  CHECK(values_of<float>(got["j"]) == pair);
  CHECK(q.dequeue().value<std::int32_t>("i") == 6);
  got = q.dequeue_many(2);
  CHECK(values_of<std::int32_t>(got["i"]) == seven);
  CHECK(values_of<float>(got["j"]) == pairs);
  q.enqueue_many(got);
  CHECK(q.dequeue_many(2) == got);
  CHECK(q.dequeue_many(0)["j"].dims == extents{0, 2});
}

TEST_CASE("F20 a dictionary without names, names without a dictionary, other names: invalid_argument") {
  fifo_queue q = named(), nameless(10, {int32, float32}, {.shapes = {{}, {2}}, .name = "nameless"});
  const std::int32_t five = 5;
  const const_tensor_view i(int32, {}, reinterpret_cast<const std::byte*>(&five)), j(std::span<const float>(pair), {2});
  const const_tensor_view list[] = {i, j};
  CHECK_THROWS_WITH_AS(nameless.enqueue({{"i", i}, {"j", j}}),
                       "queue \"nameless\": it has no names, so it takes no dictionary; give it names, or a list of "
                       "arrays",
                       invalid_argument);
  CHECK_THROWS_WITH_AS(q.enqueue(list), doctest::Contains("give a dictionary or a datum with them, such as {{\"i\""),
                       invalid_argument);
  CHECK_THROWS_WITH_AS(q.enqueue({{"i", i}}), doctest::Contains("a dictionary of 2 names, got 1"), invalid_argument);
  CHECK_THROWS_WITH_AS(q.enqueue({{"i", i}, {"x", j}}), "queue \"q\": it has no component \"x\"; its names are [i, j]",
                       invalid_argument);
  CHECK_THROWS_WITH_AS(q.enqueue({{"i", i}, {"i", i}}), doctest::Contains("has \"i\" twice"), invalid_argument);
  datum e;
  e.add("i", int32);
  CHECK_THROWS_WITH_AS(q.enqueue(e), doctest::Contains("expected a datum of 2 components, got 1"), invalid_argument);
  e.add("x", float32, {2});
  CHECK_THROWS_AS(q.enqueue(e), invalid_argument);
  CHECK(q.size() == 0);
  nameless.enqueue(e);  // there the datum is a list
  CHECK(nameless.dequeue().about(1).name == "component_1");
}

TEST_CASE("F21 from_list selects by index") {
  fifo_queue a(10, {float32}, {.name = "a"}), b(15, {float32}, {.name = "b"});
  const any_queue list[] = {a, b};
  any_queue second = any_queue::from_list(1, list);
  CHECK(second.is_same(b));
  CHECK_FALSE(second.is_same(a));
  CHECK(second.capacity() == 15);
  second.enqueue(5.0F);
  CHECK(b.size() == 1);
  CHECK(a.size() == 0);
  CHECK(any_queue::from_list(0, list).name() == "a");
  CHECK_THROWS_AS(any_queue::from_list(2, list), out_of_range);
  CHECK_THROWS_AS(any_queue::from_list(-1, list), out_of_range);
  CHECK_THROWS_AS(any_queue::from_list(0, {}), invalid_argument);
  const any_queue mixed[] = {a, fifo_queue(10, {int32}, {.name = "ints"})};
  CHECK_THROWS_WITH_AS(any_queue::from_list(0, mixed), doctest::Contains("\"a\" and \"ints\" differ in the types"),
                       invalid_argument);
}

TEST_CASE("F18 a second handle to a queue has the same elements, and is refused if it expects another queue") {
  const queue_spec spec = fifo_queue::make_spec(10, {float32}, {.shared_name = "shared"});
  any_queue q(spec);
  queue_spec mine = spec;
  mine.names = {"x"};
  any_queue other(mine, q);
  CHECK(other.is_same(q));
  q.enqueue(3.0F);
  CHECK(other.dequeue().value<float>("x") == 3.0F);
  mine.capacity = 11;
  CHECK_THROWS_WITH_AS(any_queue(mine, q), doctest::Contains("has capacity 10 but was requested with capacity 11"),
                       invalid_argument);
  mine.capacity = 0;
  CHECK_THROWS_AS(any_queue(mine, q), invalid_argument);
  CHECK_THROWS_AS(any_queue{mine}, invalid_argument);
}

TEST_CASE("any_queue: elements of any shape, texts among them") {
  fifo_queue q(10, {uint8, float32});
  for (const std::string_view text : {"a sentence", "", "two"}) {
    const const_tensor_view list[] = {
        {uint8, {static_cast<std::int64_t>(text.size())}, reinterpret_cast<const std::byte*>(text.data())},
        {std::span<const float>(pair), {1, 2, 1}}};
    q.enqueue(list);
  }
  datum e;
  for (const std::string_view text : {"a sentence", "", "two"}) {
    q.dequeue(e);
    const auto bytes = e.values<std::uint8_t>(0);
    CHECK(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()) == text);
    CHECK(e[1].dims == extents{1, 2, 1});
  }
  float x;
  const tensor_view out[] = {tensor_view(std::span(&x, 1))};
  CHECK_THROWS_WITH_AS(q.dequeue(out), doctest::Contains("dequeue into a datum"), invalid_argument);
}

TEST_CASE("any_queue: into the caller's arrays, if they are as the element") {
  fifo_queue q(10, {int32, float32}, {.shapes = {{}, {2}}, .name = "q"});
  datum e(q.spec().parts());
  e.set<std::int32_t>(0, 9);
  e.set<float>(1, 2.5F);
  q.enqueue(e);
  std::int32_t i = 0;
  float two[2] = {}, three[3] = {};
  const tensor_view of_i(std::span(&i, 1), extents{});
  const tensor_view wrong[] = {of_i, tensor_view(std::span<float>(three))};
  CHECK_THROWS_WITH_AS(q.dequeue(wrong),
                       "queue \"q\": expected arrays for component_0 int32 [], component_1 float32 [2], got int32 [], "
                       "float32 [3]",
                       invalid_argument);
  CHECK_THROWS_AS(q.dequeue<float>(), invalid_argument);
  const tensor_view right[] = {of_i, tensor_view(std::span<float>(two))};
  q.dequeue(right);
  CHECK(i == 9);
  CHECK(two[0] == 2.5F);
  CHECK(two[1] == 2.5F);
}

TEST_CASE("any_queue: a failed copy leaves the element where it was") {
  // Six extents and the rows are one too many for an array, which shows when the batch is made.
  fifo_queue q(10, {float32}, {.shapes = {{1, 1, 1, 1, 1, 1}}});
  const float values[2] = {1, 2};
  for (const float& x : values) {
    const const_tensor_view e[] = {{std::span(&x, 1), {1, 1, 1, 1, 1, 1}}};
    q.enqueue(e);
  }
  CHECK_THROWS_AS(q.dequeue_many(2), invalid_argument);
  CHECK(q.size() == 2);
  for (float x : values) CHECK(q.dequeue().value<float>(0) == x);
}

TEST_CASE("any_queue: an element of very many components") {
  std::vector<dtype> types(20, int32);
  fifo_queue q(2, types, {.shapes = std::vector<extents>(20)});
  datum e(q.spec().parts());
  for (int k = 0; k < 20; ++k) e.set<std::int32_t>(k, k);
  q.enqueue(e);
  CHECK(q.dequeue() == e);
}
