#include "gradus/store/flash.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "gradus/store/crc32c.hpp"

using namespace gradus;

namespace {

struct power_cut {};

// NOR flash: bits fall when programmed, and rise only when their sector is erased. Refuses what would have to rise, and
// a line that was programmed before. `left` operations from now on the power fails in the middle of one.
struct cells {
  std::uint32_t sector_bytes, sectors;
  std::vector<std::byte> bytes;
  std::vector<int> erased;                // how often, of each sector
  std::vector<std::uint8_t> programmed;   // of each line since its sector was erased
  std::vector<std::uint32_t> bad = {};    // sectors that do not take bits any more
  std::vector<std::uint32_t> stuck = {};  // sectors that are not erased any more
  int operations = 0, refused = 0, left = -1, failing_reads = 0, reads = 0;
  std::mt19937 random{1};
  bool in_order = true;       // a torn operation has done a first part of the words, not any of them
  bool clears_first = false;  // an erasure first programs all bits of its sector to 0, and is torn while it does

  cells(std::uint32_t of_a_sector, std::uint32_t n)
      : sector_bytes(of_a_sector),
        sectors(n),
        bytes(of_a_sector * n, std::byte{0xFF}),
        erased(n),
        programmed(of_a_sector * n / 32) {}

  // Calls word(i, how) for each of n words: 0 not reached, 1 torn, 2 done.
  template <class F>
  void torn(std::size_t n, F word) {
    if (in_order) {
      const std::size_t at = random() % (n + 1);
      for (std::size_t i = 0; i < n && i <= at; ++i) word(i, i < at ? 2 : 1);
    } else {
      for (std::size_t i = 0; i < n; ++i) word(i, static_cast<int>(random() % 3));
    }
  }
  bool fails() {
    ++operations;
    if (left < 0) return false;
    return left-- == 0;
  }
  bool erase(std::uint32_t sector) {
    if (sector >= sectors) return ++refused, false;
    if (std::find(stuck.begin(), stuck.end(), sector) != stuck.end()) return false;
    std::byte* p = &bytes[sector * sector_bytes];
    ++erased[sector];
    std::fill_n(&programmed[sector * sector_bytes / 32], sector_bytes / 32, std::uint8_t{0});
    if (fails()) {
      torn(sector_bytes / 4, [&](std::size_t i, int how) {
        for (std::size_t k = 4 * i; k < 4 * i + 4; ++k)
          if (clears_first)
            p[k] = how == 0 ? p[k] : std::byte{0};
          else if (how != 0)
            p[k] |= how == 2 ? std::byte{0xFF} : static_cast<std::byte>(random());
      });
      // A cell that is half erased takes no program: the store has to erase the sector again.
      std::fill_n(&programmed[sector * sector_bytes / 32], sector_bytes / 32, std::uint8_t{1});
      throw power_cut();
    }
    std::fill_n(p, sector_bytes, std::byte{0xFF});
    return true;
  }
  bool program(std::uint32_t offset, std::span<const std::byte, 32> line) {
    if (offset % 32 != 0 || offset + 32 > bytes.size() || programmed[offset / 32] != 0) return ++refused, false;
    for (std::size_t i = 0; i < 32; ++i)
      if ((bytes[offset + i] & line[i]) != line[i]) return ++refused, false;
    programmed[offset / 32] = 1;
    if (fails()) {
      torn(8, [&](std::size_t i, int how) {
        for (std::size_t k = 4 * i; k < 4 * i + 4; ++k)
          if (how != 0) bytes[offset + k] &= how == 2 ? line[k] : line[k] | static_cast<std::byte>(random());
      });
      throw power_cut();
    }
    if (std::find(bad.begin(), bad.end(), offset / sector_bytes) != bad.end()) return true;  // and nothing happened
    std::copy(line.begin(), line.end(), bytes.begin() + offset);
    return true;
  }
  bool read(std::uint32_t offset, std::span<std::byte> to) {
    if (offset + to.size() > bytes.size()) return ++refused, false;
    if (++reads > 100'000) throw std::runtime_error("reads without an end");
    if (failing_reads > 0 && --failing_reads == 0) return false;
    std::copy_n(bytes.begin() + offset, to.size(), to.begin());
    return true;
  }
};
struct chip {
  cells* of;
  std::uint32_t sector_bytes = of->sector_bytes, sectors = of->sectors;
  bool erase(std::uint32_t sector) { return of->erase(sector); }
  bool program(std::uint32_t offset, std::span<const std::byte, 32> line) { return of->program(offset, line); }
  bool read(std::uint32_t offset, std::span<std::byte> to) { return of->read(offset, to); }
};

// A trainer as the store sees it: every number follows from the step.
struct trained {
  std::int64_t global_step = 0;
  std::array<float, 37> kernel{}, momentum{};
  std::array<double, 3> scale{};
  std::array<std::uint8_t, 5> seen{};
  std::string name = "hidden/kernel";
  extents dims{37};
  bool is_restored = false;

  void step_to(std::int64_t n) {
    global_step = n;
    std::mt19937 draw(static_cast<unsigned>(n));
    for (auto& x : kernel) x = static_cast<float>(draw());
    for (auto& x : momentum) x = static_cast<float>(draw());
    for (auto& x : scale) x = static_cast<double>(draw());
    for (auto& x : seen) x = static_cast<std::uint8_t>(draw());
  }
  bool is_whole() const {
    trained other;
    other.step_to(global_step);
    return kernel == other.kernel && momentum == other.momentum && scale == other.scale && seen == other.seen;
  }
  template <class List>
  void remembers(List& list) {
    list.scalar("global_step", global_step);
    list.tensor(name, float32, dims, std::as_writable_bytes(std::span(kernel)));
    list.tensor("hidden/kernel/momentum", float32, extents{37}, std::as_writable_bytes(std::span(momentum)));
    list.tensor("scale", float64, extents{3, 1}, std::as_writable_bytes(std::span(scale)));
    list.tensor("seen", uint8, extents{5}, std::as_writable_bytes(std::span(seen)));
  }
  void restored() { is_restored = true; }
};
// One whose state takes three sectors of 1024 bytes.
struct larger : trained {
  std::array<float, 700> more{};
  template <class List>
  void remembers(List& list) {
    trained::remembers(list);
    list.tensor("more", float32, extents{700}, std::as_writable_bytes(std::span(more)));
  }
};
trained at_step(std::int64_t n) {
  trained t;
  t.step_to(n);
  return t;
}
flash_status save(cells& flash, std::int64_t n) {
  flash_store store(chip{&flash});
  trained was;
  store.open(was);
  auto t = at_step(n);
  return store.save(t);
}
// The step that a flash opens, -1 if none, -2 if it is none.
std::int64_t opened(cells& flash, flash_status* said = nullptr) {
  flash_store store(chip{&flash});
  trained t;
  const auto s = store.open(t);
  if (said != nullptr) *said = s;
  if (s != flash_status::ok) return t.global_step == 0 && !t.is_restored ? -1 : -2;
  return t.is_restored && t.is_whole() ? t.global_step : -2;
}

}  // namespace

TEST_CASE("flash: what was saved comes back, and the newest of it") {
  for (const auto& [bytes, sectors] : {std::pair{4096u, 2u}, {512u, 4u}, {256u, 7u}, {64u, 41u}}) {
    cells flash(bytes, sectors);
    flash_store store(chip{&flash});
    trained t;
    CHECK(store.open(t) == flash_status::empty);
    for (std::int64_t n = 1; n <= 30; ++n) {
      auto now = at_step(n);
      REQUIRE(store.save(now) == flash_status::ok);
      CHECK(std::int64_t{store.sequence()} == n);
      CHECK(opened(flash) == n);
    }
    CHECK(flash.refused == 0);
    CHECK(save(flash, 31) == flash_status::ok);  // by a store that was opened later
    CHECK(opened(flash) == 31);
  }
}

// At every operation of every save, torn in many ways: what opens is the confirmed step or the one being saved.
TEST_CASE("flash: a power cut at any instant leaves one whole step, never older than the last confirmed") {
  int cuts = 0, newer = 0, none = 0;
  std::mt19937 random(7);
  for (const auto& [bytes, sectors] : {std::pair{1024u, 2u}, {512u, 4u}, {256u, 7u}, {128u, 13u}, {64u, 18u}}) {
    std::vector<cells> after(1, cells(bytes, sectors));  // after so many saves
    for (int n = 1; n <= 7; ++n) {
      after.push_back(after.back());
      after.back().operations = 0;
      REQUIRE(save(after.back(), n) == flash_status::ok);
    }
    for (std::size_t n = 1; n < after.size(); ++n) {
      const auto confirmed = static_cast<std::int64_t>(n) - 1;
      for (int at = 0; at < after[n].operations; ++at)
        for (int way = 0; way < 26; ++way) {
          cells flash = after[n - 1];
          flash.random.seed(random()), flash.in_order = way % 2 == 0, flash.left = at;
          REQUIRE_THROWS_AS(save(flash, confirmed + 1), power_cut);
          ++cuts;
          flash_status said{};
          auto found = opened(flash, &said);
          // Nothing confirmed: nothing has to be there; but it must not be taken for another's.
          if (confirmed == 0 && found == -1) {
            CHECK((said == flash_status::empty || said == flash_status::damaged));
            found = 0, ++none;
          }
          REQUIRE_MESSAGE((found == confirmed || found == confirmed + 1), "sector ", bytes, ", save ", n,
                          ", operation ", at, ", way ", way, ": step ", found);
          if (found > confirmed) ++newer;
          // The next save is cut as well, at a place of its own; the one after it is not.
          flash.left = static_cast<int>(random() % 20);
          bool second = true;
          try {
            said = save(flash, 100);
            REQUIRE(said == flash_status::ok);
          } catch (const power_cut&) {
            second = false, ++cuts;
          }
          flash.left = -1;
          auto then = opened(flash);
          if (found == 0 && then == -1) then = 0;
          REQUIRE((second ? then == 100 : then == found || then == 100));
          REQUIRE(save(flash, 101) == flash_status::ok);
          REQUIRE(opened(flash) == 101);
          REQUIRE(flash.refused == 0);
        }
    }
  }
  MESSAGE(cuts << " power cuts; the step being saved was found " << newer << " times, nothing before the first "
               << none);
  CHECK(cuts >= 20000);
  CHECK(newer > 0);
}

TEST_CASE("flash: a power cut inside format leaves the newest save or none, and format can be called again") {
  std::mt19937 random(19);
  int kept = 0, gone = 0;
  for (const auto& [bytes, sectors] : {std::pair{1024u, 2u}, {512u, 4u}, {256u, 7u}, {64u, 18u}})
    for (std::int64_t saves = 0; saves <= 9; ++saves) {
      cells before(bytes, sectors);
      for (std::int64_t n = 1; n <= saves; ++n) REQUIRE(save(before, n) == flash_status::ok);
      const bool foreign = saves == 9;  // what the sectors hold is somebody else's
      if (foreign)
        for (auto& b : before.bytes) b = static_cast<std::byte>(random());
      for (int at = 0; at < static_cast<int>(sectors); ++at)
        for (int way = 0; way < 20; ++way) {
          cells flash = before;
          flash.random.seed(random()), flash.in_order = way % 2 == 0, flash.left = at;
          {
            flash_store store(chip{&flash});
            trained t;
            store.open(t);
            REQUIRE_THROWS_AS(store.format(), power_cut);
          }
          flash.left = -1;
          flash_status said{};
          const auto found = opened(flash, &said);
          if (found == -1)
            ++gone;
          else
            ++kept;
          REQUIRE_MESSAGE((found == -1 || (!foreign && saves != 0 && found == saves)), "sector ", bytes, ", saves ",
                          saves, ", erase ", at, ": step ", found);
          REQUIRE((found == saves || said == flash_status::empty || said == flash_status::damaged ||
                   (foreign && said == flash_status::foreign)));
          flash_store store(chip{&flash});
          trained t;
          store.open(t);
          REQUIRE(store.format() == flash_status::ok);
          REQUIRE(save(flash, 77) == flash_status::ok);
          REQUIRE(opened(flash) == 77);
          REQUIRE(flash.refused == 0);
        }
    }
  CHECK(kept > 0);
  CHECK(gone > 0);
}

// A sector that is not erased keeps its record, whose number is above those of a store that begins anew.
TEST_CASE("flash: a save after a format that failed is newer than what the format left") {
  for (std::uint32_t stuck = 0; stuck < 4; ++stuck) {
    cells flash(1024, 4);
    for (std::int64_t n = 1; n <= 7; ++n) REQUIRE(save(flash, n) == flash_status::ok);
    flash.stuck = {stuck};
    flash_store store(chip{&flash});
    trained t;
    REQUIRE(store.open(t) == flash_status::ok);
    CHECK(store.format() == flash_status::not_written);
    t.step_to(50);
    flash.stuck.clear();
    CHECK(store.save(t) == flash_status::ok);
    CHECK(opened(flash) == 50);
    CHECK(store.format() == flash_status::ok);
    CHECK(store.sequence() == 0);
  }
}

// A program may format what it has not opened, or what has become too small for its state: a cut leaves the newest
// record or none here too, never an older one.
TEST_CASE("flash: format erases the newest record last, also before open and where the store is too small") {
  for (std::int64_t saves = 1; saves <= 9; ++saves)
    for (int at = 0; at < 5; ++at)
      for (const bool opens : {false, true}) {
        cells flash(1024, 5);
        for (std::int64_t n = 1; n <= saves; ++n) REQUIRE(save(flash, n) == flash_status::ok);
        flash.left = at;
        {
          flash_store store(chip{&flash});
          larger t;
          if (opens) REQUIRE(store.open(t) == flash_status::too_small);
          REQUIRE_THROWS_AS(store.format(), power_cut);
        }
        flash.left = -1;
        const auto found = opened(flash);
        REQUIRE_MESSAGE((found == saves || found == -1), "saves ", saves, ", erase ", at,
                        std::string(opens ? ", too small" : ""), ": step ", found);
        if (at < 4) CHECK(found == saves);
      }
}

// Many chips program a sector to 0 before they erase it.
TEST_CASE("flash: a cut while an erasure clears its sector is no other program's data") {
  std::mt19937 random(29);
  for (const auto& [bytes, sectors] : {std::pair{1024u, 2u}, {256u, 7u}, {64u, 18u}})
    for (std::int64_t saves = 0; saves < 3; ++saves) {
      cells before(bytes, sectors);
      for (std::int64_t n = 1; n <= saves; ++n) REQUIRE(save(before, n) == flash_status::ok);
      cells counted = before;
      counted.operations = 0;
      REQUIRE(save(counted, saves + 1) == flash_status::ok);
      for (int at = 0; at < counted.operations; ++at)
        for (int way = 0; way < 20; ++way) {
          cells flash = before;
          flash.random.seed(random()), flash.in_order = way % 2 == 0, flash.left = at, flash.clears_first = true;
          REQUIRE_THROWS_AS(save(flash, saves + 1), power_cut);
          flash.left = -1;
          flash_status said{};
          const auto found = opened(flash, &said);
          if (found == -1)
            REQUIRE_MESSAGE((saves == 0 && (said == flash_status::empty || said == flash_status::damaged)), "sector ",
                            bytes, ", operation ", at, ": ", std::string(message_of(said)));
          else
            REQUIRE((found == saves || found == saves + 1));
          REQUIRE(save(flash, 90) == flash_status::ok);
          REQUIRE(opened(flash) == 90);
          REQUIRE(flash.refused == 0);
        }
    }
}

TEST_CASE("flash: a format that is cut while it clears the sector of the only record leaves nothing foreign") {
  for (unsigned seed = 0; seed < 400; ++seed) {
    cells flash(1024, 4);
    REQUIRE(save(flash, 1) == flash_status::ok);
    flash_store store(chip{&flash});
    trained t;
    REQUIRE(store.open(t) == flash_status::ok);
    flash.random.seed(seed), flash.in_order = seed % 2 == 0, flash.left = 3, flash.clears_first = true;
    REQUIRE_THROWS_AS(store.format(), power_cut);
    flash.left = -1;
    flash_status said{};
    const auto found = opened(flash, &said);
    REQUIRE_MESSAGE((found == 1 || (found == -1 && (said == flash_status::empty || said == flash_status::damaged))),
                    "seed ", seed, ": ", std::string(message_of(said)));
    REQUIRE(save(flash, 90) == flash_status::ok);
    REQUIRE(opened(flash) == 90);
  }
}

// What begins with zeros is not by that what an erasure has left.
TEST_CASE("flash: another program's data that begin with zeros are foreign") {
  for (unsigned seed = 0; seed < 100; ++seed) {
    cells flash(1024, 4);
    std::mt19937 random(seed);
    for (std::size_t i = 8; i < flash.bytes.size(); ++i) flash.bytes[i] = static_cast<std::byte>(random());
    for (std::size_t i = 0; i < 8; ++i) flash.bytes[i] = flash.bytes[1024 + i] = std::byte{0};
    flash_status said{};
    CHECK(opened(flash, &said) == -1);
    CHECK(said == flash_status::foreign);
  }
}

TEST_CASE("flash: a long life with cuts") {
  for (const auto& [bytes, sectors] : {std::pair{512u, 4u}, {256u, 11u}}) {
    cells flash(bytes, sectors);
    std::int64_t confirmed = 0, tried = 0;
    std::mt19937 random(11);
    for (int life = 0; life < 600; ++life) {
      flash.left = static_cast<int>(random() % 90), flash.in_order = random() % 2 == 0;
      try {
        flash_store store(chip{&flash});
        trained t;
        const auto s = store.open(t);
        REQUIRE((s == flash_status::ok || (confirmed == 0 && s <= flash_status::damaged)));
        if (s == flash_status::ok) {
          REQUIRE(t.is_whole());
          REQUIRE(t.global_step >= confirmed);
          REQUIRE(t.global_step <= tried);
          confirmed = t.global_step;
        }
        for (;;) {
          t.step_to(tried = confirmed + 1);
          const auto now = store.save(t);
          REQUIRE(now == flash_status::ok);
          confirmed = tried;
        }
      } catch (const power_cut&) {
      }
    }
    CHECK(confirmed > 900);
    CHECK(flash.refused == 0);
    const auto [least, most] = std::minmax_element(flash.erased.begin(), flash.erased.end());
    CHECK(*most <= 2 * *least);
  }
}

// Bytes of a stranger, with checksums that are right.
TEST_CASE("flash: lengths and names in a record that lie end in another model, soon, and change nothing") {
  cells saved(1024, 2);
  REQUIRE(save(saved, 1) == flash_status::ok);
  REQUIRE(save(saved, 2) == flash_status::ok);
  constexpr std::size_t header = 1024 + 32, payload = 1024 + 64;
  std::uint32_t words[8] = {};
  std::memcpy(words, &saved.bytes[header], sizeof words);
  const std::size_t length = words[3], lines = (length + 31) / 32 * 32;
  int other = 0;
  const auto check = [&](cells flash) {
    std::uint32_t changed[8] = {};
    std::memcpy(changed, words, sizeof changed);
    changed[4] = crc32c(std::span<const std::byte>(&flash.bytes[payload], lines));
    changed[7] = crc32c(std::as_bytes(std::span(changed)).first(28));
    std::memcpy(&flash.bytes[header], changed, sizeof changed);
    flash.reads = 0;
    flash_store store(chip{&flash});
    trained t;
    const auto said = store.open(t);
    CHECK(flash.reads < 400);
    if (said == flash_status::ok) return;  // a value or a name that is not compared
    ++other;
    CHECK(said == flash_status::another_model);
    CHECK_FALSE(t.is_restored);
    CHECK(t.global_step == 0);
    CHECK(t.kernel == trained{}.kernel);
    auto now = at_step(3);
    CHECK(store.save(now) == flash_status::another_model);
    CHECK(store.format() == flash_status::ok);
    CHECK(store.save(now) == flash_status::ok);
  };
  check(saved);
  CHECK(other == 0);
  const auto entry = [&](std::size_t at) { return saved.bytes.begin() + static_cast<std::ptrdiff_t>(payload + at); };
  std::size_t at = 0;
  for (int k = 0; k < 5; ++k) {  // the five entries: id, bytes, length of the name, type, rank
    std::uint32_t size = 0;
    std::uint16_t name = 0;
    std::memcpy(&size, &*entry(at + 4), 4), std::memcpy(&name, &*entry(at + 8), 2);
    const std::uint32_t head = 12u + name + 4u * static_cast<std::uint32_t>(*entry(at + 11));
    for (const std::uint32_t lie : {0u - head, 0u, size + 1, size - 1, 0xffffffffu, 0xf0000000u, 0x7fffff00u, 40000u})
      for (const bool renamed : {false, true}) {
        cells flash = saved;
        std::memcpy(&flash.bytes[payload + at + 4], &lie, 4);
        if (renamed) flash.bytes[payload + at] ^= std::byte{1};
        check(flash);
      }
    for (const std::uint16_t lie : {std::uint16_t{0}, std::uint16_t{0xffff}, static_cast<std::uint16_t>(name + 1)}) {
      cells flash = saved;
      std::memcpy(&flash.bytes[payload + at + 8], &lie, 2);
      check(flash);
    }
    at += head + size;
  }
  CHECK(at == length);
  std::mt19937 random(23);
  for (int round = 0; round < 3000; ++round) {
    cells flash = saved;
    for (std::uint32_t n = random() % 4; n-- != 0;)
      flash.bytes[payload + random() % length] = static_cast<std::byte>(random());
    check(flash);
  }
  MESSAGE(other << " were another model");
  CHECK(other > 100);
}

TEST_CASE("flash: every sector is erased equally often") {
  for (const auto& [bytes, sectors] : {std::pair{1024u, 3u}, {512u, 4u}, {256u, 7u}, {128u, 13u}, {64u, 31u}}) {
    cells flash(bytes, sectors);
    flash_store store(chip{&flash});
    auto t = at_step(1);
    store.open(t);
    for (int i = 0; i < 200; ++i) REQUIRE(store.save(t) == flash_status::ok);
    const auto [least, most] = std::minmax_element(flash.erased.begin(), flash.erased.end());
    CHECK(*least > 0);
    CHECK(*most - *least <= 1);
  }
}

TEST_CASE("flash: what is wrong has a status, a kind and a text") {
  const auto opens = [](cells& flash, flash_status expected) {
    flash_store store(chip{&flash});
    trained t;
    CHECK(store.open(t) == expected);
    CHECK_FALSE(t.is_restored);
    CHECK(t.global_step == 0);
    t.step_to(50);
    return store.save(t);
  };
  const auto says = [](flash_status s, status kind, std::string_view text) {
    CHECK(kind_of(s) == kind);
    CHECK(message_of(s) == text);
    try {
      check_flash(s);
      FAIL("not raised");
    } catch (const error& e) {
      CHECK(e.kind() == kind);
      CHECK(e.what() == text);
    }
  };
  check_flash(flash_status::ok);
  cells blank(1024, 2), saved = blank;
  REQUIRE(save(saved, 1) == flash_status::ok);
  REQUIRE(save(saved, 2) == flash_status::ok);

  SUBCASE("empty") {
    CHECK(opens(blank, flash_status::empty) == flash_status::ok);
    says(flash_status::empty, status::not_found,
         "the flash store is empty: no save was finished in it; initialize the variables");
  }
  SUBCASE("damaged: each bit of the newest record is covered, and an older one is taken") {
    for (std::size_t bit = 8 * 1024; bit < 8 * 2048; bit += 5) {
      cells flash = saved;
      flash.bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
      const bool covered = bit < 8 * (1024 + 8) || (bit >= 8 * (1024 + 32) && bit < 8 * (1024 + 64 + 480));
      CHECK_MESSAGE(opened(flash) == (covered ? 1 : 2), "byte ", bit / 8);
    }
    for (std::size_t at : {70u, 1100u}) saved.bytes[at] ^= std::byte{4};
    CHECK(opens(saved, flash_status::damaged) == flash_status::ok);
    CHECK(opened(saved) == 50);
    says(flash_status::damaged, status::data_loss,
         "the flash store is damaged: it has records of this library, and none of them is whole; initialize the "
         "variables, and the next save begins anew");
  }
  SUBCASE("foreign: nothing is overwritten before format") {
    for (std::size_t i = 0; i < blank.bytes.size(); ++i) blank.bytes[i] = static_cast<std::byte>(i * 7);
    const auto before = blank.bytes;
    CHECK(opens(blank, flash_status::foreign) == flash_status::foreign);
    CHECK(blank.bytes == before);
    says(flash_status::foreign, status::failed_precondition,
         "the flash store is foreign: its sectors hold what this library did not write; check where it begins, or call "
         "format() to erase it");
    flash_store store(chip{&blank});
    auto t = at_step(9);
    CHECK(store.open(t) == flash_status::foreign);
    CHECK(store.format() == flash_status::ok);
    CHECK(store.save(t) == flash_status::ok);
    CHECK(opened(blank) == 9);
  }
  SUBCASE("another model: another name, shape or type") {
    const auto before = saved.bytes;
    for (int what = 0; what < 3; ++what) {
      flash_store store(chip{&saved});
      trained t;
      if (what == 0) t.name = "hidden/kernal";
      if (what == 1) t.dims = {37, 1};
      if (what == 2) t.dims = {1, 37};
      CHECK(store.open(t) == flash_status::another_model);
      CHECK_FALSE(t.is_restored);
      CHECK(store.save(t) == flash_status::another_model);
    }
    CHECK(saved.bytes == before);
    says(flash_status::another_model, status::failed_precondition,
         "the flash store holds the state of another model: names, types, shapes or frozen weights differ; load the "
         "program that wrote "
         "it, or call format() to erase it");
  }
  SUBCASE("a newer version, which keeps the header's words") {
    std::byte* header = &saved.bytes[1024 + 32];
    header[0] = std::byte{2};
    const std::uint32_t crc = crc32c(std::span<const std::byte>(header, 28));
    std::memcpy(header + 28, &crc, 4);
    const auto before = saved.bytes;
    CHECK(opens(saved, flash_status::newer_version) == flash_status::newer_version);
    CHECK(saved.bytes == before);
    says(
        flash_status::newer_version, status::failed_precondition,
        "the flash store was written in a newer format than 1, which this program reads; load a newer program, or call "
        "format() to erase it");
  }
  SUBCASE("too small") {
    cells small(256, 5);
    CHECK(opens(small, flash_status::too_small) == flash_status::too_small);
    says(flash_status::too_small, status::resource_exhausted,
         "the flash store is too small: it needs room for two records, so that one stays whole while the other is "
         "written; give it more sectors");
  }
  SUBCASE("not opened") {
    flash_store store(chip{&saved});
    trained t;
    CHECK(store.save(t) == flash_status::not_opened);
    CHECK(opened(saved) == 2);
    says(flash_status::not_opened, status::failed_precondition,
         "the flash store was not opened; call open() before save(), so that no record is overwritten unread");
  }
  SUBCASE("not written: a worn sector is told, left behind, and costs no record") {
    cells flash(256, 7);
    flash.bad = {2};
    flash_store store(chip{&flash});
    trained t;
    REQUIRE(store.open(t) == flash_status::empty);
    int failures = 0;
    for (std::int64_t n = 1, kept = 0; n <= 40; ++n) {
      t.step_to(n);
      if (const auto s = store.save(t); s == flash_status::ok)
        kept = n;
      else {
        CHECK(s == flash_status::not_written);
        ++failures;
      }
      CHECK(opened(flash) == (kept == 0 ? -1 : kept));
    }
    CHECK(failures > 5);
    CHECK(failures <= 25);
    CHECK(flash.refused == 0);
    says(flash_status::not_written, status::unavailable,
         "the flash store could not be written: a sector does not hold what was programmed; the save before it is "
         "untouched, so save again");
  }
  SUBCASE("not read: every read may fail, and what is then restored is whole") {
    std::set<flash_status> seen;
    for (int k = 1; k < 200; ++k) {
      saved.failing_reads = k;
      flash_store store(chip{&saved});
      trained t;
      const auto s = store.open(t);
      seen.insert(s);
      if (s == flash_status::ok) CHECK(t.is_whole());
      CHECK(t.is_restored == (s == flash_status::ok));
    }
    CHECK(seen.contains(flash_status::not_read));
    says(flash_status::not_read, status::unavailable,
         "the flash store could not be read: a read failed after the record was found whole, and a part of the state "
         "may have changed; open again, which also allows the next save");
  }
}
