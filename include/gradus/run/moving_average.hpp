// This header keeps exponential moving averages of your own arrays: tf.train.ExponentialMovingAverage without a graph.
// (A trainer or an updater keeps averages as a policy, in the sweep of its update: update/average.hpp.)
//
//   gradus::moving_averages averages{{.decay = 0.999}};
//   averages.track("w", w);                  // a variable: the average starts at its value
//   averages.track_tensor("loss", loss);     // any other number: the average starts at 0
//   for (...) { step(w, loss); averages.apply(); }
//   {
//     gradus::moving_averages::in_place evaluation(averages);   // w holds its average here, and its own bits after
//     evaluate(w);
//   }
//
//   average <- average - (1 - d)(average - value)      d = decay, or min(decay, (1 + n) / (10 + n)) with num_updates n
//
// 1 - d is formed in double and rounded once to the type of the array; TensorFlow forms it in float32. Arrays are
// float32 or float64 (TensorFlow's two 16-bit types are not supported); they must outlive this object and not move.
#pragma once
#include "../base/build.hpp"

#include <algorithm>
#include <concepts>
#include <deque>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "../base/math.hpp"
#include "../base/state.hpp"
#include "../tensor/access.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
double decay_after(double decay, std::optional<double> num_updates);
template <std::floating_point T>
void follow(std::span<T> average, const T* value, double decay) {
  const T share = static_cast<T>(1 - decay);
  for (std::size_t i = 0; i < average.size(); ++i)
    average[i] = average[i] - portable_math::product(share, average[i] - value[i]);
}
template <std::floating_point T>
void follow_debiased(std::span<T> average, std::span<T> biased, T& local_step, const T* value, double decay) {
  follow(biased, value, decay);
  local_step += T(1);
  const T weight = static_cast<T>(1 - portable_math::pow(decay, static_cast<double>(local_step)));
  for (std::size_t i = 0; i < average.size(); ++i) average[i] = biased[i] / weight;
}
void same_length(std::size_t variable, std::size_t other, const char* what);
}  // namespace detail

// TensorFlow's assign_moving_average(variable, value, decay, zero_debias=False): sets variable <- variable - (1 -
// decay) (variable - value).
template <std::floating_point T>
void assign_moving_average(std::span<T> variable, std::span<const std::type_identity_t<T>> value, double decay) {
  detail::same_length(variable.size(), value.size(), "the value");
  detail::follow(variable, value.data(), decay);
}

// The state of a debiased average: an average that starts at 0, of as many elements, and the number of assignments.
// They are TensorFlow's variables <name>/biased and <name>/local_step.
template <std::floating_point T>
struct zero_debias {
  std::span<T> biased;
  T local_step = 0;
};
// Does the same with zero_debias=True, TensorFlow's default: gives the average as if it had not started at 0.
// local_step goes up by one, and variable <- biased / (1 - decay^local_step), with the decay of this call.
template <std::floating_point T>
void assign_moving_average(std::span<T> variable, std::span<const std::type_identity_t<T>> value, double decay,
                           zero_debias<std::type_identity_t<T>>& state) {
  detail::same_length(variable.size(), value.size(), "the value");
  detail::same_length(variable.size(), state.biased.size(), "the biased average");
  detail::follow_debiased(variable, state.biased, state.local_step, value.data(), decay);
}

struct moving_average_options {
  double decay = 0.9999;     // remembers about 1 / (1 - decay) applications
  bool zero_debias = false;  // of tensors: correct for the start at 0; variables do not start there
  std::string name = "ExponentialMovingAverage";  // in checkpoints: <variable>/<name>
};

class moving_averages {
public:
  explicit moving_averages(moving_average_options options = {}) : options_(std::move(options)) {}
  moving_averages(const moving_averages&) = delete;  // its state list points into it
  moving_averages& operator=(const moving_averages&) = delete;

  // Follows a variable from its value now. Tracking the same array again changes nothing.
  template <writable_array X>
  void track(std::string_view name, X&& variable) {
    insert(name, write_view(variable), true);
  }
  // Follows any other array from 0; it is read when `apply` runs.
  template <readable_array X>
  void track_tensor(std::string_view name, const X& tensor) {
    const const_tensor_view v = read_view(tensor);
    insert(name, tensor_view(v.type, v.dims, const_cast<std::byte*>(v.data)), false);  // never written
  }

  // Moves every average, or those that are named, a step towards its array. num_updates, if given, is the number of
  // updates so far (global_step), and shortens the memory at first. TensorFlow takes it in the constructor, as a
  // variable, and reads it here.
  void apply(std::optional<double> num_updates = {});
  void apply(std::initializer_list<std::string_view> names, std::optional<double> num_updates = {});
  void apply(std::span<const std::string_view> names, std::optional<double> num_updates = {});

  // Returns the average of a variable or tensor, or nothing where none is kept. While averages are swapped in, it holds
  // the variable's own value.
  std::optional<tensor_view> average(std::string_view name);
  // Returns the average's name in checkpoints; where none is kept, the name that it would get.
  std::string average_name(std::string_view name) const;
  // Returns the variables that are followed, in order, without the tensors: tf.moving_average_variables().
  std::vector<std::string> moving_average_variables() const;

  // Returns the entries to read from a checkpoint so that evaluation runs on averages: {name in the checkpoint,
  // variable} pairs. All trainable variables and all that are tracked are read from their averages, whether one was
  // ever kept or not; every other variable of `all`, and the averages of tensors, from their own names. As TensorFlow's
  // variables_to_restore().
  struct restored {
    std::string saved_as, variable;
    bool operator==(const restored&) const = default;
  };
  std::vector<restored> variables_to_restore(const std::vector<std::string>& trainable,
                                             const std::vector<std::string>& all) const;
  // variables_to_restore(moving_avg_variables): here the variables that are read from their averages are given.
  std::vector<restored> variables_to_restore_of(const std::vector<std::string>& averaged,
                                                const std::vector<std::string>& all) const;

  // Exchanges variables and averages, bit by bit; tensors stay. In between, `apply` and `remembers` raise
  // failed_precondition, and writes to the variables change the future averages.
  void swap_in();
  void swap_out();
  bool swapped() const { return swapped_; }
  // Keeps averages in the place of variables for as long as this object lives.
  class [[nodiscard]] in_place {
  public:
    explicit in_place(moving_averages& of) : of_(of) { of_.swap_in(); }
    in_place(const in_place&) = delete;
    in_place& operator=(const in_place&) = delete;
    ~in_place();

  private:
    moving_averages& of_;
  };

  // Lists the averages, under average_name; with zero_debias, for a tensor also .../biased and .../local_step. It does
  // not list the variables, which belong to others.
  void remembers(state_list& list);

  const moving_average_options& options() const { return options_; }

private:
  struct entry {
    std::string name, average_name;
    tensor_view values;
    bool is_variable = false, debiased = false;
    aligned_buffer average, biased, local_step;
  };

  void insert(std::string_view name, const tensor_view& values, bool is_variable);
  entry* find(std::string_view name);
  // Returns `wanted`, or `wanted` with the first of _1, _2, ... that no variable and no average has.
  std::string unused(const std::string& wanted) const;

  void step(entry& e, std::optional<double> num_updates);
  template <class T>
  static void step_in(entry& e, double decay) {
    const auto as = [&e](aligned_buffer& b) { return std::span<T>(reinterpret_cast<T*>(b.data()), e.values.size()); };
    const T* const value = e.values.template as<T>().data();
    if (e.debiased)
      detail::follow_debiased(as(e.average), as(e.biased), *reinterpret_cast<T*>(e.local_step.data()), value, decay);
    else
      detail::follow(as(e.average), value, decay);
  }

  void exchange();
  void refuse_while_swapped(const char* what) const;
  [[noreturn]] void unknown(std::string_view name) const;

  moving_average_options options_;
  std::deque<entry> entries_;  // a deque: the state list may point at an average while others are added
  bool swapped_ = false;
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "moving_average.ipp"
#endif
