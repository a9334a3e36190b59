#include "gradus/cluster/mailbox.hpp"

#include <atomic>
#include <string>

#include "../message.hpp"
#include "gradus/testing/hand_tasks.hpp"

using namespace gradus;
using namespace gradus::detail;

namespace {
// A message with values of its own, which can be written again once it is put.
struct letter {
  std::vector<std::byte> first, second;
  std::string name = "layer/w";
  std::vector<contribution_id> ids;
  std::vector<wire_slice> parts;
  protocol_message m;

  explicit letter(std::size_t bytes, std::uint32_t from = 5, std::uint64_t sequence = 1)
      : first(bytes, std::byte{1}), second(12, std::byte{2}), ids{{1, 2, 3}, {4, 5, 6}} {
    parts = {{name, uint8, 7, first}, {"b", float32, 0, second, slice_role::values}};
    m = {message_kind::push, from, 0, 9, sequence, 11, ids, parts};
  }
};
protocol_message numbered(std::uint32_t from, std::uint64_t sequence) {
  return {message_kind::ask, from, 0, 1, sequence, 0, {}, {}};
}
// What can be taken now, as "from.sequence".
std::string all_of(mailbox& box) {
  std::string s;
  while (
      box.take([&](const protocol_message& m) { s += text(s.empty() ? "" : " ", m.from, ".", m.sequence); }, at_once)) {
  }
  return s;
}
}  // namespace

TEST_CASE("a copy is whole, aligned, and its own") {
  mailbox box(task_system{});
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{3}, std::size_t{5000}}) {
    letter one(bytes);
    box.put(one.m);
    std::fill(one.first.begin(), one.first.end(), std::byte{77});
    std::fill(one.second.begin(), one.second.end(), std::byte{77});
    one.name = "another";
    one.ids.assign(2, {}), one.parts.assign(2, {});
    CHECK(box.take(
        [&](const protocol_message& m) {
          CHECK((m.kind == message_kind::push && m.from == 5 && m.to == 0));
          CHECK((m.incarnation == 9 && m.sequence == 1 && m.about == 11));
          REQUIRE(m.ids.size() == 2);
          CHECK(m.ids[1] == contribution_id{4, 5, 6});
          REQUIRE(m.parts.size() == 2);
          CHECK((m.parts[0].name == "layer/w" && m.parts[0].type == uint8 && m.parts[0].begin == 7));
          CHECK((m.parts[1].name == "b" && m.parts[1].role == slice_role::values));
          CHECK(std::vector<std::byte>(m.parts[0].bytes.begin(), m.parts[0].bytes.end()) ==
                std::vector<std::byte>(bytes, std::byte{1}));
          CHECK(std::vector<std::byte>(m.parts[1].bytes.begin(), m.parts[1].bytes.end()) ==
                std::vector<std::byte>(12, std::byte{2}));
          for (const wire_slice& s : m.parts) CHECK(reinterpret_cast<std::uintptr_t>(s.bytes.data()) % 64 == 0);
        },
        at_once));
  }
  CHECK_FALSE(box.take([](const protocol_message&) {}, at_once));
  CHECK(box.counts().taken == 3);
}

TEST_CASE(
    "values with a keeper are not copied; it is kept until the message was handled, and lost with one that is lost") {
  mailbox box(task_system{}, {}, {.bytes = 6000});
  for (const std::size_t bytes : {std::size_t{3}, std::size_t{5000}}) {
    auto one = std::make_shared<letter>(bytes);
    const std::weak_ptr<letter> seen = one;
    protocol_message m = one->m;
    m.keeper = one;
    box.put(m);
    box.put(m);  // 10,000 bytes are more than there may be at a time
    const std::byte* const at = one->first.data();
    m = {};
    one.reset();
    CHECK(box.take(
        [&](const protocol_message& got) {
          CHECK(got.parts[0].bytes.data() == at);
          CHECK((got.parts[0].name == "layer/w" && got.parts[1].name == "b" && got.ids[1] == contribution_id{4, 5, 6}));
          CHECK_FALSE(got.is_lent);
          CHECK(seen.use_count() == (bytes == 3 ? 2 : 1));
        },
        at_once));
    while (box.take([](const protocol_message&) {}, at_once)) {
    }
    CHECK(seen.expired());
  }
  CHECK(box.counts().dropped == 1);
  const auto late = std::make_shared<letter>(3);
  protocol_message m = late->m;
  m.keeper = late;
  box.close();
  box.put(m);
  m.keeper.reset();
  CHECK(late.use_count() == 1);
}

TEST_CASE("memory is used again, whatever comes first") {
  mailbox box(task_system{});
  const letter small(10), medium(5000), large(100000);
  const auto once = [&](int turn) {
    for (int i = 0; i < 3; ++i) box.put((i == turn % 3 ? small : i == (turn + 1) % 3 ? medium : large).m);
    all_of(box);
  };
  for (int i = 0; i < 3; ++i) once(i);
  const auto had = box.counts().allocations;
  CHECK(had <= 4);  // one each, and one that grew
  for (int i = 0; i < 30; ++i) once(i);
  CHECK(box.counts().allocations == had);
}

TEST_CASE("what is lent is read where it lies, until it is withdrawn") {
  mailbox box(task_system{});
  letter mine(5000, 5, 1), others(5000, 6, 1);
  box.put_lent(mine.m);
  mine.name = "another";
  box.take(
      [&](const protocol_message& m) {
        CHECK(m.parts[0].bytes.data() == mine.first.data());
        CHECK(m.parts[0].name == "layer/w");  // names are copied
        CHECK(m.ids[0] == contribution_id{1, 2, 3});
      },
      at_once);
  box.put_lent(others.m), box.put_lent(mine.m), box.put(numbered(5, 2)), box.put_lent(mine.m);
  box.withdraw(5);
  CHECK(box.counts().withdrawn == 2);
  box.put(numbered(5, 3));  // behind what was the last
  CHECK(all_of(box) == "6.1 5.2 5.3");
  box.withdraw(5);  // nothing is there
  CHECK(box.counts().withdrawn == 2);
}

TEST_CASE("who parts with what it has lent leaves copies of it, in their places") {
  mailbox box(task_system{});
  letter mine(5000, 5, 1), others(5000, 6, 1);
  const auto part_and_spoil = [&] {
    box.part_with(5);
    std::fill(mine.first.begin(), mine.first.end(), std::byte{99});
  };
  const auto first_bytes = [&] {
    std::string s;
    while (box.take(
        [&](const protocol_message& m) {
          s += text(m.from, ".", m.sequence);
          if (m.parts.empty()) return void(s += " ");
          s += text(m.is_lent ? "l" : "c", static_cast<int>(m.parts[0].bytes[0]), " ");
          CHECK(m.parts[0].name == "layer/w");
          CHECK(m.ids[0] == contribution_id{1, 2, 3});
        },
        at_once)) {
    }
    return s;
  };
  const auto was = static_cast<int>(mine.first[0]);
  box.put_lent(mine.m), box.put_lent(others.m), box.put(numbered(5, 2)), box.put_lent(mine.m);
  part_and_spoil();
  box.put(numbered(5, 3));
  CHECK(first_bytes() == text("5.1c", was, " 6.1l", was, " 5.2 5.1c", was, " 5.3 "));
  box.put_lent(mine.m);
  part_and_spoil();
  box.part_with(7);
  CHECK(first_bytes() == "5.1c99 ");
  CHECK(box.counts().dropped == 0);
}

TEST_CASE("what is borrowed is wanted back by who withdraws, and returned by who takes, or with his end") {
  testing::hand_tasks hand;
  for (const bool ends : {false, true}) {
    mailbox box(hand.tasks());
    letter mine(100, 5), others(100, 6);
    bool back = false;
    const task_handle reader = hand.tasks().start("a test", "do without", [&] {
      for (int i = 0; i < 2; ++i)
        box.take([&](const protocol_message& m) { box.borrow(m.from), box.borrow(m.from); }, never_due);
      std::uint32_t node = 9;
      CHECK_FALSE(box.is_wanted_back(node));
      CHECK_FALSE(box.take([](const protocol_message&) {}, never_due));  // woken
      REQUIRE(box.is_wanted_back(node));
      CHECK(node == 5);
      CHECK_FALSE(box.is_wanted_back(node));
      CHECK_FALSE(back);
      hand.tasks().sleep(1);
      if (ends) return box.retire();
      box.give_back(6), box.give_back(5);
      hand.tasks().sleep(1);
      CHECK_FALSE(back);
      box.give_back(5);
    });
    box.put_lent(mine.m), box.put_lent(others.m);
    hand.settle();
    const task_handle waiter = hand.tasks().start("a test", "do without", [&] {
      box.withdraw(7);
      box.withdraw(5);
      back = true;
    });
    hand.advance(5);
    CHECK(back);
  }
}

TEST_CASE("withdraw waits for the one that is being handled, and for nobody else's") {
  testing::hand_tasks hand;
  mailbox box(hand.tasks());
  letter mine(100, 5);
  bool handled = false, other = false, back = false;
  const task_handle reader = hand.tasks().start("a test", "do without", [&] {
    box.take(
        [&](const protocol_message&) {
          hand.tasks().sleep(10);
          handled = true;
        },
        never_due);
  });
  hand.settle();
  box.put_lent(mine.m);
  hand.settle();
  const task_handle waiter = hand.tasks().start("a test", "do without", [&] {
    box.withdraw(6);
    other = true;
    box.withdraw(5);
    back = true;
    CHECK(handled);
  });
  hand.advance(9.9);
  CHECK(other);
  CHECK_FALSE(back);
  hand.advance(0.2);
  CHECK(back);
}

TEST_CASE("a handler that throws has handled its message") {
  mailbox box(task_system{});
  letter mine(100);
  box.put_lent(mine.m);
  CHECK_THROWS_WITH(box.take([](const protocol_message&) { raise(status::internal, "no"); }, at_once), "no");
  box.withdraw(5);  // waits for nothing
  CHECK(box.counts().taken == 1);
}

TEST_CASE("take waits up to its time, and no longer than a message, wake or close") {
  testing::hand_tasks hand;
  mailbox box(hand.tasks());
  std::string log;
  const task_handle reader = hand.tasks().start("a test", "do without", [&] {
    const auto take = [&](nanos until) {
      const bool b = box.take([&](const protocol_message& m) { log += text("m", m.sequence); }, until);
      log += text(b ? " " : "no ", hand.elapsed(), "; ");
    };
    take(5'000'000'000);
    take(never_due);
    take(never_due);
    take(never_due);
    take(never_due);
    take(never_due);
  });
  hand.advance(4.9);
  CHECK(log == "");
  hand.advance(1.1);
  CHECK(log == "no 5; ");
  box.put(numbered(5, 1));
  hand.settle();
  CHECK(log == "no 5; m1 6; ");
  hand.advance(1000);
  box.wake();
  hand.settle();
  CHECK(log == "no 5; m1 6; no 1006; ");
  hand.advance(1);
  box.put(numbered(5, 2));
  box.close();
  box.put(numbered(5, 3));
  hand.settle();
  CHECK(log == "no 5; m1 6; no 1006; m2 1007; no 1007; no 1007; ");
  CHECK(box.counts().dropped == 1);
  CHECK(box.is_closed());
}

TEST_CASE("wake comes before messages, once") {
  mailbox box(task_system{});
  box.put(numbered(5, 1));
  box.wake(), box.wake();
  CHECK_FALSE(box.take([](const protocol_message&) {}, never_due));
  CHECK(all_of(box) == "5.1");
}

TEST_CASE("what goes beyond the limits is lost and counted") {
  mailbox box(task_system{}, {}, {.bytes = 10000, .messages = 4});
  const letter large(20000), half(4900);
  box.put(large.m);  // alone it always fits
  box.put(half.m);
  CHECK(box.counts().dropped == 1);
  box.put_lent(large.m);  // no bytes of it lie here
  box.put(numbered(5, 7));
  CHECK(box.counts().dropped == 1);
  CHECK(all_of(box) == "5.1 5.1 5.7");
  box.put(half.m), box.put(half.m), box.put(half.m);  // 2 * (4928 + 64) fit
  CHECK(box.counts().dropped == 2);
  box.put(numbered(5, 1)), box.put(numbered(5, 2)), box.put(numbered(5, 3));
  CHECK(box.counts().dropped == 3);  // four messages
  CHECK(all_of(box) == "5.1 5.1 5.1 5.2");
  box.put(half.m);
  CHECK(box.counts().dropped == 3);
  for (std::uint64_t i = 1; i <= 6; ++i) box.put(numbered(0, i));  // a node's own, to itself
  CHECK(all_of(box) == "5.1 0.1 0.2 0.3 0.4 0.5 0.6");
  CHECK_THROWS_WITH(mailbox(task_system{}, {}, {.bytes = 1, .messages = 0}),
                    "a mailbox: expected room for 1 message or more, found 0");
}

TEST_CASE("many put, one takes: all come, each sender's in its order") {
  constexpr std::uint32_t senders = 3;
  constexpr std::uint64_t each = 2000;
  const task_system tasks;
  mailbox box(tasks, {}, {.bytes = std::size_t{1} << 30, .messages = senders * each});
  std::vector<task_handle> threads;
  for (std::uint32_t s = 0; s < senders; ++s)
    threads.push_back(tasks.start("a test", "do without", [&box, s] {
      letter sized(600, s);
      for (std::uint64_t i = 1; i <= each; ++i) {
        if (i % 3 == 0) {
          std::fill(sized.first.begin(), sized.first.end(), static_cast<std::byte>(i));
          sized.m.sequence = i;
          box.put(sized.m);
        } else {
          box.put(numbered(s, i));
        }
      }
    }));
  std::vector<std::uint64_t> last(senders);
  bool in_order = true, whole = true;
  for (std::uint64_t n = 0; n < senders * each; ++n)
    box.take(
        [&](const protocol_message& m) {
          in_order = in_order && m.sequence == ++last[m.from];
          if (!m.parts.empty())
            for (const std::byte b : m.parts[0].bytes) whole = whole && b == static_cast<std::byte>(m.sequence);
        },
        never_due);
  CHECK(in_order);
  CHECK(whole);
  CHECK(last == std::vector<std::uint64_t>(senders, each));
  CHECK(box.counts().dropped == 0);
}

TEST_CASE("a sender that withdraws may write what it has lent") {
  const task_system tasks;
  mailbox box(tasks);
  std::uint64_t read = 0;
  bool whole = true;
  task_handle reader = tasks.start("a test", "do without", [&] {
    while (box.take(
        [&](const protocol_message& m) {
          ++read;
          for (const std::byte b : m.parts[0].bytes) whole = whole && b == static_cast<std::byte>(m.sequence);
        },
        never_due)) {
    }
  });
  letter mine(3000);
  for (std::uint64_t i = 1; i <= 2000; ++i) {
    std::fill(mine.first.begin(), mine.first.end(), static_cast<std::byte>(i));
    mine.m.sequence = i;
    box.put_lent(mine.m);
    box.withdraw(5);
  }
  box.close();
  reader.join();
  CHECK(whole);
  CHECK(read + box.counts().withdrawn == 2000);
}
