#include <gradus/tensor/clip.hpp>
#include <gradus/tensor/xtensor.hpp>

#include <doctest/doctest.h>

#include <map>
#include <string>

#include "../golden/golden.hpp"

using namespace gradus;
using golden::json;

namespace {
constexpr double inf = std::numeric_limits<double>::infinity(), not_a_number = std::numeric_limits<double>::quiet_NaN();

extents extents_of(const json& shape) {
  extents e;
  for (const auto& d : shape) e.push(d.get<std::int64_t>());
  return e;
}
// In float32 an element may be 4 units of its last place from the float64 answer.
template <class T>
void check(const json& c, const std::vector<T>& got, const json& want) {
  const double least = sizeof(T) == 4 ? 5e-7 : 0;
  const double rtol = std::max(c["rtol"].get<double>(), least), atol = c["atol"].get<double>() + least * 1e-3;
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    CHECK(golden::near(static_cast<double>(got[i]), golden::number(want[i]), rtol, atol));
}
template <class T>
void run_golden(const json& c) {
  INFO(c["id"].get<std::string>());
  const auto fn = c["fn"].get<std::string>();
  const auto& args = c["args"];
  if (fn == "clip_by_global_norm") {
    std::vector<std::optional<std::vector<T>>> list;
    for (const auto& t : args["ts"]) {
      if (t.is_null())
        list.emplace_back();
      else
        list.emplace_back(golden::numbers<T>(t));
    }
    std::optional<double> use_norm;
    if (args.contains("use_norm")) use_norm = golden::number(args["use_norm"]);
    if (!use_norm)
      CHECK(golden::near(clip::global_norm(list), golden::number(c["expect_norm"]), sizeof(T) == 4 ? 1e-6 : 1e-12, 0));
    const double norm = clip::by_global_norm(list, golden::number(args["clip_norm"]), use_norm);
    CHECK(golden::near(norm, golden::number(c["expect_norm"]), sizeof(T) == 4 ? 1e-6 : c["rtol"].get<double>(), 0));
    for (std::size_t i = 0; i < list.size(); ++i) {
      CHECK(list[i].has_value() == !c["expect"][i].is_null());
      if (list[i]) check(c, *list[i], c["expect"][i]);
    }
    return;
  }
  auto t = golden::numbers<T>(args["t"]);
  const auto before = t;
  std::vector<T> other(t.size());
  const tensor_view view(std::span<T>(t), extents_of(args["shape"]));
  tensor_view out(std::span<T>(other), extents_of(args["shape"]));
  // into another array first, then in place: the same bits
  if (fn == "clip_by_value") {
    const double low = golden::number(args["min"]), high = golden::number(args["max"]);
    clip::by_value(view, low, high, clip::to(out));
    CHECK(std::memcmp(t.data(), before.data(), t.size() * sizeof(T)) == 0);
    clip::by_value(tensor_view(view), low, high);
  } else if (fn == "clip_by_norm") {
    const double c_norm = golden::number(args["clip_norm"]);
    std::vector<int> axes;
    if (args.contains("axes") && !args["axes"].is_null()) axes = args["axes"].get<std::vector<int>>();
    clip::by_norm(view, c_norm, axes, clip::to(out));
    clip::by_norm(tensor_view(view), c_norm, axes);
  } else {
    REQUIRE(fn == "clip_by_average_norm");
    clip::by_average_norm(view, golden::number(args["clip_norm"]), clip::to(out));
    clip::by_average_norm(tensor_view(view), golden::number(args["clip_norm"]));
  }
  check(c, t, c["expect"]);
  CHECK(std::memcmp(t.data(), other.data(), t.size() * sizeof(T)) == 0);
}
}  // namespace

// A list is a list: one array is none, and what is read only is not clipped in place.
namespace {
template <class X>
concept a_list = requires(X& x) { clip::by_global_norm(x, 1.0); };
template <class X>
concept measured = requires(X& x) { clip::global_norm(x); };
template <class X>
concept clipped_in_place = requires(X& x) { clip::by_norm(x, 1.0); };
static_assert(a_list<std::vector<std::vector<float>>> && measured<const std::vector<std::vector<float>>>);
static_assert(!a_list<std::vector<float>> && !measured<std::vector<float>> && !measured<double>);
static_assert(!a_list<const std::vector<std::vector<float>>>);
static_assert(clipped_in_place<std::vector<float>> && !clipped_in_place<const std::vector<float>>);
static_assert(!clipped_in_place<std::span<const double>> && clipped_in_place<std::span<double>>);
}  // namespace

TEST_CASE("golden clips in memory, float64 and float32") {
  const auto cases = golden::read("clip.json");
  REQUIRE(cases.size() == 44);
  for (const auto& c : cases) {
    run_golden<double>(c);
    run_golden<float>(c);
  }
}

TEST_CASE("the table of edges") {
  using list = std::vector<double>;
  const auto by_norm = [](list t, double c) { return clip::by_norm(t, c), t; };
  const auto by_global = [](list t, double c) { return clip::by_global_norm({t}, c), t; };
  const auto all_nan = [](const list& t) {
    for (double x : t)
      if (!std::isnan(x)) return false;
    return true;
  };
  CHECK(by_norm({0, -0.0}, 2) == list{0, 0});
  CHECK(by_global({0, 0}, 2) == list{0, 0});
  CHECK(by_norm({3, 4}, 0) == list{0, 0});
  CHECK(by_global({3, 4}, 0) == list{0, 0});
  CHECK(all_nan(by_norm({0, 0}, 0)));
  CHECK(all_nan(by_global({0, 0}, 0)));
  CHECK(by_norm({3, 4}, -2) == list{-1.2, -1.6});
  CHECK(by_global({3, 4}, -2) == list{3, 4});
  CHECK(all_nan(by_norm({0, 0}, -2)));
  const auto huge = by_norm({3, inf, -inf}, 1);
  CHECK(huge[0] == 0);
  CHECK(std::isnan(huge[1]));
  CHECK(std::isnan(huge[2]));
  CHECK(all_nan(by_global({3, inf}, 1)));
  CHECK(all_nan(by_norm({3, not_a_number}, 1)));
  CHECK(all_nan(by_global({3, not_a_number}, 1)));
  // by_average_norm: one NaN makes all NaN, a norm of 0 leaves zeros, c = 0 gives zeros or 0 * infinity
  list average{1, not_a_number};
  clip::by_average_norm(average, 1.0);
  CHECK(all_nan(average));
  average = {3, 4};
  clip::by_average_norm(average, 0.0);
  CHECK(average == list{0, 0});
  average = {0, 0};
  clip::by_average_norm(average, 0.0);
  CHECK(all_nan(average));
}

TEST_CASE("limits that are arrays, and integers") {
  std::vector<double> t{-5, 0, 5, -5, 0, 5};
  const tensor_view view(std::span<double>(t), {2, 3});
  const std::vector<double> row{-1, -2, -3}, column{4, 0};
  clip::by_value(view, row, const_tensor_view(std::span<const double>(column), {2, 1}), clip::to(view));
  CHECK(t == std::vector<double>{-1, 0, 4, -1, 0, 0});
  // a norm for each column
  std::vector<double> g{3, 6, 4, 8};
  const std::vector<double> most{1, 20};
  clip::by_norm(tensor_view(std::span<double>(g), {2, 2}), most, {0});
  CHECK(g[0] == doctest::Approx(0.6));
  CHECK(g[1] == 6);
  CHECK(g[2] == doctest::Approx(0.8));
  CHECK(g[3] == 8);
  std::vector<std::int32_t> whole{-9, 2, 9};
  clip::by_value(whole, -3, 4);
  CHECK(whole == std::vector<std::int32_t>{-3, 2, 4});
  std::vector<std::int64_t> wide{-(std::int64_t{1} << 60), 7};
  clip::by_value(wide, -(std::int64_t{1} << 60) + 1, 5);
  CHECK(wide == std::vector<std::int64_t>{-(std::int64_t{1} << 60) + 1, 5});
}

TEST_CASE("spans, arrays, xtensor, indexed slices, None") {
  std::array<float, 2> a{3, 4};
  clip::by_norm(a, 1);
  CHECK(a[0] == doctest::Approx(0.6f));
  float raw[3] = {-2, 0, 2};
  clip::by_value(std::span<float>(raw), -1, 1);
  CHECK(raw[2] == 1);
  xt::xtensor<double, 2> x = {{3, 0}, {4, 1}};
  xt::xtensor<double, 2> y = xt::zeros<double>({2, 2});
  clip::by_norm(x, 1.0, {0}, clip::to(y));
  CHECK(y(0, 0) == doctest::Approx(0.6));
  CHECK(y(1, 1) == 1);
  CHECK(x(0, 0) == 3);
  clip::by_norm(x, 1.0, {-2});
  CHECK(x == y);
  struct slices {
    std::vector<int> rows;
    std::vector<float> values;
  } s{{1, 1}, {3, 4}};  // a row twice: it counts twice
  CHECK(clip::global_norm({s, std::nullopt, a}) == doctest::Approx(std::sqrt(26.0)));
  CHECK(clip::by_global_norm({s, std::nullopt}, 1.0) == 5);
  CHECK(s.values[1] == doctest::Approx(0.8f));
  CHECK(s.rows == std::vector<int>{1, 1});
  clip::by_value(s, -0.7, 0.7);
  CHECK(s.values[1] == doctest::Approx(0.7f));
  clip::by_norm(s, 1e-3);
  CHECK(clip::global_norm({s}) == doctest::Approx(1e-3));
  const std::vector<double> read{6, 8};
  std::vector<double> written(2);
  CHECK(clip::by_global_norm({clip::entry(read, clip::to(written))}, 5) == 10);
  CHECK(written == std::vector<double>{3, 4});
  CHECK(clip::global_norm({}) == 0);
  CHECK(clip::by_global_norm({std::nullopt}, 1.0) == 0);
  std::vector<std::vector<float>> list{{1, 2}, {}, {2}};
  CHECK(clip::by_global_norm(list, 30.0) == 3);
  CHECK(list[0] == std::vector<float>{1, 2});
}

// Unit by unit, in plain loops, from the paper's formula.
TEST_CASE("adaptive clipping is by units") {
  const auto check = [](const extents& dims, auto unit_of) {
    const auto n = static_cast<std::size_t>(count(dims));
    std::vector<double> g(n), p(n);
    for (std::size_t i = 0; i < n; ++i)
      g[i] = std::sin(static_cast<double>(i * i)), p[i] = i % 7 == 0 ? 0 : 0.2 * std::cos(static_cast<double>(i));
    std::map<std::size_t, double> gn, pn;
    for (std::size_t i = 0; i < n; ++i) gn[unit_of(i)] += g[i] * g[i], pn[unit_of(i)] += p[i] * p[i];
    auto out = g;
    const tensor_view view(std::span<double>(out), dims), parameter(std::span<double>(p), dims);
    clip::adaptive(tensor_view(view), parameter, 0.8);
    std::vector<double> other(n);
    clip::adaptive(const_tensor_view(std::span<const double>(g), dims), parameter, 0.8, 1e-3,
                   clip::to(tensor_view(std::span<double>(other), dims)));
    CHECK(out == other);
    for (std::size_t i = 0; i < n; ++i) {
      const double most = 0.8 * std::max(std::sqrt(pn[unit_of(i)]), 1e-3), norm = std::sqrt(gn[unit_of(i)]);
      CHECK(out[i] == doctest::Approx(norm < most ? g[i] : g[i] * (most / norm)).epsilon(1e-12));
    }
  };
  check({5, 9}, [](std::size_t i) { return i % 9; });
  check({3, 2, 4}, [](std::size_t i) { return i % 8; });
  check({3, 3, 2, 70}, [](std::size_t i) { return i % 70; });
  check({11}, [](std::size_t) { return std::size_t{0}; });
  check({1, 6}, [](std::size_t) { return std::size_t{0}; });
  check({}, [](std::size_t) { return std::size_t{0}; });
  std::vector<double> zero(2), p(2);
  clip::adaptive(zero, p, 0.0);
  CHECK(zero == std::vector<double>{0, 0});
}

TEST_CASE("what clips refuse") {
  std::vector<double> t{1, 2};
  std::vector<float> f{1};
  std::vector<std::int32_t> w{1};
  std::vector<std::uint8_t> bytes{1};
  const tensor_view wide(std::span<double>(t), {1, 2});
  const auto says = [](auto run, const char* words) {
    try {
      run();
    } catch (const invalid_argument& e) {
      CHECK(std::string(e.what()) == words);
      return;
    }
    FAIL("not refused: ", words);
  };
  says([&] { clip::by_value(t, const_tensor_view(wide), 1.0); },
       "clip::by_value: a lower limit [1, 2] would enlarge the operand [2]; give a number or an array that broadcasts "
       "to it");
  says(
      [&] {
        clip::by_norm(t, std::vector<double>{1, 2, 3});
      },
      "clip::by_norm: a norm [3] would enlarge the operand [2]; give a number or an array that broadcasts to it");
  says([&] { clip::by_value(w, 0.5, 2); },
       "clip::by_value: expected whole numbers as limits of whole numbers, found a float");
  says([&] { clip::by_value(w, 0, std::int64_t{1} << 40); },
       "clip::by_value: an upper limit of 1099511627776 is no int32");
  says([&] { clip::by_value(t, f, 1.0); }, "clip::by_value: expected a lower limit of float64, found float32");
  says([&] { clip::by_norm(w, 1); }, "clip::by_norm: expected an array of float32 or float64, found int32");
  says([&] { clip::by_value(bytes, 0, 1); }, "clip::by_value: expected an array of float32 or float64, found uint8");
  says([&] { clip::by_norm(t, 1.0, {1}); }, "clip::by_norm: axis 1 is outside [2]");
  says([&] { clip::by_norm(t, 1.0, clip::to(f)); },
       "clip::by_norm: expected a result of float64 [2], found float32 [1]");
  says([&] { clip::adaptive(t, wide, 0.1); },
       "clip::adaptive: expected a parameter of float64 [2], found float64 [1, 2]");
  const auto before = t;
  says(
      [&] {
        clip::by_global_norm({t, clip::entry(t, clip::to(f))}, 0.1);
      },
      "clip::by_global_norm: expected a result of float64 [2], found float32 [1]");
  CHECK(t == before);  // nothing is changed before all is known to be right
}
