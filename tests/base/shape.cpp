#include <gradus/base/shape.hpp>

#include <doctest/doctest.h>

using gradus::batch;
using gradus::extents;
using gradus::shape;

static_assert(shape{}.rank == 0 && gradus::count(shape{}) == 1);
static_assert(shape{2, 3} == shape{2, 3} && shape{2, 3} != shape{3, 2} && shape{2} != shape{2, 1});
static_assert(shape{2, 3, 4}[-1] == 4 && shape{2, 3, 4}[0] == 2 && shape{2, 3, 4}.back() == 4);
static_assert(gradus::count(shape{2, 3, 4}) == 24 && gradus::count(shape{batch, 784}) == -784);
static_assert(gradus::count(shape{32 * batch, 64}) == -2048);
static_assert(gradus::is_batched({batch, 2}) && gradus::is_batched({2, 3 * batch}) && !gradus::is_batched({2, 3}) &&
              !gradus::is_batched({}));
static_assert(gradus::resolve(-32, 5) == 160 && gradus::resolve(7, 5) == 7);
static_assert(gradus::resolve(shape{32 * batch, 64}, 3) == extents{96, 64});
static_assert(gradus::count(extents{1 << 20, 1 << 20}) == std::int64_t{1} << 40);

TEST_CASE("shapes are written for a reader") {
  CHECK(to_text(shape{}) == "[]");
  CHECK(to_text(shape{batch, 784}) == "[batch, 784]");
  CHECK(to_text(shape{32 * batch, 64}) == "[32*batch, 64]");
  CHECK(to_text(shape{0, 1}) == "[0, 1]");
  CHECK(to_text(extents{}) == "[]");
  CHECK(to_text(extents{3, 5000000000}) == "[3, 5000000000]");
}

TEST_CASE("six extents fit, a seventh is refused") {
  const shape full{1, 2, 3, 4, 5, 6};
  CHECK(full.rank == gradus::max_rank);
  CHECK_THROWS_WITH_AS((shape{1, 2, 3, 4, 5, 6, 7}), "a shape has at most 6 extents, this one has 7",
                       gradus::invalid_argument);
  CHECK_THROWS_AS((extents{1, 2, 3, 4, 5, 6, 7}), gradus::invalid_argument);
  shape pushed = full;
  CHECK_THROWS_AS(pushed.push(1), gradus::invalid_argument);
  CHECK(pushed == full);
  extents known{1, 2, 3, 4, 5, 6};
  CHECK_THROWS_AS(known.push(1), gradus::invalid_argument);
  shape grown{4};
  grown.push(batch);
  CHECK(grown == shape{4, batch});
}
