// compiled with: -Wno-mismatched-new-delete
// costs: 600
// Whole pipelines: put together at random, interrupted anywhere, continued elsewhere; and what they allocate.
#include <gradus/input/cache.hpp>
#include <gradus/input/csv.hpp>
#include <gradus/input/dataset.hpp>
#include <gradus/input/idx.hpp>
#include <gradus/input/map.hpp>
#include <gradus/testing/temp_dir.hpp>

#include <atomic>
#include <cstdlib>
#include <new>

#include "pipelines.hpp"

using namespace pipelines;

// ThreadSanitizer brings an operator new of its own; there, nothing is counted and the other tests run.
#if !defined(GRADUS_TEST_UNCOUNTED)
namespace {
std::atomic<long> allocations{0};
void* allocate(std::size_t size, std::size_t alignment) {
  ++allocations;
  void* p = nullptr;
  if (::posix_memalign(&p, alignment, size == 0 ? 1 : size) != 0) std::abort();
  return p;
}
}  // namespace

// For this whole program: every allocation of C++ is counted.
void* operator new(std::size_t size) { return allocate(size, 16); }
void* operator new[](std::size_t size) { return allocate(size, 16); }
void* operator new(std::size_t size, std::align_val_t a) { return allocate(size, static_cast<std::size_t>(a)); }
void* operator new[](std::size_t size, std::align_val_t a) { return allocate(size, static_cast<std::size_t>(a)); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
#endif

namespace {

idx_dataset small_idx(std::uint32_t n) {
  idx_array images{idx_type::uint8, 3, {n, 2, 3}, {}}, labels{idx_type::uint8, 1, {n}, {}};
  for (std::uint32_t i = 0; i < n; ++i) {
    for (std::uint32_t k = 0; k < 6; ++k) images.values.push_back(static_cast<std::byte>(i * 6 + k));
    labels.values.push_back(static_cast<std::byte>(i));
  }
  return idx_dataset(std::move(images), std::move(labels));
}

// Records 0, 1, 2, ... in two files.
csv_dataset small_csv(std::int64_t n) {
  static const testing::temp_dir dir;
  const std::string first = dir / text(n, "a"), second = dir / text(n, "b");
  if (posix{}.exists(second) != 0) {
    std::string lines[2];
    for (std::int64_t i = 0; i < n; ++i) lines[i < n / 3 ? 0 : 1] += text(i, ",0.5,", -i, '\n');
    publish(posix{}, first, lines[0]), publish(posix{}, second, lines[1]);
  }
  return csv({first, second}, {{"i", int32}, {"x", float32, {2}}});
}

// What a pipeline gives, one unit (element or batch) after another, as bytes.
using stream = std::vector<std::vector<std::byte>>;

// Reads one unit; for elements sometimes by next, sometimes by next_batch. Arrays of extents for `rows` rows.
template <class D>
class reader {
public:
  explicit reader(const D& d) : spec_(d.element_spec()) {
    if constexpr (batched_dataset<D>) rows_ = d.batch_size();
    for (const auto& c : spec_) {
      memory_.emplace_back(size_bytes(c) * static_cast<std::size_t>(rows_));
      extents many{rows_};
      for (int k = 0; k < c.dims.rank; ++k) many.push(c.dims[k]);
      single_.emplace_back(c.type, c.dims, memory_.back().data());
      many_.emplace_back(c.type, many, memory_.back().data());
    }
  }
  std::int64_t operator()(D& d) {
    if constexpr (batched_dataset<D>)
      return d.next(many_);
    else
      return ++calls_ % 2 == 0 ? d.next_batch(many_, 1) : std::int64_t{d.next(single_)};
  }
  bool read(D& d, stream& to) {
    const std::int64_t rows = (*this)(d);
    if (rows == 0) return false;
    std::vector<std::byte> unit;
    for (std::size_t k = 0; k < spec_.size(); ++k)
      unit.insert(unit.end(), memory_[k].data(),
                  memory_[k].data() + size_bytes(spec_[k]) * static_cast<std::size_t>(rows));
    to.push_back(std::move(unit));
    return true;
  }
  void read(D& d, stream& to, std::size_t units) {
    while (units-- > 0 && read(d, to)) {
    }
  }

private:
  components spec_;
  std::int64_t rows_ = 1;
  int calls_ = 0;
  std::vector<gradus::aligned_buffer> memory_;
  std::vector<tensor_view> single_, many_;
};

// A pipeline chosen by a seed: the same one each time. Prefetch is a thread, so it comes less often.
template <class Use>
void with_random_pipeline(std::uint64_t seed, const std::vector<std::int32_t>& values, Use&& use) {
  random_stream roll{.seed = seed};
  const auto size = static_cast<std::int64_t>(roll.below(24));
  const auto buffer = [&] { return 1 + static_cast<std::int64_t>(roll.below(30)); };
  const auto count = [&] { return static_cast<std::int64_t>(roll.below(40)); };
  const auto source = [&](auto from) {
    switch (roll.below(4)) {  // over the source itself, a shuffle draws numbers; later ones hold copies
    case 0: return hidden<false>::hide(std::move(from).shuffle(buffer(), seed, roll.below(3) != 0));
    case 1: return hidden<false>::hide(std::move(from).skip(count() / 8).take(count()).shuffle(buffer(), seed));
    default: return hidden<false>::hide(std::move(from));
    }
  };
  hidden<false> d = [&] {
    switch (roll.below(4)) {
    case 0: return source(small_idx(static_cast<std::uint32_t>(size)));
    case 1: return source(numbers(values).take(size));
    case 2: return source(small_csv(size));
    default: return hidden<false>::hide(counted(size));
    }
  }();
  for (auto stages = roll.below(4); stages > 0; --stages) switch (roll.below(9)) {
    case 0:
    case 1: d = hidden<false>::hide(std::move(d).shuffle(buffer(), roll.next, roll.below(3) != 0)); break;
    case 2:
    case 3: d = hidden<false>::hide(std::move(d).repeat(static_cast<std::int64_t>(roll.below(5)) - 1)); break;
    case 4:
    case 5: d = hidden<false>::hide(std::move(d).take(count())); break;
    case 6:
    case 7: d = hidden<false>::hide(std::move(d).skip(count() / 6)); break;
    default: d = hidden<false>::hide(std::move(d).prefetch(1 + static_cast<std::int64_t>(roll.below(4)))); break;
    }
  if (roll.below(3) == 0) return use(d);
  auto b = hidden<true>::hide(std::move(d).batch(1 + static_cast<std::int64_t>(roll.below(9)), roll.below(2) == 0));
  for (auto stages = roll.below(3); stages > 0; --stages) switch (roll.below(4)) {
    case 0: b = hidden<true>::hide(std::move(b).repeat(static_cast<std::int64_t>(roll.below(4)) - 1)); break;
    case 1: b = hidden<true>::hide(std::move(b).take(count())); break;
    case 2: b = hidden<true>::hide(std::move(b).skip(count() / 8)); break;
    default: b = hidden<true>::hide(std::move(b).prefetch(1 + static_cast<std::int64_t>(roll.below(4)))); break;
    }
  use(b);
}

}  // namespace

TEST_CASE("interrupted anywhere, continued in a new pipeline, the stream is that of one that was not") {
  constexpr std::size_t longest = 60;
  const std::uint64_t compositions = std::getenv("GRADUS_LONG") != nullptr ? 20000 : 1000;
  const auto values = iota(24);
  std::size_t cut_inside = 0, endless = 0;
  for (std::uint64_t seed = 0; seed < compositions; ++seed) {
    CAPTURE(seed);
    stream whole;
    with_random_pipeline(seed, values, [&](auto& d) { reader(d).read(d, whole, longest); });
    random_stream roll{.seed = ~seed};
    const auto cut = roll.below(static_cast<std::uint32_t>(whole.size() + 1));
    cut_inside += cut > 0 && cut < whole.size(), endless += whole.size() == longest;
    stream begun, continued;
    std::vector<std::byte> position;
    with_random_pipeline(seed, values, [&](auto& d) {
      reader read(d);
      read.read(d, begun, cut);
      position = position_of(d);
      continued = begun;
      read.read(d, continued, longest - cut);
    });
    REQUIRE(continued == whole);  // saving disturbs nothing
    with_random_pipeline(seed, values, [&](auto& d) {
      reader read(d);
      stream elsewhere;
      read.read(d, elsewhere, roll.below(20));  // wherever it was before does not matter
      restore(d, position);
      REQUIRE(position_of(d).size() == position.size());
      read.read(d, begun, longest - cut);
    });
    REQUIRE(begun == whole);
  }
  CHECK(cut_inside > compositions / 3);
  CHECK(endless > compositions / 20);
}

#if !defined(GRADUS_TEST_UNCOUNTED)
TEST_CASE("after the first batches nothing is allocated") {
  const auto values = iota(100);
  const auto check = [](auto d) {
    reader read(d);
    for (int i = 0; i < 20; ++i) REQUIRE(read(d) > 0);
    const long before = allocations;
    std::int64_t rows = 0;
    for (int i = 0; i < 500; ++i) rows += read(d);
    CHECK(allocations - before == 0);
    CHECK(rows >= 500);
  };
  check(small_idx(40).repeat().batch(16));
  check(small_idx(40).shuffle(40).repeat().batch(16));
  check(small_idx(40).shuffle(7).repeat().batch(16));
  check(numbers(values).shuffle(100).repeat().batch(16));
  check(numbers(values).repeat().shuffle(64).batch(16));
  check(numbers(values).skip(10).take(50).shuffle(9).batch(16).repeat());
  check(numbers(values).shuffle(100).repeat().batch(16).prefetch(3));
  check(small_csv(27000).batch(16));  // within a file: opening the next one allocates
  const auto negative = [](datum& e) {
    for (auto& v : e.values<std::int32_t>(0)) v = -v;
  };
  check(numbers(values).shard(3, 1).map(negative).repeat().batch(16).map(negative));
  check(numbers(values).map(negative).cache().shuffle(64).repeat().batch(16));
}

TEST_CASE("from the first batch on, where there is no thread") {
  auto d = small_idx(40).shuffle(40).repeat().batch(16);
  reader read(d);
  const long before = allocations;
  for (int i = 0; i < 100; ++i) read(d);
  CHECK(allocations - before == 0);
}

#endif

TEST_CASE("a copy has a position of its own") {
  const auto ten = iota(10);
  auto a = numbers(ten).shuffle(4, 2).repeat();
  drain(a, 3);
  auto b = a;
  CHECK(drain(a, 20) == drain(b, 20));
}
