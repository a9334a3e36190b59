#include <gradus/columns/fingerprint.hpp>

#include <doctest/doctest.h>

#include <string>

using namespace gradus;

// Expected: util::Fingerprint64 of FarmHash 1.1 (google/farmhash), compiled with g++ 12.
static_assert(fingerprint64("") == 0x9ae16a3b2f90404f);
static_assert(fingerprint64("a") == 0xb3454265b6df75e3);
static_assert(fingerprint64("abc") == 0x24a5b3a074e7f369);
static_assert(fingerprint64("hello") == 0xb48be5a931380ce8);
static_assert(fingerprint64("12345678") == 0x2f99d2664a0fb6ea);
static_assert(fingerprint64("hello world") == 0x588fb7478bd6b01b);
static_assert(fingerprint64("0123456789abcdefg") == 0xa6ddff87a449d24a);
static_assert(fingerprint64("The quick brown fox jumps over the lazy dog") == 0xabbe83f33b1b5134);

namespace {
// Bytes of all values, of any length.
std::string drawn_text(std::size_t n) {
  std::string s;
  std::uint32_t state = 12345;
  for (std::size_t i = 0; i < n; ++i) {
    state = state * 1664525u + 1013904223u;
    s += static_cast<char>(state >> 24);
  }
  return s;
}
}  // namespace

TEST_CASE("fingerprints are FarmHash's, at every length where its rule changes and in between") {
  const struct {
    std::size_t length;
    std::uint64_t print;
  } known[] = {{1, 0xd020916ec7d8cfe2},   {3, 0x88dc26891a598b04},   {4, 0xb1158f6df8f3103a},
               {7, 0x58d357d768cce0b5},   {8, 0x3f4b508fa4fa346c},   {16, 0x03458573fa4755de},
               {17, 0x916aa72fa0f1ecef},  {32, 0xd8e78774c8d67c8f},  {33, 0x638cdf301a8e036b},
               {63, 0x46705e7f34d8c387},  {64, 0xe7b99148b15aba38},  {65, 0x56626861148507f4},
               {127, 0x16fcf44a2434c1fc}, {128, 0x6abdc695ed65d563}, {129, 0xcd9f2d39fa85fa6f},
               {192, 0xb8503bb2b3913f4e}, {193, 0x7c1d5ed09f0eb150}, {1000, 0x7d5594542186901c}};
  for (const auto& k : known) {
    CAPTURE(k.length);
    CHECK(fingerprint64(drawn_text(k.length)) == k.print);
  }
  std::uint64_t all = 0;
  for (std::size_t n = 0; n <= 300; ++n) all = all * 31 + fingerprint64(drawn_text(n));
  CHECK(all == 0x1fe36f05bfaae6ae);
}

TEST_CASE("chained fingerprints are TensorFlow's") {
  // sparse_cross_op_test.py (TensorFlow 1.15): test_hashed_zero_bucket_no_hash_key, test_hashed_zero_bucket, and the
  // same modulo 100.
  const auto crossed = [](std::uint64_t key) {
    for (const char* s : {"batch1-FC1-F1", "batch1-FC2-F1", "batch1-FC3-F1"})
      key = chain_fingerprints(key, fingerprint64(s));
    return key;
  };
  constexpr std::uint64_t most = 0x7fffffffffffffff, key = 0xDECAFCAFFE;
  CHECK(crossed(key) % most == 1971693436396284976u);
  CHECK(crossed(key + 1) % most == 4847552627144134031u);
  CHECK(crossed(key) % 100 == 83);
  CHECK(crossed(key + 1) % 100 == 31);
  CHECK(chain_fingerprints(1, 2) != chain_fingerprints(2, 1));
}
