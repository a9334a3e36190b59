#include <gradus/session/queue/spec.hpp>

#include <doctest/doctest.h>

#include <array>
#include <functional>

using namespace gradus;

namespace {
queue_spec fifo() {
  return make_queue_spec(queue_kind::fifo, 10, {float32, int64}, {.shapes = {{3, 3}, {}}, .name = "q"});
}
// A view of nothing, since checks read types and extents alone.
const_tensor_view like(dtype type, const extents& dims) { return {type, dims, nullptr}; }
std::int64_t check(const queue_spec& s, std::vector<const_tensor_view> list, bool many = false) {
  return s.check_element(list, many);
}
}  // namespace

TEST_CASE("F9 a wrong number of components, type, shape: invalid_argument, naming the component") {
  const queue_spec s = fifo();
  CHECK(check(s, {like(float32, {3, 3}), like(int64, {})}) == 1);
  CHECK_THROWS_WITH_AS(check(s, {like(float32, {3, 3})}), "queue \"q\": expected 2 components of an element, got 1",
                       invalid_argument);
  CHECK_THROWS_WITH_AS(check(s, {like(float32, {3, 3}), like(int32, {})}),
                       "queue \"q\": component 1 has the wrong type: expected int64, got int32", invalid_argument);
  CHECK_THROWS_WITH_AS(check(s, {like(float32, {3, 4}), like(int64, {})}),
                       "queue \"q\": component 0 has the wrong shape: expected [3, 3], got [3, 4]", invalid_argument);
  CHECK_THROWS_WITH_AS(check(s, {like(float32, {3, 3}), like(int64, {1})}),
                       "queue \"q\": component 1 has the wrong shape: expected [], got [1]", invalid_argument);
  CHECK_THROWS_WITH_AS(check(s, {like(float32, {5, 3, 4}), like(int64, {5})}, true),
                       "queue \"q\": component 0 has the wrong shape: expected [5, 3, 3], got [5, 3, 4]",
                       invalid_argument);
  queue_spec named = s;
  named.names = {"image", "label"};
  CHECK_THROWS_WITH_AS(check(named, {like(float32, {3, 4}), like(int64, {})}),
                       doctest::Contains("component 0 (\"image\")"), invalid_argument);
  queue_spec any = s;
  any.shapes.clear();
  CHECK(check(any, {like(float32, {7}), like(int64, {1, 2})}) == 1);
}

TEST_CASE("F10 enqueue_many of components that disagree in their first extent: invalid_argument") {
  const queue_spec s = fifo();
  CHECK(check(s, {like(float32, {5, 3, 3}), like(int64, {5})}, true) == 5);
  CHECK(check(s, {like(float32, {0, 3, 3}), like(int64, {0})}, true) == 0);
  CHECK_THROWS_WITH_AS(check(s, {like(float32, {5, 3, 3}), like(int64, {4})}, true),
                       "queue \"q\": component 1 has 4 rows and component 0 has 5; enqueue_many takes the same number "
                       "of each",
                       invalid_argument);
  CHECK_THROWS_WITH_AS(check(s, {like(float32, {5, 3, 3}), like(int64, {})}, true), doctest::Contains("is a scalar"),
                       invalid_argument);
}

TEST_CASE("F18 a shared name with another kind, capacity, type, shape: invalid_argument with both") {
  queue_spec s = fifo();
  s.shared_name = "shared";
  CHECK_NOTHROW(check_same_queue(s, s));
  const auto refused = [&](auto change, const std::string& words) {
    queue_spec other = s;
    change(other);
    CHECK_THROWS_WITH_AS(check_same_queue(s, other), doctest::Contains(words.c_str()), invalid_argument);
  };
  refused([](auto& o) { o.capacity = 20; },
          "the shared queue \"shared\" has capacity 10 but was requested with capacity 20; make both alike, or give");
  refused([](auto& o) { o.kind = queue_kind::priority; }, "has kind fifo_queue but was requested with kind priority");
  refused([](auto& o) { o.dtypes[1] = int32; },
          "has component types [float32, int64] but was requested with component types [float32, int32]");
  refused([](auto& o) { o.shapes[0] = {3}; },
          "has component shapes [[3, 3], []] but was requested with component shapes [[3], []]");
  refused([](auto& o) { o.shapes.clear(); }, "with component shapes []");
  refused([](auto& o) { o.min_after_dequeue = 3; }, "has min_after_dequeue 0 but was requested with");
  refused([](auto& o) { o.seed2 = 3; }, "has seeds 0 and 0 but was requested with seeds 0 and 3");
  queue_spec seeded = s, other = s;
  seeded.seed = 5;
  CHECK_NOTHROW(check_same_queue(seeded, s));  // any seeds will do
  other.names = {"a", "b"}, other.name = "mine";
  CHECK_NOTHROW(check_same_queue(s, other));
  seeded = other = s;
  seeded.capacity = -1, other.capacity = -7;
  CHECK_NOTHROW(check_same_queue(seeded, other));  // both without a bound
}

TEST_CASE("spec: what is no queue") {
  CHECK_NOTHROW(fifo().check());
  const auto refused = [&](auto change, const std::string& words) {
    queue_spec s = fifo();
    change(s);
    CHECK_THROWS_WITH_AS(s.check(), doctest::Contains(words.c_str()), invalid_argument);
  };
  refused([](auto& s) { s.capacity = 0; }, "fifo_queue \"q\": expected a capacity of at least 1, or below 0");
  refused([](auto& s) { s.dtypes.clear(); }, "at least one component");
  refused([](auto& s) { s.dtypes[1] = dtype::none; }, "component 1 has no dtype");
  refused([](auto& s) { s.shapes.pop_back(); }, "expected one shape for each of the 2 components, found 1");
  refused([](auto& s) { s.shapes[0] = {any_extent}; }, "all extents must be known, found [-1]");
  refused([](auto& s) { s.kind = queue_kind::padding_fifo, s.shapes[0] = {-2}; }, "found [-2]");
  refused([](auto& s) { s.kind = queue_kind::padding_fifo, s.shapes.clear(); }, "give the shape of each component");
  refused([](auto& s) { s.names = {"a"}; }, "expected one name for each of the 2 components, found 1");
  refused([](auto& s) { s.names = {"a", "a"}; }, "two components are called \"a\"");
  refused([](auto& s) { s.kind = queue_kind::priority; }, "component 0 is its key, an int64 scalar");
  refused([](auto& s) { s.seed = 1; }, "only a random_shuffle_queue has seeds");
  refused([](auto& s) { s.kind = queue_kind::random_shuffle, s.min_after_dequeue = 10; },
          "expected 0 <= min_after_dequeue < capacity, found min_after_dequeue 10 and capacity 10");
  refused([](auto& s) { s.kind = queue_kind::random_shuffle, s.min_after_dequeue = -1; }, "min_after_dequeue -1");
  queue_spec s = fifo();
  s.kind = queue_kind::random_shuffle, s.min_after_dequeue = 50, s.capacity = -1;
  CHECK_NOTHROW(s.check());
}

TEST_CASE("spec: the components of an element, and what errors call the queue") {
  queue_spec s = fifo();
  CHECK(s.parts() == components{{"component_0", float32, {3, 3}}, {"component_1", int64, {}}});
  s.names = {"x", "y"};
  CHECK(s.parts()[1].name == "y");
  CHECK(s.shown_name() == "q");
  s.shared_name = "shared";
  CHECK(s.shown_name() == "shared");
  CHECK(make_queue_spec(queue_kind::padding_fifo, 1, {int64}, {}).shown_name() == "padding_fifo_queue");
  CHECK(s.has_fixed_size());
  s.shapes[0] = {any_extent, 2};
  CHECK_FALSE(s.has_fixed_size());
  s.shapes.clear();
  CHECK_FALSE(s.has_fixed_size());
}
