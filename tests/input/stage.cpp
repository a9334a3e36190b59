#include <gradus/input/stage.hpp>

#include "pipelines.hpp"

using namespace pipelines;

static_assert(dataset<counted> && !batched_dataset<counted> && !indexed_dataset<counted>);
static_assert(dataset<memory_dataset> && indexed_dataset<memory_dataset>);
static_assert(indexed_dataset<taken_dataset<memory_dataset>> &&
              indexed_dataset<skipped_dataset<taken_dataset<memory_dataset>>>);
static_assert(!indexed_dataset<repeated_dataset<memory_dataset>> && !indexed_dataset<shuffled_dataset<memory_dataset>>);
static_assert(batched_dataset<batches<counted>> && batched_dataset<repeated_dataset<batches<counted>>>);
static_assert(batched_dataset<prefetched_dataset<batches<counted>>> && !batched_dataset<prefetched_dataset<counted>>);
static_assert(std::copyable<shuffled_dataset<counted>> && !std::copyable<prefetched_dataset<counted>>);

TEST_CASE("arrays that do not fit are refused at the door") {
  const std::vector<float> x(6);
  const std::vector<std::int32_t> y(2);
  auto d = from_spans("x", x, extents{3}, "y", y);
  CHECK(to_text(d.element_spec()) == "x float32 [3], y int32 []");
  std::vector<float> a(12);
  std::vector<std::int32_t> b(4);
  const tensor_view ax(std::span<float>(a).first(3), {3}), by(std::span<std::int32_t>(b).first(1), {});
  const tensor_view one[] = {ax, by}, swapped[] = {by, ax};
  CHECK(d.next(one));
  CHECK(message_of(status::invalid_argument, [&] { d.next(std::span(one).first(1)); }) ==
        "expected an array for each of the 2 components (x float32 [3], y int32 []), found 1");
  CHECK(message_of(status::invalid_argument, [&] { d.next(swapped); }) ==
        "the component \"x\" is float32 [3]; the array given for it is int32 []");
  const tensor_view rows[] = {{std::span<float>(a), {4, 3}}, {std::span<std::int32_t>(b), {4}}};
  CHECK(message_of(status::invalid_argument, [&] { d.next(rows); }) ==
        "the component \"x\" is float32 [3]; the array given for it is float32 [4, 3]");
  CHECK(message_of(status::invalid_argument, [&] { d.next_batch(rows, 5); }) ==
        "the component \"x\" is float32 [3], and 5 rows of it are to be written; the array given for it is float32 [4, "
        "3]");
  CHECK(message_of(status::invalid_argument, [&] { d.next_batch(rows, -1); }) == "cannot read -1 elements");
  CHECK(d.next_batch(rows, 4) == 1);
  auto batched = d.batch(5);
  CHECK(message_of(status::invalid_argument, [&] { batched.next(rows); }).find("5 rows of it") != std::string::npos);
}

TEST_CASE("a position belongs to its pipeline") {
  const auto ten = iota(10);
  auto a = numbers(ten).shuffle(4, 1).repeat().batch(3);
  auto b = numbers(ten).shuffle(4, 2).repeat().batch(3);
  drain_batches(a, 2);
  const auto at = position_of(a);
  CHECK(message_of(status::data_loss, [&] { restore(b, at); }) ==
        "the saved position is one in the input \"memory(10; i int32 []).shuffle(4, 1).repeat(-1)\", but this input is "
        "\"memory(10; i int32 []).shuffle(4, 2).repeat(-1)\"; build the same input, or set restore_input = "
        "saved_input::if_it_fits to read this one from its beginning");
  auto longer = at;
  longer.push_back(std::byte{0});
  CHECK(message_of(status::data_loss, [&] { restore(a, longer); }) ==
        "the saved input position is damaged: expected its end, found 1 bytes more");
  // The batch size is no part of it: elements are counted, not batches.
  auto other = numbers(ten).shuffle(4, 1).repeat().batch(1);
  restore(other, at);
  CHECK(drain_batches(other, 1)[0][0] == drain_batches(a, 1)[0][0]);
}

TEST_CASE("a refused position leaves the dataset where it was") {
  const auto ten = iota(10);
  const auto make = [&] {
    return numbers(ten).take(9).shuffle(4, 1).repeat(5).skip(2).shuffle(3, 9).prefetch(2).batch(2);
  };
  auto from = make();
  drain_batches(from, 7);
  const auto good = position_of(from);
  auto d = make();
  drain_batches(d, 3);
  const auto before = position_of(d);
  int refused = 0;
  for (std::size_t cut = 0; cut < good.size(); ++cut) {
    message_of(status::data_loss, [&] { restore(d, std::span(good).first(cut)); });
    CHECK(position_of(d) == before);
  }
  random_stream roll{.seed = 3};
  for (int i = 0; i < 2000; ++i) {
    auto bad = good;
    bad[roll.below(static_cast<std::uint32_t>(bad.size()))] = static_cast<std::byte>(roll.word());
    auto fresh = make();
    const auto start = position_of(fresh);
    try {
      restore(fresh, bad);
      drain_batches(fresh, 30);  // whatever it is, it is a place one can read on from
    } catch (const data_loss&) {
      ++refused;
      CHECK(position_of(fresh) == start);
    }
  }
  CHECK(refused > 500);
}
