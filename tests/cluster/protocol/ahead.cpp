#include "gradus/cluster/protocol/ahead.hpp"

#include <doctest/doctest.h>

#include <cstring>

using namespace gradus;
using namespace gradus::detail;

namespace {
struct piece {
  std::vector<float> values;
  wire_slice slice;
  piece(std::string_view name, std::vector<float> v)
      : values(std::move(v)), slice{name, float32, 0, std::as_bytes(std::span(values))} {}
  std::span<const wire_slice> slices() const { return std::span(&slice, 1); }
};
constexpr std::uint64_t plenty = 1 << 20;
}  // namespace

TEST_CASE("pieces and the rest are a push, in whatever order they came, as copies") {
  pieces_ahead<> all;
  piece a("a", {1, 2}), b("b", {3}), c("c", {4});
  const contribution_id id{1, 7, 3};
  CHECK(all.add(id, 1, b.slices(), plenty));
  CHECK(all.add(id, 0, a.slices(), plenty));
  CHECK(all.add(id, 0, a.slices(), plenty));  // twice
  CHECK(all.size() == 2);
  a.values.assign(2, 0), b.values.assign(1, 0);
  std::vector<wire_slice> whole;
  REQUIRE(all.join(id, 2, c.slices(), whole));
  REQUIRE(whole.size() == 3);
  CHECK(whole[0].name == "c");
  for (const wire_slice& s : whole) {
    const float* x = reinterpret_cast<const float*>(s.bytes.data());
    CHECK(x[0] == (s.name == "a" ? 1 : s.name == "b" ? 3 : 4));
  }
  CHECK(all.join(id, 1, {}, whole));  // a worker that sent one of them twice as another says less
  CHECK_FALSE(all.join(id, 3, c.slices(), whole));
  CHECK_FALSE(all.join(id, std::uint64_t{1} << 40, c.slices(), whole));
  CHECK_FALSE(all.join({1, 7, 4}, 2, c.slices(), whole));
  CHECK_FALSE(all.join({0, 7, 3}, 2, c.slices(), whole));
  all.forget(0);
  CHECK(all.size() == 2);
  all.forget(1);
  CHECK(all.size() == 0);
}

TEST_CASE("what holds the values of a push's pieces is handed over, and nothing of another's") {
  pieces_ahead<> all;
  const auto kept = std::make_shared<piece>("a", std::vector<float>{1, 2});
  const piece copied("b", {3}), other("c", {4});
  const contribution_id id{1, 7, 3};
  CHECK(all.add(id, 0, kept->slices(), plenty, kept));
  CHECK(all.add(id, 1, copied.slices(), plenty));
  CHECK(all.add({0, 1, 1}, 0, other.slices(), plenty));
  std::vector<wire_slice> whole;
  REQUIRE(all.join(id, 2, {}, whole));
  CHECK(whole[0].bytes.data() == kept->slice.bytes.data());
  std::vector<std::shared_ptr<const void>> keepers;
  all.hand_over(id, keepers);
  CHECK(keepers.size() == 2);
  CHECK(all.size() == 1);
  // The memory of what was copied has moved with the owner, and is not used for another's.
  CHECK(all.add({2, 1, 1}, 0, other.slices(), plenty));
  CHECK(*reinterpret_cast<const float*>(whole[1].bytes.data()) == 3);
  CHECK(kept.use_count() == 2);
  keepers.clear();
  CHECK(kept.use_count() == 1);
}

TEST_CASE("a later push's pieces take the place of an earlier one's, and what comes late is let be") {
  pieces_ahead<> all;
  piece a("a", {1}), b("b", {2});
  std::vector<wire_slice> whole;
  all.add({1, 7, 3}, 0, a.slices(), plenty), all.add({1, 7, 3}, 1, b.slices(), plenty);
  all.add({0, 2, 9}, 0, a.slices(), plenty);
  CHECK(all.add({1, 7, 4}, 0, b.slices(), plenty));
  CHECK(all.size() == 2);
  CHECK(all.add({1, 7, 3}, 0, a.slices(), plenty));  // late
  CHECK(all.add({1, 6, 9}, 1, a.slices(), plenty));  // of the incarnation before
  CHECK(all.size() == 2);
  REQUIRE(all.join({1, 7, 4}, 1, {}, whole));
  CHECK(whole[0].name == "b");
  CHECK(all.add({1, 8, 1}, 0, a.slices(), plenty));  // a worker that began again
  CHECK_FALSE(all.join({1, 7, 4}, 1, {}, whole));
  CHECK(all.join({0, 2, 9}, 1, {}, whole));
}

TEST_CASE("memory is bounded for each worker") {
  pieces_ahead<> all;
  piece a("a", std::vector<float>(100, 1.0f));
  const std::uint64_t one = 400 + 1 + sizeof(wire_slice);
  CHECK(all.add({1, 1, 1}, 0, a.slices(), 2 * one));
  CHECK(all.add({1, 1, 1}, 1, a.slices(), 2 * one));
  CHECK_FALSE(all.add({1, 1, 1}, 2, a.slices(), 2 * one));
  CHECK(all.add({2, 1, 1}, 0, a.slices(), 2 * one));
  CHECK(all.add({1, 1, 2}, 0, a.slices(), 2 * one));
  CHECK_FALSE(all.add({1, 1, 2}, pieces_ahead<>::most_pieces, {}, plenty));
  CHECK(all.size() == 2);
}
