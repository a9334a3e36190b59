// What every codec of ours must do; a codec's test calls one of
//   check<Codec>()           one whose file is our frame, which covers every bit by itself
//   check_any(codec)         any other, of one file or of several
#pragma once
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "gradus/base/random.hpp"
#include "gradus/codec/frame.hpp"
#include "gradus/store/crc32c.hpp"

namespace codec_suite {
using namespace gradus;
using file_bytes = std::vector<std::byte>;

inline std::span<const std::byte> bytes(const auto& values) { return std::as_bytes(std::span(values)); }

inline file_bytes joined(const encoded& e) {
  file_bytes out;
  for (const auto piece : e.files.at(0).pieces) out.insert(out.end(), piece.begin(), piece.end());
  return out;
}

inline constexpr float weights[] = {1.5f, -2.0f, 0.0f, 3.25e30f, 4.0f, 5.0f};
inline constexpr std::int64_t global_step[] = {7};
inline constexpr std::uint8_t flags[] = {1, 0, 1};
inline constexpr char position[] = {'s', 'h', 'u', 'f', 'f'};

// A little of everything: a matrix, a scalar, bools, a tensor without elements, a blob, an empty blob.
inline snapshot small() {
  snapshot s;
  s.step = 7;
  s.about = {{"library", "gradus 0.1.0"}, {"model", "digits"}};
  s.records = {
      {"w", float32, {2, 3}, bytes(weights), false},         {"global_step", int64, {}, bytes(global_step), false},
      {"flags", boolean, {3}, bytes(flags), false},          {"none", float64, {0, 4}, {}, false},
      {"input/position", uint8, {5}, bytes(position), true}, {"input/empty", uint8, {0}, {}, true}};
  return s;
}

inline bool same(const snapshot& a, const snapshot& b) {
  if (a.step != b.step || a.about != b.about || a.records.size() != b.records.size()) return false;
  for (std::size_t i = 0; i < a.records.size(); ++i) {
    const auto &x = a.records[i], &y = b.records[i];
    if (x.name != y.name || x.type != y.type || x.dims != y.dims || x.blob != y.blob ||
        !std::equal(x.bytes.begin(), x.bytes.end(), y.bytes.begin(), y.bytes.end()))
      return false;
  }
  return true;
}

template <class Number>
void poke(file_bytes& file, std::size_t at, Number n) {
  std::memcpy(file.data() + at, &n, sizeof n);
}
template <class Number>
Number peek(const file_bytes& file, std::size_t at) {
  Number n;
  std::memcpy(&n, file.data() + at, sizeof n);
  return n;
}
// A forger knows the checksums too: makes those of manifest and header fit again.
inline void seal(file_bytes& file) {
  const auto length = peek<std::uint64_t>(file, 32);
  if (length <= file.size() - 64)
    poke(file, 56, crc32c(std::span<const std::byte>(file).subspan(64, static_cast<std::size_t>(length))));
  poke(file, 60, crc32c(std::span<const std::byte>(file).first(60)));
}

// Runs `f` in a process that may use 256 MiB more than it does now, and returns how it ended: its result, or 111 if it
// could not allocate, or 112 if it was killed. `quiet`: nobody wants to read what a sanitizer says of that.
template <class F>
int with_little_memory(F&& f, bool quiet = false) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (quiet) ::close(2);
    unsigned long pages = 0;
    if (std::FILE* statm = std::fopen("/proc/self/statm", "r")) {
      if (std::fscanf(statm, "%lu", &pages) != 1) ::_exit(113);
      std::fclose(statm);
    }
    const rlim_t limit = pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + (rlim_t{256} << 20);
    const rlimit both{limit, limit};
    if (::setrlimit(RLIMIT_AS, &both) != 0) ::_exit(113);
    int result = 111;
    try {
      result = f();
    } catch (const std::bad_alloc&) {
    } catch (const std::length_error&) {
    }
    ::_exit(result);
  }
  int how = 0;
  ::waitpid(child, &how, 0);
  return WIFEXITED(how) ? WEXITSTATUS(how) : 112;
}

template <class Codec>
void check_refusals(const Codec& codec) {
  SUBCASE("what could not be read back is not written") {
    const auto refusal = [&](record r) -> std::string {
      snapshot s = small();
      s.records.push_back(std::move(r));
      try {
        codec.encode(s);
      } catch (const invalid_argument& e) {
        return e.what();
      }
      return "no error";
    };
    CHECK(refusal({"w", uint8, {0}, {}, false}) == "this state cannot be saved: \"w\" stands in it twice");
    CHECK(refusal({"x", float32, {2}, bytes(flags), false}) ==
          "this state cannot be saved: \"x\" is float32[2], which takes 8 bytes, but has 3");
    CHECK(refusal({"", uint8, {0}, {}, false}) == "this state cannot be saved: a tensor has no name");
    CHECK(refusal({"x", dtype::none, {}, {}, false}) == "this state cannot be saved: \"x\" has the unknown dtype 0");
    CHECK(refusal({"x", float32, {-1}, {}, false}) == "this state cannot be saved: \"x\" has impossible extents [-1]");
    CHECK(refusal({"x", boolean, {5}, bytes(position), false}) ==
          "this state cannot be saved: the bool \"x\" holds a byte that is neither 0 nor 1");
  }
}

template <class Codec>
void check() {
  const Codec codec;
  const snapshot original = small();
  const file_bytes file = joined(codec.encode(original));
  const auto refused = [&](const file_bytes& f) {
    const auto d = decode_bytes(codec, f);
    return !d.ok() && d.kind == status::data_loss && !d.problem.empty() && d.content.records.empty();
  };

  SUBCASE("what is written is read, as views into the file, each aligned") {
    const auto d = decode_bytes(codec, file);
    REQUIRE_MESSAGE(d.ok(), d.problem);
    CHECK(same(d.content, original));
    for (const auto& r : d.content.records) {
      if (r.bytes.empty()) continue;
      CHECK(r.bytes.data() >= file.data());
      CHECK(r.bytes.data() + r.bytes.size() <= file.data() + file.size());
      CHECK((r.bytes.data() - file.data()) % 64 == 0);
    }
    CHECK(joined(codec.encode(d.content)) == file);
    const auto empty = joined(codec.encode({}));
    CHECK(decode_bytes(codec, empty).ok());
    CHECK(same(decode_bytes(codec, empty).content, {}));
  }

  SUBCASE("every flipped bit is detected") {
    auto damaged = file;
    std::size_t found = 0;
    for (std::size_t bit = 0; bit < 8 * file.size(); ++bit) {
      const auto mask = std::byte{1} << (bit % 8);
      damaged[bit / 8] ^= mask;
      found += refused(damaged);
      damaged[bit / 8] ^= mask;
    }
    CHECK(found == 8 * file.size());
  }

  SUBCASE("every truncation, extension, exchange of blocks and zeroed block is detected") {
    for (std::size_t n = 0; n < file.size(); ++n) REQUIRE(refused({file.begin(), file.begin() + std::ptrdiff_t(n)}));
    auto longer = file;
    for (std::size_t n = 1; n <= 4096; ++n) {
      longer.push_back(n < 2048 ? std::byte{0} : std::byte{0xA5});
      REQUIRE(refused(longer));
    }
    CHECK(decode_bytes(codec, file_bytes(file.begin(), file.end() - 1)).problem.find("truncated") != std::string::npos);
    CHECK(decode_bytes(codec, longer).problem.find("bytes after its end") != std::string::npos);
    for (std::size_t block : {std::size_t{16}, std::size_t{64}})
      for (std::size_t a = 0; a + block <= file.size(); a += block) {
        auto zeroed = file;
        std::fill_n(zeroed.begin() + std::ptrdiff_t(a), block, std::byte{0});
        REQUIRE((zeroed == file || refused(zeroed)));
        for (std::size_t b = a + block; b + block <= file.size(); b += block) {
          auto swapped = file;
          std::swap_ranges(swapped.begin() + std::ptrdiff_t(a), swapped.begin() + std::ptrdiff_t(a + block),
                           swapped.begin() + std::ptrdiff_t(b));
          REQUIRE((swapped == file || refused(swapped)));
        }
      }
  }

  SUBCASE("a newer version and another codec are named; a foreign file is") {
    auto newer = file;
    poke<std::uint32_t>(newer, 8, 2);
    CHECK(refused(newer));  // a flipped bit, as far as anyone can tell
    seal(newer);
    auto d = decode_bytes(codec, newer);
    CHECK(d.kind == status::failed_precondition);
    CHECK(d.problem ==
          "it has format version 2, which is newer than version 1 that this library (gradus " GRADUS_VERSION
          ") reads; use a newer "
          "library");
    auto foreign = file;
    std::memcpy(foreign.data() + 16, "other\0\0\0\0\0\0\0\0\0\0\0", 16);
    seal(foreign);
    d = decode_bytes(codec, foreign);
    CHECK(d.kind == status::failed_precondition);
    CHECK(d.problem == "it was written by the codec \"other\", and is read here by \"" + std::string(Codec::name) +
                           "\"; name the codec that wrote it");
    const std::string text = "PK\3\4 this is something else altogether, long enough to hold a header of 64 bytes";
    d = decode_bytes(codec, bytes(text));
    CHECK(d.problem ==
          "it does not begin with \"GRADUSCK\", so it is no checkpoint of this library or its first bytes are damaged");
    auto order = file;
    poke<std::uint32_t>(order, 12, 0x04030201);
    seal(order);
    CHECK(refused(order));
  }

  SUBCASE("a forged length, count or offset with fitting checksums allocates nothing and crashes nothing") {
    // An emulator of another processor (qemu-user) takes the limit and does not keep it: then a codec that allocates
    // on a forged word is seen only if the word is larger than what the machine has.
    const auto has_much = [] {
      volatile std::size_t many = std::size_t{1} << 30;  // a compiler may leave out memory that it sees unused
      const std::vector<char> all(many);
      return static_cast<int>(all[many / 2]);
    };
    const bool bites = with_little_memory(has_much, true) != 0;
#if defined(__x86_64__)
    CHECK(bites);
#endif
    if (!bites)
      MESSAGE("memory limits do not bite here (an emulator?), so allocations by forged words are hardly tested");
    const auto bad = with_little_memory([&] {
      const auto manifest = static_cast<std::size_t>(peek<std::uint64_t>(file, 32));
      int wrong = 0;
      const auto judge = [&](file_bytes& forged) {
        seal(forged);
        const auto d = decode_bytes(codec, forged);
        // Either refused, or harmless text was changed: then it must hold together.
        if (!d.ok()) return;
        for (const auto& r : d.content.records) wrong += !detail::problem_of(r).empty();
        wrong += !detail::duplicate_name(d.content.records).empty();
      };
      for (std::size_t at = 32; at < 64 + manifest; ++at) {
        if (at >= 56 && at < 64) continue;  // the checksums themselves
        for (const std::uint32_t n : {0u, 0x7FFFFFFFu, 0x80000000u, 0xFFFFFFFFu, 0x40000000u}) {
          auto forged = file;
          if (at + 4 > file.size()) continue;
          poke(forged, at, n);
          judge(forged);
        }
        for (const std::uint64_t n : {std::uint64_t{0}, std::uint64_t{1} << 32, std::uint64_t{1} << 62,
                                      std::uint64_t{1} << 63, ~std::uint64_t{0}, ~std::uint64_t{63}}) {
          auto forged = file;
          if (at + 8 > file.size()) continue;
          poke(forged, at, n);
          judge(forged);
        }
      }
      random_stream random{1};
      for (int i = 0; i < 20000; ++i) {
        auto forged = file;
        for (std::uint32_t k = random.below(4) + 1; k != 0; --k)
          forged[40 + random.below(std::uint32_t(manifest + 24))] = std::byte(random.below(256));
        judge(forged);
      }
      return wrong > 100 ? 100 : wrong;
    });
    CHECK(bad == 0);
  }

  check_refusals(codec);
}

// The files of a checkpoint in memory, by suffix.
class files_in_memory final : public checkpoint_files {
public:
  files_in_memory() = default;
  explicit files_in_memory(const encoded& e) {
    for (const auto& file : e.files)
      for (const auto piece : file.pieces)
        bytes[file.suffix].insert(bytes[file.suffix].end(), piece.begin(), piece.end());
  }
  file_problem open(std::string_view suffix, std::span<const std::byte>& out) override {
    const auto at = bytes.find(std::string(suffix));
    if (at == bytes.end()) return {ENOENT, "open", std::string(suffix)};
    out = at->second;
    return {};
  }

  std::map<std::string, file_bytes> bytes;
};

// The records by name, for codecs that keep an order of their own.
inline snapshot by_name(snapshot s) {
  std::sort(s.records.begin(), s.records.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return s;
}

template <class Codec>
void check_any(const Codec& codec) {
  const snapshot original = small();
  const encoded laid_out = codec.encode(original);
  const files_in_memory files(laid_out);
  // Whatever is done to a file: it is refused with a reason, or what it says holds together.
  const auto holds_together = [&](const files_in_memory& damaged) {
    files_in_memory copy = damaged;
    const auto d = codec.decode(copy);
    if (!d.ok()) return d.content.records.empty();
    for (const auto& r : d.content.records)
      if (!r.name.empty() && !detail::problem_of(r).empty()) return false;
    return detail::duplicate_name(d.content.records).empty();
  };

  SUBCASE("what is written is read, and written again as it was; tensors are not copied") {
    files_in_memory copy = files;
    const auto d = codec.decode(copy);
    REQUIRE_MESSAGE(d.ok(), d.problem);
    CHECK(d.warning.empty());
    CHECK(same(by_name(d.content), by_name(original)));
    CHECK(files_in_memory(codec.encode(d.content)).bytes == files.bytes);
    for (const auto& r : d.content.records) {
      bool inside = r.bytes.empty();
      for (const auto& [suffix, bytes] : copy.bytes)
        inside = inside ||
                 (r.bytes.data() >= bytes.data() && r.bytes.data() + r.bytes.size() <= bytes.data() + bytes.size());
      CHECK_MESSAGE(inside, r.name);
    }
    for (const auto& r : original.records) {
      bool found = r.bytes.empty();
      for (const auto& file : laid_out.files)
        for (const auto piece : file.pieces) found = found || piece.data() == r.bytes.data();
      CHECK_MESSAGE((found || r.blob), r.name);
    }
    CHECK(laid_out.files.back().suffix == Codec::proof);
    files_in_memory empty(codec.encode({}));
    const auto nothing = codec.decode(empty);
    REQUIRE_MESSAGE(nothing.ok(), nothing.problem);
    CHECK(same(nothing.content, {}));
    files_in_memory none;
    CHECK(codec.decode(none).kind == status::not_found);
  }

  SUBCASE("every truncation and every extension of every file is noticed") {
    for (const auto& [suffix, bytes] : files.bytes) {
      auto damaged = files;
      for (std::size_t n = bytes.size(); n-- > 0;) {
        damaged.bytes[suffix].resize(n);
        const auto d = codec.decode(damaged);
        REQUIRE_MESSAGE((!d.ok() && d.kind == status::data_loss && d.content.records.empty()), suffix << ' ' << n);
      }
      damaged.bytes[suffix] = bytes;
      for (std::size_t n = 1; n <= 200; ++n) {
        damaged.bytes[suffix].push_back(n < 100 ? std::byte{0} : std::byte{' '});
        REQUIRE_MESSAGE(!codec.decode(damaged).ok(), suffix << ' ' << n);
      }
    }
  }

  SUBCASE("flipped bits, forged numbers and noise allocate nothing and crash nothing") {
    const auto bad = with_little_memory([&] {
      int wrong = 0;
      random_stream random{1};
      for (const auto& [suffix, bytes] : files.bytes) {
        auto damaged = files;
        auto& file = damaged.bytes[suffix];
        for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
          file[bit / 8] ^= std::byte{1} << (bit % 8);
          wrong += !holds_together(damaged);
          file[bit / 8] = bytes[bit / 8];
        }
        for (std::size_t at = 0; at + 8 <= bytes.size(); ++at) {
          for (const std::uint64_t n : {std::uint64_t{0}, std::uint64_t{1} << 62, ~std::uint64_t{0}}) {
            poke(file, at, n);
            wrong += !holds_together(damaged);
          }
          file = bytes;
          poke(file, at, 0x7FFFFFFFu);
          wrong += !holds_together(damaged);
          file = bytes;
        }
        for (int i = 0; i < 2000; ++i) {
          for (std::uint32_t k = random.below(4) + 1; k != 0; --k)
            file[random.below(static_cast<std::uint32_t>(file.size()))] = std::byte(random.below(256));
          wrong += !holds_together(damaged);
          file = bytes;
        }
      }
      return wrong > 100 ? 100 : wrong;
    });
    CHECK(bad == 0);
  }

  check_refusals(codec);
}

}  // namespace codec_suite
