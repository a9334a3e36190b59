// without sanitizers: whole/mixed_precision runs the same under them
// one thread: nothing here runs at the same time
// compiled with: -O2 -march=native -Wno-mismatched-new-delete
// Variables of 16-bit numbers in an updater, and the loss scale that goes with them.
#include <gradus/run/master_weights.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <gradus/base/random.hpp>
#include <gradus/base/state.hpp>
#include <gradus/cpu/sweeps.hpp>
#include <gradus/run/updater.hpp>
#include <gradus/update/chain.hpp>
#include <gradus/update/lookahead.hpp>
#include <gradus/update/rules/adam.hpp>
#include <gradus/update/rules/gradient_descent.hpp>
#include <gradus/update/rules/momentum.hpp>
#include <new>
#include <numeric>
#include <string>

struct gradus::default_device : gradus::sweeps<gradus::fast> {};

#if !defined(GRADUS_TEST_UNCOUNTED)  // ThreadSanitizer brings its own operator new
namespace {
long allocations = 0;
void* counted(std::size_t bytes, std::size_t alignment) {
  ++allocations;
  void* const p = alignment == 0 ? std::malloc(bytes)
                                 : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (p == nullptr) std::abort();
  return p;
}
}  // namespace
void* operator new(std::size_t n) { return counted(n, 0); }
void* operator new(std::size_t n, std::align_val_t a) { return counted(n, static_cast<std::size_t>(a)); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
#endif

using namespace gradus;

namespace {

std::vector<float> random_floats(std::size_t n, std::uint64_t seed, double size = 1) {
  std::vector<float> x(n);
  random_stream r{seed, 0};
  for (auto& v : x) v = static_cast<float>(size * (2 * r.uniform() - 1));
  return x;
}
template <class Narrow>
std::vector<Narrow> rounded(const std::vector<float>& x) {
  std::vector<Narrow> y;
  for (float v : x) y.push_back(Narrow(v));
  return y;
}
template <class Narrow>
std::vector<float> widened(const std::vector<Narrow>& x) {
  return {x.begin(), x.end()};
}
template <class Narrow>
bool is_rounding_of(const std::vector<Narrow>& x, const tensor_view& master) {
  const auto m = master.as<float>();
  for (std::size_t i = 0; i < x.size(); ++i)
    if (x[i].bits != Narrow(m[i]).bits) return false;
  return true;
}

// Logistic regression on 2-d points: loss and gradient by hand, computed with the weights that the updater shows. With
// Narrow = float, all in float32.
struct regression {
  std::vector<std::array<float, 3>> x;
  std::vector<float> y;
  explicit regression(std::size_t n) {
    random_stream r{3, 0};
    for (std::size_t i = 0; i < n; ++i) {
      const auto a = static_cast<float>(2 * r.uniform() - 1), b = static_cast<float>(2 * r.uniform() - 1);
      x.push_back({a, b, 1});
      y.push_back(a * 1.5f - b * 0.75f + 0.2f > 0 ? 1.0f : 0.0f);
    }
  }
  template <class W, class G>
  double gradient(const std::vector<W>& w, std::vector<G>& g, double scale) const {
    double loss = 0, sum[3] = {};
    for (std::size_t i = 0; i < x.size(); ++i) {
      double z = 0;
      for (std::size_t k = 0; k < 3; ++k)
        z += static_cast<double>(x[i][k]) * static_cast<double>(static_cast<float>(w[k]));
      const double p = 1 / (1 + std::exp(-z)), t = static_cast<double>(y[i]);
      loss -= t * std::log(p) + (1 - t) * std::log(1 - p);
      for (std::size_t k = 0; k < 3; ++k) sum[k] += (p - t) * static_cast<double>(x[i][k]);
    }
    const auto n = static_cast<double>(x.size());
    for (std::size_t k = 0; k < 3; ++k) g[k] = G(static_cast<float>(scale * sum[k] / n));
    return loss / n;
  }
};
template <class T, class... Policies>
double train(const regression& data, int steps, Policies... policies) {
  std::vector<T> w(3), g(3);
  updater u{adam{.rate = 0.05}, policies...};
  u.track("w", w);
  for (int i = 0; i < steps; ++i) {
    data.gradient(w, g, u.loss_scale());
    u.apply({{"w", g}});
  }
  return data.gradient(w, g, 1);
}

template <class Updater>
std::vector<std::byte> everything(Updater& u) {
  state_list list;
  u.remembers(list);
  std::vector<std::byte> bytes;
  for (const auto& e : list.entries()) bytes.insert(bytes.end(), e.bytes.begin(), e.bytes.end());
  return bytes;
}
std::string refusal(auto f) {
  try {
    f();
  } catch (const invalid_argument& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE_TEMPLATE("the master takes the steps that a float32 variable takes; the array is its rounding", Narrow, half,
                   bfloat) {
  for (const bool narrow_gradients : {true, false}) {
    CAPTURE(narrow_gradients);
    auto w = rounded<Narrow>(random_floats(37, 1));
    auto plain = widened(w);
    updater mixed{adam{.rate = 0.01}, clip_by_global_norm{1.0}, exponential_moving_average{.decay = 0.5}};
    updater reference{adam{.rate = 0.01}, clip_by_global_norm{1.0}, exponential_moving_average{.decay = 0.5}};
    mixed.track("w", w), reference.track("w", plain);
    CHECK(mixed.master("w").type == float32);
    for (unsigned t = 0; t < 5; ++t) {
      const auto exact = random_floats(37, 10 + t);
      const auto g = rounded<Narrow>(exact);
      const auto seen = narrow_gradients ? widened(g) : exact;
      if (narrow_gradients)
        mixed.apply({{"w", g}});
      else
        mixed.apply({{"w", exact}});
      reference.apply({{"w", seen}});
      const auto master = mixed.master("w").template as<float>();
      CHECK(std::equal(master.begin(), master.end(), plain.begin()));
      CHECK(is_rounding_of(w, mixed.master("w")));
      for (const char* slot : {"m", "v", "average"}) {
        const auto a = mixed.slot("w", slot).template as<float>(), b = reference.slot("w", slot).template as<float>();
        CHECK(std::equal(a.begin(), a.end(), b.begin()));
      }
    }
    CHECK(mixed.gradient_norm() == reference.gradient_norm());
  }
}

TEST_CASE("steps too small for the array add up in the master") {
  std::vector<bfloat> w{bfloat(1.0f)};
  updater u{gradient_descent{.rate = 1}};
  u.track("w", w);
  const std::vector<float> g{-0x1p-10f};  // an eighth of bfloat16's step at 1
  for (int i = 0; i < 3; ++i) {
    u.apply({{"w", g}});
    CHECK(w[0] == 1.0f);
  }
  for (int i = 0; i < 5; ++i) u.apply({{"w", g}});
  CHECK(w[0] == 1.0f + 0x1p-7f);
  CHECK(u.master("w").as<float>()[0] == 1.0f + 0x1p-7f);
}

TEST_CASE("sparse gradients of 16-bit numbers, with and without decay of the rows that are not listed") {
  const auto run = [](auto rule, auto... more) {
    constexpr std::size_t rows = 7, width = 5;
    auto w = rounded<half>(random_floats(rows * width, 1));
    auto plain = widened(w);
    const extents e{rows, width};
    updater mixed{rule, more...}, reference{rule, more...};
    mixed.track("w", tensor_view(std::span<half>(w), e)), reference.track("w", tensor_view(std::span<float>(plain), e));
    for (unsigned t = 0; t < 4; ++t) {
      const std::vector<std::int64_t> listed{3, 0, 3};
      const std::vector<std::int32_t> same{3, 0, 3};
      const auto g = rounded<half>(random_floats(listed.size() * width, 20 + t));
      const auto exact = widened(g);
      mixed.apply({{"w", indexed_slices{listed, g}}});
      reference.apply({{"w", indexed_slices{same, exact}}});
      const auto master = mixed.master("w").template as<float>();
      CHECK(std::equal(master.begin(), master.end(), plain.begin()));
      CHECK(is_rounding_of(w, mixed.master("w")));
    }
  };
  run(adam{.rate = 0.1, .sparse = sparse_mode::lazy});
  run(adam{.rate = 0.1, .sparse = sparse_mode::decay_all});
  run(momentum{.rate = 0.1, .decay = 0.9});
  run(adam{.rate = 0.1}, clip_by_global_norm{0.5}, exponential_moving_average{.decay = 0.9});
  run(gradient_descent{.rate = 0.1}, accumulate{2});
  run(adam{.rate = 0.1, .sparse = sparse_mode::lazy}, static_loss_scale{1});
  run(chain{gradient_descent{.rate = 0.1}, lookahead{.every = 2}});  // moves rows that are not listed, too
}

TEST_CASE(
    "a checkpoint holds the master; after a restore the array is refreshed and the run goes on with the same bits") {
  using made = updater<default_device, adam, dynamic_loss_scale>;
  auto a = rounded<half>(random_floats(20, 1)), b = std::vector<half>(20);
  made first{adam{.rate = 0.01}, dynamic_loss_scale{.initial = 1024, .growth_interval = 3}},
      second{adam{.rate = 0.01}, dynamic_loss_scale{.initial = 1024, .growth_interval = 3}};
  first.track("w", a), second.track("w", b);
  const auto step = [](made& u, unsigned t) {
    auto exact = random_floats(20, 30 + t);
    for (auto& v : exact) v *= static_cast<float>(u.loss_scale());
    if (t == 2) exact[5] = 1e30f;  // infinite as a half
    const auto g = rounded<half>(exact);
    u.apply({{"w", g}});
    CHECK(u.skipped() == (t == 2));
  };
  for (unsigned t = 0; t < 5; ++t) step(first, t);
  state_list from, to;
  first.remembers(from), second.remembers(to);
  REQUIRE(from.find("w") != nullptr);
  CHECK(from.find("w")->type == float32);
  CHECK(from.find("w/Adam")->type == float32);
  REQUIRE(from.find("loss_scale") != nullptr);
  CHECK(from.find("loss_scale_good_steps") != nullptr);
  REQUIRE(from.entries().size() == to.entries().size());
  for (std::size_t i = 0; i < from.entries().size(); ++i)
    std::copy(from.entries()[i].bytes.begin(), from.entries()[i].bytes.end(), to.entries()[i].bytes.begin());
  second.restored();
  const auto equal = [&] {
    for (std::size_t i = 0; i < a.size(); ++i)
      if (a[i].bits != b[i].bits) return false;
    return everything(first) == everything(second);
  };
  CHECK(equal());
  CHECK(first.loss_scale() == 512);
  for (unsigned t = 5; t < 12; ++t) step(first, t), step(second, t);
  CHECK(equal());
  CHECK(first.loss_scale() == 512 * 8);  // nine good steps since
}

TEST_CASE("an infinite gradient leaves all as it was, halves the scale, and is counted; the scale grows again") {
  std::vector<half> w{half(1), half(2)};
  updater u{adam{.rate = 0.1}, dynamic_loss_scale{.initial = 1024, .growth_interval = 2}, clip_by_global_norm{10.0},
            exponential_moving_average{.decay = 0.5}};
  u.track("w", w);
  const auto good = [&] {
    const std::vector<half> g{half(static_cast<float>(u.loss_scale()) * 0.5f), half(0)};
    u.apply({{"w", g}});
    CHECK(u.gradient_norm() == 0.5);  // without the scale
    CHECK(!u.skipped());
  };
  good();
  const auto master = [&] {
    return std::vector<float>(u.master("w").as<float>().begin(), u.master("w").as<float>().end());
  };
  for (const float bad : {1e30f, -1e30f, std::nanf("")}) {
    const auto before = master();
    const float m = u.slot("w", "m").as<float>()[0], average = u.average("w").as<float>()[0];
    const double scale = u.loss_scale();
    const std::vector<half> g{half(1), half(bad)};
    u.apply({{"w", g}});
    CHECK(u.skipped());
    CHECK(!std::isfinite(u.gradient_norm()));
    CHECK(u.loss_scale() == scale / 2);
    CHECK(master() == before);
    CHECK(u.slot("w", "m").as<float>()[0] == m);
    CHECK(u.average("w").as<float>()[0] == average);
  }
  CHECK(u.global_step() == 4);
  CHECK(u.loss_scale() == 128);
  good(), good();
  CHECK(u.loss_scale() == 256);
}

TEST_CASE("while gradients accumulate the scale stays: all of a sum have one") {
  std::vector<float> w{1};
  updater u{gradient_descent{.rate = 1}, accumulate{4}, dynamic_loss_scale{.initial = 8, .growth_interval = 1}};
  u.track("w", w);
  const auto step = [&](float gradient) {
    const std::vector<float> g{gradient * static_cast<float>(u.loss_scale())};
    u.apply({{"w", g}});
  };
  for (int i = 0; i < 3; ++i) {
    step(0.25f);
    CHECK(u.loss_scale() == 8);
  }
  step(0.25f);
  CHECK(u.loss_scale() == 16);
  CHECK(w[0] == 0.75f);
  step(INFINITY);
  for (int i = 0; i < 3; ++i) step(1);
  CHECK(u.skipped());
  CHECK(u.loss_scale() == 8);
  CHECK(w[0] == 0.75f);
  for (int i = 0; i < 3; ++i) {
    step(0.5f);
    CHECK(u.loss_scale() == 8);
  }
  step(0.5f);
  CHECK(w[0] == 0.25f);  // what was infinite is gone
}

TEST_CASE("a gradient that vanishes in float16 is kept by the scale") {
  const float gradient = 0x1p-30f;
  CHECK(half(gradient) == 0.0f);
  const auto moved = [&](auto... scale) {
    std::vector<half> w{half(0)};
    updater u{gradient_descent{.rate = 0x1p20}, scale...};
    u.track("w", w);
    const std::vector<half> g{half(gradient * static_cast<float>(u.loss_scale()))};
    u.apply({{"w", g}});
    return static_cast<float>(w[0]);
  };
  CHECK(moved() == 0);
  CHECK(moved(dynamic_loss_scale{}) == -0x1p-10f);
  CHECK(moved(static_loss_scale{1024}) == -0x1p-10f);
}

TEST_CASE("logistic regression in bfloat16, and in float16 with a dynamic scale, ends where float32 does") {
  const regression data(300);
  const double exact = train<float>(data, 300);
  CHECK(exact < 0.2);
  CHECK(train<bfloat>(data, 300) == doctest::Approx(exact).epsilon(0.02));
  CHECK(train<half>(data, 300, dynamic_loss_scale{.initial = 0x1p20, .growth_interval = 20}) ==
        doctest::Approx(exact).epsilon(0.005));  // the first scales are too large, and are found to be
}

TEST_CASE("averages swap through the array and back") {
  auto w = rounded<bfloat>(random_floats(9, 1));
  updater u{gradient_descent{.rate = 0.1}, exponential_moving_average{.decay = 0.5}};
  u.track("w", w);
  const auto g = random_floats(9, 2);
  u.apply({{"w", g}});
  const auto trained = w;
  const auto before = everything(u);
  u.swap_averages();
  CHECK(is_rounding_of(w, u.master("w")));
  CHECK(w[0].bits != trained[0].bits);
  u.swap_averages();
  CHECK(everything(u) == before);
  for (std::size_t i = 0; i < w.size(); ++i) CHECK(w[i].bits == trained[i].bits);
}

TEST_CASE("what is refused") {
  std::vector<bfloat> w(3);
  std::vector<half> other(3);
  std::vector<double> wide(3);
  updater u{gradient_descent{.rate = 0.1}};
  u.track("w", w);
  CHECK(refusal([&] {
          u.apply({{"w", other}});
        }) == "the gradient of \"w\" is float16; expected bfloat16, as the variable, or float32");
  CHECK(refusal([&] {
          u.apply({{"w", wide}});
        }) == "the gradient of \"w\" is float64; expected bfloat16, as the variable, or float32");
  std::vector<float> full(3);
  u.track("v", full);
  CHECK(refusal([&] {
          u.apply({{"v", w}});
        }) == "the gradient of \"v\" is bfloat16; expected float32, as the variable");
  std::vector<std::int32_t> integers(3);
  CHECK(refusal([&] { u.track("i", integers); }) ==
        "expected float32, float64, bfloat16 or float16 for \"i\", found int32");
}

#if !defined(GRADUS_TEST_UNCOUNTED)
TEST_CASE("nothing is allocated after the first step") {
  std::vector<half> w(1000), g(1000, half(1));
  updater u{adam{.rate = 0.01}, dynamic_loss_scale{}};
  u.track("w", w);
  u.apply({{"w", g}});
  const long before = allocations;
  for (int i = 0; i < 3; ++i) u.apply({{"w", g}});
  CHECK(allocations == before);
}
#endif
