// This header converts the state of optimizers to and from the names and types of TensorFlow 1.x.
//
//   tensor_bundle{{.names = tensorflow_names{"Adam"}}}
//
// Slots have TensorFlow's names everywhere in this library ("w/Momentum", "w/Adam", "w/Adam_1",
// "w/ExponentialMovingAverage"). These differ:
//
//   in this library                        in TensorFlow
//   beta1_power, beta2_power: float64      float32, a running product in float32, of the next step
//   group_1/beta1_power                    beta1_power_1, the second optimizer's
//   global_step: int64                     the same; in files also float32 or int32, or of another name
//   w/Adam                                 w/<name>, if the optimizer was given one
//   w/Ftrl of a w in parts                 w/Ftrl; in old files w/part_0/Ftrl, or w/<end of w>/part_0/Ftrl
//
// A running product in float32 has rounding errors that depend on each multiplication: so the float32 value is
// computed, and read, by repeating the same number of multiplications. Where that does not give the double (another
// beta than `beta1` or `beta2`, or one that varied), the notes of the file hold it, and it is read as long as the file
// still has the float32 value that was written with it.
#pragma once
#include "../base/build.hpp"

#include <cfloat>
#include <cmath>
#include <cstring>

#include "../base/math.hpp"
#include "bundle_notes.hpp"

namespace gradus::inline GRADUS_BUILD {

struct tensorflow_names {
  std::string optimizer = "Adam";           // the name of this library's rule in checkpoints
  std::string called = {};                  // the argument `name` of TensorFlow's optimizer, if it differs
  std::string scope = {};                   // the scope of apply_gradients: "training" makes training/beta1_power
  std::string global_step = "global_step";  // the name of the step in TensorFlow
  double beta1 = 0.9, beta2 = 0.999;        // the values in the rule

  // `owned` receives the bytes of converted tensors.
  void to_tensorflow(snapshot& content, std::deque<std::vector<std::byte>>& owned) const;
  void from_tensorflow(snapshot& content, std::deque<std::vector<std::byte>>& owned) const;
};

namespace detail {

// Returns beta^n as TensorFlow computes it: by repeated multiplication in float32, where a result too small for a
// normal number becomes zero, as on TensorFlow's threads.
float running_power(float beta, std::int64_t n);
// Returns beta^n as this library's Adam computes it, in double.
double running_power(double beta, std::int64_t n);
// Returns the number of factors beta in the product, 0 if it is unknown.
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
// The key in the metadata for the double of a power, by its name in TensorFlow, and its text: the bits of both numbers.
std::string exact_key(std::string_view name);
std::string exact_text(float written, double value);

// Parses "beta1_power_2" into 1 and 2: which of the two betas it is the power of, and the optimizer's number; the first
// is 0 for another name.
std::pair<int, std::string> beta_of(std::string_view name);

// Splits a slot's name: "w/Adam_1" into "w" and "_1". Both are empty if the slot is not of this optimizer.
std::pair<std::string, std::string> slot_parts(const std::string& name, std::string_view optimizer);

}  // namespace detail

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "bundle_names.ipp"
#endif
