// tf.test for our programs: assertions on arrays, gradient checks, a session and a scratch folder for a test. A failed
// assertion raises failed_precondition with what differed, so it works under any test framework and under none.
//
//   TEST_CASE("square") {                       // doctest's, or any other's
//     gradus::testing::test_case t;
//     gradus::graph g;
//     auto x = gradus::square(g.constant({2, 3}, {2}));
//     t.assert_all_equal(t.test_session(g).run(x), std::array{4.0f, 9.0f});
//   }
//
// Without a framework: a class with the tests, and gradus::testing::main.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../cpu/device.hpp"
#include "../pass/autodiff.hpp"
#include "../run/session.hpp"
#include "graph_equality.hpp"
#include "temp_dir.hpp"

namespace gradus::testing {

// No build of this library has it.
constexpr bool is_built_with_cuda() { return false; }
constexpr bool is_gpu_available() { return false; }

namespace inside {
// The elements as numbers that hold every dtype's values but int64's beyond 2^53.
inline std::vector<double> numbers(const const_tensor_view& v) {
  std::vector<double> out(v.size());
  const auto read = [&]<class T>(T*) {
    for (std::size_t i = 0; i < out.size(); ++i) {
      T x;
      std::memcpy(&x, v.data + i * sizeof(T), sizeof(T));
      out[i] = static_cast<double>(x);
    }
  };
  switch (v.type) {
  case dtype::float32: read(static_cast<float*>(nullptr)); break;
  case dtype::float64: read(static_cast<double*>(nullptr)); break;
  case dtype::int32: read(static_cast<std::int32_t*>(nullptr)); break;
  case dtype::int64: read(static_cast<std::int64_t*>(nullptr)); break;
  case dtype::uint8: read(static_cast<std::uint8_t*>(nullptr)); break;
  case dtype::boolean: read(static_cast<bool*>(nullptr)); break;
  default: raise(status::invalid_argument, text("an array to compare holds ", name_of(v.type)));
  }
  return out;
}
template <class... Pieces>
[[noreturn]] void fail(const Pieces&... pieces) {
  raise(status::failed_precondition, text(pieces...));
}
}  // namespace inside

class test_case {
public:
  // ---- arrays: anything that reads as one (views, spans, vectors, xt::xtensor with tensor/xtensor.hpp). Extents must
  // agree; a flat array may stand for any extents. NaN equals NaN, as in NumPy's testing.
  template <readable_array A, readable_array B>
  void assert_all_equal(const A& actual, const B& expected) const {
    compare(read_view(actual), read_view(expected), 0, 0, "equal");
  }
  // |actual - expected| <= atol + rtol |expected|, element by element.
  template <readable_array A, readable_array B>
  void assert_all_close(const A& actual, const B& expected, double rtol = 1e-6, double atol = 1e-6) const {
    compare(read_view(actual), read_view(expected), rtol, atol, "close");
  }
  void assert_near(double actual, double expected, double error) const {
    if (!(std::abs(actual - expected) <= error))
      inside::fail("expected ", expected, " within ", error, ", got ", actual);
  }
  void assert_equal(const graph_def& actual, const graph_def& expected) const {
    assert_equal_graph_def(actual, expected);
  }
  // `call` must raise an error of this kind whose text contains `piece`.
  template <class Call>
  void assert_raises(status kind, std::string_view piece, Call call) const {
#if defined(__cpp_exceptions)
    std::string other;
    try {
      call();
    } catch (const error& e) {
      if (e.kind() == kind && std::string_view(e.what()).find(piece) != std::string_view::npos) return;
      other = text("; got ", name_of(e.kind()), ": ", e.what());
    }
    inside::fail("expected an error of kind ", name_of(kind), " that says \"", piece, "\"", other);
#else
    (void)kind, (void)piece, (void)call;
    inside::fail("assert_raises needs exceptions");
#endif
  }

  // A session on the graph with its variables initialized from `seed`; the same one for the same graph, until the test
  // case goes.
  session<>& test_session(graph& g, std::uint64_t seed = 0) {
    for (auto& s : sessions_)
      if (s.first == &g) return *s.second;
    sessions_.emplace_back(&g, std::make_unique<session<>>(g));
    sessions_.back().second->initialize(seed);
    return *sessions_.back().second;
  }
  // A scratch folder, removed with the test case.
  const std::string& get_temp_dir() {
    if (!folder_) folder_ = std::make_unique<temp_dir>();
    return folder_->path();
  }

private:
  std::vector<std::pair<graph*, std::unique_ptr<session<>>>> sessions_;
  std::unique_ptr<temp_dir> folder_;

  static void compare(const const_tensor_view& a, const const_tensor_view& e, double rtol, double atol,
                      std::string_view what) {
    const bool flat = a.size() == e.size() && (a.dims.rank == 1 || e.dims.rank == 1);
    if (!(a.dims == e.dims) && !flat)
      inside::fail("extents differ: got ", to_text(a.dims), ", expected ", to_text(e.dims));
    const auto x = inside::numbers(a), y = inside::numbers(e);
    std::size_t wrong = 0, first = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const bool same = (std::isnan(x[i]) && std::isnan(y[i])) || x[i] == y[i] ||
                        std::abs(x[i] - y[i]) <= atol + rtol * std::abs(y[i]);
      if (!same && wrong++ == 0) first = i;
    }
    if (wrong != 0)
      inside::fail(wrong, " of ", x.size(), " elements are not ", what, "; the first at ", first, ": got ", x[first],
                   ", expected ", y[first]);
  }
};

// ---- gradients against finite differences (tf.test.compute_gradient), for graphs in float64 (float32 is too coarse to
// show more than two digits)

// Row i, column j: how y's element j changes with x's element i.
struct jacobian {
  std::size_t rows = 0, columns = 0;
  std::vector<double> values;
  double operator()(std::size_t i, std::size_t j) const { return values[i * columns + j]; }
};
struct jacobians {
  jacobian theoretical, numeric;
};

// The Jacobian of y with respect to the placeholder x by `gradients`, and by central differences of width 2 delta
// around x_init. Other placeholders that y needs come in `others`. x and y are float64; x has `x_init`'s number of
// elements.
template <class... Policies>
jacobians compute_gradient(graph& g, value x, value y, std::span<const double> x_init, double delta = 1e-3,
                           std::span<const feed> others = {}, std::uint64_t seed = 0) {
  if (x.type() != float64 || y.type() != float64)
    raise(status::invalid_argument,
          text("compute_gradient: expected float64, got ", name_of(x.type()), " and ", name_of(y.type())));
  if (g.nodes[x.id].op != &placeholder_card)
    raise(status::invalid_argument, "compute_gradient: x must be a placeholder");
  const value dy = g.placeholder("compute_gradient_dy", y.dims(), float64);
  const std::array ys{y}, xs{x}, grads{dy};
  const auto d = gradients(g, ys, xs, {.grad_ys = grads});
  session<default_device, Policies...> s(g);
  s.initialize(seed);
  std::vector<double> at(x_init.begin(), x_init.end());
  const auto run = [&](value what, std::span<const double> dy_data) {
    std::vector<feed> feeds(others.begin(), others.end());
    feeds.emplace_back(x, std::span<const double>(at));
    if (!dy_data.empty()) feeds.emplace_back(dy, dy_data);
    const fetch f(what);
    const const_tensor_view r = s.run(std::span<const fetch>(&f, 1), feeds)[0];
    return inside::numbers(r);
  };
  const std::size_t n = at.size(), m = run(y, {}).size();
  jacobians out{{n, m, std::vector<double>(n * m)}, {n, m, std::vector<double>(n * m)}};
  value dx = d[0].dense;
  if (d[0].sparse()) dx = {};  // a placeholder that is gathered from: its rows are added below
  std::vector<double> unit(m, 0.0);
  for (std::size_t j = 0; j < m; ++j) {
    unit[j] = 1;
    if (dx) {
      const auto column = run(dx, unit);
      for (std::size_t i = 0; i < n; ++i) out.theoretical.values[i * m + j] = column[i];
    } else if (d[0].sparse()) {
      const auto values = run(d[0].values, unit), rows = run(d[0].indices, unit);
      const std::size_t width = rows.empty() ? 0 : values.size() / rows.size();
      for (std::size_t k = 0; k < values.size(); ++k)
        out.theoretical.values[(static_cast<std::size_t>(rows[k / width]) * width + k % width) * m + j] += values[k];
    }
    unit[j] = 0;
  }
  for (std::size_t i = 0; i < n; ++i) {
    const double keep = at[i];
    at[i] = keep + delta;
    const auto above = run(y, {});
    at[i] = keep - delta;
    const auto below = run(y, {});
    at[i] = keep;
    for (std::size_t j = 0; j < m; ++j) out.numeric.values[i * m + j] = (above[j] - below[j]) / (2 * delta);
  }
  return out;
}
// The largest difference between the two.
template <class... Policies>
double compute_gradient_error(graph& g, value x, value y, std::span<const double> x_init, double delta = 1e-3,
                              std::span<const feed> others = {}, std::uint64_t seed = 0) {
  const jacobians j = compute_gradient<Policies...>(g, x, y, x_init, delta, others, seed);
  double error = 0;
  for (std::size_t i = 0; i < j.numeric.values.size(); ++i)
    error = std::max(error, std::abs(j.theoretical.values[i] - j.numeric.values[i]));
  return error;
}

// ---- without a test framework: tf.test.main
struct named_test {
  std::string_view name;
  std::function<void(test_case&)> body;
};
// Runs them all, each with a test case of its own; what fails is told to `say` (standard error unless you give
// another). Gives 0, or 1 if any failed: return it from main.
inline int main(std::initializer_list<named_test> tests, const std::function<void(std::string_view)>& say = {}) {
  const auto tell = [&](const std::string& line) {
    if (say)
      say(line);
    else
      std::fprintf(stderr, "%s\n", line.c_str());
  };
  std::size_t failed = 0;
  for (const named_test& t : tests) {
    test_case fixture;
#if defined(__cpp_exceptions)
    try {
      t.body(fixture);
    } catch (const std::exception& e) {
      ++failed;
      tell(text("FAILED ", t.name, ": ", e.what()));
    }
#else
    t.body(fixture);
#endif
  }
  tell(text(tests.size() - failed, " of ", tests.size(), " tests passed"));
  return failed == 0 ? 0 : 1;
}

}  // namespace gradus::testing
