// costs: 300
// The end of a dataset stays the end: to pull there once more changes nothing, for every source, every stage, and every
// stage behind another one, neither the position nor what comes after a rewind.
#include <gradus/input/combinators.hpp>
#include <gradus/input/csv.hpp>
#include <gradus/input/text_line.hpp>
#include <gradus/testing/temp_dir.hpp>

#include <doctest/doctest.h>

using namespace gradus;

namespace {

const components scalar = {{"value", int64, {}}}, vectors = {{"value", int64, {any_extent}}};
std::int64_t value_of(const datum& e) { return e.value<std::int64_t>(0); }

template <class Made>
struct named {
  std::string name;
  std::function<Made> make;
};
using source = named<any_dataset()>;
using stage = named<any_dataset(any_dataset)>;  // from elements of one int64 to such elements

// A source whose next round depends on how far it was read.
any_dataset endless() { return range_dataset(4).shuffle(4, 1).repeat(); }

any_dataset flat(any_dataset batches) {
  return std::move(batches).flat_map(scalar, [](const datum& b) { return from_tensor_slices(b); });
}
any_dataset sum(any_dataset pairs) {
  return std::move(pairs).map(
      scalar, [](const datum& e, datum& to) { to.set(0, value_of(e) + 100 * e.value<std::int64_t>(1)); });
}
any_dataset as_vectors(any_dataset d) {
  return std::move(d).map(vectors, [](const datum& e, datum& to) {
    to.resize(0, {1 + value_of(e) % 3});
    to.set(0, value_of(e));
  });
}

std::vector<source> sources(const testing::temp_dir& scratch) {
  publish(posix{}, scratch / "a", "1\n2\n3\n"), publish(posix{}, scratch / "b", "4\n5\n");
  const std::vector<std::string> files{scratch / "a", scratch / "b"};
  datum five;
  for (auto& v : five.add("value", int64, {5}).mutable_as<std::int64_t>()) v = 7;
  static const std::vector<std::int64_t> held{3, 1, 4, 1, 5, 9, 2};
  const auto other = [](std::int64_t n) { return range_dataset(0, n, 1, "other"); };
  return {
      {"zip, the first is longer", [=] { return sum(zip_datasets(endless(), other(7))); }},
      {"zip, the second is longer", [=] { return sum(zip_datasets(other(7), endless())); }},
      {"zip of three",
       [=] { return sum(zip_datasets(endless(), other(6), range_dataset(0, 9, 1, "third").shuffle(4).repeat())); }},
      {"zip of batches",
       [=] {
         return flat(
             zip_datasets(endless().batch(2), other(7).batch(2).take(3)).map(scalar, [](const datum& e, datum& to) {
               for (std::size_t i = 0; i < 2; ++i) to.values<std::int64_t>(0)[i] = e.values<std::int64_t>(0)[i];
             }));
       }},
      {"zip of zips",
       [=] {
         return sum(
             zip_datasets(endless(), zip_datasets(other(5), range_dataset(0, 9, 1, "third").shuffle(4).repeat())));
       }},
      {"choose, the choices end",
       [] {
         return choose_from_datasets({endless(), endless()}, range_dataset(2).repeat(3));
       }},
      {"choose, one ends",
       [] {
         return choose_from_datasets({endless(), range_dataset(3)}, range_dataset(2).repeat(4));
       }},
      {"choose, all end",
       [] {
         return choose_from_datasets({range_dataset(2), range_dataset(3)}, range_dataset(2).shuffle(2, 1).repeat());
       }},
      {"sample, all end",
       [] {
         return sample_from_datasets({range_dataset(2), range_dataset(3)}, {0.5, 0.5}, 3);
       }},
      {"concatenate", [] { return range_dataset(3).shuffle(3).concatenate(endless().take(3)); }},
      {"generator",
       [] {
         return from_generator(
             scalar, [] { return [left = 3](datum& e) mutable { return e.set(0, std::int64_t{left}), left-- > 0; }; },
             {.stateful = false});
       }},
      {"slices", [=] { return from_tensor_slices(five); }},
      {"one element",
       [] {
         datum d(scalar);
         d.set<std::int64_t>(0, 4);
         return from_tensors(d);
       }},
      {"no element", [] { return range_dataset(0); }},
      {"memory", [] { return from_spans("value", held); }},
      {"counter", [] { return counter_dataset(3).take(4); }},
      {"random", [] { return random_dataset(5).map([](datum& e) { e.set(0, value_of(e) % 9); }).take(5); }},
      {"csv",
       [=] {
         return csv(files, {{"value", int64}});
       }},
      {"text_line",
       [=] {
         return text_line(files).map(scalar, [](const datum& e, datum& to) {
           to.set(0, static_cast<std::int64_t>(e.values<std::uint8_t>(0)[0]));
         });
       }},
  };
}

std::vector<stage> stages(const testing::temp_dir& scratch) {
  static int files = 0;
  const auto three = [](const datum& e) {
    return range_dataset(3).shuffle(3, static_cast<std::uint64_t>(value_of(e)));
  };
  const auto keep = [](any_dataset d) -> any_dataset { return d; };
  return {
      {"nothing", keep},
      {"shuffle", [](any_dataset d) { return std::move(d).shuffle(3, 1); }},
      {"shuffle of all", [](any_dataset d) { return std::move(d).shuffle(50, 1); }},
      {"repeat", [](any_dataset d) { return std::move(d).repeat(2); }},
      {"take", [](any_dataset d) { return std::move(d).take(4); }},
      {"take more", [](any_dataset d) { return std::move(d).take(50); }},
      {"take of ever", [](any_dataset d) { return std::move(d).repeat().take(6); }},
      {"skip", [](any_dataset d) { return std::move(d).skip(2); }},
      {"skip all", [](any_dataset d) { return std::move(d).skip(50); }},
      {"shard", [](any_dataset d) { return std::move(d).shard(3, 1); }},
      {"prefetch", [](any_dataset d) { return std::move(d).prefetch(2); }},
      {"map", [](any_dataset d) { return std::move(d).map([](datum& e) { e.set(0, value_of(e) + 1); }); }},
      {"parallel map",
       [](any_dataset d) { return std::move(d).map([](datum& e) { e.set(0, value_of(e) + 1); }, {.parallel = 3}); }},
      {"filter",
       [](any_dataset d) { return std::move(d).filter([](const datum& e) { return value_of(e) % 2 == 0; }); }},
      {"cache", [](any_dataset d) { return std::move(d).cache(); }},
      {"cache in a file", [&](any_dataset d) { return std::move(d).cache(scratch / text("cache", files++)); }},
      {"unique", [](any_dataset d) { return std::move(d).unique(); }},
      {"enumerate", [](any_dataset d) { return sum(std::move(d).enumerate()); }},
      {"concatenate", [](any_dataset d) { return std::move(d).concatenate(range_dataset(3).shuffle(3)); }},
      {"concatenate behind", [](any_dataset d) { return range_dataset(2).concatenate(std::move(d)); }},
      {"batch", [](any_dataset d) { return flat(std::move(d).batch(3)); }},
      {"batch without the rest", [](any_dataset d) { return flat(std::move(d).batch(3, true)); }},
      {"cache of batches", [](any_dataset d) { return flat(std::move(d).batch(2).cache().take(5)); }},
      {"padded_batch",
       [](any_dataset d) {
         return any_dataset(as_vectors(std::move(d)).padded_batch(2, {.padded_shapes = {{3}}}))
             .map(scalar, [](const datum& b, datum& to) { to.set(0, value_of(b) + 100 * b[0].dims[0]); });
       }},
      {"bucket_by_sequence_length",
       [](any_dataset d) {
         return any_dataset(as_vectors(std::move(d))
                                .bucket_by_sequence_length(
                                    [](const datum& e) { return e[0].dims[0]; },
                                    {.bucket_boundaries = {2}, .bucket_batch_sizes = {2, 3}, .drop_remainder = true}))
             .map(scalar, [](const datum& b, datum& to) { to.set(0, value_of(b) + 100 * b[0].dims[0]); });
       }},
      {"window", [](any_dataset d) { return flat(std::move(d).window(3, 2)); }},
      {"window with gaps", [](any_dataset d) { return flat(std::move(d).window(2, 3, 1, true)); }},
      {"as_batches", [](any_dataset d) { return flat(std::move(d).window(2).as_batches(2)); }},
      {"flat_map", [=](any_dataset d) { return std::move(d).flat_map(scalar, three); }},
      {"interleave",
       [=](any_dataset d) { return std::move(d).interleave(scalar, three, {.cycle_length = 3, .block_length = 2}); }},
      {"parallel interleave",
       [=](any_dataset d) { return std::move(d).interleave(scalar, three, {.cycle_length = 2, .parallel = true}); }},
      {"group_by_window",
       [](any_dataset d) {
         return std::move(d).group_by_window(
             scalar, [](const datum& e) { return value_of(e) % 2; },
             [](std::int64_t, any_dataset w) -> any_dataset { return std::move(w).shuffle(3, 1); },
             [](std::int64_t) { return std::int64_t{3}; });
       }},
  };
}

using units = std::vector<datum>;
constexpr std::size_t longest = 400;

units round_of(any_dataset& d) {
  units out;
  for (datum e; out.size() < longest && d.next(e);) out.push_back(e);
  return out;
}
std::vector<std::byte> position_of(const any_dataset& d) {
  std::vector<std::byte> out;
  d.save(out);
  return out;
}

// Reads a round and the end, `ends` times. Where `restored` is not negative, a new pipeline goes on from the position
// that was saved after so many of them.
any_dataset at_the_end(const std::function<any_dataset()>& make, std::size_t length, int ends, int restored = -1) {
  any_dataset d = make();
  datum e;
  for (std::size_t i = 0; i < length; ++i) REQUIRE(d.next(e));
  for (int i = 0; i <= ends; ++i) {
    if (i > 0) REQUIRE(!d.next(e));
    if (i != restored) continue;
    const auto at = position_of(d);
    d = make();
    d.load(at);
  }
  return d;
}
// Reads the same by threes, in a call that asks for more than is left, `ends` times.
any_dataset by_threes(const std::function<any_dataset()>& make, int ends) {
  any_dataset d = make();
  std::int64_t row[3] = {};
  const tensor_view view{std::span<std::int64_t>(row)};
  while (d.next_batch({&view, 1}, 3) == 3) {
  }
  for (; ends > 1; --ends) REQUIRE(d.next_batch({&view, 1}, 3) == 0);
  return d;
}

void check(const std::function<any_dataset()>& make) {
  any_dataset first = make();
  const std::size_t length = round_of(first).size();
  REQUIRE(length < longest);
  any_dataset once = at_the_end(make, length, 1), thrice = at_the_end(make, length, 3);
  REQUIRE(position_of(once) == position_of(thrice));
  const auto next_rounds = [](any_dataset d) {
    std::vector<units> out;
    for (int i = 0; i < 2; ++i) d.rewind(), out.push_back(round_of(d));
    return out;
  };
  const auto next = next_rounds(std::move(once));
  REQUIRE(next_rounds(std::move(thrice)) == next);
  REQUIRE(next_rounds(at_the_end(make, length, 1, 1)) == next);
  REQUIRE(next_rounds(at_the_end(make, length, 1, 0)) == next);
  REQUIRE(next_rounds(at_the_end(make, length, 3, 1)) == next);
  REQUIRE(next_rounds(at_the_end(make, length, 0, 0)) == next_rounds(at_the_end(make, length, 0)));
  if (!has_fixed_size(first.element_spec())) return;
  any_dataset rows = by_threes(make, 1);
  const auto at = position_of(rows);
  REQUIRE(at == position_of(by_threes(make, 3)));
  REQUIRE(next_rounds(std::move(rows)) == next_rounds(by_threes(make, 3)));
}

}  // namespace

TEST_CASE("to pull at the end once more changes nothing") {
  const testing::temp_dir scratch;
  const auto all_sources = sources(scratch);
  const auto all_stages = stages(scratch);
  for (const auto& from : all_sources)
    for (const auto& by : all_stages) {
      CAPTURE(from.name);
      CAPTURE(by.name);
      check([&] { return by.make(from.make()); });
    }
  for (const auto& below : all_stages)
    for (const auto& above : all_stages) {
      CAPTURE(below.name);
      CAPTURE(above.name);
      check([&] { return above.make(below.make(all_sources[0].make())); });
    }
}
