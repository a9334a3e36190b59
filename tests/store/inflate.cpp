#include <gradus/store/inflate.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "../message.hpp"

using namespace gradus;

namespace {

// "hello hello hello hello\n" by gzip 1.12 -9n, and by Python's zlib.compress(..., 9).
const std::vector<std::uint8_t> hello_gz = {0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03,
                                            0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0x57, 0xc8, 0x40, 0x27, 0xb9,
                                            0x00, 0x00, 0x88, 0x59, 0x0b, 0x18, 0x00, 0x00, 0x00};
const std::vector<std::uint8_t> hello_zlib = {0x78, 0xda, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0x57, 0xc8,
                                              0x40, 0x27, 0xb9, 0x00, 0x70, 0xbe, 0x08, 0xbb};

std::span<const std::byte> bytes(const std::vector<std::uint8_t>& v) { return std::as_bytes(std::span(v)); }
std::string as_text(const std::vector<std::byte>& v) { return {reinterpret_cast<const char*>(v.data()), v.size()}; }

}  // namespace

TEST_CASE("gzip and zlib data, told apart by content") {
  CHECK(is_gzip(bytes(hello_gz)));
  CHECK_FALSE(is_gzip(bytes(hello_zlib)));
  CHECK(as_text(inflate(bytes(hello_gz), 100, "a")) == "hello hello hello hello\n");
  CHECK(as_text(inflate(bytes(hello_zlib), 100, "a")) == "hello hello hello hello\n");
  CHECK(as_text(inflate(bytes(hello_gz), 24, "a")) == "hello hello hello hello\n");  // the limit itself is allowed
}

TEST_CASE("a stream reads piece by piece and checks its end") {
  inflate_stream s(bytes(hello_gz), "a");
  std::string all;
  std::byte three[3];
  for (std::size_t got; (got = s.read(three)) != 0;) all.append(reinterpret_cast<const char*>(three), got);
  CHECK(all == "hello hello hello hello\n");
  CHECK(s.ended());
}

TEST_CASE("members in a row are one file") {
  auto twice = hello_gz;
  twice.insert(twice.end(), hello_gz.begin(), hello_gz.end());
  CHECK(as_text(inflate(bytes(twice), 100, "a")) == "hello hello hello hello\nhello hello hello hello\n");
}

TEST_CASE("more than the limit is refused") {
  CHECK(message_of(status::resource_exhausted, [] { inflate(bytes(hello_gz), 23, "small.gz"); }) ==
        "small.gz: decompresses to more than 23 bytes; raise the limit if the data is to be trusted");
  CHECK(message_of(status::resource_exhausted, [] { inflate(bytes(hello_gz), 0, "small.gz"); }) != "no error");
}

TEST_CASE("cut anywhere: truncated") {
  for (std::size_t n = 0; n < hello_gz.size(); ++n) {
    const std::vector<std::uint8_t> cut(hello_gz.begin(), hello_gz.begin() + static_cast<std::ptrdiff_t>(n));
    CHECK(message_of(status::data_loss, [&] { inflate(bytes(cut), 100, "x.gz"); }) ==
          text("x.gz: the compressed data stops after ", n,
               " bytes, before its end; the file is truncated, get it again"));
  }
}

TEST_CASE("flipped: an error, or the same bytes where the flip means nothing") {
  for (std::size_t i = 0; i < hello_gz.size() * 8; ++i) {
    auto bad = hello_gz;
    bad[i / 8] ^= static_cast<std::uint8_t>(1u << i % 8);
    try {
      const auto out = as_text(inflate(bytes(bad), 1000, "x"));
      CHECK(out == "hello hello hello hello\n");
      CHECK(i / 8 < 10);  // flags, time and system in the header
    } catch (const error& e) {
      CHECK((e.kind() == status::data_loss || e.kind() == status::resource_exhausted));
    }
  }
  auto bad = hello_gz;
  bad[bad.size() - 8] ^= 1;
  CHECK(message_of(status::data_loss, [&] { inflate(bytes(bad), 100, "x.gz"); }).find("incorrect data check") !=
        std::string::npos);
}

TEST_CASE("followed by something else") {
  auto more = hello_gz;
  more.push_back(0);
  CHECK(message_of(status::data_loss, [&] { inflate(bytes(more), 100, "x.gz"); }) ==
        text("x.gz: expected the end after byte ", hello_gz.size(),
             " of the compressed data, found 1 bytes more; the file is damaged, get it again"));
}

TEST_CASE("not compressed at all") {
  CHECK(message_of(status::data_loss, [] {
          inflate(bytes({0x50, 0x4b, 0x03, 0x04, 0x00}), 100, "x");
        }).find("zlib: incorrect header check") != std::string::npos);
}

namespace {
// Gives at most `most` bytes before it has to be asked again; fails once at byte `bad`.
struct slow_source {
  std::span<const std::byte> left;
  std::ptrdiff_t bad = -1;
  std::size_t read(std::span<std::byte> to) {
    if (bad >= 0 && static_cast<std::size_t>(bad) < to.size()) {
      bad = -1;
      raise(status::unavailable, "later");
    }
    const std::size_t n = std::min(to.size(), left.size());
    std::copy_n(left.begin(), n, to.begin());
    left = left.subspan(n);
    bad -= bad >= 0 ? static_cast<std::ptrdiff_t>(n) : 0;
    return n;
  }
};
// All that comes, and the message that ends it.
std::pair<std::string, std::string> read_all_of(auto& s, std::size_t step) {
  std::string all, end;
  std::vector<std::byte> piece(step);
  try {
    for (std::size_t got; (got = s.read(piece)) != 0;) all.append(reinterpret_cast<const char*>(piece.data()), got);
  } catch (const error& e) {
    end = e.what();
  }
  return {all, end};
}
}  // namespace

TEST_CASE("from a source, through a buffer of any size") {
  auto twice = hello_gz;
  twice.insert(twice.end(), hello_gz.begin(), hello_gz.end());
  const std::string hello = "hello hello hello hello\n";
  for (const std::size_t buffer : {std::size_t{0}, std::size_t{1}, std::size_t{3}, std::size_t{100}})
    for (const std::size_t step : {std::size_t{1}, std::size_t{5}, std::size_t{100}}) {
      CAPTURE(buffer);
      CAPTURE(step);
      inflate_source gz(slow_source{bytes(twice)}, "a", buffer);
      CHECK(read_all_of(gz, step) == std::pair(hello + hello, std::string()));
      CHECK(gz.ended());
      CHECK(gz.used() == twice.size());
      inflate_source z(slow_source{bytes(hello_zlib)}, "a", buffer);
      CHECK(read_all_of(z, step).first == hello);

      for (std::size_t n = 0; n < hello_gz.size(); ++n) {  // what came before the cut is given, and the error stays
        inflate_source cut(slow_source{bytes(hello_gz).first(n)}, "x.gz", buffer);
        const auto [all, end] = read_all_of(cut, step);
        CHECK(hello.starts_with(all));
        if (n == hello_gz.size() - 8) CHECK(all == hello);
        CHECK(end == text("x.gz: the compressed data stops after ", n,
                          " bytes, before its end; the file is truncated, get it again"));
        CHECK(read_all_of(cut, step).second == end);
      }
      auto bad = hello_gz;
      bad[bad.size() - 8] ^= 1;
      inflate_source wrong(slow_source{bytes(bad)}, "x.gz", buffer);
      const auto [all, end] = read_all_of(wrong, step);
      CHECK(all == hello);
      CHECK(end.find("incorrect data check") != std::string::npos);
      CHECK(read_all_of(wrong, step).second == end);
      auto more = hello_gz;
      more.push_back(0x1f);
      inflate_source followed(slow_source{bytes(more)}, "x.gz", buffer);
      CHECK(read_all_of(followed, step).second ==
            "x.gz: expected the end after byte 29 of the compressed data, found more; the file is damaged, get it "
            "again");
      for (std::ptrdiff_t at = 0; at < 58; ++at) {  // an error of the source may pass: nothing is lost
        inflate_source fails(slow_source{bytes(twice), at}, "a", buffer);
        auto [first, problem] = read_all_of(fails, step);
        if (!problem.empty()) {
          CHECK(problem == "later");
          first += read_all_of(fails, step).first;
        }
        CHECK(first == hello + hello);
      }
    }
}

TEST_CASE("what is compressed comes back; flushed bytes can be read before the end") {
  std::string long_text;
  for (int i = 0; i < 20000; ++i) long_text += text(i * 7919 % 10007, ' ');
  const auto as_bytes = [](std::string_view s) { return std::as_bytes(std::span(s.data(), s.size())); };
  for (const bool gzip : {true, false})
    for (const int level : {-1, 0, 1, 9}) {
      deflate_stream out(gzip, level);
      std::vector<std::byte> packed;
      out.write(as_bytes(long_text), packed);
      out.write({}, packed);
      out.flush(packed);
      CHECK(is_gzip(packed) == gzip);
      CHECK(is_zlib(packed) == !gzip);
      std::vector<std::byte> so_far(long_text.size());
      CHECK(inflate_stream(packed, "a").read(so_far) == long_text.size());
      out.write(as_bytes("end"), packed);
      out.finish(packed);
      CHECK(as_text(inflate(packed, 1 << 20, "a")) == long_text + "end");
      if (level == 9) CHECK(packed.size() < long_text.size() / 2);
    }
  deflate_stream none(true);
  std::vector<std::byte> packed;
  none.finish(packed);
  CHECK(inflate(packed, 10, "a").empty());
  CHECK(message_of(status::invalid_argument, [] { deflate_stream bad(true, 10); }) ==
        "cannot compress at level 10; expected 0 to 9, or -1 for zlib's");
}
