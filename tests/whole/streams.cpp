// costs: 900
// Pipelines put together at random from all combinators: interrupted anywhere, saved, and continued in a fresh pipeline
// (a sample of them in a new process), the stream is that of one that was not interrupted.
#include <gradus/input/combinators.hpp>
#include <gradus/testing/temp_dir.hpp>

#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <set>

using namespace gradus;

namespace {

const components scalar = {{"value", int64, {}}};
const components vectors = {{"value", int64, {any_extent}}};

// Whatever a damaged position holds, our functions are called with numbers that they can count with.
std::int64_t small(std::int64_t v) { return (v % 1000 + 1000) % 1000; }
std::int64_t value_of(const datum& e) { return small(e.value<std::int64_t>(0)); }

// Puts a pipeline together by a seed, the same each time. All its elements are one int64 "value"; file caches lie in
// `directory`.
class composer {
public:
  composer(std::uint64_t seed, std::string directory) : roll_{.seed = seed}, directory_(std::move(directory)) {}

  any_dataset elements(int depth = 0) {
    any_dataset d = source();
    for (auto n = roll_.below(depth == 0 ? 5 : 2); n > 0; --n) d = stage(std::move(d), depth);
    return d;
  }
  // Elements, or batches as elements.
  any_dataset any() {
    any_dataset d = elements();
    switch (roll_.below(6)) {
    case 0: return d;
    case 1: return ragged(std::move(d));
    default: {
      any_batches b = batches(std::move(d));
      for (auto n = roll_.below(3); n > 0; --n) b = batch_stage(std::move(b));
      return b;
    }
    }
  }
  std::set<std::string> used;  // what it was made of

private:
  std::int64_t below(std::uint32_t n) { return static_cast<std::int64_t>(roll_.below(n)); }
  void use(const char* name) { used.insert(name); }

  any_dataset source() {
    endless_ = false;
    switch (roll_.below(7)) {
    case 0: use("counter"); return counter_dataset(below(9), 1 + below(4)).take(below(40));
    case 1:
      use("random");
      return random_dataset(roll_.word()).map([](datum& e) { e.set(0, value_of(e) % 50); }).take(below(40));
    case 2: {
      use("generator");
      const auto size = below(20);
      return from_generator(scalar,
                            [size] {
                              return [i = std::int64_t{0}, size](datum& e) mutable {
                                e.set<std::int64_t>(0, i * 3);
                                return i++ < size;
                              };
                            },
                            {.stateful = false});
    }
    case 3: {
      use("elements");
      datum d;
      const auto rows = d.add("value", int64, {below(20)}).mutable_as<std::int64_t>();
      for (auto& v : rows) v = below(9);
      return from_tensor_slices(d);
    }
    default: use("range"); return range_dataset(below(5), below(30), 1 + below(3));
    }
  }

  any_dataset stage(any_dataset d, int depth) {
    // What may never find an element is not put above what never ends.
    if (endless_ && roll_.below(2) == 0) d = std::move(d).take(40), endless_ = false;
    const std::uint32_t kind = roll_.below(24);
    const auto seed = std::uint64_t{roll_.word()};
    switch (kind) {
    case 0: use("shuffle"); return std::move(d).shuffle(1 + below(30), seed, roll_.below(3) != 0);
    case 1: use("repeat"); return std::move(d).repeat(below(4));
    case 2:
      use("repeat for ever");
      endless_ = true;
      return std::move(d).repeat();
    case 3:
      use("take");
      endless_ = false;
      return std::move(d).take(below(40));
    case 4: use("skip"); return std::move(d).skip(below(6));
    case 5: {
      use("shard");
      const auto n = 1 + below(4);
      return std::move(d).shard(n, below(static_cast<std::uint32_t>(n)));
    }
    case 6: use("map"); return std::move(d).map([](datum& e) { e.set(0, value_of(e) * 7 % 1000 + 1); });
    case 7:
    case 8: {
      use("parallel map");
      const int threads = 1 + static_cast<int>(below(4));
      return std::move(d).map(scalar, [](const datum& e, datum& to) { to.set(0, (value_of(e) * 5 + 3) % 1000); },
                              {.parallel = threads});
    }
    case 9:
      if (endless_) return d;
      use("filter");
      return std::move(d).filter([](const datum& e) { return value_of(e) % 3 != 0; });
    case 10:
      if (depth > 0 || endless_) return d;
      use("concatenate");
      return std::move(d).concatenate(elements(1));
    case 11: use("cache"); return std::move(d).cache();
    case 12: {
      if (endless_) return d;
      use("cache in a file");
      return std::move(d).cache(join_path(directory_, text("cache", files_++)));
    }
    case 13: {
      use("enumerate");
      return std::move(d).enumerate(below(3)).map(scalar, [](const datum& e, datum& to) {
        to.set(0, (small(e.value<std::int64_t>("value")) * 31 + small(e.value<std::int64_t>("index"))) % 1000);
      });
    }
    case 14:
    case 15: {
      use("window");
      const auto size = 1 + below(4), shift = below(5), stride = 1 + below(3);
      return std::move(d).window(size, shift, stride, roll_.below(2) == 0).flat_map(scalar, [](const datum& w) {
        return from_tensor_slices(w);
      });
    }
    case 16:
      if (endless_) return d;
      use("unique");
      return std::move(d).unique();
    case 17:
    case 18: {
      if (endless_) return d;
      use("interleave");
      const interleave_options how{
          .cycle_length = 1 + below(4), .block_length = 1 + below(3), .parallel = roll_.below(3) == 0};
      return std::move(d).interleave(
          scalar,
          [seed](const datum& e) {
            const auto v = value_of(e);
            return range_dataset(v, v + v % 4).repeat(2).shuffle(3, seed);
          },
          how);
    }
    case 19: {
      use("group_by_window");
      const auto size = 1 + below(5);
      return std::move(d).group_by_window(
          scalar, [](const datum& e) { return value_of(e) % 3; },
          [seed](std::int64_t key, any_dataset w) -> any_dataset {
            if (key == 0) return std::move(w).shuffle(4, seed);
            return w;
          },
          [size](std::int64_t) { return size; });
    }
    case 20: {
      if (depth > 0) return d;
      use("zip");
      const bool endless = endless_;
      auto other = elements(1).map({{"other", int64, {}}}, [](const datum& e, datum& to) { to.set(0, value_of(e)); });
      endless_ = endless && endless_;
      return zip_datasets(std::move(d), std::move(other)).map(scalar, [](const datum& e, datum& to) {
        to.set(0, (small(e.value<std::int64_t>("value")) + 10 * small(e.value<std::int64_t>("other"))) % 1000);
      });
    }
    case 21: {
      if (depth > 0 || endless_) return d;
      use("choose_from_datasets");
      std::vector<any_dataset> all;
      all.push_back(std::move(d));
      all.push_back(elements(1));
      const bool endless = endless_;
      if (roll_.below(2) == 0) return sample_from_datasets(std::move(all), {0.7, 0.3}, seed);
      endless_ = endless;
      return choose_from_datasets(std::move(all), range_dataset(2).repeat());
    }
    default: use("prefetch"); return std::move(d).prefetch(1 + below(4));
    }
  }

  static any_dataset as_vectors(any_dataset d) {
    return std::move(d).map(vectors, [](const datum& e, datum& to) {
      const auto v = value_of(e);
      to.resize(0, {v % 5});
      to.set(0, v);
    });
  }
  // Elements of different sizes.
  any_dataset ragged(any_dataset d) {
    use("ragged");
    d = as_vectors(std::move(d));
    for (auto n = roll_.below(3); n > 0; --n) switch (roll_.below(5)) {
      case 0:
        use("shuffle");
        d = std::move(d).shuffle(1 + below(8), 5);
        break;
      case 1: d = std::move(d).repeat(2); break;
      case 2:
        use("cache");
        d = std::move(d).cache();
        break;
      case 3: d = std::move(d).skip(1).take(30); break;
      default: d = std::move(d).prefetch(1 + below(4)); break;
      }
    return d;
  }
  any_batches batches(any_dataset d) {
    const auto n = 1 + below(7);
    switch (roll_.below(4)) {
    case 0: {
      use("padded_batch");
      const bool drop = roll_.below(3) == 0;
      return ragged(std::move(d)).padded_batch(n, {.padding_values = {-1}, .drop_remainder = drop});
    }
    case 1:
      use("bucket_by_sequence_length");
      return ragged(std::move(d))
          .bucket_by_sequence_length([](const datum& e) { return e[0].dims[0]; },
                                     {.bucket_boundaries = {2, 4}, .bucket_batch_sizes = {n, 2, 3}});
    case 2: use("as_batches"); return std::move(d).window(n, 1 + below(4)).as_batches(n);
    default: use("batch"); return std::move(d).batch(n, roll_.below(3) == 0);
    }
  }
  any_batches batch_stage(any_batches b) {
    use("on batches");
    const auto more = [](datum& e) {
      for (auto& v : e.values<std::int64_t>(0)) v = small(v) + 1;
    };
    switch (roll_.below(9)) {
    case 0: return std::move(b).map(more);
    case 1: return std::move(b).map(more, {.parallel = 2});
    case 2: return std::move(b).repeat(2);
    case 3: return std::move(b).take(below(20));
    case 4: return std::move(b).skip(below(3));
    case 5: use("cache"); return std::move(b).cache();
    case 6: return std::move(b).shard(2, below(2));
    case 7:
      if (b.element_spec()[0].dims.rank == 0) return std::move(b).concatenate(range_dataset(5).batch(2));
      return std::move(b).concatenate(as_vectors(range_dataset(9)).padded_batch(4)).take(30);
    default: return std::move(b).prefetch(1 + below(4));
    }
  }

  random_stream roll_;
  std::string directory_;
  bool endless_ = false;
  int files_ = 0;
};

constexpr std::size_t longest = 60;
using stream = std::vector<std::vector<std::byte>>;

void read(any_dataset& d, stream& to, std::size_t units) {
  datum unit;
  for (; units > 0 && d.next(unit); --units) {
    std::vector<std::byte> bytes;
    position_writer writer(bytes);
    unit.write(writer);
    to.push_back(std::move(bytes));
  }
}
stream rest_of(any_dataset& d, std::size_t units) {
  stream out;
  read(d, out, units);
  return out;
}
std::vector<std::byte> position_of(const any_dataset& d) {
  std::vector<std::byte> out;
  d.save(out);
  return out;
}
std::string joined(const stream& units) {
  std::string out;
  for (const auto& unit : units) {
    for (const auto b : unit) out += text(std::to_integer<int>(b), ' ');
    out += '\n';
  }
  return out;
}

bool in_child() { return std::getenv("GRADUS_STREAM_SEED") != nullptr; }

}  // namespace

TEST_CASE("continued in a fresh pipeline, the stream goes on with exactly the next element") {
  if (in_child()) return;
  const testing::temp_dir scratch;
  const std::uint64_t compositions = std::getenv("GRADUS_LONG") != nullptr ? 4000 : 250;
  std::size_t cut_inside = 0, copied = 0, processes = 0;
  std::set<std::string> used;
  for (std::uint64_t seed = 0; seed < compositions; ++seed) {
    CAPTURE(seed);
    const auto directory = [&](const char* name) {
      const auto path = scratch / text(name, seed);
      make_directories(posix{}, path);
      return path;
    };
    composer whole_composer(seed, directory("whole"));
    any_dataset uninterrupted = whole_composer.any();
    used.merge(whole_composer.used);
    const stream whole = rest_of(uninterrupted, longest);

    random_stream roll{.seed = ~seed};
    const auto cut = roll.below(static_cast<std::uint32_t>(whole.size() + 1));
    cut_inside += cut > 0 && cut < whole.size();
    const stream expected(whole.begin() + cut, whole.end());
    const auto here = directory("here"), elsewhere = roll.below(2) == 0 ? here : directory("elsewhere");
    std::vector<std::byte> position;
    {
      any_dataset d = composer(seed, here).any();
      read(d, *std::make_unique<stream>(), cut);
      position = position_of(d);
      REQUIRE(position_of(d) == position);
      try {
        any_dataset copy = d;
        if (here != elsewhere) REQUIRE(rest_of(copy, longest - cut) == expected);
        ++copied;
      } catch (const failed_precondition&) {  // a thread, or a file that is being written
      }
      if (roll.below(2) == 0) REQUIRE(rest_of(d, longest - cut) == expected);  // saving disturbs nothing
    }
    any_dataset d = composer(seed, elsewhere).any();
    read(d, *std::make_unique<stream>(), roll.below(20));  // wherever it was before does not matter
    const auto before = position_of(d);
    CHECK_THROWS_AS(d.load(std::span(position).first(roll.below(static_cast<std::uint32_t>(position.size())))),
                    data_loss);
    if (position_of(d) != before) {  // prefetch stopped its thread: the same place in other words
      any_dataset same = composer(seed, directory("same")).any();
      same.load(before);
      REQUIRE(rest_of(d, 10) == rest_of(same, 10));
    }
    d.load(position);
    REQUIRE(rest_of(d, longest - cut) == expected);

    if (seed % 50 != 7) continue;
    const auto position_file = scratch / "position", rest_file = scratch / "rest";
    const auto piece = std::span<const std::byte>(position);
    publish(posix{}, position_file, byte_pieces(&piece, 1));
    const auto command = text("GRADUS_STREAM_SEED=", seed, " GRADUS_STREAM_LENGTH=", longest - cut,
                              " GRADUS_STREAM_DIRECTORY='", directory("child"), "' GRADUS_STREAM_POSITION='",
                              position_file, "' GRADUS_STREAM_REST='", rest_file, "' ");
    char self[4096] = {};
    REQUIRE(::readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    REQUIRE(std::system((command + "'" + self + "' --source-file='*whole/streams.cpp' > /dev/null").c_str()) == 0);
    const auto said = read_file(posix{}, rest_file);
    REQUIRE(std::string(reinterpret_cast<const char*>(said.data()), said.size()) == joined(expected));
    ++processes;
  }
  CHECK(cut_inside > compositions / 3);
  CHECK(copied > compositions / 5);
  CHECK(processes >= compositions / 50);
  CHECK(used.size() == 31);
}

TEST_CASE("a damaged position is refused, or is a place to read on from") {
  if (in_child()) return;
  const testing::temp_dir scratch;
  const std::uint64_t compositions = std::getenv("GRADUS_LONG") != nullptr ? 2000 : 100;
  std::size_t refused = 0, tried = 0;
  for (std::uint64_t seed = 0; seed < compositions; ++seed) {
    CAPTURE(seed);
    composer parts(seed, scratch.path());
    any_dataset d = parts.any();
    // What goes to its place by reading would go on reading for ever.
    if (parts.used.count("repeat for ever") + parts.used.count("cache in a file") != 0) continue;
    random_stream roll{.seed = seed};
    stream some;
    read(d, some, roll.below(20));
    const auto good = position_of(d);
    for (int i = 0; i < 10; ++i, ++tried) {
      auto bad = good;
      bad[roll.below(static_cast<std::uint32_t>(bad.size()))] ^= std::byte(1 << roll.below(8));
      any_dataset other = composer(seed, scratch.path()).any();
      const auto before = position_of(other);
      try {
        other.load(bad);
      } catch (const data_loss&) {
        ++refused;
        if (parts.used.count("cache") + parts.used.count("shuffle") == 0) REQUIRE(position_of(other) == before);
        continue;
      } catch (const error&) {  // from a function of ours
        continue;
      }
      try {
        read(other, some, 20);
      } catch (const error&) {
      }
    }
  }
  CHECK(refused > tried / 4);
}

// The new process of the first test.
TEST_CASE("a pipeline of another process") {
  if (!in_child()) return;
  any_dataset d =
      composer(std::strtoull(std::getenv("GRADUS_STREAM_SEED"), nullptr, 10), std::getenv("GRADUS_STREAM_DIRECTORY"))
          .any();
  d.load(read_file(posix{}, std::getenv("GRADUS_STREAM_POSITION")));
  publish(posix{}, std::getenv("GRADUS_STREAM_REST"),
          joined(rest_of(d, std::strtoull(std::getenv("GRADUS_STREAM_LENGTH"), nullptr, 10))));
}
