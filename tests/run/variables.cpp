#include <gradus/run/variables.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

using namespace gradus;

namespace {
variable_info info(std::string_view name, dtype type, const shape& dims, bool trainable = true) {
  variable_info v;
  v.name = name, v.type = type, v.dims = dims, v.trainable = trainable;
  return v;
}
}  // namespace

// FNV-1a, 64 bits: the published values of "", "a" and "foobar".
static_assert(stream_of("") == 0xcbf29ce484222325ull);
static_assert(stream_of("a") == 0xaf63dc4c8601ec8cull);
static_assert(stream_of("foobar") == 0x85944171f73967e8ull);

TEST_CASE("arenas of one layout: trainable ones first, each on a line of its own") {
  variable_arena a;
  CHECK(a.declare(info("moving", float32, {3}, false)) == 0);
  CHECK(a.declare(info("w", float32, {5, 7})) == 1);
  CHECK(a.declare(info("b", float64, {2})) == 2);
  CHECK(a.declare(info("w", float32, {5, 7})) == 1);  // shared by name
  CHECK(a.size() == 3);
  CHECK(a.find("b") == 2);
  CHECK(a.find("c") == -1);
  a.allocate(2);
  CHECK(a.trainable_bytes() == align_up(5 * 7 * 4) + align_up(2 * 8));
  CHECK(a.bytes() ==
        a.trainable_bytes() * 4 + align_up(3 * 4));  // values, gradients, two mirrors; and what is not trained
  for (std::size_t i : {std::size_t{1}, std::size_t{2}}) {
    const auto offset = static_cast<std::size_t>(a.value(i) - a.value_base());
    CHECK(offset < a.trainable_bytes());
    CHECK(reinterpret_cast<std::uintptr_t>(a.value(i)) % alignment == 0);
    CHECK(reinterpret_cast<std::uintptr_t>(a.gradient(i)) % alignment == 0);
    for (std::size_t k : {std::size_t{0}, std::size_t{1}}) {
      CHECK(static_cast<std::size_t>(a.mirror(k, i) - a.mirror_base(k)) == offset);  // what a sweep relies on
      CHECK(a.mirror_view(k, i).size() == a.info(i).size());
    }
  }
  CHECK(a.value(0) >= a.value_base() + a.trainable_bytes());
  CHECK(a.mirror_base(1) - a.mirror_base(0) == static_cast<std::ptrdiff_t>(a.trainable_bytes()));
  CHECK(a.view(1).dims == extents{5, 7});
  for (std::byte x : a.view(1).bytes()) CHECK(x == std::byte{0});
}

TEST_CASE("one name is one variable") {
  variable_arena a;
  a.declare(info("w", float32, {5, 7}));
  const auto refusal = [&](dtype type, const shape& dims) -> std::string {
    try {
      a.declare(info("w", type, dims));
    } catch (const invalid_argument& e) {
      return e.what();
    }
    return "";
  };
  CHECK(refusal(float32, {7, 5}) ==
        "variable \"w\" is float32 [5, 7] in one graph of the model and float32 [7, 5] in another");
  CHECK(refusal(float64, {5, 7}) ==
        "variable \"w\" is float32 [5, 7] in one graph of the model and float64 [5, 7] in another");
}

TEST_CASE("large arenas are zeroed in parts, every line once") {
  variable_arena a;
  a.declare(info("w", float32, {700, 500}));
  a.declare(info("b", float64, {3}));
  a.declare(info("moving", float32, {5}, false));
  int parts_seen = 0;
  const auto touch = [&](auto zero_part) {
    std::memset(a.value_base(), 0xFF, a.bytes());
    for (int part = 0; part < 3; ++part) zero_part(0, part, 3), ++parts_seen;
    for (std::size_t i : {std::size_t{1}, std::size_t{2}}) zero_part(i, 0, 1);
  };
  const auto own_size = [&](std::size_t, std::size_t i) { return a.info(i).bytes; };
  a.allocate(2, own_size, touch);
  CHECK(a.bytes() >= aligned_buffer::large_from);
  CHECK(parts_seen == 3);
  std::size_t other = 0;
  for (std::size_t i = 0; i < a.bytes(); ++i) other += a.value_base()[i] == std::byte{0} ? 0u : 1u;
  CHECK(other == 0);
  CHECK(lines_of_part(700, 0, 3).first == 0);
  CHECK(lines_of_part(700, 0, 3).last == lines_of_part(700, 1, 3).first);
  CHECK(lines_of_part(700, 1, 3).last == lines_of_part(700, 2, 3).first);
  CHECK(lines_of_part(700, 2, 3).last == 11);
  CHECK(lines_of_part(0, 0, 3).last == 0);
}

TEST_CASE("the memory of a large arena's mirrors can be given back, and that of nothing else") {
  for (const int columns : {5, 500}) {  // small arenas stay as they are
    CAPTURE(columns);
    variable_arena a;
    a.declare(info("w", float32, {700, columns}));
    a.declare(info("moving", float32, {5}, false));
    a.allocate(
        2, [&](std::size_t, std::size_t i) { return a.info(i).bytes; },
        [&](auto zero_part) {
          for (std::size_t i = 0; i < 2; ++i) zero_part(i, 0, 1);
        });
    std::memset(a.value_base(), 1, a.bytes());
    a.release_mirrors();
    const std::size_t begin = a.bytes() - a.mirror_bytes();
    const auto is = [&](std::size_t at, int what) { return a.value_base()[at] == std::byte(what); };
    std::size_t other = 0;
    for (std::size_t i = 0; i < begin; ++i) other += is(i, 1) ? 0 : 1;
    CHECK(other == 0);
#if defined(MADV_DONTNEED)
    const bool is_large = columns == 500;
    CHECK((a.bytes() >= aligned_buffer::large_from) == is_large);
    std::size_t pages = 0, resident = 0;
    constexpr std::size_t page = 1 << 16;
    for (std::size_t i = begin; i + page <= a.bytes(); ++i) {
      if (reinterpret_cast<std::uintptr_t>(a.value_base() + i) % page != 0) continue;
      std::vector<unsigned char> in_memory(page / 4096);
      REQUIRE(::mincore(a.value_base() + i, page, in_memory.data()) == 0);
      for (const unsigned char m : in_memory) resident += m & 1;
      pages += in_memory.size();
    }
    CHECK(resident == (is_large ? 0 : pages));
    if (is_large) CHECK(pages >= 500);
#endif
    std::memset(a.value_base() + begin, 2, a.mirror_bytes());
    for (std::size_t i = begin; i < a.bytes(); ++i) other += is(i, 2) ? 0 : 1;
    CHECK(other == 0);
  }
}
