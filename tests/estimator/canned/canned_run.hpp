// Checkpoints as TensorFlow writes them, with the values that a test wants, and small data: what tests of the canned
// estimators share.
#pragma once
#include "../head_run.hpp"

#include <gradus/checkpoint/saver.hpp>
#include <gradus/codec/tensor_bundle.hpp>
#include <gradus/estimator/canned/canned_estimator.hpp>
#include <gradus/input/batch.hpp>
#include <gradus/input/memory.hpp>
#include <gradus/input/repeat.hpp>
#include <gradus/testing/temp_dir.hpp>

#include <string>
#include <vector>

namespace canned_test {
using namespace gradus;
using namespace head_test;

struct stored {
  std::string name;
  extents dims;
  std::vector<float> values;
};
// TensorFlow's files (model.ckpt-100.index, .data-00000-of-00001, checkpoint) with these variables and a global step.
inline void write_checkpoint(const std::string& directory, std::vector<stored> all, std::int64_t step = 100) {
  state_list list;
  for (stored& v : all) list.tensor(v.name, v.dims, std::span<float>(v.values));
  list.scalar("global_step", step);
  saver<tensor_bundle>().save(list, directory + "/model.ckpt", step);
}

// Two hidden layers of two units: facts N3.
inline std::vector<stored> small_network() {
  return {{"dnn/hiddenlayer_0/kernel", {1, 2}, {.6f, .5f}},
          {"dnn/hiddenlayer_0/bias", {2}, {.1f, -.1f}},
          {"dnn/hiddenlayer_1/kernel", {2, 2}, {1, .8f, -.8f, -1}},
          {"dnn/hiddenlayer_1/bias", {2}, {.2f, -.2f}},
          {"dnn/logits/kernel", {2, 1}, {-1, 1}},
          {"dnn/logits/bias", {1}, {.3f}}};
}
inline std::vector<stored> small_line(float weight, float bias) {
  return {{"linear/linear_model/x/weights", {1, 1}, {weight}}, {"linear/linear_model/bias_weights", {1}, {bias}}};
}
inline std::vector<stored> operator+(std::vector<stored> a, const std::vector<stored>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Examples (x, y), one batch of all; with weights if there are any.
struct examples {
  std::vector<float> x, y, w;
  auto operator()() const {
    if (w.empty()) return labelled(from_spans("x", x, extents{}, "y", y).batch(std::ssize(x)), {"y"});
    return labelled(from_spans("x", x, extents{}, "y", y, "w", w).batch(std::ssize(x)), {"y"});
  }
};

inline std::vector<double> predicted(estimator& e, const examples& from, const std::string& key) {
  std::vector<double> all;
  for (const prediction& p : e.predict(from))
    for (const double v : read(p[key])) all.push_back(v);
  return all;
}
inline std::vector<double> variable(const estimator& e, const std::string& name) {
  return read(e.get_variable_value(name));
}
inline std::string newest(const testing::temp_dir& d) { return d.path() + "/model.ckpt-100"; }

}  // namespace canned_test
