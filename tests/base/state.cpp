#include <gradus/base/state.hpp>

#include <doctest/doctest.h>

#include <cstring>

namespace {
struct counter {
  std::int64_t step = 5;
  float weights[6] = {1, 2, 3, 4, 5, 6};
  void remembers(gradus::state_list& list) {
    list.scalar("global_step", step);
    list.tensor("dense/kernel", {2, 3}, std::span<float>(weights));
  }
};
struct queue final : gradus::blob {
  std::vector<std::byte> held;
  void save(std::vector<std::byte>& out) const override { out.insert(out.end(), held.begin(), held.end()); }
  void load(std::span<const std::byte> in) override { held.assign(in.begin(), in.end()); }
};
}  // namespace

TEST_CASE("entries name live memory, in the order in which they were listed") {
  counter c;
  gradus::state_list list;
  c.remembers(list);
  REQUIRE(list.entries().size() == 2);
  const auto& step = list.entries()[0];
  CHECK(step.name == "global_step");
  CHECK(step.type == gradus::int64);
  CHECK(step.dims.rank == 0);
  REQUIRE(step.bytes.size() == 8);
  const auto* kernel = list.find("dense/kernel");
  REQUIRE(kernel != nullptr);
  CHECK(kernel->type == gradus::float32);
  CHECK(kernel->dims == gradus::extents{2, 3});
  CHECK(kernel->bytes.size() == 24);
  CHECK(kernel->dynamic == nullptr);
  CHECK(list.find("dense") == nullptr);

  // Restoring is writing through the entry.
  const std::int64_t restored = 77;
  std::memcpy(step.bytes.data(), &restored, sizeof restored);
  CHECK(c.step == 77);
}

TEST_CASE("a name is listed once") {
  counter c;
  gradus::state_list list;
  c.remembers(list);
  CHECK_THROWS_WITH_AS(c.remembers(list), "the state \"global_step\" is listed twice; give one of them another name",
                       gradus::already_exists);
  CHECK(list.entries().size() == 2);
}

TEST_CASE("state without a fixed size is a blob") {
  queue q;
  q.held = {std::byte{1}, std::byte{2}};
  gradus::state_list list;
  list.dynamic("input/shuffle", q);
  const auto* entry = list.find("input/shuffle");
  REQUIRE(entry != nullptr);
  CHECK(entry->bytes.empty());
  REQUIRE(entry->dynamic == &q);
  std::vector<std::byte> saved;
  entry->dynamic->save(saved);
  q.held.clear();
  entry->dynamic->load(saved);
  CHECK(q.held == std::vector<std::byte>{std::byte{1}, std::byte{2}});
}
