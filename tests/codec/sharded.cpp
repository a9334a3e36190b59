#include "gradus/codec/sharded.hpp"
#include "gradus/store/crc32c.hpp"

#include <doctest/doctest.h>

#include "../checkpoint/saving.hpp"
#include "gradus/codec/flat.hpp"

using namespace gradus;
using saving::message, saving::names;

namespace {

// Files in memory.
struct shelf final : checkpoint_files {
  std::map<std::string, std::vector<std::byte>, std::less<>> files;
  shelf() = default;
  explicit shelf(const encoded& e) {
    for (const auto& f : e.files)
      for (const auto piece : f.pieces) {
        auto& file = files[f.suffix];
        file.insert(file.end(), piece.begin(), piece.end());
      }
  }
  file_problem open(std::string_view suffix, std::span<const std::byte>& bytes) override {
    const auto found = files.find(suffix);
    if (found == files.end()) return {ENOENT, "open", std::string(suffix)};
    bytes = found->second;
    return {};
  }
  names suffixes() const {
    names out;
    for (const auto& [suffix, bytes] : files) out.push_back(suffix);
    return out;
  }
};

// flat_binary with every record's bytes inverted: what is read has bytes of its own.
struct inverted : flat_binary {
  static constexpr std::string_view name = "inverted";
  decoded decode(checkpoint_files& files) const {
    auto out = flat_binary::decode(files);
    for (auto& r : out.content.records) {
      auto& own = out.owned.emplace_back(r.bytes.begin(), r.bytes.end());
      for (auto& b : own) b = ~b;
      r.bytes = own;
    }
    return out;
  }
};
static_assert(codec<sharded<inverted>>);

// Records of these sizes, named by their number, filled with it.
struct state {
  explicit state(const std::vector<std::size_t>& sizes) {
    content.step = 7;
    content.about = {{"model", "digits"}};
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      auto& b = bytes.emplace_back(sizes[i], static_cast<std::byte>(i + 1));
      content.records.push_back({text("t", i), uint8, {static_cast<std::int64_t>(sizes[i])}, b, i % 3 == 2});
    }
  }
  std::deque<std::vector<std::byte>> bytes;
  snapshot content;
};

void check_same(const snapshot& a, const snapshot& b, std::byte flip = std::byte{0}) {
  CHECK(a.step == b.step);
  REQUIRE(a.records.size() == b.records.size());
  for (std::size_t i = 0; i < a.records.size(); ++i) {
    CHECK(a.records[i].name == b.records[i].name);
    CHECK(a.records[i].blob == b.records[i].blob);
    REQUIRE(a.records[i].bytes.size() == b.records[i].bytes.size());
    for (std::size_t k = 0; k < a.records[i].bytes.size(); ++k)
      REQUIRE((a.records[i].bytes[k] ^ flip) == b.records[i].bytes[k]);
  }
}

// How many records each shard has.
std::vector<std::size_t> counts(const sharded<flat_binary>& c, const snapshot& content) {
  shelf files(c.encode(content));
  std::vector<std::size_t> out;
  for (const auto& [suffix, bytes] : files.files)
    if (suffix != ".shards") out.push_back(decode_bytes(flat_binary{}, bytes).content.records.size());
  return out;
}

std::string refusal(shelf& files) {
  const auto d = sharded<flat_binary>{}.decode(files);
  CHECK(!d.ok());
  CHECK(d.content.records.empty());
  return d.problem;
}
void replace(shelf& files, std::string_view said) {
  const auto* p = reinterpret_cast<const std::byte*>(said.data());
  files.files[".shards"].assign(p, p + said.size());
}

}  // namespace

TEST_CASE("sharded: the files, the last of which says how many there are; read back in order") {
  const state s({100, 200, 0, 50, 250});
  for (const std::uint32_t n : {1u, 2u, 3u, 9u}) {
    CAPTURE(n);
    const sharded<flat_binary> c{.shards = n};
    const auto e = c.encode(s.content);
    REQUIRE(e.files.size() == n + 1);
    CHECK(e.files.back().suffix == ".shards");
    CHECK(e.files.front().suffix == text("-00000-of-0000", n, ".ckpt"));
    shelf files(e);
    const auto d = sharded<flat_binary>{}.decode(files);  // however many it would write itself
    REQUIRE_MESSAGE(d.ok(), d.problem);
    check_same(d.content, s.content);
    CHECK(d.content.about == metadata{{"codec", "sharded"}, {"model", "digits"}});
  }
}

TEST_CASE("sharded: cut where the bytes balance, in the order of the records") {
  using sizes = std::vector<std::size_t>;
  CHECK(counts({.shards = 2}, state({100, 100, 100, 100}).content) == sizes{2, 2});
  CHECK(counts({.shards = 2}, state({300, 50, 50}).content) == sizes{1, 2});
  CHECK(counts({.shards = 2}, state({50, 50, 300}).content) == sizes{3, 0});
  CHECK(counts({.shards = 4}, state({10, 10, 10, 10, 10, 10, 10, 10}).content) == sizes{2, 2, 2, 2});
  CHECK(counts({.shards = 3}, state({1}).content).size() == 3);
  CHECK(counts({.shards = 3}, state({}).content) == sizes{0, 0, 0});
  CHECK(counts({.shards = 2}, state({0, 0}).content).size() == 2);
}

TEST_CASE("sharded: bytes that a codec makes of its files live as long as what is read") {
  const state s({1000, 2000, 3000});
  const sharded<inverted> c{.shards = 3};
  shelf files(c.encode(s.content));
  auto d = c.decode(files);
  REQUIRE_MESSAGE(d.ok(), d.problem);
  const auto moved = std::move(d);
  check_same(moved.content, s.content, std::byte{0xFF});
}

TEST_CASE("sharded: a shard that is missing, damaged, of another place or of another step") {
  const sharded<flat_binary> c{.shards = 2};
  state s({100, 100});
  const shelf good(c.encode(s.content));
  const std::string first = "-00000-of-00002.ckpt", second = "-00001-of-00002.ckpt";
  REQUIRE(good.suffixes() == names{first, second, ".shards"});
  auto files = good;
  files.files.erase(second);
  CHECK(refusal(files).starts_with("shard 1 of 2: cannot open \"-00001-of-00002.ckpt\": No such file"));
  files = good;
  files.files[first].back() ^= std::byte{1};
  CHECK(refusal(files).starts_with("shard 0 of 2: the checksum of \"t0\" does not fit its bytes"));
  files = good;
  files.files[second] = files.files[first];
  CHECK(refusal(files) == "shard 1 of 2: it was not written as this shard");
  files = good;
  s.content.step = 8;
  shelf other(c.encode(s.content));
  files.files[second] = other.files[second];
  CHECK(refusal(files) == "shard 1 of 2: it belongs to another checkpoint than the shards before it");
  s.content.step = 7, s.content.records[1].name = "t0x";
  s.content.records[0].name = "t1";
  other = shelf(c.encode(s.content));
  files = good;
  files.files[first] = other.files[first];
  CHECK(refusal(files) == "\"t1\" stands in two shards");
  files = good;
  files.files.erase(".shards");
  CHECK(refusal(files).starts_with("cannot open \".shards\""));
  // A newer shard is not damage.
  files = good;
  auto& newer = files.files[first];
  newer[8] = std::byte{2};
  const auto crc = crc32c(std::span<const std::byte>(newer).first(60));
  std::memcpy(newer.data() + 60, &crc, 4);
  CHECK(sharded<flat_binary>{}.decode(files).kind == status::failed_precondition);
}

TEST_CASE("sharded: what `.shards` must say") {
  const sharded<flat_binary> c{.shards = 2};
  const shelf good(c.encode(state({100, 100}).content));
  for (const char* said :
       {"", "gradus shards ", "gradus shards 2", "gradus shards 2 of flat_binary", "gradus shards 0 of flat_binary\n",
        "gradus shards -2 of flat_binary\n", "gradus shards 100000 of flat_binary\n",
        "gradus shards 99999999999999999999 of flat_binary\n", "gradus shards 2 of npz\n",
        "gradus shards 2 of flat_binary\nx", "Gradus shards 2 of flat_binary\n", "gradus shards x of flat_binary\n"}) {
    auto files = good;
    replace(files, said);
    CHECK(refusal(files) ==
          "its file \".shards\" does not say \"gradus shards <number> of flat_binary\"; name the codec that wrote it");
  }
  auto files = good;
  replace(files, "gradus shards 99999 of flat_binary\n");
  CHECK(refusal(files).starts_with("shard 0 of 99999: cannot open \"-00000-of-99999.ckpt\""));
}

TEST_CASE("sharded: settings and states that make no sense") {
  const state s({1});
  for (const std::uint32_t n : {0u, 100000u})
    CHECK(message([&] { sharded<flat_binary>{.shards = n}.encode(s.content); }, status::invalid_argument) ==
          text("sharded::shards is ", n, "; give a number from 1 to 99999"));
  auto twice = s.content;
  twice.records.push_back(twice.records[0]);
  message([&] { sharded<flat_binary>{}.encode(twice); }, status::invalid_argument);
}
