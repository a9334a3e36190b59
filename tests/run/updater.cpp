// one thread: nothing here runs at the same time
// compiled with: -O2 -march=native -Wno-mismatched-new-delete
#include <gradus/run/updater.hpp>

#include <doctest/doctest.h>

#include <cstdlib>
#include <gradus/base/random.hpp>
#include <gradus/cpu/sweeps.hpp>
#include <gradus/update/rules/adam.hpp>
#include <gradus/update/rules/gradient_descent.hpp>
#include <gradus/update/rules/momentum.hpp>
#include <new>
#include <string>

#include "../golden/golden.hpp"

// This program is its own umbrella: it binds the default device to the sweeps alone.
struct gradus::default_device : gradus::sweeps<gradus::fast> {};

namespace {
long allocations = 0;
}
#if !defined(GRADUS_TEST_UNCOUNTED)  // ThreadSanitizer brings its own operator new
namespace {
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

template <class T>
std::vector<T> random_numbers(std::size_t n, std::uint64_t seed) {
  std::vector<T> x(n);
  random_stream r{seed, 0};
  for (auto& v : x) v = static_cast<T>(2 * r.uniform() - 1);
  return x;
}

// One golden trajectory through an updater.
template <class T, class Index, class Updater>
void replay(const golden::json& c, Updater& u) {
  const double rtol = sizeof(T) == 8 ? c["rtol"].get<double>() : 2e-5,
               atol = sizeof(T) == 8 ? c["atol"].get<double>() : 2e-6;
  std::vector<std::vector<T>> vars;
  for (const auto& v : c["init"]) vars.push_back(golden::numbers<T>(v));
  for (std::size_t v = 0; v < vars.size(); ++v) {
    extents e;
    for (const auto& n : c["shapes"][v]) e.push(n.get<std::int64_t>());
    u.track(text("v", v), tensor_view(std::span<T>(vars[v]), e));
  }
  std::int64_t step = 0;
  const auto compare = [&](const golden::json& want, std::span<const T> got) {
    REQUIRE(want.size() == got.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      INFO(c["id"].get<std::string>(), " step ", step, " element ", i);
      CHECK(golden::near(static_cast<double>(got[i]), golden::number(want[i]), rtol, atol));
    }
  };
  for (const auto& grads : c["grads"]) {
    std::vector<std::vector<T>> values(vars.size());
    std::vector<std::vector<Index>> rows(vars.size());
    std::vector<std::string> names;
    for (std::size_t v = 0; v < vars.size(); ++v) names.push_back(text("v", v));
    std::vector<named_gradient> gradients;
    for (std::size_t v = vars.size(); v-- > 0;) {  // any order
      const auto& g = grads[v];
      if (g.is_null()) continue;
      values[v] = golden::numbers<T>(g.contains("dense") ? g["dense"] : g["values"]);
      if (g.contains("dense")) {
        gradients.emplace_back(names[v], values[v]);
      } else {
        rows[v] = g["indices"].get<std::vector<Index>>();
        gradients.emplace_back(names[v], indexed_slices{rows[v], values[v]});
      }
    }
    ++step;
    if (!gradients.empty()) u.apply(gradients);
    for (const auto& after : c["after"]) {
      if (after["step"] != step) continue;
      for (std::size_t v = 0; v < vars.size(); ++v) {
        compare(after["vars"][v], vars[v]);
        if (after.contains("slots"))
          for (const auto& [slot, want] : after["slots"][v].items())
            compare(want, u.slot(names[v], slot).template as<T>());
      }
      if (after.contains("shared"))
        for (const auto& [name, want] : after["shared"].items()) {
          state_list list;
          u.remembers(list);
          const auto* entry = list.find(name);
          REQUIRE(entry != nullptr);
          CHECK(
              golden::near(*reinterpret_cast<const double*>(entry->bytes.data()), golden::number(want), 1e-11, 1e-12));
        }
    }
  }
}
template <class Rule>
void replay_everywhere(const golden::json& c, const Rule& rule) {
  {
    updater u{rule};
    replay<double, std::int32_t>(c, u);
  }
  {
    updater u{rule};
    replay<float, std::int64_t>(c, u);
  }
  updater<sweeps<portable>, Rule> u{rule};
  replay<double, std::int64_t>(c, u);
}

template <class Updater>
std::vector<std::byte> everything(Updater& u) {
  state_list list;
  u.remembers(list);
  std::vector<std::byte> bytes;
  for (const auto& e : list.entries()) bytes.insert(bytes.end(), e.bytes.begin(), e.bytes.end());
  return bytes;
}

}  // namespace

TEST_CASE("golden trajectories through the updater") {
  std::size_t cases = 0;
  const auto file = golden::read("update.json");
  for (const auto& c : file["optimizer"]) {
    const auto& p = c["params"];
    const std::string name = c["optimizer"].get<std::string>();
    std::optional<double> rate;
    if (p.contains("learning_rate")) rate = p["learning_rate"].get<double>();
    if (name == "GradientDescent")
      replay_everywhere(c, gradient_descent{.rate = rate});
    else if (name == "Momentum")
      replay_everywhere(c, momentum{.rate = rate,
                                    .decay = p.at("momentum").get<double>(),
                                    .use_nesterov = p.value("use_nesterov", false)});
    else
      replay_everywhere(c, adam{.rate = rate,
                                .beta1 = p.value("beta1", 0.9),
                                .beta2 = p.value("beta2", 0.999),
                                .epsilon = p.value("epsilon", 1e-8),
                                .sparse = name == "Adam" ? sparse_mode::decay_all : sparse_mode::lazy});
    ++cases;
  }
  CHECK(cases == 24);
}

TEST_CASE("clip, average and schedule meet in one step, equal to a plain loop") {
  auto w = random_numbers<double>(37, 1), b = random_numbers<double>(5, 2);
  auto ref_w = w, ref_b = b, shadow = w, mw = std::vector<double>(37), vw = mw, mb = std::vector<double>(5), vb = mb;
  updater u{exponential_moving_average{.decay = 0.9, .num_updates = true}, adam{}, clip_by_global_norm{0.5},
            exponential_decay{.initial = 0.1, .decay_steps = 2, .decay_rate = 0.5, .staircase = true}};
  u.track("w", w);
  u.track("b", b);
  for (int t = 0; t < 5; ++t) {
    const auto dw = random_numbers<double>(37, 10 + static_cast<unsigned>(t)),
               db = random_numbers<double>(5, 20 + static_cast<unsigned>(t));
    if (t % 2 == 0)
      u.apply({{"w", dw}, {"b", db}});
    else
      u.apply({{"b", db}, {"w", dw}});
    double squares = 0;
    for (double g : dw) squares += g * g;
    for (double g : db) squares += g * g;
    CHECK(u.gradient_norm() == doctest::Approx(std::sqrt(squares)));
    const double scale = 0.5 / std::max(0.5, std::sqrt(squares)), rate = 0.1 * std::pow(0.5, t / 2);
    const double alpha = rate * std::sqrt(1 - std::pow(0.999, t + 1)) / (1 - std::pow(0.9, t + 1));
    const auto loop = [&](auto& theta, auto& m, auto& v, const auto& g) {
      for (std::size_t i = 0; i < theta.size(); ++i) {
        const double s = g[i] * scale;
        m[i] = 0.9 * m[i] + 0.1 * s;
        v[i] = 0.999 * v[i] + 0.001 * s * s;
        theta[i] -= alpha * m[i] / (std::sqrt(v[i]) + 1e-8);
      }
    };
    loop(ref_w, mw, vw, dw);
    loop(ref_b, mb, vb, db);
    const double d = std::min(0.9, (1.0 + t + 1) / (10.0 + t + 1));
    for (std::size_t i = 0; i < shadow.size(); ++i) shadow[i] = d * shadow[i] + (1 - d) * ref_w[i];
  }
  for (std::size_t i = 0; i < w.size(); ++i) {
    CHECK(w[i] == doctest::Approx(ref_w[i]).epsilon(1e-12));
    CHECK(u.average("w").as<double>()[i] == doctest::Approx(shadow[i]).epsilon(1e-12));
  }
  for (std::size_t i = 0; i < b.size(); ++i) CHECK(b[i] == doctest::Approx(ref_b[i]).epsilon(1e-12));
  CHECK(u.global_step() == 5);
}

TEST_CASE("a sparse gradient on every row, shuffled, with duplicates, has the bits of the dense one") {
  const auto run = [](auto rule) {
    for (std::size_t width : {1u, 2u, 3u, 7u, 16u, 33u}) {
      constexpr std::size_t rows = 9;
      auto a = random_numbers<float>(rows * width, 3), b = a;
      updater dense{rule, clip_by_global_norm{100.0}, exponential_moving_average{.decay = 0.5}};
      updater sparse{rule, clip_by_global_norm{100.0}, exponential_moving_average{.decay = 0.5}};
      const extents e{static_cast<std::int64_t>(rows), static_cast<std::int64_t>(width)};
      dense.track("w", tensor_view(std::span<float>(a), e));
      sparse.track("w", tensor_view(std::span<float>(b), e));
      for (unsigned t = 0; t < 3; ++t) {
        const std::vector<std::int64_t> order{4, 0, 8, 3, 4, 1, 7, 2, 6, 5, 4};  // row 4 thrice
        // Powers of two sum exactly, so that the order of addition cannot hide a mistake; the norm's scale is 1.
        std::vector<float> values(order.size() * width), sum(rows * width);
        random_stream r{7 + t, 0};
        for (auto& v : values) v = 0.03125f * static_cast<float>(static_cast<int>(r.below(16)) - 8);
        for (std::size_t i = 0; i < order.size(); ++i)
          for (std::size_t j = 0; j < width; ++j)
            sum[static_cast<std::size_t>(order[i]) * width + j] += values[i * width + j];
        dense.apply({{"w", sum}});
        sparse.apply({{"w", indexed_slices{order, values}}});
      }
      CHECK(a == b);
      CHECK(everything(dense) == everything(sparse));
    }
  };
  run(adam{});
  run(adam{.sparse = sparse_mode::decay_all});
  run(momentum{.rate = 0.1, .use_nesterov = true});
  run(gradient_descent{.rate = 0.1});
}

TEST_CASE("bags of rows: one value for all rows of a bag") {
  const auto run = [](auto... policies) {
    for (const std::size_t width : {1u, 5u, 16u, 18u}) {
      constexpr std::size_t rows = 30, bags = 4, per = 3;
      auto a = random_numbers<float>(rows * width, 3), b = a;
      updater together{policies...}, apart{policies...};
      const extents e{static_cast<std::int64_t>(rows), static_cast<std::int64_t>(width)};
      together.track("w", tensor_view(std::span<float>(a), e));
      apart.track("w", tensor_view(std::span<float>(b), e));
      for (unsigned t = 0; t < 3; ++t) {
        const std::vector<std::int32_t> order{7, 0, 8, 3, 7, 7, 1, 29, 2, 6, 5, 0};
        const auto values = random_numbers<float>(bags * width, 7 + t);
        std::vector<float> spread(order.size() * width);
        for (std::size_t i = 0; i < spread.size(); ++i) spread[i] = values[i / (per * width) * width + i % width];
        together.prefetch("w", order);
        together.apply({{"w", indexed_slices{const_tensor_view(std::span<const std::int32_t>(order), {bags, per}),
                                             const_tensor_view(std::span<const float>(values))}}});
        apart.apply({{"w", indexed_slices{order, spread}}});
      }
      CHECK(a == b);
      CHECK(everything(together) == everything(apart));
      CHECK(together.gradient_norm() == apart.gradient_norm());
    }
  };
  run(adam{});
  run(adam{.sparse = sparse_mode::decay_all});
  run(momentum{.rate = 0.1}, clip_by_global_norm{0.1});
  run(adam{}, accumulate{2});
  std::vector<float> w(6, 1.0f);
  updater u{momentum{.rate = 0.1}};
  u.track("w", w);
  const std::vector<std::int32_t> none;
  const const_tensor_view no_rows(std::span<const std::int32_t>(none), {3, 0});  // empty bags
  u.apply({{"w", indexed_slices{no_rows, std::vector<float>(3, 1.0f)}}});
  CHECK(w == std::vector<float>(6, 1.0f));
}

TEST_CASE("a prefetch changes nothing, and takes any row number") {
  std::vector<float> w(6, 1.0f);
  updater u{adam{}};
  u.track("w", w);
  u.prefetch("w", std::vector<std::int64_t>{0, -1, 5, 6, std::int64_t{1} << 62});
  u.prefetch("w", std::vector<std::int32_t>{});
  CHECK(w == std::vector<float>(6, 1.0f));
  CHECK_THROWS_WITH_AS(u.prefetch("w", w), "the row numbers for \"w\" are float32; expected int32 or int64",
                       invalid_argument);
  CHECK_THROWS_AS(u.prefetch("v", std::vector<std::int32_t>{}), not_found);
}

TEST_CASE("a lazy step touches only its rows; the average follows everywhere") {
  std::vector<float> w(12, 1.0f);
  updater u{momentum{.rate = 0.5}, exponential_moving_average{.decay = 0.5}};
  u.track("w", tensor_view(std::span<float>(w), {4, 3}));
  u.apply({{"w", std::vector<float>(12, 1.0f)}});
  CHECK(w[0] == 0.5f);
  CHECK(u.average("w").as<float>()[11] == 0.75f);
  const std::vector<std::int32_t> rows{2};
  u.apply({{"w", indexed_slices{rows, std::vector<float>(3, 1.0f)}}});
  CHECK(w[3] == 0.5f);
  CHECK(w[6] < 0.0f);
  CHECK(u.slot("w", "momentum").as<float>()[3] == 1.0f);
  CHECK(u.slot("w", "momentum").as<float>()[6] == doctest::Approx(1.9f));
  CHECK(u.average("w").as<float>()[11] == 0.625f);  // towards 0.5, without a gradient
  // No rows at all: a step for everything but the variable.
  const auto before = w;
  u.apply({{"w", indexed_slices{std::vector<std::int32_t>{}, std::vector<float>{}}}});
  CHECK(w == before);
  CHECK(u.global_step() == 3);
}

TEST_CASE("nothing is allocated after the first step") {
  auto w = random_numbers<float>(1000, 1);
  auto table = random_numbers<double>(50 * 8, 2);
  updater u{adam{}, clip_by_global_norm{1.0}, exponential_moving_average{},
            exponential_decay{.decay_steps = 100, .decay_rate = 0.9}};
  u.track("w", w);
  u.track("table", tensor_view(std::span<double>(table), {50, 8}));
  u.reserve_rows(64);
  const auto dw = random_numbers<float>(1000, 3);
  const auto values = random_numbers<double>(64 * 8, 4);
  std::vector<std::int32_t> rows(64);
  for (std::size_t i = 0; i < 64; ++i) rows[i] = static_cast<std::int32_t>(i * 7 % 50);
  const long before = allocations;
  for (int i = 0; i < 1000; ++i) u.apply({{"w", dw}, {"table", indexed_slices{rows, values}}});
  CHECK(allocations == before);
  CHECK(u.global_step() == 1000);
}

TEST_CASE("the state list names everything; a restored updater continues with equal bits") {
  const auto step = [](auto& u, unsigned t) {
    const auto g = random_numbers<float>(20, 100 + t);
    u.apply({{"w", g}});
  };
  const auto policies = [](std::vector<float>& w) {
    auto u = std::make_unique<updater<default_device, adam, exponential_moving_average, exponential_decay>>(
        adam{}, exponential_moving_average{.decay = 0.9},
        exponential_decay{.initial = 0.1, .decay_steps = 3, .decay_rate = 0.7});
    u->track("w", w);
    return u;
  };
  auto w = random_numbers<float>(20, 1), w2 = std::vector<float>(20);
  auto first = policies(w);
  for (unsigned t = 0; t < 5; ++t) step(*first, t);
  auto second = policies(w2);
  state_list from, to;
  first->remembers(from);
  second->remembers(to);
  std::vector<std::string> names;
  for (const auto& e : from.entries()) names.push_back(e.name);
  CHECK(names == std::vector<std::string>{"w", "w/Adam", "w/Adam_1", "w/ExponentialMovingAverage", "beta1_power",
                                          "beta2_power", "global_step"});
  for (const auto& e : from.entries()) {
    const auto* const target = to.find(e.name);
    REQUIRE(target != nullptr);
    REQUIRE(target->bytes.size() == e.bytes.size());
    std::copy(e.bytes.begin(), e.bytes.end(), target->bytes.begin());
  }
  for (unsigned t = 5; t < 10; ++t) step(*first, t), step(*second, t);
  CHECK(w == w2);
  CHECK(everything(*first) == everything(*second));
}

TEST_CASE("fast and portable updates have the same bits, and any order of policies") {
  auto a = random_numbers<float>(333, 1), b = a;
  updater<sweeps<fast>, adam, clip_by_global_norm> x{adam{.rate = 0.01}, clip_by_global_norm{1e9}};
  updater<sweeps<portable>, clip_by_global_norm, adam> y{clip_by_global_norm{1e9}, adam{.rate = 0.01}};
  x.track("w", a);
  y.track("w", b);
  for (unsigned t = 0; t < 10; ++t) {
    const auto g = random_numbers<float>(333, 50 + t);
    x.apply({{"w", g}});
    y.apply({{"w", g}});
  }
  CHECK(a == b);
}

TEST_CASE("what the updater refuses, and that it then changes nothing") {
  std::vector<float> w(6, 1.0f), b(3, 1.0f), s(1, 1.0f);
  updater u{adam{}};
  CHECK_THROWS_WITH_AS(u.apply({{"w", w}}), "no variable is tracked as \"w\"; tracked: none, call track first",
                       not_found);
  u.track("w", tensor_view(std::span<float>(w), {3, 2}));
  u.track("b", b);
  u.track("s", tensor_view(std::span<float>(s), extents{}));
  CHECK_THROWS_WITH_AS(u.track("w", w), "\"w\" is tracked already; give the second variable another name",
                       already_exists);
  CHECK_THROWS_WITH_AS(u.track("", w), "a variable needs a name that is not empty", invalid_argument);
  std::vector<std::int32_t> whole(3);
  CHECK_THROWS_WITH_AS(u.track("n", whole), "expected float32, float64, bfloat16 or float16 for \"n\", found int32",
                       invalid_argument);

  const auto before = everything(u);
  const std::vector<float> six(6, 1.0f), five(5, 1.0f), two(2, 1.0f);
  using ints = std::vector<std::int32_t>;
  CHECK_THROWS_WITH_AS(u.apply({}), "no gradients were given; expected at least one, as {{\"w\", dw}}",
                       invalid_argument);
  CHECK_THROWS_WITH_AS(u.apply({{"w", six}, {"x", six}}),
                       "no variable is tracked as \"x\"; tracked: \"w\", \"b\", \"s\"", not_found);
  CHECK_THROWS_WITH_AS(u.apply({{"w", five}}), "the gradient of \"w\" is [5]; expected [3, 2], as the variable",
                       invalid_argument);
  CHECK_THROWS_WITH_AS(u.apply({{"w", const_tensor_view(std::span<const float>(six), {2, 3})}}),
                       "the gradient of \"w\" is [2, 3]; expected [3, 2], as the variable", invalid_argument);
  CHECK_THROWS_WITH_AS(u.apply({{"w", std::vector<double>(6)}}),
                       "the gradient of \"w\" is float64; expected float32, as the variable", invalid_argument);
  CHECK_THROWS_WITH_AS(u.apply({{"w", six}, {"w", six}}),
                       "two gradients for \"w\" in one step; expected one, add them first", invalid_argument);
  CHECK_THROWS_WITH_AS(
      u.apply({{"b", std::vector<float>(3)}, {"w", indexed_slices{ints{1, 3}, std::vector<float>(4)}}}),
      "Index 3 at offset 1 in indices is out of range; expected [0, 3), the rows of the variable. Nothing was changed",
      invalid_argument);
  CHECK_THROWS_WITH_AS(
      u.apply({{"w", indexed_slices{ints{-1}, two}}}),
      "Index -1 at offset 0 in indices is out of range; expected [0, 3), the rows of the variable. Nothing was changed",
      invalid_argument);
  CHECK_THROWS_WITH_AS(u.apply({{"w", indexed_slices{std::vector<std::int64_t>{1LL << 40}, two}}}),
                       "Index 1099511627776 at offset 0 in indices is out of range; expected [0, 3), the rows of the "
                       "variable. Nothing was changed",
                       invalid_argument);
  CHECK_THROWS_WITH_AS(u.apply({{"w", indexed_slices{ints{1, 2}, five}}}),
                       "the values for 2 rows of \"w\" are [5]; expected [2, 2]", invalid_argument);
  CHECK_THROWS_WITH_AS(
      u.apply({{"w", indexed_slices{ints{1}, const_tensor_view(std::span<const float>(two), {2, 1})}}}),
      "the values for 1 rows of \"w\" are [2, 1]; expected [1, 2]", invalid_argument);
  CHECK_THROWS_WITH_AS(u.apply({{"w", indexed_slices{two, two}}}),
                       "the row numbers for \"w\" are float32; expected int32 or int64", invalid_argument);
  const ints one{1};
  CHECK_THROWS_WITH_AS(
      u.apply({{"w", indexed_slices{const_tensor_view(std::span<const std::int32_t>(one), {1, 1, 1}), two}}}),
      "the row numbers for \"w\" are [1, 1, 1]; expected a vector, or bags of rows [bags, k]", invalid_argument);
  CHECK_THROWS_WITH_AS(u.apply({{"s", indexed_slices{one, std::vector<float>(1)}}}),
                       "\"s\" is a scalar and has no rows; give a dense gradient", invalid_argument);
  CHECK_THROWS_WITH_AS(u.slot("w", "momentum"), "there is no slot \"momentum\" of \"w\"; Adam keeps \"m\", \"v\"",
                       not_found);
  CHECK_THROWS_WITH_AS(u.slot("q", "m"), "no variable is tracked as \"q\"; tracked: \"w\", \"b\", \"s\"", not_found);
  CHECK(everything(u) == before);
  CHECK(u.global_step() == 0);
  u.apply({{"s", std::vector<float>(1, 1.0f)}});
  CHECK(s[0] == doctest::Approx(0.999f));

  updater plain{gradient_descent{.rate = 1.0}};
  plain.track("w", w);
  CHECK_THROWS_WITH_AS(plain.slot("w", "m"), "there is no slot \"m\" of \"w\"; GradientDescent keeps none", not_found);
}
