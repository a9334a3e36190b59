// This header compares derivatives with finite differences: it has tf.test.compute_gradient, with its arguments too
// (the second call below), and a form for tables of tests of ops.
//
//   const double error = gradus::testing::compute_gradient_error(g, x, y, {.delta = 1e-3});
//   const auto j = gradus::testing::compute_gradient(x, {4, 3}, y, {4}, {.x_init_values = {numbers}});
//
//   const auto e = gradus::testing::check_gradients({{.dims = {2, 3}}}, [](auto& g, auto x) { return tanh(x[0]); });
//   CHECK(e.coarse < 1e-4);
//   CHECK(e.fine < 1e-7);
#pragma once
#include "../base/build.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "../base/random.hpp"
#include "../cpu/device.hpp"
#include "../pass/autodiff.hpp"
#include "../run/session.hpp"

namespace gradus::inline GRADUS_BUILD::testing {

// These are two Jacobians of y by x, row-major: a row for each element of x, a column for each element of y.
struct jacobians {
  std::size_t x_size = 0, y_size = 0;
  std::vector<double> theoretical, numeric;
};

struct check_options {
  std::vector<std::vector<double>> x_init_values =
      {};                                // one per x, row-major; none, or an empty one: uniform in [0, 1)
  std::vector<shape> x_shapes = {};      // one per x; none: as in the graph, `batch` being batch_size
  std::vector<shape> y_shape = {};       // one at most, as for x
  double delta = 1e-3;                   // the step of the differences
  std::vector<value> init_targets = {};  // run once, before anything else
  std::vector<feed> extra_feeds = {};    // for placeholders other than the xs; must outlive the check
  std::int64_t batch_size = 1;           // the value of `batch`
  std::uint64_t seed = 0;                // of the variables' initializers
};

namespace detail {
// Checks that shapes given in numbers fit the graph's, and sets the batch size from them.
inline void fit_shape(std::string_view what, const shape& in_graph, const shape& given, check_options& o, bool& known) {
  bool fits = in_graph.rank == given.rank;
  for (int i = 0; fits && i < given.rank; ++i) {
    const int have = given.dims[i], want = in_graph.dims[i];
    if (want >= 0) {
      fits = have == want;
    } else {
      fits = have >= 0 && have % -want == 0 && (!known || have / -want == o.batch_size);
      if (fits) o.batch_size = have / -want, known = true;
    }
  }
  if (!fits)
    raise(status::invalid_argument,
          text("the shape of ", what, " is ", to_text(given), "; in the graph it is ", to_text(in_graph)));
}
inline check_options with_shapes(std::span<const value> xs, value y, check_options o) {
  if ((!o.x_shapes.empty() && o.x_shapes.size() != xs.size()) || o.y_shape.size() > 1)
    raise(status::invalid_argument, text("expected ", xs.size(), " x_shapes and one y_shape, got ", o.x_shapes.size(),
                                         " and ", o.y_shape.size()));
  bool known = false;
  for (std::size_t k = 0; k < o.x_shapes.size(); ++k) fit_shape(text("x ", k), xs[k].dims(), o.x_shapes[k], o, known);
  if (!o.y_shape.empty()) fit_shape("y", y.dims(), o.y_shape[0], o, known);
  return o;
}
}  // namespace detail

// Holds a graph with the gradients of y by all xs, and runs it. Each x is a float placeholder or variable. `Policies`
// are the session's, such as ops<&my_card>.
template <class... Policies>
class gradient_checker {
public:
  gradient_checker(graph& g, std::span<const value> xs, value y, const check_options& o, Policies... policies)
      : o_(detail::with_shapes(xs, y, o)), xs_(xs.begin(), xs.end()), y_(y), g_(&extend(g)), session_(g, policies...) {
    session_.initialize(o.seed);
    for (const value& t : o.init_targets) session_.run(t, {});
    if (!o.x_init_values.empty() && o.x_init_values.size() != xs.size())
      raise(status::invalid_argument, text("expected ", xs.size(), " x_init_values, got ", o.x_init_values.size()));
    upstream_.assign(elements(y), 0.0);
    random_stream random{o.seed + 1};
    for (std::size_t k = 0; k < xs_.size(); ++k) {
      x_.emplace_back(elements(xs_[k]));
      for (double& v : x_[k]) v = random.uniform();
      if (o.x_init_values.empty() || (o.x_init_values[k].empty() && !x_[k].empty())) continue;
      if (o.x_init_values[k].size() != x_[k].size())
        raise(status::invalid_argument, text("the init value of x ", k, " has ", o.x_init_values[k].size(),
                                             " elements, expected ", x_[k].size()));
      x_[k] = o.x_init_values[k];
    }
  }

  // Computes the Jacobian column by column, each as the gradient for a one-hot dy. A sparse gradient's rows are added
  // up.
  std::vector<double> theoretical(std::size_t k) {
    const std::size_t rows = elements(xs_[k]), columns = elements(y_);
    std::vector<double> out(rows * columns), dy(columns, 0.0);
    for (std::size_t c = 0; c < std::max<std::size_t>(columns, 1); ++c) {
      if (columns != 0) dy[c] = 1;
      const auto dx = gradient(k, dy);
      if (columns == 0) {
        if (std::any_of(dx.begin(), dx.end(), [](double d) { return d != 0; }))
          raise(status::invalid_argument, "y has no elements, but its gradient is not 0");
        break;
      }
      for (std::size_t r = 0; r < rows; ++r) out[r * columns + c] = dx[r];
      dy[c] = 0;
    }
    return out;
  }
  // Computes the Jacobian row by row: (y(x + delta) - y(x - delta)) / (2 delta).
  std::vector<double> numeric(std::size_t k, double delta) {
    const std::size_t rows = elements(xs_[k]), columns = elements(y_);
    std::vector<double> out(rows * columns);
    for (std::size_t r = 0; columns != 0 && r < rows; ++r) {
      const double x = x_[k][r];
      x_[k][r] = x + delta;
      const auto above = numbers(session_.run(fetches({y_}), feeds())[0]);
      x_[k][r] = x - delta;
      const auto below = numbers(session_.run(fetches({y_}), feeds())[0]);
      x_[k][r] = x;
      for (std::size_t c = 0; c < columns; ++c) out[r * columns + c] = (above[c] - below[c]) / (2 * delta);
    }
    return out;
  }
  jacobians both(std::size_t k, double delta) {
    return {elements(xs_[k]), elements(y_), theoretical(k), numeric(k, delta)};
  }

private:
  check_options o_;
  std::vector<value> xs_;
  value y_, dy_;
  std::vector<gradient_value> dx_;
  std::vector<std::vector<double>> x_;
  std::vector<double> upstream_;
  std::vector<aligned_buffer> memory_;
  std::vector<fetch> fetches_;
  std::vector<feed> feeds_;
  graph* g_;
  decltype(session(std::declval<graph&>(), std::declval<Policies>()...)) session_;

  graph& extend(graph& g) {
    dy_ = g.placeholder("gradient_check_dy", y_.dims(), y_.type());
    const auto found = gradus::gradients(g, std::span(&y_, 1), xs_, {.grad_ys = std::span<const value>(&dy_, 1)});
    for (int k = 0; k < found.size(); ++k) {
      if (!found[k]) raise(status::invalid_argument, text("y does not depend on x ", k, ", or no gradient passes"));
      dx_.push_back(found[k]);
    }
    return g;
  }
  std::size_t elements(value v) const { return static_cast<std::size_t>(count(resolve(v.dims(), o_.batch_size))); }
  std::span<const fetch> fetches(std::initializer_list<value> list) {
    fetches_.assign(list.begin(), list.end());
    return fetches_;
  }
  template <class T>
  static void convert(const std::vector<double>& from, std::byte* to) {
    for (std::size_t i = 0; i < from.size(); ++i) reinterpret_cast<T*>(to)[i] = static_cast<T>(from[i]);
  }
  void write(value v, const std::vector<double>& from, std::byte* to) const {
    v.type() == float64 ? convert<double>(from, to) : convert<float>(from, to);
  }
  void put(value v, const std::vector<double>& from) {
    if (g_->nodes[v.id].op == &variable_card)
      return write(v, from, session_.mutable_variable(g_->name_of(v.id)).mutable_data());
    aligned_buffer b(from.size() * size_of(v.type()) + 1);
    write(v, from, b.data());
    feeds_.emplace_back(v, const_tensor_view(v.type(), resolve(v.dims(), o_.batch_size), b.data()));
    memory_.push_back(std::move(b));
  }
  std::span<const feed> feeds() {
    feeds_ = o_.extra_feeds, memory_.clear();
    if (g_->find("random_step") >= 0)  // random operations draw the same in every run
      session_.mutable_variable("random_step").template mutable_as<std::int64_t>()[0] = -1;
    for (std::size_t k = 0; k < xs_.size(); ++k) put(xs_[k], x_[k]);
    put(dy_, upstream_);  // always, since it may be the only feed with the number of examples
    return feeds_;
  }
  static std::vector<double> numbers(const const_tensor_view& t) {
    std::vector<double> out;
    if (t.type == float64) {
      for (double v : t.as<double>()) out.push_back(v);
    } else {
      for (float v : t.as<float>()) out.push_back(static_cast<double>(v));
    }
    return out;
  }
  std::vector<double> gradient(std::size_t k, const std::vector<double>& dy) {
    upstream_ = dy;
    if (!dx_[k].sparse()) return numbers(session_.run(fetches({dx_[k].dense}), feeds())[0]);
    const auto parts = session_.run(fetches({dx_[k].values, dx_[k].indices}), feeds());
    const auto values = numbers(parts[0]);
    const const_tensor_view indices = parts[1];
    std::vector<double> out(elements(xs_[k]), 0.0);
    const std::size_t rows = indices.size(), width = rows == 0 ? 0 : values.size() / rows;
    for (std::size_t i = 0; i < rows; ++i) {
      const std::int64_t row =
          indices.type == int64 ? indices.as<std::int64_t>()[i] : std::int64_t{indices.as<std::int32_t>()[i]};
      for (std::size_t c = 0; c < width; ++c) out[static_cast<std::size_t>(row) * width + c] += values[i * width + c];
    }
    return out;
  }
};

// Returns the Jacobians of y by each x, as tf.test.compute_gradient does: by the graph's gradients, and by central
// differences of step o.delta in the dtype of y. Adds the gradients to the graph.
template <class... Policies>
std::vector<jacobians> compute_gradient(graph& g, std::span<const value> xs, value y, const check_options& o = {},
                                        Policies... policies) {
  gradient_checker<Policies...> checker(g, xs, y, o, policies...);
  std::vector<jacobians> out;
  for (std::size_t k = 0; k < xs.size(); ++k) out.push_back(checker.both(k, o.delta));
  return out;
}
template <class... Policies>
jacobians compute_gradient(graph& g, value x, value y, const check_options& o = {}, Policies... policies) {
  return compute_gradient(g, std::span<const value>(&x, 1), y, o, policies...)[0];
}
// Does the same with the arguments of tf.test.compute_gradient: shapes in numbers, which a batched x or y needs.
template <class... Policies>
std::vector<jacobians> compute_gradient(std::span<const value> xs, const std::vector<shape>& x_shapes, value y,
                                        const shape& y_shape, check_options o = {}, Policies... policies) {
  o.x_shapes = x_shapes, o.y_shape = {y_shape};
  return compute_gradient(*y.g, xs, y, o, policies...);
}
template <class... Policies>
jacobians compute_gradient(value x, const shape& x_shape, value y, const shape& y_shape, check_options o = {},
                           Policies... policies) {
  return compute_gradient(std::span<const value>(&x, 1), {x_shape}, y, y_shape, std::move(o), policies...)[0];
}

// Returns the largest |theoretical - numeric|: 0 for empty Jacobians, NaN if any entry is NaN.
inline double largest_error(std::span<const jacobians> list) {
  double most = 0;
  for (const jacobians& j : list)
    for (std::size_t i = 0; i < j.numeric.size(); ++i) {
      const double error = std::fabs(j.theoretical[i] - j.numeric[i]);
      if (!(error <= most)) most = error;
      if (std::isnan(most)) return most;
    }
  return most;
}
template <class... Policies>
double compute_gradient_error(graph& g, std::span<const value> xs, value y, const check_options& o = {},
                              Policies... policies) {
  return largest_error(compute_gradient(g, xs, y, o, policies...));
}
template <class... Policies>
double compute_gradient_error(graph& g, value x, value y, const check_options& o = {}, Policies... policies) {
  return compute_gradient_error(g, std::span<const value>(&x, 1), y, o, policies...);
}

template <class... Policies>
double compute_gradient_error(std::span<const value> xs, const std::vector<shape>& x_shapes, value y,
                              const shape& y_shape, check_options o = {}, Policies... policies) {
  return largest_error(compute_gradient(xs, x_shapes, y, y_shape, std::move(o), policies...));
}
template <class... Policies>
double compute_gradient_error(value x, const shape& x_shape, value y, const shape& y_shape, check_options o = {},
                              Policies... policies) {
  return compute_gradient_error(std::span<const value>(&x, 1), {x_shape}, y, y_shape, std::move(o), policies...);
}

// This is an operand of an op under test. It is of float64, and its values are drawn from [low, high) unless they are
// given.
struct gradient_input {
  shape dims;
  double low = -1, high = 1;
  std::vector<double> values = {};
};
// These are the largest errors relative to max(1, |derivative|), for two steps h: about h^2 and about 1e-16 / h can be
// expected.
struct gradient_errors {
  double coarse = 0, fine = 0;  // at h = 1e-3 and h = 1e-5
};
// Checks the derivatives of y = build(g, xs), which is of float64 and any shape, by every input. `batch` is 3.
template <class Build, class... Policies>
gradient_errors check_gradients(const std::vector<gradient_input>& inputs, Build build, Policies... policies) {
  graph g(mode::train);
  check_options o{.batch_size = 3, .seed = 11};
  std::vector<value> xs;
  random_stream random{17};
  for (const gradient_input& i : inputs) {
    xs.push_back(g.placeholder(text("x", xs.size()), i.dims, float64));
    auto values = i.values;
    const auto n = static_cast<std::size_t>(count(resolve(i.dims, o.batch_size)));
    if (values.empty())
      for (std::size_t k = 0; k < n; ++k) values.push_back(i.low + (i.high - i.low) * random.uniform());
    o.x_init_values.push_back(std::move(values));
  }
  const value y = build(g, std::span<const value>(xs));
  gradient_checker<Policies...> checker(g, xs, y, o, policies...);
  gradient_errors worst;
  for (std::size_t k = 0; k < xs.size(); ++k) {
    const auto exact = checker.theoretical(k);
    for (double* error : {&worst.coarse, &worst.fine}) {
      const auto near = checker.numeric(k, error == &worst.coarse ? 1e-3 : 1e-5);
      for (std::size_t i = 0; i < near.size(); ++i) {
        const double e = std::fabs(exact[i] - near[i]) / std::max({1.0, std::fabs(exact[i]), std::fabs(near[i])});
        if (!(e <= *error)) *error = e;
      }
    }
  }
  return worst;
}

}  // namespace gradus::testing
