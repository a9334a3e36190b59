// This header gives the state of optimizers the names and types of TensorFlow 1.x.
//
//   tensor_bundle{{.names = tensorflow_names{"Adam"}}}
//
// Slots have TensorFlow's names everywhere in this library ("w/Momentum", "w/Adam", "w/Adam_1",
// "w/ExponentialMovingAverage"). These differ:
//
//   here                                   there
//   beta1_power, beta2_power: float64      float32, a running product in float32, of the next step
//   group_1/beta1_power                    beta1_power_1, the second optimizer's
//   global_step: int64                     the same; in files also float32 or int32, or of another name
//   w/Adam                                 w/<name>, if the optimizer was given one
//   w/Ftrl of a w in parts                 w/Ftrl; in old files w/part_0/Ftrl, or w/<end of w>/part_0/Ftrl
//
// A running product loses what it loses: the float32 value is made, and read, by multiplying again as often.
#pragma once
#include <cfloat>
#include <cmath>
#include <cstring>

#include "../base/math.hpp"
#include "bundle_notes.hpp"

namespace gradus::inline GRADUS_BUILD {

struct tensorflow_names {
  std::string optimizer = "Adam";  // what our rule is called in checkpoints, its `name`
  std::string called = {};         // what TensorFlow's optimizer was called (its argument `name`), if otherwise
  std::string scope = {};          // where apply_gradients ran: "training" makes training/beta1_power
  std::string global_step = "global_step";  // what the step is called there
  double beta1 = 0.9, beta2 = 0.999;        // as the rule has them

  // `owned` takes the bytes of converted tensors.
  void to_tensorflow(snapshot& content, std::deque<std::vector<std::byte>>& owned) const;
  void from_tensorflow(snapshot& content, std::deque<std::vector<std::byte>>& owned) const;
};

namespace detail {

// beta^n as TensorFlow has it: multiplied again and again in float32, where what is too small for a normal number is
// zero, as on its threads.
float running_power(float beta, std::int64_t n);
// Returns the same as our Adam has it, in double.
double running_power(double beta, std::int64_t n);
// Returns the number of multiplications of beta, 0 if it is unknown.
std::int64_t factors_in(double power, double beta);
std::int64_t factors_in(float power, float beta);

template <class T>
void replace_scalar(record& r, T value, std::deque<std::vector<std::byte>>& owned) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  r.type = dtype_of<T>;
  r.bytes = owned.emplace_back(bytes.begin(), bytes.end());
}
template <class T>
T scalar_in(const record& r) {
  T value{};
  std::memcpy(&value, r.bytes.data(), sizeof value);
  return value;
}
bool is_scalar(const record& r, dtype type);

// "beta1_power_2" -> 1 and 2: which of the two betas it is the power of, and of the how-manieth optimizer; 0: neither.
std::pair<int, std::string> beta_of(std::string_view name);

// A slot's name taken apart: "w/Adam_1" -> "w", "_1". Empty if it is none of this optimizer's.
std::pair<std::string, std::string> slot_parts(const std::string& name, std::string_view optimizer);

}  // namespace detail

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "bundle_names.ipp"
#endif
