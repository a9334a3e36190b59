// Mailboxes: order, copies and loans, limits, the end.
#include <gradus/cluster/mailbox.hpp>
#include <gradus/testing/hand_tasks.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <cstring>

using namespace gradus;
using namespace gradus::detail;

namespace {
std::span<const std::byte> bytes_of(const std::vector<double>& v) { return std::as_bytes(std::span(v)); }
double first_of(const protocol_message& m) {
  double x;
  std::memcpy(&x, m.parts[0].bytes.data(), sizeof x);
  return x;
}
}  // namespace

TEST_CASE("a message is copied with its names, values and ids, and aligned") {
  mailbox box({});
  std::vector<double> first{1, 2, 3}, second{4};
  std::string name = "w";
  contribution_id id{1, 2, 3};
  {
    const wire_slice parts[] = {{name, float64, 0, bytes_of(first)}, {"", float64, 7, bytes_of(second)}};
    box.put({message_kind::pulled, 4, 5, 6, 7, 8, std::span(&id, 1), parts});
  }
  first = {9, 9, 9}, second = {9}, name = "x", id = {};
  CHECK(box.take(
      [](const protocol_message& m) {
        CHECK(m.kind == message_kind::pulled);
        CHECK(m.from == 4);
        CHECK(m.to == 5);
        CHECK(m.incarnation == 6);
        CHECK(m.sequence == 7);
        CHECK(m.about == 8);
        REQUIRE(m.ids.size() == 1);
        CHECK(m.ids[0] == contribution_id{1, 2, 3});
        REQUIRE(m.parts.size() == 2);
        CHECK(m.parts[0].name == "w");
        CHECK(m.parts[0].count() == 3);
        CHECK(first_of(m) == 1);
        CHECK(m.parts[1].begin == 7);
        for (const wire_slice& s : m.parts) CHECK(reinterpret_cast<std::uintptr_t>(s.bytes.data()) % alignment == 0);
      },
      at_once));
  CHECK(!box.take([](const protocol_message&) { FAIL("nothing is there"); }, at_once));
}

TEST_CASE("a lent message shows the sender's memory until it is withdrawn") {
  mailbox box({});
  std::vector<double> values{1};
  const wire_slice parts[] = {{"w", float64, 0, bytes_of(values)}};
  box.put_lent({message_kind::push, 4, 0, 0, 1, 0, {}, parts});
  values[0] = 2;
  box.take([&](const protocol_message& m) { CHECK(first_of(m) == 2); }, at_once);
  box.put_lent({message_kind::push, 4, 0, 0, 2, 0, {}, parts});
  box.put_lent({message_kind::push, 5, 0, 0, 3, 0, {}, parts});
  box.put({message_kind::push, 4, 0, 0, 4, 0, {}, parts});
  box.withdraw(4);
  std::vector<std::uint64_t> left;
  while (box.take([&](const protocol_message& m) { left.push_back(m.sequence); }, at_once)) {
  }
  CHECK(left == std::vector<std::uint64_t>{3, 4});
}

TEST_CASE("who withdraws waits for the message that is being handled") {
  const task_system tasks;
  mailbox box(tasks);
  std::vector<double> values(1000, 1.0);
  const wire_slice parts[] = {{"w", float64, 0, bytes_of(values)}};
  std::atomic<int> handled{0};
  std::atomic<bool> equal{true};
  auto reader = tasks.start("the reader", "none", [&] {
    while (box.take(
        [&](const protocol_message& m) {
          const double all = first_of(m);  // one round's value, everywhere
          for (std::size_t i = 0; i < values.size(); ++i) {
            double x;
            std::memcpy(&x, m.parts[0].bytes.data() + i * sizeof x, sizeof x);
            if (x != all) equal = false;
          }
          ++handled;
        },
        never_due)) {
    }
  });
  for (int round = 0; round < 300; ++round) {
    box.put_lent({message_kind::push, 4, 0, 0, 0, 0, {}, parts});
    box.withdraw(4);
    std::fill(values.begin(), values.end(), round);  // a reader that still looks sees two rounds
  }
  box.close();
  reader.join();
  CHECK(equal);
  CHECK(handled <= 300);
}

TEST_CASE("what goes beyond the limits is dropped and counted") {
  mailbox box({}, {.messages = 2});
  for (std::uint64_t i = 0; i < 5; ++i) box.put({message_kind::ask, 0, 0, 0, i, 0, {}, {}});
  CHECK(box.dropped() == 3);
  std::vector<std::uint64_t> got;
  while (box.take([&](const protocol_message& m) { got.push_back(m.sequence); }, at_once)) {
  }
  CHECK(got == std::vector<std::uint64_t>{0, 1});
}

TEST_CASE("messages of several senders all come, each sender's in its order") {
  const task_system tasks;
  mailbox box(tasks);
  constexpr std::uint64_t many = 500;
  std::vector<task_handle> senders;
  for (std::uint32_t s = 0; s < 3; ++s)
    senders.push_back(tasks.start("a sender", "none", [&box, s] {
      for (std::uint64_t i = 1; i <= many; ++i) box.put({message_kind::ask, s, 0, 0, i, 0, {}, {}});
    }));
  std::uint64_t last[3] = {};
  for (std::uint64_t n = 0; n < 3 * many; ++n)
    box.take([&](const protocol_message& m) { CHECK(m.sequence == ++last[m.from]); }, never_due);
  CHECK(last[0] + last[1] + last[2] == 3 * many);
}

TEST_CASE("a wait ends at its time, and with the box") {
  testing::hand_tasks hand;
  mailbox box(hand.tasks());
  std::atomic<int> ends{0};
  auto reader = hand.tasks().start("the reader", "none", [&] {
    CHECK(!box.take([](const protocol_message&) {}, nanos_now(hand.tasks()) + 5'000 * one_millisecond));
    ++ends;
    CHECK(!box.take([](const protocol_message&) {}, never_due));
    ++ends;
  });
  hand.settle();
  hand.advance(4);
  hand.settle();
  CHECK(ends == 0);
  hand.advance(2);
  hand.settle();
  CHECK(ends == 1);
  CHECK(!box.is_closed());
  box.close();
  reader.join();
  CHECK(ends == 2);
  box.put({message_kind::ask, 0, 0, 0, 0, 0, {}, {}});
  CHECK(!box.take([](const protocol_message&) { FAIL("the box is closed"); }, never_due));
}
