// The state of schedules that observe values, as bytes that go from one task to the others.
#include <gradus/cluster/observed_state.hpp>

#include <doctest/doctest.h>

#include <gradus/update/composed.hpp>
#include <gradus/update/multi.hpp>
#include <gradus/update/rules/adam.hpp>
#include <gradus/update/rules/gradient_descent.hpp>
#include <gradus/update/schedules/plateau.hpp>
#include <gradus/update/schedules/sequence.hpp>

#include <vector>

#include "../message.hpp"

namespace {
using namespace gradus;
using detail::observed_state;

const reduce_on_plateau first{.initial = 1, .factor = 0.5, .patience = 0}, second{.initial = 8, .factor = 0.25};
auto groups() {
  return detail::compose_update(multi{on{named{"a"}, adam{}, first}, on{named{"b"}, gradient_descent{.rate = 0.1}},
                                      on{all_variables{}, adam{}, product_of(constant{2}, second)}});
}
template <class Update>
std::vector<std::byte> state_of(Update& u) {
  state_list list;
  u.remembers(list);
  std::vector<std::byte> all;
  for (const state_entry& e : list.entries()) all.insert(all.end(), e.bytes.begin(), e.bytes.end());
  return all;
}
// A save that copies state meanwhile.
struct announced final : write_guard {
  mutable std::vector<std::span<const std::byte>> seen;
  bool active() const override { return true; }
  void before_write(std::span<const std::byte> bytes) override { seen.push_back(bytes); }
};
// A schedule whose state grows.
struct history : blob {
  void save(std::vector<std::byte>&) const override {}
  void load(std::span<const std::byte>) override {}
};
struct update_with_history {
  static constexpr bool watches = true;
  history h;
  void remembers_observed(state_list& list) { list.dynamic("my_schedule/history", h); }
};
}  // namespace

TEST_CASE("schedules of all groups go over, and nothing else of the optimizer's own state") {
  auto chief = groups(), other = groups(), expected = groups();
  observed_state from(chief), to(other);
  CHECK_FALSE(from.is_kept());
  chief.watch(1), chief.watch(2);
  expected.watch(1), expected.watch(2);
  chief.finish(0);  // Adam's powers
  from.keep();
  CHECK(from.slice().bytes.size() == 2 * 32);
  CHECK(to.problem_of(from.slice()) == "");
  to.keep(from.slice().bytes);
  CHECK(state_of(other) != state_of(expected));
  {
    const observed_state::in_place now(to);
    CHECK(state_of(other) == state_of(expected));
  }
  CHECK(state_of(other) != state_of(expected));
  announced save;
  to.put_back(&save);
  CHECK(save.seen.size() == 8);
  CHECK(state_of(other) == state_of(expected));
  CHECK(state_of(other) != state_of(chief));
}

TEST_CASE("what is kept counts if it is of this step and the update has it not") {
  auto u = groups(), newer = groups();
  newer.watch(1), newer.watch(2);
  const auto older = state_of(u), wanted = state_of(newer);
  observed_state s(u), of_newer(newer);
  of_newer.keep();
  s.settle(true, nullptr);  // nothing is kept
  CHECK_FALSE(s.is_kept());
  s.keep();
  s.settle(true, nullptr);  // the update has it
  CHECK_FALSE(s.is_kept());
  s.keep(of_newer.slice().bytes);
  s.settle(false, nullptr);
  CHECK_FALSE(s.is_kept());
  CHECK(state_of(u) == older);
  s.keep(of_newer.slice().bytes);
  s.settle(true, nullptr);
  CHECK(s.is_kept());
  CHECK(state_of(u) == wanted);
}

TEST_CASE("without a schedule that observes there is nothing, and a state without a fixed size is refused") {
  auto plain = detail::compose_update(adam{.rate = 0.1});
  const auto before = state_of(plain);
  observed_state none(plain);
  none.keep();
  CHECK_FALSE(none.is_kept());
  none.put_back();
  CHECK(state_of(plain) == before);

  update_with_history u;
  CHECK(says(message_of(status::unimplemented, [&] { observed_state{u}; }),
             "\"my_schedule/history\" is a blob, whose size may change; list it as scalars or tensors"));
}
