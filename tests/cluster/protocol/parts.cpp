#include "gradus/cluster/protocol/parts.hpp"

#include "../../message.hpp"

using namespace gradus;
using namespace gradus::detail;

TEST_CASE("a part is a copy, values aligned, and its memory is used again") {
  part_memory m;
  std::vector<float> g{1, 2, 3};
  std::string name = "w";
  const std::int64_t row[] = {4};
  const wire_slice slices[] = {{name, float32, 7, std::as_bytes(std::span(g))},
                               {"emb", int64, 0, std::as_bytes(std::span(row)), slice_role::rows}};
  m.stage({1, 2, 3}, 9, slices);
  g.assign(3, 0), name = "x";
  part_memory::part* p = m.find({1, 2, 3});
  REQUIRE(p != nullptr);
  CHECK(p->step == 9);
  CHECK((p->slices[0].name == "w" && p->slices[0].begin == 7 && p->slices[0].count() == 3));
  const float expected[] = {1, 2, 3};
  CHECK(std::memcmp(p->slices[0].bytes.data(), expected, sizeof expected) == 0);
  CHECK((p->slices[1].name == "emb" && p->slices[1].role == slice_role::rows && p->slices[1].bytes[0] == std::byte{4}));
  CHECK((p->slices[1].bytes.data() - p->memory.data()) % 64 == 0);
  CHECK(m.find({1, 2, 4}) == nullptr);
  CHECK(m.count_of(1) == 1);
  const std::byte* memory = p->memory.data();
  m.release({9, 9, 9});
  CHECK(m.size() == 1);
  m.release({1, 2, 3});
  CHECK(m.size() == 0);
  CHECK(m.stage({1, 2, 4}, 9, slices).memory.data() == memory);
  m.stage({0, 1, 1}, 1, {});
  m.clear();
  CHECK(m.size() == 0);
}

TEST_CASE("a part that is lent lies where it was, until a copy takes its place") {
  part_memory m;
  std::vector<float> g{1, 2, 3};
  std::string name = "w";
  const wire_slice slices[] = {{name, float32, 7, std::as_bytes(std::span(g))}};
  m.stage({1, 2, 3}, 9, slices, 0, true);
  m.stage({2, 2, 3}, 9, slices, 0, true);
  m.stage({1, 2, 4}, 9, slices);
  name = "x";
  part_memory::part* p = m.find({1, 2, 3});
  CHECK((p->slices[0].name == "w" && static_cast<const void*>(p->slices[0].bytes.data()) == g.data()));
  CHECK(m.own(0) == 0);
  CHECK(m.own(1) == 1);
  CHECK(m.own(1) == 0);
  g.assign(3, 0);
  const float expected[] = {1, 2, 3};
  CHECK(std::memcmp(p->slices[0].bytes.data(), expected, sizeof expected) == 0);
  CHECK((p->slices[0].name == "w" && p->slices[0].begin == 7));
  CHECK_FALSE(m.release({1, 2, 3}));
  CHECK_FALSE(m.release({1, 2, 4}));
  CHECK(m.release({2, 2, 3}));
  CHECK_FALSE(m.release({2, 2, 3}));
}

TEST_CASE("values with a keeper stay where they are, and are kept until the part is released") {
  part_memory m;
  const float copied[] = {7};
  auto kept = std::make_shared<std::vector<float>>(3, 2.0F);
  std::string name = "w";
  const wire_slice slices[] = {{"a", float32, 0, std::as_bytes(std::span(copied))},
                               {name, float32, 0, std::as_bytes(std::span(*kept))}};
  part_memory::part& p = m.stage({1, 2, 3}, 9, slices, 1);
  p.keepers.push_back(kept);
  name = "x";
  CHECK(static_cast<const void*>(p.slices[0].bytes.data()) != copied);
  CHECK(static_cast<const void*>(p.slices[1].bytes.data()) == kept->data());
  CHECK((p.slices[0].name == "a" && p.slices[1].name == "w"));
  CHECK(m.own(1) == 0);
  const std::weak_ptr<std::vector<float>> seen = kept;
  kept.reset();
  CHECK_FALSE(seen.expired());
  CHECK_FALSE(m.release({1, 2, 3}));
  CHECK(seen.expired());
  CHECK(m.stage({1, 2, 4}, 9, {}).keepers.empty());
}

TEST_CASE("a part is written down and read again") {
  part_memory m, n;
  const double g[] = {0.5};
  const wire_slice slices[] = {{"w", float64, 2, std::as_bytes(std::span(g)), slice_role::values}};
  std::vector<std::byte> b;
  part_memory::part& staged = m.stage({1, 2, 3}, 9, slices);
  staged.facts = {4, 5, 6};
  part_memory::save(bytes_out(b), staged);
  bytes_in in(b, "log");
  const part_memory::part& p = n.load(in, 2);
  in.end();
  CHECK((p.id == contribution_id{1, 2, 3} && p.step == 9 && p.slices.size() == 1));
  CHECK((p.facts.number == 5 && p.facts.read == 6 && p.facts.pieces == 0));
  CHECK((p.slices[0].name == "w" && p.slices[0].begin == 2 && p.slices[0].role == slice_role::values));
  CHECK(std::memcmp(p.slices[0].bytes.data(), g, sizeof g) == 0);
  bytes_in other(b, "log");
  CHECK(message_of(status::data_loss, [&] { n.load(other, 1); }) ==
        "malformed log: it speaks of worker 1, and there are 1");
  for (std::size_t k = 0; k < b.size(); ++k) {
    bytes_in cut(std::span<const std::byte>(b).first(k), "log");
    CHECK_THROWS_AS(n.load(cut, 2), data_loss);
  }
  b[4 + 24 + 24 + 4 + 4 + 1] = std::byte{99};  // the element type
  bytes_in forged(b, "log");
  CHECK(message_of(status::data_loss, [&] { n.load(forged, 2); }) ==
        "malformed log: the slice of \"w\" has the element type 99, which is none");
}

TEST_CASE("parts are reported in turn, each group for itself") {
  part_memory m;
  const auto stage = [&](std::uint64_t worker, nanos again) {
    part_memory::part& p = m.stage({worker, 1, 1}, 0, {});
    p.is_written = true, p.again = again;
  };
  // Two are due at even times, two at odd ones.
  stage(0, 0), stage(1, 0), stage(2, 1), stage(3, 1);
  const auto reported = [&](nanos now) {
    std::vector<std::uint64_t> workers;
    m.report_due(now, [&](part_memory::part& p) { workers.push_back(p.id.worker), p.again += 2; });
    return workers;
  };
  using numbers = std::vector<std::uint64_t>;
  CHECK(reported(-1).empty());
  CHECK(reported(0) == numbers{0, 1});
  CHECK(reported(1) == numbers{2, 3});
  CHECK(reported(2) == numbers{1, 0});
  CHECK(reported(3) == numbers{3, 2});
  CHECK(reported(4) == numbers{0, 1});
  m.stage({4, 1, 1}, 0, {});  // it is not written down
  m.release({1, 1, 1});
  CHECK(reported(6) == numbers{2, 3, 0});
}
