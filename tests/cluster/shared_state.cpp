// What a worker shares: which of its state lies on which shard, and what comes back to its place.
#include <gradus/cluster/shared_state.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "../message.hpp"

using namespace gradus;
using detail::shared_state;
using detail::wire_slice;

namespace {

struct worker {
  std::int64_t step = 7, seed = 5;
  float a[2] = {1, 2}, a_m[2] = {3, 4}, b[1] = {5}, b_m[1] = {6};
  double power = 0.5;
  state_list list, own;

  worker() {
    list.scalar("global_step", step);
    list.tensor("a", {2}, std::span<float>(a));
    list.tensor("a/Adam", {2}, std::span<float>(a_m));
    list.tensor("b", {1}, std::span<float>(b));
    list.tensor("b/Adam", {1}, std::span<float>(b_m));
    list.scalar("random_seed", seed);
    list.scalar("beta1_power", power);
    own.scalar("beta1_power", power);
  }
  shared_state shared() {
    return {list, own, 2, [](std::string_view name) {
              if (name == "a") return 1;
              if (name == "b") return 0;
              return name == "random_seed" ? shared_state::nowhere : shared_state::beside_last;
            }};
  }
};
std::vector<std::string> names(const std::vector<wire_slice>& parts) {
  std::vector<std::string> out;
  for (const auto& s : parts) out.emplace_back(s.name);
  return out;
}

struct counting_guard final : write_guard {
  std::vector<const void*> told;
  bool active() const override { return true; }
  void before_write(std::span<const std::byte> bytes) override { told.push_back(bytes.data()); }
};

}  // namespace

TEST_CASE("slots lie where their variable does, the optimizer's own state everywhere, the rest nowhere") {
  worker w;
  const shared_state s = w.shared();
  REQUIRE(s.by_shard().size() == 2);
  CHECK(names(s.by_shard()[0]) == std::vector<std::string>{"b", "b/Adam", "beta1_power"});
  CHECK(names(s.by_shard()[1]) == std::vector<std::string>{"a", "a/Adam", "beta1_power"});
  CHECK(s.by_shard()[1][1].bytes.data() == reinterpret_cast<const std::byte*>(w.a_m));
  CHECK(s.by_shard()[0][2].type == float64);
}

TEST_CASE("each part of a variable that is cut has its rows of the variable and of its slots") {
  worker w;
  const std::vector<detail::store_variable> variables{
      {.name = "a/part_0", .dims = {1}, .shard = 1, .whole = "a", .whole_dims = {2}},
      {.name = "a/part_1", .dims = {1}, .whole = "a", .whole_dims = {2}, .first_row = 1},
      {.name = "b", .dims = {1}}};
  shared_state s(
      w.list, w.own, 2,
      [](std::string_view name) {
        if (name == "a" || name == "b") return 0;
        return name == "random_seed" ? shared_state::nowhere : shared_state::beside_last;
      },
      variables);
  CHECK(names(s.by_shard()[0]) == std::vector<std::string>{"a/part_1", "a/part_1/Adam", "b", "b/Adam", "beta1_power"});
  CHECK(names(s.by_shard()[1]) == std::vector<std::string>{"a/part_0", "a/part_0/Adam", "beta1_power"});
  CHECK(s.by_shard()[0][1].bytes.data() == reinterpret_cast<const std::byte*>(w.a_m + 1));
  CHECK(s.by_shard()[0][1].bytes.size() == sizeof(float));
  const float x = 7;
  const wire_slice came{"a/part_1", float32, 0, std::as_bytes(std::span(&x, 1))};
  s.take(std::span(&came, 1), nullptr);
  CHECK(w.a[0] == 1);
  CHECK(w.a[1] == 7);
}

TEST_CASE("what comes goes to its place, in any order, and a guard is told before") {
  worker from, to;
  from.a[1] = 20, from.b_m[0] = 60, from.power = 0.25, from.seed = 9, from.step = 8;
  shared_state sent = from.shared(), s = to.shared();
  std::vector<wire_slice> parts;
  for (const auto& shard : sent.by_shard()) parts.insert(parts.end(), shard.begin(), shard.end());
  std::reverse(parts.begin(), parts.end());
  parts[0].name = ":beta1_power";  // as it comes beside values
  counting_guard guard;
  s.take(parts, &guard);
  CHECK(to.a[1] == 20);
  CHECK(to.a_m[0] == 3);
  CHECK(to.b_m[0] == 60);
  CHECK(to.power == 0.25);
  CHECK(to.seed == 5);
  CHECK(to.step == 7);
  CHECK(guard.told.size() == parts.size());
  CHECK(std::count(guard.told.begin(), guard.told.end(), static_cast<const void*>(to.a)) == 1);
}

TEST_CASE("what does not fit is refused") {
  worker w;
  shared_state s = w.shared();
  const float x[3] = {};
  const auto said = [&](const wire_slice& one) {
    return message_of(status::data_loss, [&] { s.take(std::span(&one, 1), nullptr); });
  };
  CHECK(says(said({"c", float32, 0, std::as_bytes(std::span(x))}),
             "a shard tells \"c\", which this worker does not have"));
  CHECK(says(said({"a", float32, 0, std::as_bytes(std::span(x))}),
             "\"a\" as float32 in 12 bytes; expected float32 in 8"));
  CHECK(says(said({"a", int64, 0, std::as_bytes(std::span(x).first(2))}), "\"a\" as int64 in 8 bytes"));
  CHECK(w.a[0] == 1);
}
