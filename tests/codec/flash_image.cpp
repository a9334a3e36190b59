#include "gradus/codec/flash_image.hpp"

#include <doctest/doctest.h>

#include <cstdio>
#include <fstream>
#include <random>
#include <sstream>

#include "gradus/codec/flat.hpp"
#include "gradus/cpu/device.hpp"
#include "gradus/ops/layer.hpp"
#include "gradus/ops/loss.hpp"
#include "gradus/ops/model.hpp"
#include "gradus/run/model.hpp"
#include "gradus/run/static_step.hpp"
#include "gradus/run/stepper.hpp"
#include "gradus/store/crc32c.hpp"
#include "gradus/update/rules/adam.hpp"

using namespace gradus;

namespace {

template <class T>
std::span<const std::byte> bytes(const T& values) {
  return std::as_bytes(std::span(values));
}

// The worked example of docs/formats/flash.md.
std::vector<std::byte> example() {
  static constexpr float w[] = {1.0f, -2.0f};
  static constexpr std::int64_t step[] = {5};
  snapshot s;
  s.records = {{"global_step", int64, {}, bytes(step), false}, {"w", float32, {2}, bytes(w), false}};
  return write_flash_image(s, {.sector_bytes = 128, .sectors = 4});
}
std::string hex_dump(std::span<const std::byte> file) {
  std::string out;
  char piece[32];
  for (std::size_t row = 0; row < file.size(); row += 16) {
    std::snprintf(piece, sizeof piece, "%06zx ", row);
    out += piece;
    for (std::size_t i = row; i < row + 16; ++i) {
      std::snprintf(piece, sizeof piece, " %02x", std::to_integer<unsigned>(file[i]));
      out += piece;
    }
    out += "\n";
  }
  return out;
}

// A board's flash, kept in memory. It fails after `left` operations.
struct chip {
  std::vector<std::byte>* cells;
  std::uint32_t sector_bytes, sectors = static_cast<std::uint32_t>(cells->size() / sector_bytes);
  int left = 1 << 30;
  bool erase(std::uint32_t s) {
    if (left-- <= 0) return false;
    std::fill_n(cells->begin() + s * sector_bytes, sector_bytes, std::byte{0xFF});
    return true;
  }
  bool program(std::uint32_t at, std::span<const std::byte, 32> line) {
    if (left-- <= 0) return false;
    for (std::size_t i = 0; i < 32; ++i) (*cells)[at + i] &= line[i];
    return true;
  }
  bool read(std::uint32_t at, std::span<std::byte> to) {
    std::copy_n(cells->begin() + at, to.size(), to.begin());
    return true;
  }
};

constexpr auto model = [](graph& g) {
  const auto x = g.placeholder("x", {batch, 4}), y = g.placeholder("y", {batch, 1});
  const auto out = dense(tanh(dense(x, {.units = 5, .name = "hidden"})), {.units = 1, .name = "out"});
  return model_spec{.loss = reduce_mean(squared_difference(out, y)), .metrics = {}, .predictions = {{"out", out}}};
};
template <class Stepper>
snapshot state_of(Stepper& s) {
  state_list list;
  s.remembers(list);
  snapshot out;
  for (const auto& e : list.entries()) out.records.push_back({e.name, e.type, e.dims, e.bytes, false});
  return out;
}
bool same(const snapshot& a, const snapshot& b) {
  return std::equal(a.records.begin(), a.records.end(), b.records.begin(), b.records.end(),
                    [](const record& p, const record& q) {
                      return p.name == q.name && p.type == q.type && p.dims == q.dims &&
                             std::equal(p.bytes.begin(), p.bytes.end(), q.bytes.begin(), q.bytes.end());
                    });
}
struct counting {
  std::int64_t step = 0;
  template <class List>
  void remembers(List& list) {
    list.scalar("global_step", step);
  }
};
template <class T>
void poke(std::vector<std::byte>& file, std::size_t at, T n) {
  std::memcpy(file.data() + at, &n, sizeof n);
}
// With the checksums of the record in the first sectors set right.
void seal(std::vector<std::byte>& file) {
  std::uint32_t n = 0;
  std::memcpy(&n, file.data() + 44, 4);
  if (n < file.size() - 64 - 32) poke(file, 48, crc32c(std::span(file).subspan(64, (n + 31) / 32 * 32)));
  poke(file, 60, crc32c(std::span(file).subspan(32, 28)));
}

}  // namespace

TEST_CASE("flash_image: the page's hex dump is what we write") {
  std::ifstream page(GRADUS_SOURCE_DIR "/docs/formats/flash.md");
  REQUIRE(page.good());
  std::stringstream text;
  text << page.rdbuf();
  const auto file = example();
  const auto dump = hex_dump(std::span(file).first(160));
  CHECK_MESSAGE(text.str().find(dump) != std::string::npos, "docs/formats/flash.md should hold\n" << dump);
}

TEST_CASE("flash_image: a desktop's training goes on on a board, and back, bit for bit") {
  auto board = make_static_stepper<model>(static_batch<2>{}, adam{.rate = 0.1}, portable{});
  auto desktop = make_static_stepper<model>(static_batch<2>{}, adam{.rate = 0.1}, portable{});
  const auto train = [](auto& s, unsigned seed) {
    std::mt19937 random(seed);
    for (int i = 0; i < 5; ++i) {
      for (auto& v : s.template input<"x">()) v = static_cast<float>(random() % 64) / 32 - 1;
      for (auto& v : s.template input<"y">()) v = static_cast<float>(random() % 64) / 32 - 1;
      s.step();
    }
  };
  desktop.initialize(3);
  train(desktop, 1);
  // Out to the board.
  auto cells = write_flash_image(state_of(desktop), {.sector_bytes = 256, .sectors = 12});
  REQUIRE(cells.size() == 12 * 256);
  flash_store store(chip{&cells, 256});
  REQUIRE(store.open(board) == flash_status::ok);
  CHECK(board.global_step() == 5);
  CHECK(same(state_of(board), state_of(desktop)));
  train(board, 2), train(desktop, 2);
  CHECK(same(state_of(board), state_of(desktop)));
  // And home: several saves later, so that the record goes on at the ring's beginning at times.
  for (unsigned i = 0; i < 9; ++i) {
    train(board, 10 + i), train(desktop, 10 + i);
    REQUIRE(store.save(board) == flash_status::ok);
    const auto read = read_flash_image(cells);
    REQUIRE_MESSAGE(read.ok(), read.problem);
    CHECK(read.content.step == board.global_step());
    CHECK(same(read.content, state_of(desktop)));
    // What was read and is written again opens as well.
    auto again = write_flash_image(read.content, {.sector_bytes = 512});
    CHECK(same(read_flash_image(again).content, read.content));
    flash_store other(chip{&again, 512});
    REQUIRE(other.open(board) == flash_status::ok);
    CHECK(same(state_of(board), state_of(desktop)));
  }
}

TEST_CASE("flash_image: a checkpoint of a stepper on the heap is what a board opens") {
  using update = composed<adam>;
  using whole = interpreted_model<cpu<portable>, ops<>, gating::op, update::needs_norm, true>;
  stepper<whole, update, cpu<portable>> heap(whole{model}, update(adam{.rate = 0.1}));
  heap.allocate();
  heap.initialize(21);
  state_list list;
  heap.remembers(list);
  snapshot s;
  for (const auto& e : list.entries()) s.records.push_back({e.name, e.type, e.dims, e.bytes, e.dynamic != nullptr});
  auto cells = write_flash_image(s);
  auto board = make_static_stepper<model>(static_batch<2>{}, adam{.rate = 0.1}, portable{});
  flash_store store(chip{&cells, 4096});
  CHECK(store.open(board) == flash_status::ok);
  CHECK(same(state_of(board), s));
}

TEST_CASE("flash_image: what cannot be written is refused") {
  const std::vector<std::byte> one(8);
  const auto refused = [](snapshot s, flash_geometry g, std::string_view text) {
    try {
      write_flash_image(s, g);
      FAIL("not refused");
    } catch (const error& e) {
      CHECK(std::string_view(e.what()) == text);
    }
  };
  snapshot s;
  s.records = {{"b", uint8, {8}, one, true}};
  refused(s, {}, "\"b\" is a blob, which a board's flash has no place for; leave it out of the image");
  s.records = {{"b", uint8, {8}, one, false}};
  refused(s, {.sector_bytes = 4095}, "a flash sector of 4095 bytes; it is a multiple of 32, and at least 64");
  refused(s, {.sector_bytes = 32}, "a flash sector of 32 bytes; it is a multiple of 32, and at least 64");
  refused(s, {.sector_bytes = 64, .sectors = 3},
          "the state takes 25 bytes, and two records of it 4 sectors of 64, not 3; give the store more sectors");
  s.records.push_back(s.records[0]);
  refused(s, {}, "this state cannot be saved: \"b\" stands in it twice");
}

TEST_CASE("flash_image: each forgery is named") {
  const auto file = example();
  REQUIRE(read_flash_image(file).ok());
  CHECK(read_flash_image(file).content.step == 5);
  const auto with = [&file](std::size_t at, auto n) {
    auto forged = file;
    poke(forged, at, n), seal(forged);
    return read_flash_image(forged).problem;
  };
  CHECK(with(64, std::uint32_t{1}) == "the identity of \"global_step\" does not fit its name, type and extents");
  CHECK(with(68, ~std::uint32_t{0}) == "a length in its record reaches past the record's end");
  CHECK(with(72, std::uint16_t{0xFFFF}) == "a length in its record reaches past the record's end");
  CHECK(with(75, std::uint8_t{7}) == "a tensor has rank 7, at most 6 is known");
  CHECK(with(40, std::uint32_t{1}) == "its header counts other tensors than its record holds");
  CHECK(with(52, std::uint32_t{3}) == "its header counts other tensors than its record holds");
  CHECK(with(44, ~std::uint32_t{0}) == message_of(flash_status::damaged));
  CHECK(with(32, std::uint32_t{2}) == message_of(flash_status::newer_version));
  CHECK(with(0, std::uint64_t{0}) == message_of(flash_status::foreign));
  CHECK(read_flash_image(std::vector<std::byte>(512, std::byte{0xFF})).problem == message_of(flash_status::empty));
  CHECK(read_flash_image({}).problem == message_of(flash_status::empty));
  // Cut anywhere, or with any bit turned: never read as something else.
  for (std::size_t n = 0; n < file.size(); ++n) {
    const auto r = read_flash_image(std::span(file).first(n));
    CHECK((!r.ok() || n % 128 == 0));
  }
  for (std::size_t bit = 0; bit < 8 * file.size(); ++bit) {
    auto forged = file;
    forged[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    const auto r = read_flash_image(forged);
    if (r.ok()) CHECK(same(r.content, read_flash_image(file).content));
  }
}

// What a board says of its flash, a dump of that flash says too: `another_model` and `too_small` apart, since a dump
// has no model.
TEST_CASE("flash_image: a dump has the status that the board's open has") {
  counting board;
  const auto agree = [&](const std::vector<std::byte>& of) {
    auto cells = of;
    flash_store store(chip{&cells, 128});
    const flash_status said = store.open(board);
    const decoded read = read_flash_image(of);
    CHECK(read.problem == (said == flash_status::ok ? "" : message_of(said)));
    if (said != flash_status::ok) CHECK(read.kind == kind_of(said));
    return said;
  };
  int seen[10] = {};
  std::vector<std::byte> cells(4 * 128, std::byte{0xFF});
  for (std::int64_t n = 1; n <= 5; ++n) {
    const auto before = cells;
    for (int left = 0; left < 6; ++left) {
      cells = before;
      flash_store store(chip{.cells = &cells, .sector_bytes = 128, .left = left});
      store.open(board), board.step = n;
      store.save(board);
      ++seen[static_cast<int>(agree(cells))];
    }
  }
  const auto saved = cells;
  for (std::size_t bit = 0; bit < 8 * saved.size(); ++bit) {
    cells = saved;
    cells[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    ++seen[static_cast<int>(agree(cells))];
  }
  // One record alone.
  std::vector<std::byte> blank(4 * 128, std::byte{0xFF}), one = blank;
  flash_store store(chip{&one, 128});
  store.open(board), store.save(board);
  for (std::size_t bit = 0; bit < 8 * 128; ++bit) {
    cells = one;
    cells[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    ++seen[static_cast<int>(agree(cells))];
  }
  for (const auto status : {flash_status::ok, flash_status::empty, flash_status::damaged})
    CHECK(seen[static_cast<int>(status)] > 0);
  // The greatest of all numbers is no record's.
  cells = one;
  poke(cells, 36, ~std::uint32_t{0}), seal(cells);
  CHECK(agree(cells) == flash_status::empty);
  for (auto& b : cells) b = std::byte{0x5A};
  CHECK(agree(cells) == flash_status::foreign);
}
