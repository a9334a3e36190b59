// costs: 600
// one thread: it reads and judges, and starts none
// Damaged checkpoints of every codec, read through a saver: every bit flipped, every truncation, extension, zeroed
// block and exchange of sectors, in every file. All is noticed, and told with the file and the place; nothing is
// changed by the refused restore. GRADUS_LONG takes every bit of 64 KiB, an ordinary run some of them.
#include <doctest/doctest.h>

#include <cstdlib>

#include "../checkpoint/all_codecs.hpp"
#include "gradus/testing/faulty_files.hpp"

using namespace saving;
using gradus::testing::faulty_files;
using bytes = std::vector<std::byte>;

namespace {

bool is_long() { return std::getenv("GRADUS_LONG") != nullptr; }

// One checkpoint, and the files it has.
struct victim {
  explicit victim(const codec_case<faulty_files>& c, std::size_t elements)
      : codec(c), m(elements), s(c.make(fs, {})), path(text("d/m-3", c.extension)) {
    m.at(3);
    s.save(m.list, "d/m", 3);
    for (const auto& file : fs.files())
      if (!file.ends_with("/checkpoint")) files.push_back(file);
    m.at(77);
  }
  // Whether a restore notices what was done to `file`; also if the manifest, which is there for nothing else, is it.
  bool notices(const std::string& file) {
    ++tried;
    try {
      s.restore(m.list, path);
    } catch (const error& e) {
      last = e.what();
      // The file: the checkpoint's path, and where it has several files, which of them; and where in it.
      named += contains(last, path) && (files.size() == 1 || contains(last, file_name_of(file)));
      placed += last.find_first_of("0123456789", last.find(".", path.size() + 14)) != std::string::npos;
      if (e.kind() == status::data_loss || e.kind() == status::not_found) return true;
      ADD_FAIL_AT(__FILE__, __LINE__, last);
    }
    ADD_FAIL_AT(__FILE__, __LINE__, text(codec.name, ": ", file, " is damaged, and nobody noticed"));
    return false;
  }

  codec_case<faulty_files> codec;
  faulty_files fs;
  model m;
  any_saver s;
  std::string path, last;
  names files;
  std::size_t tried = 0, named = 0, placed = 0;
};

void check(const victim& v) {
  CHECK(v.m.is_at(77));  // nothing was changed
  CHECK(v.named == v.tried);
  CHECK(v.fs.open_handles() == 0);
}

}  // namespace

TEST_CASE("every flipped bit is noticed, and the message names the file and the place") {
  std::size_t flips = 0;
  for (const auto& c : codec_cases<faulty_files>()) {
    CAPTURE(c.name);
    victim v(c, is_long() ? 16300 : 300);
    std::size_t bits = 0;
    for (const auto& file : v.files) bits += 8 * v.fs.bytes(file).size();
    const std::size_t most = is_long() ? (v.files.size() == 1 ? bits : 20000) : 300;
    const std::size_t stride = bits <= most ? 1 : (bits / most) | 1;
    std::size_t next = 0, before = 0, found = 0;
    for (const auto& file : v.files) {
      auto& b = v.fs.bytes(file);
      // The ends of a file, where its headers and its footers are, whole.
      for (std::size_t bit = 0; bit < 8 * b.size(); ++bit) {
        const bool at_end = !is_long() ? bit < 8 * 4 || bit >= 8 * (b.size() - std::min<std::size_t>(4, b.size()))
                                       : bit < 8 * 128 || bit >= 8 * (b.size() - std::min<std::size_t>(128, b.size()));
        if (before + bit < next && !at_end) continue;
        if (before + bit >= next) next = before + bit + stride;
        b[bit / 8] ^= std::byte{1} << bit % 8;
        found += v.notices(file);
        b[bit / 8] ^= std::byte{1} << bit % 8;
      }
      before += 8 * b.size();
    }
    flips += v.tried;
    CHECK(found == v.tried);
    check(v);
    CHECK_NOTHROW(v.s.restore(v.m.list, v.path));
    if (is_long()) MESSAGE(c.name, ": ", v.tried, " of ", bits, " bits; e.g.: ", v.last);
  }
  MESSAGE(flips, " flipped bits");
  CHECK(flips >= (is_long() ? 524288u : 3000u));
}

TEST_CASE("every truncation, extension, zeroed block and exchange of sectors is noticed") {
  std::size_t tried = 0;
  for (const auto& c : codec_cases<faulty_files>()) {
    CAPTURE(c.name);
    victim v(c, 600);
    for (const auto& file : v.files) {
      CAPTURE(file);
      auto& b = v.fs.bytes(file);
      const bytes whole = b;
      std::size_t found = 0, done = 0;
      const auto notice = [&] {
        if (b == whole) return;
        ++done, found += v.notices(file);
        b = whole;
      };
      for (std::size_t n = 0; n < whole.size(); n += is_long() || n + 4 > whole.size() || n < 4 ? 1 : 149)
        b.resize(n), notice();
      for (std::size_t n = 1; n <= 4096; n += is_long() ? 1 : n) {
        b.resize(whole.size() + n, n % 2 != 0 ? std::byte{0} : std::byte{0xA5});
        notice();
      }
      for (const std::size_t block : {std::size_t{16}, std::size_t{512}, std::size_t{4096}})
        for (std::size_t at = 0; at < whole.size(); at += block) {
          if (!is_long() && block == 16 && at / block % 17 != 0) continue;
          std::fill_n(b.begin() + std::ptrdiff_t(at), std::min(block, whole.size() - at), std::byte{0});
          notice();
        }
      for (const std::size_t sector : {std::size_t{64}, std::size_t{512}})
        for (std::size_t i = 0; i + sector <= whole.size(); i += sector)
          for (std::size_t k = i + sector; k + sector <= whole.size(); k += sector) {
            if (!is_long() && sector == 64 && (i + k) / sector % 41 != 0) continue;
            std::swap_ranges(b.begin() + std::ptrdiff_t(i), b.begin() + std::ptrdiff_t(i + sector),
                             b.begin() + std::ptrdiff_t(k));
            notice();
          }
      CHECK(found == done);
    }
    check(v);
    tried += v.tried;
  }
  MESSAGE(tried, " damages");
}

TEST_CASE("a file that is missing, of another step, or of the same step of another run is noticed") {
  for (const auto& c : codec_cases<faulty_files>()) {
    CAPTURE(c.name);
    victim v(c, 40), other(c, 40);
    other.m.at(4), other.s.save(other.m.list, "d/m", 4);
    other.m.at(5), other.s.save(other.m.list, "e/m", 3);
    for (const auto& file : v.files) {
      const auto suffix = file.substr(5);
      if (suffix.ends_with(".manifest") || v.files.size() == 1)
        continue;  // without a manifest it is a foreign checkpoint
      const bytes whole = v.fs.bytes(file);
      for (const auto& from : {"d/m-4" + suffix, "e/m-3" + suffix}) {
        v.fs.bytes(file) = other.fs.bytes(from);
        if (v.fs.bytes(file) != whole) CHECK(v.notices(file));
      }
      v.fs.bytes(file) = whole;
      CHECK_NOTHROW(v.s.restore(v.m.list, v.path));
      v.m.at(77);
      v.fs.remove(file);
      CHECK(v.notices(file));
      const std::span<const std::byte> piece = whole;
      publish(v.fs, file, byte_pieces(&piece, 1));
    }
    check(v);
  }
}

TEST_CASE("damage is fallen back from: the newest intact one is taken, and the damaged ones are named and kept") {
  for (const auto& c : codec_cases<faulty_files>()) {
    CAPTURE(c.name);
    const faulty_files fs;
    model m;
    auto s = c.make(fs, {});
    for (int i = 1; i <= 4; ++i) m.at(i), s.save(m.list, "d/m", i);
    const auto before = fs.files();
    for (const auto& file : before)
      if (file.starts_with("d/m-4") || file.starts_with("d/m-3")) fs.bytes(file).back() ^= std::byte{1};
    m.at(50);
    CHECK(contains(message([&] { s.restore_latest(m.list, "d"); }, status::data_loss),
                   text("\"d/m-2", c.extension, "\" (step 2)")));
    CHECK(m.is_at(50));
    const auto r = s.restore_latest(m.list, "d", {.fallback = true});
    REQUIRE(r);
    CHECK(m.is_at(2));
    REQUIRE(r->damaged.size() == 2);
    CHECK(r->damaged[0].path == text("d/m-4", c.extension));
    CHECK(!r->damaged[0].reason.empty());
    CHECK(fs.files() == before);
  }
}
