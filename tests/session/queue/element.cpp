#include <gradus/session/queue/element.hpp>

#include <doctest/doctest.h>

#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

using namespace gradus;
using detail::element_chain;
using detail::element_layout;
using detail::queue_element;

namespace {
element_chain keys(std::initializer_list<std::int64_t> list) {
  element_chain out;
  for (std::int64_t key : list) {
    auto e = std::make_unique<queue_element>();
    e->key = key;
    out.push_back(e.release());
  }
  return out;
}
std::vector<std::int64_t> keys_of(const element_chain& list) {
  std::vector<std::int64_t> out;
  for (const queue_element* e = list.front(); e != nullptr; e = e->next) out.push_back(e->key);
  CHECK(list.size() == static_cast<std::int64_t>(out.size()));
  return out;
}
using order = std::vector<std::int64_t>;
}  // namespace

TEST_CASE("element_chain: in front, behind, one list and another") {
  for (const bool first_empty : {false, true})
    for (const bool second_empty : {false, true}) {
      element_chain a = first_empty ? keys({}) : keys({1, 2}), b = second_empty ? keys({}) : keys({3, 4, 5});
      order ab, ba;
      for (const order& o : {keys_of(a), keys_of(b)}) ab.insert(ab.end(), o.begin(), o.end());
      for (const order& o : {keys_of(b), keys_of(a)}) ba.insert(ba.end(), o.begin(), o.end());
      element_chain c = first_empty ? keys({}) : keys({1, 2}), d = second_empty ? keys({}) : keys({3, 4, 5});
      a.append(b);
      c.prepend(d);
      CHECK(keys_of(a) == ab);
      CHECK(keys_of(c) == ba);
      CHECK(b.empty());
      CHECK(d.empty());
      element_chain one = keys({9}), other = keys({8});
      a.push_back(one.pop_front()), a.push_front(other.pop_front());
      ab.push_back(9), ab.insert(ab.begin(), 8);
      CHECK(keys_of(a) == ab);
    }
}

TEST_CASE("element_layout: what is written is read, for every dtype, in rows and alone") {
  for (dtype t : {float32, float64, int32, int64, uint8, boolean, float16, bfloat16, int8, int16, uint16, uint32,
                  uint64, float8_e4m3, float8_e5m2})
    for (const bool fixed : {false, true}) {
      queue_options options;
      if (fixed) options.shapes = {{3}, {}};
      const element_layout layout(make_queue_spec(queue_kind::fifo, 4, {t, uint8}, options));
      std::vector<std::byte> first(4 * 3 * size_of(t)), second(4), back(first.size()), back2(4);
      for (std::size_t i = 0; i < first.size(); ++i) first[i] = static_cast<std::byte>(i * 7 + 1);
      for (std::size_t i = 0; i < second.size(); ++i) second[i] = static_cast<std::byte>(100 + i);
      const const_tensor_view from[] = {{t, {4, 3}, first.data()}, {uint8, {4}, second.data()}};
      const tensor_view to[] = {{t, {4, 3}, back.data()}, {uint8, {4}, back2.data()}};
      const std::unique_ptr<queue_element> e(layout.make());
      for (int row = 0; row < 4; ++row) {
        layout.write(*e, from, row);
        CHECK(layout.part(*e, 0).dims == extents{3});
        CHECK(layout.part(*e, 1).dims == extents{});
        layout.read(*e, to, row);
      }
      CHECK(back == first);
      CHECK(back2 == second);
      const const_tensor_view alone[] = {{t, {3}, first.data()}, {uint8, {}, second.data() + 2}};
      layout.write(*e, alone, -1);
      CHECK(std::memcmp(layout.part(*e, 0).data, first.data(), 3 * size_of(t)) == 0);
      CHECK(*layout.part(*e, 1).data == second[2]);
    }
}

TEST_CASE("element_layout: memory that held a larger element holds a smaller one") {
  const element_layout layout(make_queue_spec(queue_kind::fifo, 4, {uint8, float32}, {}));
  const std::unique_ptr<queue_element> e(layout.make());
  for (std::int64_t n : {100, 3, 0, 57}) {
    std::vector<std::uint8_t> text(static_cast<std::size_t>(n));
    std::iota(text.begin(), text.end(), std::uint8_t{1});
    const std::vector<float> two{1.5F, static_cast<float>(n)};
    const const_tensor_view from[] = {std::span<const std::uint8_t>(text), std::span<const float>(two)};
    layout.write(*e, from, -1);
    CHECK(layout.part(*e, 0).dims == extents{n});
    const auto held = layout.part(*e, 0).as<std::uint8_t>();
    CHECK(std::vector<std::uint8_t>(held.begin(), held.end()) == text);
    CHECK(layout.part(*e, 1).as<float>()[1] == two[1]);
    CHECK(reinterpret_cast<std::uintptr_t>(layout.part(*e, 1).data) % alignof(float) == 0);
  }
}
