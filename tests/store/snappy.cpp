#include "gradus/store/snappy.hpp"

#include <doctest/doctest.h>

using namespace gradus;

namespace {
std::vector<std::byte> hex(std::string_view digits) {
  std::vector<std::byte> out;
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2)
    out.push_back(static_cast<std::byte>(16 * digit(digits[i]) + digit(digits[i + 1])));
  return out;
}
std::string decoded(const std::vector<std::byte>& in, std::string& problem, std::size_t most = 1000) {
  std::vector<std::byte> out;
  problem = snappy_decode(in, most, out);
  return std::string(detail::as_chars(out));
}
std::string problem_of(std::string_view digits, std::size_t most = 1000) {
  std::string problem;
  decoded(hex(digits), problem, most);
  return problem;
}

// What Google's library (libsnappy 1.1.9) makes of `original()`.
const std::string_view google =
    "fa02486c617965725f302f6b65726e656c2f4164616d091300314613000032461300fe3900fe3900923900007afe01003a0100f04521466b36"
    "5b264b703b602b5075406530557a456a355a254a6f3a5f2a4f743f642f54794469345924496e395e294e733e632e53784368335823486d385d"
    "284d723d622d527742";
std::string original() {
  std::string s;
  for (int i = 0; i < 12; ++i) s += "layer_" + std::to_string(i % 3) + "/kernel/Adam";
  s += std::string(80, 'z');
  for (int i = 0; i < 70; ++i) s += static_cast<char>(33 + (i * 37) % 90);
  return s;
}
}  // namespace

TEST_CASE("snappy: a stream of Google's library, with literals and copies near, far and overlapping") {
  std::string problem;
  CHECK(decoded(hex(google), problem) == original());
  CHECK(problem.empty());
  CHECK(decoded(hex("00"), problem).empty());
  CHECK(problem.empty());
  // Tags that it wrote none of: lengths in 2, 3 and 4 bytes, an offset in 4.
  for (const char* tag : {"f40200", "f8020000", "fc02000000"})
    CHECK(decoded(hex("06" + std::string(tag) + "616263" + "0b03000000"), problem) == "abcabc");
  CHECK(problem.empty());
}

TEST_CASE("snappy: damage is named, and no length is believed") {
  CHECK(problem_of("") == "its Snappy length does not end");
  CHECK(problem_of("ffffffffff01") == "its Snappy length does not end");
  CHECK(problem_of("ffffffff0f00").find("its Snappy length 4294967295 is too large") == 0);
  CHECK(problem_of("17"
                   "00")
            .find("too large") == std::string::npos);  // 23 <= 22 * 2
  CHECK(problem_of("2d"
                   "00")
            .find("too large") != std::string::npos);  // 45 > 22 * 2
  CHECK(problem_of(google, 377).find("at most 377") != std::string::npos);
  CHECK(problem_of("0308"
                   "6162") == "its Snappy stream is cut off");
  CHECK(problem_of("0208"
                   "616263") == "its Snappy stream is longer than it says, or cut off");
  CHECK(problem_of("0408"
                   "616263") == "its Snappy stream gives 3 of 4 bytes");
  CHECK(problem_of("0808"
                   "616263"
                   "0504") == "its Snappy stream copies from 4 bytes back, where 3 are");
  CHECK(problem_of("0808"
                   "616263"
                   "0500") == "its Snappy stream copies from 0 bytes back, where 3 are");
  CHECK(problem_of("0808"
                   "616263"
                   "0b0300") == "its Snappy stream is longer than it says, or cut off");
  const auto whole = hex(google);
  std::string problem;
  for (std::size_t n = 0; n < whole.size(); ++n) {
    decoded({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n)}, problem);
    CHECK(!problem.empty());
  }
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {  // no checksum of its own: it only must not run wild
    auto damaged = whole;
    damaged[bit / 8] ^= std::byte{1} << (bit % 8);
    decoded(damaged, problem);
  }
}
