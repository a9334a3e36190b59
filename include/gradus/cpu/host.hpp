// This header turns a user's function into a kernel, and has the kernel of checks.
#pragma once
#include "../base/build.hpp"

#include <cstring>
#include <span>
#include <utility>

#include "../ops/host.hpp"
#include "kernel.hpp"

namespace gradus::inline GRADUS_BUILD {

// This is the kernel of host_op<Function>: template <> struct op_kernel<&host_op<&f>> : host_kernel<&f> {};
template <auto Function>
struct host_kernel {
  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    call(s, a, Function);
  }

private:
  template <class S, class Result, class... Operands>
  static void call(const S& s, std::byte* const* a, void (*f)(std::span<Result>, std::span<const Operands>...)) {
    [&]<int... I>(std::integer_sequence<int, I...>) {
      f(std::span<Result>(at<Result>(a, 0), static_cast<std::size_t>(s.dim(0))),
        std::span<const Operands>(at<const Operands>(a, 1 + I),
                                  s.raw(1 + I) == 0 ? std::size_t{0} : static_cast<std::size_t>(s.dim(1 + I)))...);
    }(std::make_integer_sequence<int, static_cast<int>(sizeof...(Operands))>{});
  }
};

template <>
struct op_kernel<&cards::check_between> {
  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    dispatch_type<0, float, double>(s, [&]<class T>() {
      const T *x = at<const T>(a, 1), low = *at<const T>(a, 2), high = *at<const T>(a, 3);
      for (std::int64_t i = 0; i < s.dim(0); ++i)
        if (!(x[i] >= low && x[i] <= high)) refuse(i, x[i], low, high);
      if (s.dim(0) != 0) std::memcpy(a[0], x, static_cast<std::size_t>(s.dim(0)) * sizeof(T));
    });
  }

private:
  static constexpr const char* why =
      ": a metric such as auc takes probabilities, as sigmoid gives them, and a NaN comes from the data or from a "
      "model that diverged";
  template <class T>
  [[noreturn, gnu::cold]] static void refuse(std::int64_t i, [[maybe_unused]] T x, [[maybe_unused]] T low,
                                             [[maybe_unused]] T high) {
#if defined(__cpp_exceptions)
    raise(status::invalid_argument, "CheckBetween: element ", i, " is ", x, ", expected [", low, ", ", high, "]", why);
#else  // no decimal fractions: a board's interpreter would link 125 KB of tables for this message alone
    raise(status::invalid_argument, "CheckBetween: element ", i, " is outside the bounds of its metric", why);
#endif
  }
};

using host_ops = op_list<&cards::check_between>;

}  // namespace gradus
