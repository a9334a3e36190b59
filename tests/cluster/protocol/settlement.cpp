#include "gradus/cluster/protocol/settlement.hpp"

#include "../../message.hpp"
#include "outside.hpp"

using namespace protocol_tests;

namespace {
struct bench {
  seen_outside out;
  settlement<> s{{2, 1}, out};

  std::vector<std::string> measured(std::uint32_t shard, std::uint64_t order, std::uint64_t round,
                                    std::vector<double> x, std::uint64_t synced = 0) {
    const wire_slice list{"", float64, 0, std::as_bytes(std::span(x))};
    s.measured({message_kind::measured, shard, 0, 0, round, order, {}, std::span(&list, 1)}, synced);
    return out.take();
  }
  std::vector<std::string> synced(std::uint64_t record) {
    s.synced(record);
    return out.take();
  }
};
}  // namespace

TEST_CASE("lists are told to all once every shard's is there and they are written down") {
  bench b;
  CHECK(b.measured(1, 7, 0, {1, 2}).empty());
  CHECK(b.measured(1, 7, 0, {1, 2}).empty());
  CHECK(b.out.records.empty());
  CHECK(b.s.waits() == "round 0 of update 7 waits for the list of shard 0");
  CHECK(b.measured(0, 7, 0, {3}).empty());
  CHECK(b.out.records.size() == 1);
  CHECK(b.s.waits().empty());
  CHECK(b.measured(0, 7, 0, {3}).empty());  // not written down
  CHECK(b.synced(0).empty());
  CHECK(b.synced(1) == lines{"settled to 0: i0 s0 a7 0[3] 1[1 2]", "settled to 1: i0 s0 a7 0[3] 1[1 2]"});
  CHECK(b.synced(1).empty());
  // Who asks again hears it again.
  CHECK(b.measured(1, 7, 0, {1, 2}, 1) == lines{"settled to 1: i0 s0 a7 0[3] 1[1 2]"});
  // The next round, and another update beside it, whose lists are empty.
  CHECK(b.measured(0, 7, 1, {5}, 1).empty());
  CHECK(b.measured(0, 8, 0, {}, 1).empty());
  CHECK(b.measured(1, 7, 1, {6}, 1).empty());
  CHECK(b.measured(1, 8, 0, {}, 1).empty());
  CHECK(b.synced(3) == lines{"settled to 0: i0 s1 a7 0[5] 1[6]", "settled to 1: i0 s1 a7 0[5] 1[6]",
                             "settled to 0: i0 s0 a8 0[] 1[]", "settled to 1: i0 s0 a8 0[] 1[]"});
  CHECK(b.measured(0, 7, 0, {3}, 3) == lines{"settled to 0: i0 s0 a7 0[3] 1[1 2]"});
  CHECK(b.s.size() == 2);
  b.s.forget_before(8);
  CHECK(b.s.size() == 1);
  // Memory is used again, and nothing of it is seen.
  CHECK(b.measured(0, 9, 0, {4}, 3).empty());
  CHECK(b.measured(0, 9, 0, {4}, 3).empty());
  b.measured(1, 9, 0, {4, 4}, 3);
  CHECK(b.synced(4).front() == "settled to 0: i0 s0 a9 0[4] 1[4 4]");
}

TEST_CASE("what is no list, or of a round that cannot be, takes no memory") {
  bench b;
  b.measured(2, 7, 0, {1});
  b.s.measured({message_kind::measured, 1, 0, 0, 0, 7, {}, {}}, 0);
  const float narrow = 1;
  const wire_slice wrong{"", float32, 0, std::as_bytes(std::span(&narrow, 1))};
  b.s.measured({message_kind::measured, 1, 0, 0, 0, 7, {}, std::span(&wrong, 1)}, 0);
  b.measured(1, 7, 0, std::vector<double>(measures_most + 1));
  CHECK(b.s.refused() == 4);
  CHECK(b.s.size() == 0);
  b.measured(1, 7, 1, {1}), b.measured(1, 7, std::uint64_t{1} << 60, {1});
  CHECK(b.s.refused() == 6);
  b.measured(0, 7, 0, {1});
  CHECK(b.out.records.empty());
  b.measured(1, 7, 0, std::vector<double>(measures_most));
  CHECK(b.out.records.size() == 1);
}

TEST_CASE("what was told survives, in the log and in the snapshot") {
  bench b;
  b.measured(0, 7, 0, {3}), b.measured(1, 7, 0, {1, 2});
  b.measured(0, 7, 1, {5}), b.measured(1, 7, 1, {6});
  b.measured(0, 9, 0, {8}), b.measured(1, 9, 0, {9}), b.measured(1, 9, 1, {9});
  std::vector<std::byte> saved;
  b.s.save(bytes_out(saved));
  bench by_log, by_snapshot;
  for (const auto& r : b.out.records) {
    bytes_in in(r, "record");
    CHECK(in.number<std::uint8_t>() == settlement<>::record_kind);
    by_log.s.replay(in);
    in.end();
  }
  bytes_in in(saved, "snapshot");
  by_snapshot.s.load(in);
  in.end();
  for (bench* c : {&by_log, &by_snapshot}) {
    CHECK(c->synced(9).empty());  // nobody asked
    CHECK(c->measured(1, 7, 0, {1, 2}) == lines{"settled to 1: i0 s0 a7 0[3] 1[1 2]"});
    CHECK(c->measured(0, 7, 1, {5}) == lines{"settled to 0: i0 s1 a7 0[5] 1[6]"});
    CHECK(c->measured(0, 9, 1, {8}).empty());  // what was being collected is measured again
    CHECK(c->out.records.empty());
    c->measured(1, 9, 1, {9});
    CHECK(c->out.records.size() == 1);
  }
  bench odd;
  bytes_in second(b.out.records[1], "record");
  second.number<std::uint8_t>();
  CHECK(message_of(status::data_loss, [&] { odd.s.replay(second); }) ==
        "malformed record: round 1 of update 7 stands behind 0");
}
