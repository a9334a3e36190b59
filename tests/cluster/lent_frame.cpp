// A frame whose large pieces are read where they lie, until their sender changes them.
#include <gradus/cluster/lent_frame.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <span>
#include <thread>
#include <vector>

using gradus::detail::lent_frame;

namespace {
std::vector<std::byte> filled(std::size_t n, int first) {
  std::vector<std::byte> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = static_cast<std::byte>(first + static_cast<int>(i % 101));
  return v;
}
// A first piece that is large, a small one, an empty one, two large ones.
struct pieces {
  std::vector<std::byte> front = filled(lent_frame::least_bytes + 1, 1), small = filled(24, 2), none,
                         a = filled(10'000, 3), b = filled(lent_frame::least_bytes, 4);
  std::vector<std::byte> all() const {
    std::vector<std::byte> v;
    for (const auto* p : {&front, &small, &none, &a, &b}) v.insert(v.end(), p->begin(), p->end());
    return v;
  }
  std::array<std::span<const std::byte>, 5> list() const { return {front, small, none, a, b}; }
  void spoil(std::vector<std::byte>& which) const { which.assign(which.size(), std::byte{0xff}); }
};
std::vector<std::byte> read(lent_frame& f, std::size_t n) {
  std::vector<std::byte> v(n);
  f.read(v);
  return v;
}
std::vector<std::byte> read_by(lent_frame& f, std::size_t each) {
  std::vector<std::byte> v;
  while (f.left() != 0) {
    const auto some = read(f, std::min(each, f.left()));
    v.insert(v.end(), some.begin(), some.end());
  }
  return v;
}
}  // namespace

TEST_CASE("a frame is read in any pieces; the first and small ones are copied at once") {
  for (const std::size_t each : {1, 7, 4096, 100'000}) {
    pieces p;
    lent_frame f(p.list());
    const auto expected = p.all();
    CHECK(f.size() == expected.size());
    p.spoil(p.front), p.spoil(p.small);
    CHECK(read_by(f, each) == expected);
    CHECK(f.left() == 0);
    CHECK(f.size() == expected.size());
  }
}

TEST_CASE("what is left is copied when the sender parts with it, wherever the reading stands") {
  for (const std::size_t before : {0, 1, 4097, 4098, 4121, 5000, 14'121, 18'216, 18'217}) {
    CAPTURE(before);
    pieces p;
    lent_frame f(p.list());
    const auto expected = p.all();
    REQUIRE(before <= expected.size());
    auto found = read(f, before);
    f.part_with();
    p.spoil(p.front), p.spoil(p.small), p.spoil(p.a), p.spoil(p.b);
    f.part_with();  // again: nothing is lent any more
    const auto rest = read_by(f, 1000);
    found.insert(found.end(), rest.begin(), rest.end());
    CHECK(found == expected);
  }
}

TEST_CASE("a sender parts with it while another thread reads") {
  for (int i = 0; i < 20; ++i) {
    std::vector<std::byte> large = filled(1 << 20, i);
    const std::vector<std::byte> front = filled(64, 9);
    const std::array<std::span<const std::byte>, 2> list{front, large};
    lent_frame f(list);
    std::vector<std::byte> expected = front, found;
    expected.insert(expected.end(), large.begin(), large.end());
    std::thread reader([&] { found = read_by(f, 10'000); });
    f.part_with();
    large.assign(large.size(), std::byte{0xff});
    reader.join();
    CHECK(found == expected);
  }
}
