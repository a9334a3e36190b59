#include <gradus/input/cache.hpp>

#include <gradus/input/dataset.hpp>
#include <gradus/input/generator.hpp>
#include <gradus/input/map.hpp>
#include <gradus/testing/temp_dir.hpp>

#include <sys/wait.h>

#include <bit>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "data.hpp"

using namespace data_tests;

namespace {
void put(const std::string& path, const std::vector<std::byte>& bytes) {
  const std::span<const std::byte> piece(bytes);
  publish(posix{}, path, byte_pieces(&piece, 1));
}
auto counted(int& reads) {
  return range_dataset(6).map([&reads](datum& e) {
    ++reads;
    e.set(0, value_of(e) * 2);
  });
}
}  // namespace

TEST_CASE("read once, in memory and in a file") {
  const testing::temp_dir dir;
  for (const auto& path : {std::string(), dir / "kept"}) {
    int reads = 0;
    auto d = counted(reads).cache(path).repeat(3);
    const ints once = {0, 2, 4, 6, 8, 10};
    ints expected;
    for (int i = 0; i < 3; ++i) expected.insert(expected.end(), once.begin(), once.end());
    CHECK(all_of(std::move(d)) == expected);
    CHECK(reads == 6);
    CHECK(all_of(counted(reads).cache(path)) == once);
    CHECK(reads == (path.empty() ? 12 : 6));  // the file is there for later processes
  }
  CHECK(lists_of(range_dataset(5).batch(2).cache().repeat(2)) ==
        std::vector<ints>{{0, 1}, {2, 3}, {4}, {0, 1}, {2, 3}, {4}});
}

TEST_CASE("an iteration that was left is forgotten") {
  const testing::temp_dir dir;
  for (const auto& path : {std::string(), dir / "kept"}) {
    int reads = 0;
    auto d = counted(reads).cache(path);
    datum e;
    d.next(e), d.next(e);
    d.rewind();
    CHECK(all_of(std::move(d)) == ints{0, 2, 4, 6, 8, 10});
    CHECK(reads == 8);
  }
}

TEST_CASE("behind a stage that reads ahead, too, the source is read once") {
  const ints thrice{0, 2, 4, 6, 8, 10, 0, 2, 4, 6, 8, 10, 0, 2, 4, 6, 8, 10};
  for (const std::int64_t ahead : {1, 2, 9}) {
    int reads = 0;
    CHECK(all_of(counted(reads).cache().prefetch(ahead).repeat(3)) == thrice);
    CHECK(reads == 6);
  }
  // A generator that goes on where it was shows a second reading in the elements.
  std::int64_t made = 0;
  auto counts = from_generator(scalar, [&made] {
    return [&made, left = 3](datum& e) mutable { return left-- > 0 && (e.set(0, made++), true); };
  });
  CHECK(all_of(std::move(counts).cache().prefetch(2).repeat(3)) == ints{0, 1, 2, 0, 1, 2, 0, 1, 2});
  int reads = 0;
  auto left = counted(reads).cache().prefetch(1);
  datum e;
  left.next(e), left.next(e);
  left.rewind();
  CHECK(all_of(std::move(left)) == ints{0, 2, 4, 6, 8, 10});
  resumes([] { return range_dataset(7).shuffle(7, 1).cache().prefetch(2).repeat(3); });
  resumes([] { return range_dataset(7).batch(2).cache().prefetch(2).repeat(3); });
}

TEST_CASE("a copy of a full cache whose file is gone, or was cut, gives what the file held, and writes it again") {
  const testing::temp_dir dir;
  const std::string path = dir / "kept";
  const auto make = [&] {
    return cached_dataset<false>(range_dataset(7).shuffle(7, 1), path, [](std::string_view) {});
  };
  const ints once = all_of(range_dataset(7).shuffle(7, 1));
  for (const bool opened : {false, true})  // rather than filled by this one
    for (const bool is_cut : {false, true})
      for (const std::size_t k : {std::size_t{0}, std::size_t{3}, std::size_t{7}}) {
        CAPTURE(k);
        std::filesystem::remove(path);
        CHECK(all_of(make()) == once);
        if (!opened) std::filesystem::remove(path);
        cached_dataset<false> d = make();
        datum e;
        if (!opened) {
          while (d.next(e)) {
          }
          d.rewind();
        }
        for (std::size_t i = 0; i < k; ++i) d.next(e);
        if (is_cut)
          std::filesystem::resize_file(path, 30);
        else
          std::filesystem::remove(path);
        cached_dataset<false> copy = d;
        CHECK(all_of(copy) == ints(once.begin() + static_cast<std::ptrdiff_t>(k), once.end()));
        copy.rewind();
        CHECK(all_of(copy) == once);
        CHECK(all_of(make()) == once);
      }
}

TEST_CASE("a position among batches is refused by batches of another size") {
  const auto after = [](any_batches d, int batches) {
    datum e;
    for (; batches > 0; --batches) d.next(e);
    std::vector<std::byte> at;
    d.save(at);
    return at;
  };
  const auto make = [](std::int64_t n) { return range_dataset(40).batch(n).cache(); };
  for (const int batches : {1, 3, 12}) {
    any_batches other = make(8);
    const std::string said = message_of(status::data_loss, [&] { other.load(after(make(4), batches)); });
    CHECK(said.find("of 4 elements each, and this input has batches of 8; give it batches of that size") !=
          std::string::npos);
    CHECK(all_of(std::move(other)).size() == 40);
  }
  any_batches same = make(4), unread = make(8);
  same.load(after(make(4), 3));
  unread.load(after(make(4), 0));
  CHECK(lists_of(std::move(same))[0] == ints{12, 13, 14, 15});
  CHECK(lists_of(std::move(unread))[0] == ints{0, 1, 2, 3, 4, 5, 6, 7});
  // Version 0.5.0 wrote no size: its position is behind the definition "range(0, 40, 1).batch.cache" or the like.
  std::vector<std::byte> old = after(make(4), 3);
  std::int64_t definition, state;
  std::memcpy(&definition, old.data(), sizeof definition);
  std::byte* const number = old.data() + sizeof definition + definition;
  std::memcpy(&state, number, sizeof state);
  CHECK(state == 2 * 4);
  state = 0;
  std::memcpy(number, &state, sizeof state);
  any_batches before = make(4);
  before.load(old);
  CHECK(lists_of(std::move(before))[0] == ints{12, 13, 14, 15});
}

TEST_CASE("what was kept behind a position that is restored is no whole iteration") {
  const testing::temp_dir dir;
  auto fresh = range_dataset(7).shuffle(7, 1);
  const ints first = all_of(fresh);
  fresh.rewind();
  const ints second = all_of(std::move(fresh));
  int files = 0;
  for (const bool in_file : {false, true})
    for (const std::size_t k : {std::size_t{0}, std::size_t{1}, std::size_t{3}, std::size_t{7}}) {
      CAPTURE(in_file);
      CAPTURE(k);
      const std::string path = in_file ? dir / text(files++) : std::string();
      cached_dataset<false> d = range_dataset(7).shuffle(7, 1).cache(path);
      datum e;
      for (std::size_t i = 0; i < k; ++i) d.next(e);
      std::vector<std::byte> at, back;
      d.save(at);
      while (d.next(e)) {
      }
      d.load(at);
      d.save(back);
      CHECK(back == at);
      auto left = d, ended = d;  // copies are in the same place
      CHECK(all_of(left) == ints(first.begin() + static_cast<std::ptrdiff_t>(k), first.end()));
      left.rewind();
      auto again = left;  // beside the file of the iteration that was left
      CHECK(all_of(std::move(again)) == second);
      CHECK(all_of(std::move(left)) == second);
      while (ended.next(e)) {
      }
      ended.rewind();
      if (!in_file) {
        CHECK(all_of(std::move(ended)) == first);
        continue;
      }
      posix{}.remove(path);
      d.load(at);
      CHECK(all_of(std::move(d)) == ints(first.begin() + static_cast<std::ptrdiff_t>(k), first.end()));
    }
}

TEST_CASE("the order is kept, too") {
  auto d = range_dataset(9).shuffle(9, 1).cache().repeat(2);
  const auto all = all_of(std::move(d));
  CHECK(ints(all.begin(), all.begin() + 9) == ints(all.begin() + 9, all.end()));
}

TEST_CASE("positions: the source where filling began") {
  resumes([] { return range_dataset(7).shuffle(7, 1).cache().repeat(3); });
  resumes([] { return range_dataset(7).shuffle(7, 1).batch(2).cache().repeat(3); });
  const testing::temp_dir dir;
  int files = 0;
  resumes([&] { return range_dataset(7).shuffle(7, 1).cache(dir / text(files++)).repeat(3); });
  resumes([&] { return range_dataset(7).shuffle(7, 1).cache(dir / "same").repeat(2); });
  auto large = range_dataset(10000).cache().repeat();
  datum e;
  for (int i = 0; i < 15000; ++i) large.next(e);
  std::vector<std::byte> at;
  large.save(at);
  CHECK(at.size() < 200);
}

TEST_CASE("a position in a file that another dataset had written goes on where the file is gone") {
  const testing::temp_dir dir;
  int reads = 0;
  all_of(counted(reads).cache(dir / "kept"));
  auto a = counted(reads).cache(dir / "kept");
  datum e;
  a.next(e), a.next(e);
  std::vector<std::byte> at;
  a.save(at);
  posix{}.remove(dir / "kept");
  auto b = counted(reads).cache(dir / "kept");
  b.load(at);
  CHECK(all_of(std::move(b)) == ints{4, 6, 8, 10});
}

TEST_CASE("larger batches in a file are an error, not more rows than there is room for") {
  const testing::temp_dir dir;
  for (auto d = range_dataset(6).batch(4).cache(dir / "kept"); const datum& e : d) CHECK(e.about(0).dims[0] <= 4);
  auto d = range_dataset(6).batch(2).cache(dir / "kept");
  std::vector<std::int64_t> room(4, -1);
  const tensor_view two(std::span<std::int64_t>(room).first(2));
  CHECK_THROWS_WITH_AS(d.next({&two, 1}), doctest::Contains("found a batch of 4 elements, expected at most 2"),
                       failed_precondition);
  CHECK(room == std::vector<std::int64_t>(4, -1));
}

TEST_CASE("a file of another dataset, or damaged") {
  const testing::temp_dir dir;
  all_of(range_dataset(4).cache(dir / "kept"));
  CHECK(message_of(status::failed_precondition, [&] {
          all_of(range_dataset(0, 4, 1, "other").cache(dir / "kept"));
        }).find("is not the cache of this dataset") != std::string::npos);
  publish(posix{}, dir / "notes", "precious, and no cache");
  CHECK(message_of(status::failed_precondition, [&] { all_of(range_dataset(4).cache(dir / "notes")); }) != "");
  auto bytes = read_file(posix{}, dir / "kept");
  bytes[bytes.size() / 2] ^= std::byte{1};
  put(dir / "kept", bytes);
  const auto said = message_of(status::data_loss, [&] { all_of(range_dataset(4).cache(dir / "kept")); });
  CHECK(said.find("corrupted record at byte") == 0);
  CHECK(said.find("remove the file, and it is written again") != std::string::npos);
}

TEST_CASE("a record that is longer than an element is an error before its bytes are read") {
  const testing::temp_dir dir;
  int reads = 0;
  all_of(counted(reads).cache(dir / "kept"));
  const std::vector<std::byte> file = read_file(posix{}, dir / "kept");
  const std::size_t header = record_overhead_bytes + std::to_integer<std::size_t>(file[0]);
  for (const std::size_t longer : {std::size_t{100'000}, std::size_t{1} << 24}) {
    std::vector<std::byte> hostile(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(header));
    append_record(hostile, std::vector<std::byte>(longer));
    hostile.insert(hostile.end(), file.end() - static_cast<std::ptrdiff_t>(record_overhead_bytes + 9), file.end());
    put(dir / "kept", hostile);
    const std::string said = message_of(status::data_loss, [&] { all_of(counted(reads).cache(dir / "kept")); });
    CHECK(said.find("remove the file, and it is written again") != std::string::npos);
  }
}

TEST_CASE("a file that was cut at any byte, or continued, is written again with a line, and never short") {
  const testing::temp_dir dir;
  const ints expected{0, 1, 2, 3};
  CHECK(all_of(range_dataset(4).cache(dir / "kept")) == expected);
  const auto good = read_file(posix{}, dir / "kept");
  for (std::size_t n = 0; n <= good.size() + 40; n += n < good.size() ? 1 : 13) {
    CAPTURE(n);
    auto bytes = good;
    bytes.resize(n);
    put(dir / "kept", bytes);
    std::vector<std::string> lines;
    const auto log = [&](std::string_view line) { lines.emplace_back(line); };
    CHECK(all_of(range_dataset(4).cache(dir / "kept", log).repeat(2)) == ints{0, 1, 2, 3, 0, 1, 2, 3});
    REQUIRE(lines.size() == (n == good.size() ? 0 : 1));
    if (!lines.empty())
      CHECK(lines[0] ==
            text("cache \"", dir / "kept", "\" is written again: its ", n, " bytes have no end record, so it was cut"));
    CHECK(read_file(posix{}, dir / "kept") == good);
  }
}

TEST_CASE("a file that is cut between two iterations is an error, not a shorter iteration") {
  const testing::temp_dir dir;
  const auto d = range_dataset(4).cache(dir / "kept");
  CHECK(all_of(d) == ints{0, 1, 2, 3});
  auto reader = range_dataset(4).cache(dir / "kept");  // looks at the whole file
  auto bytes = read_file(posix{}, dir / "kept");
  bytes.resize(bytes.size() - 30);
  put(dir / "kept", bytes);
  CHECK(message_of(status::data_loss, [&] { all_of(std::move(reader)); }).find("behind 3 elements") !=
        std::string::npos);
}

TEST_CASE("one flipped bit gives the elements or an error, never others or fewer") {
  const testing::temp_dir dir;
  all_of(range_dataset(3).cache(dir / "kept"));
  const auto good = read_file(posix{}, dir / "kept");
  std::size_t refused = 0, again = 0;
  for (std::size_t bit = 0; bit < 8 * good.size(); bit += 3) {
    auto bytes = good;
    bytes[bit / 8] ^= std::byte(static_cast<unsigned char>(1 << bit % 8));
    put(dir / "kept", bytes);
    ints found;
    try {
      found = all_of(range_dataset(3).cache(dir / "kept", [&](std::string_view) { ++again; }));
    } catch (const error&) {
      ++refused;
      continue;
    }
    CHECK(found == ints{0, 1, 2});
  }
  CHECK(refused > 0);
  CHECK(again >= 25 * 8 / 3);  // in the end record
}

TEST_CASE("a file of gradus 0.5 is written again, with a line") {
  const testing::temp_dir dir;
  // As 0.5.0 wrote it: a header, and the elements' bytes; no end. This one was cut: two of three elements.
  std::vector<std::byte> old;
  const std::string header = "gradus cache 1: " + to_text(scalar);
  append_record(old, std::as_bytes(std::span(header)));
  for (const std::int64_t v : {0, 1}) {
    datum d(scalar);
    d.set(0, v);
    std::vector<std::byte> bytes;
    position_writer to(bytes);
    d.write(to);
    append_record(old, bytes);
  }
  put(dir / "kept", old);
  std::string said;
  auto d = range_dataset(0, 3, 1, "value").cache(dir / "kept", [&](std::string_view line) { said = line; });
  CHECK(said == text("cache \"", dir / "kept",
                     "\" is written again: gradus 0.5 wrote it, which did not note whether it is whole"));
  CHECK(all_of(std::move(d)) == ints{0, 1, 2});
  said.clear();
  CHECK(all_of(range_dataset(0, 3, 1, "value").cache(dir / "kept", [&](std::string_view l) { said = l; })) ==
        ints{0, 1, 2});
  CHECK(said.empty());
}

TEST_CASE("two that share a file: every interleaving gives both all elements, twice, and leaves one file") {
  const testing::temp_dir dir;
  // Each takes 2 elements and the end, rewinds, and takes them again: 7 moves. Which of the two moves is a bit.
  constexpr int moves = 7;
  int interleavings = 0;
  for (unsigned order = 0; order < 1u << (2 * moves); ++order) {
    if (std::popcount(order) != moves) continue;
    CAPTURE(order);
    if (++interleavings % (std::getenv("GRADUS_LONG") != nullptr ? 1 : 8) != 0) continue;
    posix{}.remove(dir / "kept");
    any_dataset both[2] = {range_dataset(2).cache(dir / "kept"), range_dataset(2).cache(dir / "kept")};
    ints seen[2];
    int done[2] = {0, 0};
    for (int i = 0; i < 2 * moves; ++i) {
      const auto who = order >> i & 1u;
      datum e;
      if (done[who]++ == 3)
        both[who].rewind();
      else
        seen[who].push_back(both[who].next(e) ? value_of(e) : -1);
    }
    CHECK(seen[0] == ints{0, 1, -1, 0, 1, -1});
    CHECK(seen[1] == ints{0, 1, -1, 0, 1, -1});
    std::vector<std::string> names;
    posix{}.list(dir.path(), names);
    CHECK(names == std::vector<std::string>{"kept"});
  }
  CHECK(interleavings == 3432);
}

TEST_CASE("two processes fill one file at the same time; one that is killed after any number of elements leaves none") {
  const testing::temp_dir dir;
  const std::string path = dir / "kept";
  constexpr std::int64_t size = 4000;
  for (int kill_after : {0, 1, 3000, -1}) {
    posix{}.remove(path);
    int go[2], said[2];
    REQUIRE((::pipe(go) == 0 && ::pipe(said) == 0));
    const pid_t child = ::fork();
    if (child == 0) {
      ::close(go[1]);
      any_dataset d = range_dataset(size).cache(path);
      datum e;
      char c = 'y';
      for (int i = 0; i < kill_after || (kill_after < 0 && d.next(e)); ++i)
        if (kill_after >= 0) d.next(e);
      if (::write(said[1], &c, 1) != 1) ::_exit(1);
      if (kill_after >= 0) (void)!::read(go[0], &c, 1);  // until it is killed
      d.rewind();
      std::int64_t n = 0;
      while (d.next(e)) n += value_of(e) == n;
      ::_exit(n == size ? 0 : 1);
    }
    any_dataset d = range_dataset(size).cache(path);
    datum e;
    for (int i = 0; i < 100; ++i) d.next(e);  // in the middle of it meanwhile
    char c = 0;
    REQUIRE(::read(said[0], &c, 1) == 1);
    std::vector<std::string> names;
    posix{}.list(dir.path(), names);
    CHECK(names.size() == (kill_after == 0 ? 1 : 2));  // ours, and theirs or the file
    if (kill_after >= 0) ::kill(child, SIGKILL);
    int how = 0;
    ::waitpid(child, &how, 0);
    if (kill_after < 0) CHECK((WIFEXITED(how) && WEXITSTATUS(how) == 0));
    for (const int end : {go[0], go[1], said[0], said[1]}) ::close(end);
    std::int64_t n = 100;
    for (; d.next(e); ++n) REQUIRE(value_of(e) == n);
    CHECK(n == size);
    CHECK(all_of(range_dataset(size).cache(path), 5000).size() == size);  // opens, and clears
    posix{}.list(dir.path(), names);
    CHECK(names == std::vector<std::string>{"kept"});
  }
}

TEST_CASE("copies of a cache made before its file use the file that the first of them has written") {
  const testing::temp_dir place;
  int reads = 0;
  const auto d = range_dataset(5).map([&reads](datum&) { ++reads; }).cache(place / "file");
  const auto drain = [](auto all) {
    ints out;
    for (datum e; all.next(e);) out.push_back(value_of(e));
    return out;
  };
  for (int i = 0; i < 4; ++i) CHECK(drain(d) == ints{0, 1, 2, 3, 4});
  CHECK(reads == 5);
}
