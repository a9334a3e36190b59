// The bodies of clip.hpp.
#pragma once
#include "../base/body.hpp"
#include "clip.hpp"
#include "squares.hpp"

namespace gradus::inline GRADUS_BUILD::clip {

namespace detail {
// Calls f(element of the dtype), which must be float32 or float64.
template <class F>
void with_float(std::string_view name, dtype type, F f) {
  if (type == float32) return f(0.0f);
  if (type == float64) return f(0.0);
  raise(status::invalid_argument,
        text("clip::", name, ": expected an array of float32 or float64, found ", name_of(type)));
}
template <class = void>
void same_place(std::string_view name, const const_tensor_view& from, const tensor_view& into) {
  if (from.type != into.type || !(from.dims == into.dims))
    raise(status::invalid_argument, text("clip::", name, ": expected a result of ", name_of(from.type), ' ',
                                         to_text(from.dims), ", found ", name_of(into.type), ' ', to_text(into.dims)));
}
template <class = void>
double squares_of(const const_tensor_view& t) {
  double sum = 0;
  with_float("global_norm", t.type, [&](auto zero) {
    const auto x = t.as<decltype(zero)>();
    sum = sum_of_squares_tree(x.data(), x.size());
  });
  return sum;
}
template <class = void>
unsigned mask_of(std::string_view name, const extents& dims, std::span<const int> axes) {
  if (axes.empty()) return (1u << dims.rank) - 1;
  unsigned mask = 0;
  for (const int a : axes) {
    const int at = a < 0 ? a + dims.rank : a;
    if (at < 0 || at >= dims.rank)
      raise(status::invalid_argument, text("clip::", name, ": axis ", a, " is outside ", to_text(dims)));
    mask |= 1u << at;
  }
  return mask;
}

// Reads the element of a limit that belongs to an element of the operand, by its offset along each axis of the operand.
template <class T>
struct limit_reader {
  const T* data = nullptr;
  T number = 0;
  extents dims;
  std::int64_t stride[max_rank] = {};

  limit_reader(std::string_view name, const char* what, const limit& l, const extents& of) : dims(of) {
    if (!l.is_array) {
      if (std::is_integral_v<T> && !l.whole)
        raise(status::invalid_argument,
              text("clip::", name, ": expected whole numbers as limits of whole numbers, found a float"));
      number = l.whole ? static_cast<T>(l.whole_number) : static_cast<T>(l.number);
      if (std::is_integral_v<T> && static_cast<std::int64_t>(number) != l.whole_number)
        raise(status::invalid_argument,
              text("clip::", name, ": ", what, " of ", l.whole_number, " is no ", name_of(dtype_of<T>)));
      return;
    }
    const extents& e = l.view.dims;
    if (l.view.type != dtype_of<T>)
      raise(status::invalid_argument,
            text("clip::", name, ": expected ", what, " of ", name_of(dtype_of<T>), ", found ", name_of(l.view.type)));
    std::int64_t n = 1;
    bool fits = e.rank <= of.rank;
    for (int i = 1; fits && i <= e.rank; ++i) {
      const std::int64_t here = e[e.rank - i];
      fits = here == 1 || here == of[of.rank - i];
      if (here != 1) stride[of.rank - i] = n;
      n *= here;
    }
    if (!fits)
      raise(status::invalid_argument, text("clip::", name, ": ", what, ' ', to_text(e), " would enlarge the operand ",
                                           to_text(of), "; give a number or an array that broadcasts to it"));
    data = l.view.template as<T>().data();
  }
  T at(std::size_t element) const {
    if (data == nullptr) return number;
    std::int64_t offset = 0;
    auto rest = static_cast<std::int64_t>(element);
    for (int i = dims.rank; i-- > 0; rest /= dims[i]) offset += rest % dims[i] * stride[i];
    return data[offset];
  }
};
template <class T>
void value_of(const const_tensor_view& t, const limit& low, const limit& high, const tensor_view& out) {
  const limit_reader<T> lo("by_value", "a lower limit", low, t.dims), hi("by_value", "an upper limit", high, t.dims);
  const auto x = t.as<T>();
  const auto y = out.mutable_as<T>();
  const auto one = [](T v, T least, T most) {  // a NaN is neither above nor below
    const T cut = v > most ? most : v;
    return cut < least ? least : cut;
  };
  if (lo.data == nullptr && hi.data == nullptr)
    for (std::size_t i = 0; i < x.size(); ++i) y[i] = one(x[i], lo.number, hi.number);
  else
    for (std::size_t i = 0; i < x.size(); ++i) y[i] = one(x[i], lo.at(i), hi.at(i));
}
GRADUS_RARE_BODY void apply_value(const const_tensor_view& t, const limit& low, const limit& high,
                                  const tensor_view& out) {
  same_place("by_value", t, out);
  if (t.type == int32) return value_of<std::int32_t>(t, low, high, out);
  if (t.type == int64) return value_of<std::int64_t>(t, low, high, out);
  with_float("by_value", t.type, [&](auto zero) { value_of<decltype(zero)>(t, low, high, out); });
}
GRADUS_RARE_BODY void apply_norm(const const_tensor_view& t, const limit& c, std::span<const int> axes,
                                 const tensor_view& out) {
  same_place("by_norm", t, out);
  const squares groups(t.dims, mask_of("by_norm", t.dims, axes));
  with_float("by_norm", t.type, [&](auto zero) {
    using T = decltype(zero);
    const limit_reader<T> most("by_norm", "a norm", c, t.dims);
    const T* x = t.as<T>().data();
    T* y = out.mutable_as<T>().data();
    double sums[squares::strip];
    groups.strips([&](std::size_t first, std::size_t n) {
      groups.sum(x, first, n, sums);
      for (std::size_t j = 0; j < n; ++j) sums[j] = sums[j] > 0 ? std::sqrt(sums[j]) : sums[j];
      groups.elements(first, n, [&](std::size_t at, std::size_t group) {
        const T limit = most.at(at), norm = static_cast<T>(sums[group]);
        y[at] = x[at] * limit / (limit > norm ? limit : norm);  // a norm that is NaN makes every element NaN
      });
    });
  });
}
GRADUS_RARE_BODY void apply_average_norm(const const_tensor_view& t, double c, const tensor_view& out) {
  same_place("by_average_norm", t, out);
  with_float("by_average_norm", t.type, [&](auto zero) {
    using T = decltype(zero);
    const auto x = t.as<T>();
    const auto y = out.mutable_as<T>();
    const T most = static_cast<T>(c), n = static_cast<T>(x.size());
    const T ratio = n / static_cast<T>(std::sqrt(sum_of_squares_tree(x.data(), x.size()))), bound = T(1) / most;
    const T factor = bound < ratio ? bound : ratio;
    for (std::size_t i = 0; i < x.size(); ++i) y[i] = x[i] * most * factor;
  });
}
GRADUS_RARE_BODY void apply_adaptive(const const_tensor_view& t, const const_tensor_view& parameter, double factor,
                                     double eps, const tensor_view& out) {
  same_place("adaptive", t, out);
  if (parameter.type != t.type || !(parameter.dims == t.dims))
    raise(status::invalid_argument,
          text("clip::adaptive: expected a parameter of ", name_of(t.type), ' ', to_text(t.dims), ", found ",
               name_of(parameter.type), ' ', to_text(parameter.dims)));
  int wide = 0;  // axes of more than one element
  for (int i = 0; i < t.dims.rank; ++i) wide += t.dims[i] != 1;
  const unsigned all = (1u << t.dims.rank) - 1;
  const unsigned mask = wide <= 1 ? all : t.dims.rank <= 3 ? 1u : all >> 1;
  const squares groups(t.dims, mask);
  with_float("adaptive", t.type, [&](auto zero) {
    using T = decltype(zero);
    const T* x = t.as<T>().data();
    const T* p = parameter.as<T>().data();
    T* y = out.mutable_as<T>().data();
    double g[squares::strip], most[squares::strip];
    groups.strips([&](std::size_t first, std::size_t n) {
      groups.sum(x, first, n, g);
      groups.sum(p, first, n, most);
      for (std::size_t j = 0; j < n; ++j) {
        const double norm = std::sqrt(most[j]);
        g[j] = std::sqrt(g[j]), most[j] = factor * (norm < eps ? eps : norm);
        // the factor of an element; a gradient below its limit is left as it is
        g[j] = g[j] < most[j] ? 1 : most[j] / (g[j] < 1e-6 ? 1e-6 : g[j]);
      }
      groups.elements(first, n, [&](std::size_t at, std::size_t group) { y[at] = x[at] * static_cast<T>(g[group]); });
    });
  });
}
}  // namespace detail

GRADUS_RARE_BODY double detail::norm_of(const term* list, std::size_t n) {
  double sum = 0;
  for (const term* t = list; t != list + n; ++t)
    if (!t->absent) sum += squares_of(t->from);
  return std::sqrt(sum);
}
GRADUS_RARE_BODY double global_norm(std::span<const term> list) { return detail::norm_of(list.data(), list.size()); }

GRADUS_RARE_BODY double detail::apply_global_norm(const entry* list, std::size_t n, double c,
                                                  std::optional<double> use_norm) {
  const entry* const end = list + n;
  for (const entry* e = list; e != end; ++e)
    if (!e->absent) same_place("by_global_norm", e->from, e->into);
  double norm = 0;
  if (use_norm.has_value())
    norm = *use_norm;
  else {
    for (const entry* e = list; e != end; ++e)
      if (!e->absent) norm += squares_of(e->from);
    norm = std::sqrt(norm);
  }
  const double scale = global_scale(norm, c);
  for (const entry* e = list; e != end; ++e)
    if (!e->absent)
      with_float("by_global_norm", e->from.type, [&](auto zero) {
        using T = decltype(zero);
        const auto x = e->from.template as<T>();
        const auto y = e->into.template mutable_as<T>();
        for (std::size_t i = 0; i < x.size(); ++i) y[i] = x[i] * static_cast<T>(scale);
      });
  return norm;
}
GRADUS_RARE_BODY double by_global_norm(std::span<const entry> list, double c, std::optional<double> use_norm) {
  return detail::apply_global_norm(list.data(), list.size(), c, use_norm);
}

}  // namespace gradus::clip
