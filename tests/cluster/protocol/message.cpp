#include "gradus/cluster/protocol/message.hpp"

#include "../../message.hpp"

using namespace gradus;
using namespace gradus::detail;

namespace {
std::vector<std::byte> joined(std::span<const std::span<const std::byte>> pieces) {
  std::vector<std::byte> out;
  for (const auto p : pieces) out.insert(out.end(), p.begin(), p.end());
  return out;
}
struct outside final : protocol_outside {
  std::vector<std::string> said;
  void send(const protocol_message& m) override {
    said.push_back(text(kind_name(m.kind), " ", m.to, " ", m.ids.empty() ? 0 : m.ids[0].sequence));
  }
  std::uint64_t write(std::span<const std::span<const std::byte>>) override { return 0; }
};
}  // namespace

TEST_CASE("a message goes through the wire and comes back") {
  const float g[] = {1, 2};
  const contribution_id ids[] = {{1, 2, 3}, {4, 5, 6}};
  const wire_slice parts[] = {{"w", float32, 4, std::as_bytes(std::span(g))}};
  message_frames frames;
  const protocol_message sent{message_kind::decide, 3, 1, 9, 8, 7, ids, parts};
  const auto frame = joined(frames.encode(sent));
  const protocol_message m = frames.decode(frame, 1);
  CHECK((m.kind == sent.kind && m.from == 3 && m.to == 1 && m.incarnation == 9 && m.sequence == 8 && m.about == 7));
  CHECK(std::equal(m.ids.begin(), m.ids.end(), std::begin(ids), std::end(ids)));
  REQUIRE(m.parts.size() == 1);
  CHECK((m.parts[0].name == "w" && m.parts[0].begin == 4 && m.parts[0].count() == 2));
}

TEST_CASE("kinds that name contributions have to") {
  message_frames frames;
  const auto refusal = [&](const protocol_message& m) {
    const auto frame = joined(frames.encode(m));
    return message_of(status::data_loss, [&] { frames.decode(frame, 0); });
  };
  const contribution_id two[] = {{1, 2, 3}, {4, 5, 6}};
  CHECK(refusal({.kind = message_kind::staged, .ids = two}) ==
        "malformed message: one of kind staged has 2 ids; expected 1");
  CHECK(frames.decode(joined(frames.encode({.kind = message_kind::staged})), 0).ids.empty());
  CHECK(refusal({.kind = message_kind::token, .ids = two}) ==
        "malformed message: one of kind token has 2 ids; expected 1");
  CHECK(refusal({.kind = message_kind::joined}) == "malformed message: one of kind joined has 0 ids; expected 1");
  CHECK(refusal({.kind = message_kind::drop}) == "malformed message: one of kind drop has 0 ids; expected 1");
  CHECK(refusal({.kind = message_kind::decide}) ==
        "malformed message: one of kind decide has 0 ids; expected 1 or more");
  CHECK(refusal({.kind = message_kind::heartbeat}) == "no error");
  // Ids that are no whole ids, or not the last slice.
  message_encoder out;
  const std::uint64_t numbers[] = {1, 2, 3, 4};
  const wire_slice four{"", uint64, 0, std::as_bytes(std::span(numbers)), slice_role::ids},
      three{"", uint64, 0, std::as_bytes(std::span(numbers)).first(24), slice_role::ids}, w{"w", float32, 0, {}};
  const auto odd = joined(out.encode({message_kind::decide}, {four}));
  CHECK(
      message_of(status::data_loss, [&] { frames.decode(odd, 0); }) ==
      "malformed message: slice 0 of 1 holds ids in 32 bytes; expected them last, without a name, in three numbers of "
      "8 bytes each");
  for (const wire_slice odd_one :
       {wire_slice{"x", uint64, 0, three.bytes, slice_role::ids},
        wire_slice{"", uint64, 1, three.bytes, slice_role::ids}, wire_slice{"", uint64, 0, {}, slice_role::ids}}) {
    const auto frame = joined(out.encode({message_kind::decide}, {odd_one}));
    CHECK(message_of(status::data_loss, [&] { frames.decode(frame, 0); }).find("slice 0 of 1 holds ids in ") !=
          std::string::npos);
  }
  const auto first = joined(out.encode({message_kind::decide}, {three, w}));
  CHECK(message_of(status::data_loss, [&] { frames.decode(first, 0); }).find("slice 0 of 2 holds ids in 24 bytes") !=
        std::string::npos);
}

TEST_CASE("messages wait for their record") {
  outside out;
  held_messages held;
  for (std::uint64_t i = 1; i <= 4; ++i) {
    const contribution_id id[] = {{0, 0, i}};
    held.hold(i == 3 ? 9 : i, {.kind = message_kind::kept, .to = static_cast<std::uint32_t>(i), .ids = id});
  }
  held.synced(0, out);
  CHECK(out.said.empty());
  held.synced(2, out);
  CHECK(out.said == std::vector<std::string>{"kept 1 1", "kept 2 2"});
  CHECK(held.size() == 2);
  const contribution_id id[] = {{0, 0, 5}};
  held.hold(4, {.kind = message_kind::kept, .to = 5, .ids = id});
  held.synced(8, out);
  held.synced(9, out);
  CHECK(out.said == std::vector<std::string>{"kept 1 1", "kept 2 2", "kept 4 4", "kept 5 5", "kept 3 3"});
  CHECK(held.size() == 0);
}

TEST_CASE("nodes: shards first, then workers") {
  const cluster_shape s{.shards = 2, .workers = 3};
  CHECK(s.node_of(0) == 2);
  CHECK(s.worker_of(4) == 2);
  CHECK((s.is_worker(2) && s.is_worker(4) && !s.is_worker(1) && !s.is_worker(5)));
}
