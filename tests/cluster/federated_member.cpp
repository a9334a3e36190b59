// sanitized in every run: it reads what strangers wrote
#include "gradus/cluster/federated_member.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <utility>

#include "gradus/update/lookahead.hpp"
#include "gradus/update/multi.hpp"
#include "gradus/update/rules/gradient_descent.hpp"
#include "gradus/update/rules/schedule_free.hpp"

#include "federated_rounds.hpp"

using namespace gradus;
using namespace federated_test;
using enum gradus::federated_answer;

TEST_CASE("federated_member: a model comes, is trained and goes back; the slots stay the board's own") {
  board<> leader(99), one(3);
  federated_server server(leader.trainer, {.members = 4, .run = 2});
  CHECK(!one.member.has_round());
  CHECK(one.member.round() == 0);
  one.learn(1, 3);
  const std::int64_t steps = one.trainer.global_step();
  one.member.receive(copy(server.begin_round()));
  CHECK(one.member.has_round());
  CHECK(one.member.round() == 1);
  CHECK(same_bits(one.numbers(), leader.numbers()));
  CHECK(one.trainer.global_step() == steps);
  one.learn(2, 3);
  const octets sent = one.update(12);
  CHECK(!one.member.has_round());
  CHECK(sent.size() == detail::federated_frame::head_bytes + 4 * one.numbers().size());
  server.receive(3, sent);
  CHECK(server.end_round().examples == 12);
  CHECK(same_bits(one.numbers(), leader.numbers()));  // the mean of one
}

TEST_CASE("federated_member: an update that was lost is sent again, with the same bytes") {
  board<> leader(99), one(0);
  federated_server server(leader.trainer, {.members = 1});
  one.member.receive(copy(server.begin_round()));
  one.member.receive(copy(server.frame()));  // again before it has sent anything: nothing is missed
  CHECK(!one.member.is_asked_again());
  one.learn(1, 3);
  const octets sent = one.update(12);
  CHECK(!one.member.is_asked_again());
  one.member.receive(copy(server.frame()));
  CHECK(one.member.is_asked_again());
  CHECK(!one.member.has_round());
  octets again;
  one.member.send_again(
      [&](std::span<const std::byte> piece) { again.insert(again.end(), piece.begin(), piece.end()); });
  CHECK(again == sent);
  CHECK(!one.member.is_asked_again());
  CHECK(one.member.counts()[repeated] == 2);
  CHECK(one.member.counts()[taken] == 1);
}

TEST_CASE("federated_member: a frame that is not for it changes nothing and is counted") {
  board<> leader(99), one(0);
  board<6> other(0);
  federated_server server(leader.trainer, {.members = 1, .run = 2}), others(other.trainer, {.members = 1, .run = 2});
  server.begin_round(), server.end_round();
  const octets frame = copy(server.begin_round());
  one.member.receive(frame);
  one.learn(1, 1);
  const std::vector<float> held = one.numbers();
  octets nan = frame;
  const float infinite = -std::numeric_limits<float>::infinity();
  std::memcpy(nan.data() + nan.size() - 4, &infinite, 4);
  nan = forged(nan, [&](auto& f) {
    f.round = 3;
    f.crc = detail::crc32c_by_nibble(0, nan.data() + f.head_bytes, nan.size() - f.head_bytes);
  });
  octets flipped = forged(frame, [](auto& f) { f.round = 3; });
  flipped.back() ^= std::byte{1};
  const struct {
    octets bytes;
    federated_answer answer;
  } trials[] = {{copy(others.begin_round()), another_model},
                {forged(frame, [](auto& f) { f.bytes = 0xffffffff; }), another_model},
                {forged(frame, [](auto& f) { f.version_of = 2; }), newer_version},
                {forged(frame, [](auto& f) { f.kind_of = f.update; }), foreign},
                {forged(frame, [](auto& f) { f.round = 0; }), foreign},
                {forged(frame, [](auto& f) { f.member = 0; }), foreign},
                {forged(frame, [](auto& f) { f.round = 1; }), late},
                {frame, repeated},
                {flipped, damaged},
                {nan, bad_numbers}};
  federated_counts expected = one.member.counts();
  for (const auto& t : trials) {
    one.member.receive(t.bytes);
    expected.add(t.answer);
    CAPTURE(message_of(t.answer));
    for (int k = 0; k < 10; ++k) CHECK(one.member.counts().of[k] == expected.of[k]);
    CHECK(same_bits(one.numbers(), held));
  }
  // A greater run begins anew; a smaller one is over.
  one.member.receive(forged(frame, [](auto& f) { f.run = 3, f.round = 1; }));
  CHECK(one.member.run() == 3);
  CHECK(one.member.round() == 1);
  CHECK(one.member.has_round());
  one.member.receive(forged(frame, [](auto& f) { f.run = 2, f.round = 9; }));
  CHECK(one.member.run() == 3);
  CHECK(one.member.counts()[late] == expected[late] + 1);
}

// The room may be memory that a step uses: a frame that was half there is lost, the model is not.
TEST_CASE("federated_member: the inputs' memory as the room") {
  using trainer_type = decltype(make_static_stepper<mlp<5>>(static_batch<16>{}, adam{.rate = 0.02}, portable{}));
  board<> leader(99);
  federated_server server(leader.trainer, {.members = 1});
  trainer_type trainer{static_batch<16>{}, adam{.rate = 0.02}, portable{}};
  trainer.initialize(1);
  federated_member member(trainer, 0, std::as_writable_bytes(trainer.input<"x">()));
  const octets frame = copy(server.begin_round());
  member.receive(std::span(frame).first(100));
  for (float& x : trainer.input<"x">()) x = 1;
  trainer.step();
  member.receive(std::span(frame).subspan(100));
  CHECK(!member.has_round());
  CHECK(member.counts()[damaged] == 1);
  member.receive(frame);
  CHECK(member.has_round());
}

TEST_CASE("federated_member: what cannot be sent is not, and the caller hears why") {
  board<> leader(99), one(0);
  federated_server server(leader.trainer, {.members = 1});
  std::size_t written = 0;
  const auto write = [&](std::span<const std::byte> piece) { written += piece.size(); };
  CHECK(one.member.send(5, write) == early);
  CHECK(one.member.send_again(write) == early);
  one.member.receive(copy(server.begin_round()));
  CHECK(one.member.send(0, write) == bad_examples);
  CHECK(!one.member.has_round());
  CHECK(one.member.send_again(write) == early);
  CHECK(written == 0);
  // A server that begins the round with another model.
  leader.trainer.variable<"out/bias">()[0] += 1;
  server.end_round();
  struct {
    void scalar(std::string_view, std::int64_t& n) { n = 0; }
  } back;
  server.remembers(back);
  one.member.receive(copy(server.begin_round()));
  CHECK(one.member.round() == 1);
  CHECK(one.member.has_round());
  CHECK(one.member.send(5, write) == taken);
  CHECK(written == detail::federated_frame::head_bytes + sizeof one.room);
  one.learn(1, 1);
  CHECK(one.member.send_again(write) == late);
  CHECK(written == detail::federated_frame::head_bytes + sizeof one.room);
}

// One NaN in the slots would lock a board out of every further round.
TEST_CASE("federated_member: a board whose slots are not finite begins them anew") {
  board<> leader(99), one(0);
  federated_server server(leader.trainer, {.members = 1});
  const auto write = [](std::span<const std::byte>) {};
  const auto begin = [&] { one.member.receive(copy(server.begin_round())), server.end_round(); };
  begin();
  for (float& y : one.trainer.input<"y">()) y = std::numeric_limits<float>::quiet_NaN();
  for (float& x : one.trainer.input<"x">()) x = 1;
  one.trainer.step();
  CHECK(one.member.send(4, write) == bad_numbers);
  CHECK(!one.member.has_round());
  begin();
  one.learn(1, 1);
  CHECK(one.member.send(4, write) == bad_numbers);  // Adam's slots
  begin();
  one.trainer.restart_mirrors();  // once the variables are the server's, of which an average is a copy
  one.learn(1, 1);
  CHECK(one.member.send(4, write) == taken);
}

// A server repeats the model because it has no update. Where none can come, the member trains the round anew.
TEST_CASE("federated_member: a model that is repeated after a failed send begins the round anew") {
  board<> leader(99), one(0);
  federated_server server(leader.trainer, {.members = 1});
  const auto write = [](std::span<const std::byte>) {};
  one.member.receive(copy(server.begin_round()));
  one.trainer.variable<"out/bias">()[0] = std::numeric_limits<float>::infinity();
  CHECK(one.member.send(4, write) == bad_numbers);
  one.member.receive(copy(server.frame()));
  CHECK(!one.member.is_asked_again());
  REQUIRE(one.member.has_round());
  CHECK(same_bits(one.numbers(), leader.numbers()));
  one.member.receive(copy(server.frame()));  // it trains: nothing to begin anew
  CHECK(one.member.counts()[repeated] == 1);
  one.learn(1, 2);
  server.receive(0, one.update(8));
  CHECK(server.is_complete());
  // Nor can what was sent be sent again after the variables have changed.
  server.end_round();
  one.member.receive(copy(server.begin_round()));
  one.learn(2, 1);
  one.update(8);
  one.learn(3, 1);
  one.member.receive(copy(server.frame()));
  CHECK(one.member.is_asked_again());
  CHECK(one.member.send_again(write) == late);
  one.member.receive(copy(server.frame()));
  CHECK(!one.member.is_asked_again());
  REQUIRE(one.member.has_round());
  server.receive(0, one.update(8));
  CHECK(server.is_complete());
}

namespace {
// A rule of a program's own, which does not say that a slot is a copy.
struct towards_its_copy {
  using policy_for = kind::rule;
  static constexpr std::string_view name = "TowardsItsCopy";
  std::optional<double> rate = 0.5;
  constexpr auto slots() const { return std::array{slot{.name = "copy", .starts_as_variable = true}}; }
  template <class N>
  struct constants {
    N rate;
  };
  constexpr constants<double> prepare(const step_info& at) const { return {at.rate}; }
  template <class N>
  N step(N theta, N g, const constants<N>& c, N& copy) const {
    copy = copy - c.rate * g;
    return theta + c.rate * (copy - theta);
  }
};

// A member has trained, then takes a server's model. Its steps are those of a trainer that begins at this model.
template <class... Policies>
void goes_on_from_the_model(const Policies&... policies) {
  const auto make = [&] { return make_static_stepper<mlp<5>>(static_batch<4>{}, policies..., portable{}); };
  board<> leader(99);
  federated_server server(leader.trainer, {.members = 1});
  auto trainer = make(), fresh = make();
  std::byte room[decltype(trainer)::variable_bytes];
  federated_member member(trainer, 0, room);
  const auto learn = [](auto& t, int steps) {
    std::mt19937 random(7);
    for (int i = 0; i < steps; ++i) {
      for (float& x : t.template input<"x">()) x = static_cast<float>(random() % 2001) / 1000 - 1;
      for (float& y : t.template input<"y">()) y = static_cast<float>(random() % 2001) / 1000 - 1;
      t.step();
    }
  };
  trainer.initialize(1), learn(trainer, 20);
  member.receive(copy(server.begin_round()));
  REQUIRE(member.has_round());
  fresh.initialize(2);
  federated_member other(fresh, 1, room);
  other.receive(copy(server.frame()));
  fresh.restart_mirrors();
  learn(trainer, 10), learn(fresh, 10);
  CHECK(trainer.loss() == fresh.loss());
  std::vector<std::byte> values[2];
  for (int k = 0; k < 2; ++k) {
    struct {
      std::vector<std::byte>& all;
      void tensor(std::string_view, dtype, const extents&, std::span<std::byte> v) {
        all.insert(all.end(), v.begin(), v.end());
      }
    } list{values[k]};
    (k == 0 ? trainer : fresh).list_variables(list);
  }
  CHECK(values[0] == values[1]);
}
}  // namespace

// Their next step would return to the board's values of before the round.
TEST_CASE("federated_member: rules that keep copies of the variables begin at the server's model") {
  goes_on_from_the_model(chain{gradient_descent{.rate = 0.02}, lookahead{.every = 5}});
  goes_on_from_the_model(schedule_free_adamw{.rate = 0.02});
  goes_on_from_the_model(schedule_free_adamw{.rate = 0.02}, clip_by_value{1.0});
  goes_on_from_the_model(chain{clip_by_value{1.0}, schedule_free_adamw{.rate = 0.02}});
  goes_on_from_the_model(towards_its_copy{.rate = 0.1});
  goes_on_from_the_model(multi{on{matrices{}, chain{gradient_descent{.rate = 0.02}, lookahead{.every = 5}}},
                               gradient_descent{.rate = 0.1}});
}

TEST_CASE("federated_member: an average goes on over the rounds") {
  auto trainer = make_static_stepper<mlp<5>>(static_batch<4>{}, chain{gradient_descent{.rate = 0.02}, lookahead{}},
                                             exponential_moving_average{.decay = 0.5}, portable{});
  board<> leader(99);
  federated_server server(leader.trainer, {.members = 1});
  std::byte room[decltype(trainer)::variable_bytes];
  federated_member member(trainer, 0, room);
  trainer.initialize(1);
  const auto bias = trainer.variable<"out/bias">();
  bias[0] = 3;
  trainer.restart_mirrors();
  member.receive(copy(server.begin_round()));
  const float taken_bias = bias[0];
  trainer.swap_averages();
  CHECK(bias[0] == 3);
  trainer.swap_averages();
  CHECK(bias[0] == taken_bias);
}

// The program of docs/edge.md: mirrors begin anew when the next model is there. Before it they would copy what is NaN.
TEST_CASE("federated_member: an average beside numbers that were not finite is finite again from the next model on") {
  for (const bool waits : {false, true}) {
    auto trainer = make_static_stepper<mlp<5>>(static_batch<4>{}, gradient_descent{.rate = 0.02},
                                               exponential_moving_average{.decay = 0.5}, portable{});
    board<> leader(99);
    federated_server server(leader.trainer, {.members = 1});
    std::byte room[decltype(trainer)::variable_bytes];
    federated_member member(trainer, 0, room);
    const auto write = [](std::span<const std::byte>) {};
    trainer.initialize(1);
    bool begins_anew = false;
    const auto round = [&](float y) {
      member.receive(copy(server.begin_round())), server.end_round();
      REQUIRE(member.has_round());
      if (std::exchange(begins_anew, false)) trainer.restart_mirrors();
      for (float& v : trainer.input<"y">()) v = y;
      trainer.step();
      begins_anew = member.send(4, write) == bad_numbers;
    };
    round(std::numeric_limits<float>::quiet_NaN());
    CHECK(begins_anew);
    if (!waits) trainer.restart_mirrors(), begins_anew = false;
    round(1);
    CHECK(!begins_anew);
    trainer.swap_averages();
    CHECK(std::isfinite(trainer.variable<"out/bias">()[0]) == waits);
  }
}

TEST_CASE("federated_member: a server's number is refused") {
  auto trainer = trainer_of<5>();
  std::byte room[decltype(trainer)::variable_bytes];
  CHECK_THROWS_WITH_AS(federated_member(trainer, 65535, room),
                       "federated_member: the number 65535 stands for a server; give one below", invalid_argument);
}
