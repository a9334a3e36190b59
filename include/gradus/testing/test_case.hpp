// This header is tf.test for programs that use this library: it has assertions on arrays, a session and a scratch
// folder for a test, and includes gradient_check.hpp and graph_equality.hpp, with compute_gradient,
// compute_gradient_error and assert_equal_graph_def. A failed assertion raises failed_precondition with what differed,
// so it works with any test framework and without one.
//
//   TEST_CASE("square") {                       // doctest's, or any other's
//     gradus::testing::test_case t;
//     gradus::graph g;
//     auto x = gradus::square(g.constant({2, 3}, {2}));
//     t.assert_all_equal(t.test_session(g).run(x), std::array{4.0f, 9.0f});
//   }
//
// Without a framework, pass the tests to gradus::testing::main.
#pragma once
#include "../base/build.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "../cpu/device.hpp"
#include "../run/session.hpp"
#include "gradient_check.hpp"
#include "graph_equality.hpp"
#include "temp_dir.hpp"

namespace gradus::inline GRADUS_BUILD::testing {

// No build of this library has CUDA or a GPU.
constexpr bool is_built_with_cuda() { return false; }
constexpr bool is_gpu_available() { return false; }

namespace detail {
// This is an element of an array: as a double, which holds every value except integers beyond 2^53, and, if it is an
// integer, also by its sign and its 64 bits, which hold all of them.
struct number {
  double real = 0;
  bool integer = false, negative = false;
  std::uint64_t bits = 0;

  template <class T>
  explicit number(T x) : real(static_cast<double>(x)), integer(std::is_integral_v<T>) {
    if constexpr (std::is_integral_v<T>) negative = x < T(0), bits = static_cast<std::uint64_t>(x);
  }
  std::string to_text() const {
    if (!integer) return text(real);
    return negative ? text(static_cast<std::int64_t>(bits)) : text(bits);
  }
};
// Returns |x - y|: 0 only for equal integers, however large; 0 for two NaNs too.
inline double distance(const number& x, const number& y) {
  if (x.integer && y.integer && x.negative == y.negative)
    return static_cast<double>(x.bits < y.bits ? y.bits - x.bits : x.bits - y.bits);
  if (x.real == y.real || (std::isnan(x.real) && std::isnan(y.real))) return 0;
  return std::abs(x.real - y.real);
}
// Raises invalid_argument for a dtype that is neither float32, nor float64, nor bool, nor an integer.
inline std::vector<number> numbers(const const_tensor_view& v) {
  std::vector<number> out;
  const auto read = [&]<class T>(std::type_identity<T>) {
    for (std::size_t i = 0, n = v.size(); i < n; ++i) {
      T x;
      std::memcpy(&x, v.data + i * sizeof(T), sizeof(T));
      out.emplace_back(x);
    }
  };
  switch (v.type) {
  case dtype::float32: read(std::type_identity<float>{}); break;
  case dtype::float64: read(std::type_identity<double>{}); break;
  case dtype::boolean: read(std::type_identity<bool>{}); break;
  case dtype::int8: read(std::type_identity<std::int8_t>{}); break;
  case dtype::int16: read(std::type_identity<std::int16_t>{}); break;
  case dtype::int32: read(std::type_identity<std::int32_t>{}); break;
  case dtype::int64: read(std::type_identity<std::int64_t>{}); break;
  case dtype::uint8: read(std::type_identity<std::uint8_t>{}); break;
  case dtype::uint16: read(std::type_identity<std::uint16_t>{}); break;
  case dtype::uint32: read(std::type_identity<std::uint32_t>{}); break;
  case dtype::uint64: read(std::type_identity<std::uint64_t>{}); break;
  default:
    raise(status::invalid_argument, text("an array to compare holds ", name_of(v.type),
                                         "; expected float32, float64, bool or an integer type: cast it first"));
  }
  return out;
}
template <class... Pieces>
[[noreturn]] void fail(const Pieces&... pieces) {
  raise(status::failed_precondition, text(pieces...));
}
}  // namespace detail

class test_case {
public:
  // ---- arrays: anything that can be read as one (views, spans, vectors, xt::xtensor with tensor/xtensor.hpp). Extents
  // must agree; a flat array fits any extents. NaN equals NaN, as in NumPy's testing. Integers and bool are compared as
  // integers of any size and sign; if one side has floating-point numbers, both are compared as doubles.
  template <readable_array A, readable_array B>
  void assert_all_equal(const A& actual, const B& expected) const {
    compare(read_view(actual), read_view(expected), 0, 0, "equal");
  }
  // Asserts |actual - expected| <= atol + rtol |expected|, element by element.
  template <readable_array A, readable_array B>
  void assert_all_close(const A& actual, const B& expected, double rtol = 1e-6, double atol = 1e-6) const {
    compare(read_view(actual), read_view(expected), rtol, atol, "close");
  }
  void assert_near(double actual, double expected, double error) const {
    if (!(std::abs(actual - expected) <= error))
      detail::fail("expected ", expected, " within ", error, ", got ", actual);
  }
  void assert_equal(const graph_def& actual, const graph_def& expected) const {
    assert_equal_graph_def(actual, expected);
  }
  // Asserts that `call` raises an error of this kind whose text contains `piece`.
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
    detail::fail("expected an error of kind ", name_of(kind), " that says \"", piece, "\"", other);
#else
    (void)kind, (void)piece, (void)call;
    detail::fail("assert_raises needs exceptions");
#endif
  }

  // Returns a session on the graph with its variables initialized from `seed`. Calls with the same graph return the
  // same session, which lives as long as the test case.
  session<>& test_session(graph& g, std::uint64_t seed = 0) {
    for (auto& s : sessions_)
      if (s.first == &g) return *s.second;
    sessions_.emplace_back(&g, std::make_unique<session<>>(g));
    sessions_.back().second->initialize(seed);
    return *sessions_.back().second;
  }
  // Returns a scratch folder, which is removed with the test case.
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
      detail::fail("extents differ: got ", to_text(a.dims), ", expected ", to_text(e.dims));
    const auto x = detail::numbers(a), y = detail::numbers(e);
    std::size_t wrong = 0, first = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double far = detail::distance(x[i], y[i]), size = std::abs(y[i].real);
      const bool same = far == 0 || (std::isfinite(size) && far <= atol + rtol * size);
      if (!same && wrong++ == 0) first = i;
    }
    if (wrong != 0)
      detail::fail(wrong, " of ", x.size(), " elements are not ", what, "; the first at ", first, ": got ",
                   x[first].to_text(), ", expected ", y[first].to_text());
  }
};

// ---- without a test framework: tf.test.main
struct named_test {
  std::string_view name;
  std::function<void(test_case&)> body;
};
// Runs all tests, each with a test case of its own, and reports failures to `say` (by default to standard error).
// Returns 0, or 1 if any failed; return that from main.
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
