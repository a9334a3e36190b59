#include "gradus/cluster/protocol/said.hpp"

#include "outside.hpp"

using namespace protocol_tests;

TEST_CASE("what rests on a record is said once that is written down") {
  seen_outside out;
  said_when_written<> log(out);
  const contribution_id id[] = {{1, 5, 9}};
  const std::uint64_t first = log.write(std::uint8_t{3}, 40, id), second = log.write(std::uint8_t{3}, 41, {});
  CHECK((first == 1 && second == 2));
  log.say(second, {.kind = message_kind::joined, .to = 2, .about = 2});
  log.say(first, {.kind = message_kind::joined, .to = 2, .about = 1, .ids = id});
  log.say(0, {.kind = message_kind::joined, .to = 2});
  CHECK(out.take() == lines{"joined to 2: i0 s0 a0"});
  log.synced(1);
  CHECK((log.is_said(1) && !log.is_said(2) && log.up_to() == 1));
  log.say_held();
  CHECK(out.take() == lines{"joined to 2: i0 s0 a1 {1 5 9}"});
  log.synced(2), log.synced(1), log.say_held();
  CHECK(out.take() == lines{"joined to 2: i0 s0 a2"});
  CHECK(log.up_to() == 2);
  bytes_in in(out.records[0], "record");
  CHECK(in.number<std::uint8_t>() == 3);
  CHECK(in.number<std::uint64_t>() == 40);
  std::vector<contribution_id> ids;
  read_ids(in, 2, ids);
  in.end();
  CHECK(ids == std::vector<contribution_id>{{1, 5, 9}});
  log.write(std::uint8_t{3}, 42, {}, [](bytes_out more) { more.number(std::uint8_t{9}); });
  CHECK(out.records[2].size() == out.records[1].size() + 1);
  CHECK(out.records[2].back() == std::byte{9});
}

TEST_CASE("an order is written down with its record, and all before it are") {
  written_orders w;
  CHECK(w.last() == 0);
  w.begin(40);
  w.add(3, 41), w.add(5, 42), w.add(6, 43);
  w.synced(2);
  CHECK(w.last() == 40);
  w.synced(5);
  CHECK(w.last() == 42);
  w.synced(4);
  CHECK(w.last() == 42);
  w.synced(9);
  CHECK(w.last() == 43);
}
