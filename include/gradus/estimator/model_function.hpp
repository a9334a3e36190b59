// This header calls a program's own functions with the arguments that they take: a model_fn with features and any of
// labels, mode, params and config, an input_fn with any of mode, params and config, each in this order. Which arguments
// a function takes is found at compile time.
//
//   [](const gradus::named_tensors& features, gradus::value labels, gradus::mode m) -> gradus::estimator_spec { ... }
//   [](const gradus::named_tensors& features, const my_params& p) -> gradus::estimator_spec { ... }
//
// Give the types of the arguments, or the type of the result: for a lambda with `auto` in both, the compiler
// instantiates the body before it knows which arguments fit.
#pragma once
#include "../base/build.hpp"

#include <functional>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#include "../train/run_config.hpp"
#include "estimator_spec.hpp"

namespace gradus::inline GRADUS_BUILD {

// The params of an estimator whose model has none.
struct no_params {};

// The labels that a model_fn gets. In mode predict there are none, and they convert to an empty value.
struct model_labels : named_tensors {
  using named_tensors::named_tensors;
  operator value() const { return empty() ? value{} : only(); }
};

// The arguments that a model_fn may take.
struct model_call {
  const named_tensors& features;
  const model_labels& labels;
  gradus::mode mode;
  const run_config& config;
};

// This is an estimator's params, type-erased; they convert back to the type of the input_fn's argument.
class any_params {
public:
  template <class P>
  explicit any_params(std::shared_ptr<const P> p) : held_(std::move(p)), type_(tag_of<P>()) {}
  // Raises invalid_argument if they are of another type.
  template <class P>
    requires(std::is_class_v<P> && !std::is_same_v<P, run_config>)
  operator P() const {  // by value, since g++ 12 does not make a value from a conversion to a reference
    if (type_ != tag_of<P>()) refuse();
    return *static_cast<const P*>(held_.get());
  }

private:
  std::shared_ptr<const void> held_;
  const void* type_;

  template <class P>
  static const void* tag_of() {
    static constexpr char tag = 0;
    return &tag;
  }
  [[noreturn]] static void refuse();
};

namespace detail {
inline constexpr unsigned wants_labels = 1, wants_mode = 2, wants_params = 4, wants_config = 8, fits_nothing = 16;

template <class Result, class F, class Arguments>
struct is_called_by : std::false_type {};
template <class Result, class F, class... A>
struct is_called_by<Result, F, std::tuple<A...>> : std::is_invocable_r<Result, F&, A...> {};

template <bool Wanted, class T>
auto only_if(const T& x) {
  if constexpr (Wanted)
    return std::tuple<const T&>(x);
  else
    return std::tuple<>();
}
template <unsigned Wants, class P>
auto model_arguments(const model_call& c, const P& p) {
  return std::tuple_cat(std::tuple<const named_tensors&>(c.features), only_if<(Wants & wants_labels) != 0>(c.labels),
                        only_if<(Wants & wants_mode) != 0>(c.mode), only_if<(Wants & wants_params) != 0>(p),
                        only_if<(Wants & wants_config) != 0>(c.config));
}
template <unsigned Wants, class P>
auto input_arguments(const gradus::mode& m, const P& p, const run_config& c) {
  return std::tuple_cat(only_if<(Wants & wants_mode) != 0>(m), only_if<(Wants & wants_params) != 0>(p),
                        only_if<(Wants & wants_config) != 0>(c));
}

// Sets of arguments as bits, the larger sets first; among sets of equal size, those with arguments further to the left.
inline constexpr unsigned model_wants[] = {15, 7, 11, 13, 14, 3, 5, 9, 6, 10, 12, 1, 2, 4, 8, 0};
inline constexpr unsigned input_wants[] = {14, 6, 10, 12, 2, 4, 8, 0};

template <class F, class P, std::size_t I = 0>
consteval unsigned wanted_by_model() {
  if constexpr (I == std::size(model_wants)) {
    return fits_nothing;
  } else {
    constexpr unsigned wants = model_wants[I];
    constexpr bool without = (wants & wants_params) != 0 && std::is_same_v<P, no_params>;
    if constexpr (!without)
      if constexpr (is_called_by<estimator_spec, F,
                                 decltype(model_arguments<wants>(std::declval<const model_call&>(),
                                                                 std::declval<const P&>()))>::value)
        return wants;
      else
        return wanted_by_model<F, P, I + 1>();
    else
      return wanted_by_model<F, P, I + 1>();
  }
}
template <class Result, class F, std::size_t I = 0>
consteval unsigned wanted_by_input() {
  if constexpr (I == std::size(input_wants))
    return fits_nothing;
  else if constexpr (is_called_by<Result, F,
                                  decltype(input_arguments<input_wants[I]>(std::declval<const gradus::mode&>(),
                                                                           std::declval<const any_params&>(),
                                                                           std::declval<const run_config&>()))>::value)
    return input_wants[I];
  else
    return wanted_by_input<Result, F, I + 1>();
}

[[noreturn]] void refuse_empty_function(std::string_view what);
// Raises invalid_argument for a std::function or a pointer that holds nothing.
template <class F>
void check_function(const F& f, std::string_view what) {
  if constexpr (std::is_constructible_v<F, std::nullptr_t>)
    if (!f) refuse_empty_function(what);
}
}  // namespace detail

// True if a type can be a model_fn of an estimator with these params: the static_assert of model_function.
template <class F, class P = no_params>
inline constexpr bool is_model_function =
    detail::wanted_by_model<F, P>() != detail::fits_nothing &&
    (std::is_same_v<P, no_params> || (detail::wanted_by_model<F, P>() & detail::wants_params) != 0);

using model_function = std::function<estimator_spec(const model_call&)>;

// Wraps a model_fn of any arguments as one that takes all. The result owns the params, which never change. Raises
// invalid_argument if f holds no function.
template <class F, class P>
model_function make_model_function(F f, std::shared_ptr<const P> params) {
  constexpr unsigned wants = detail::wanted_by_model<F, P>();
  static_assert(wants != detail::fits_nothing,
                "gradus: this model_fn cannot be called by an estimator; it takes features, and of labels, mode, "
                "params and config what it wants, in this order, as in `gradus::estimator_spec model_fn(const "
                "gradus::named_tensors& features, gradus::value labels, gradus::mode m, const my_params& params, const "
                "gradus::run_config& config)`.");
  static_assert(wants == detail::fits_nothing || std::is_same_v<P, no_params> || (wants & detail::wants_params) != 0,
                "gradus: this estimator was given params, and its model_fn does not take them; add an argument `const "
                "my_params& params` behind the mode, or leave the params out.");
  detail::check_function(f, "model_fn");
  if constexpr (wants == detail::fits_nothing)
    return nullptr;
  else
    return [f = std::move(f), params = std::move(params)](const model_call& c) mutable -> estimator_spec {
      return std::apply(f, detail::model_arguments<wants>(c, *params));
    };
}

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "model_function.ipp"
#endif
