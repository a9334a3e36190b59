// A head's spec made and run on numbers: what the tests of the heads share.
#pragma once
#include <gradus/cpu/device.hpp>
#include <gradus/estimator/head.hpp>
#include <gradus/run/session.hpp>

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

namespace head_test {
using namespace gradus;

struct numbers {
  std::vector<float> list;
  shape dims;
  dtype type = float32;  // in the graph
};
struct found {
  float loss = 0, train = 0;
  std::map<std::string, std::vector<double>> predictions;
  std::map<std::string, double> metrics, updated, summaries;
};

inline value constant_of(graph& g, const numbers& n) {
  const std::vector<double> all(n.list.begin(), n.list.end());
  return g.constant(std::span<const double>(all), n.dims, n.type);
}
inline std::vector<double> read(const const_tensor_view& v) {
  std::vector<double> all;
  const auto put = [&](auto list) { all.assign(list.begin(), list.end()); };
  if (v.type == float32) put(v.as<float>());
  if (v.type == float64) put(v.as<double>());
  if (v.type == int32) put(v.as<std::int32_t>());
  if (v.type == int64) put(v.as<std::int64_t>());
  return all;
}

// One batch through a spec. In mode train the train op is the loss times -7, unless an optimizer is given.
inline found run(const any_head& head, gradus::mode m, const numbers& logits, const numbers& labels = {},
                 const numbers& weights = {}, const std::vector<double>& regularization = {}) {
  graph g(m);
  head_arguments a{.mode = m, .logits = constant_of(g, logits)};
  if (!labels.list.empty()) a.labels = constant_of(g, labels);
  if (!weights.list.empty()) a.features.add("label_weights", constant_of(g, weights));
  for (const double r : regularization) a.regularization_losses.push_back(g.constant(r));
  if (m == gradus::mode::train) a.train_op_fn = [](value loss) { return loss * -7.0; };
  const estimator_spec spec = head.create_estimator_spec(a);
  validate(spec, m, g);
  session s{g};
  s.initialize(1);
  found f;
  const auto one = [&](value v) {
    const auto r = s.run(v);
    return read(r);
  };
  for (const auto& [name, v] : spec.predictions) f.predictions[name] = one(v);
  if (spec.loss) f.loss = static_cast<float>(one(spec.loss)[0]);
  if (spec.train_op) f.train = static_cast<float>(one(spec.train_op)[0]);
  for (const auto& [name, metric_of] : spec.eval_metric_ops) f.updated[name] = one(metric_of.update)[0];
  for (const auto& [name, metric_of] : spec.eval_metric_ops) f.metrics[name] = one(metric_of.result)[0];
  for (int i = 0; i < g.outputs.count; ++i)
    if (g.outputs[i].kind == output::summary)
      f.summaries[std::string(g.text_at(g.outputs[i].name))] = one({&g, g.outputs[i].node})[0];
  return f;
}

inline void close(double is, double wanted, double tolerance = 1e-5) {
  CHECK(is == doctest::Approx(wanted).epsilon(tolerance).scale(1));
}
inline void close(const std::vector<double>& is, const std::vector<double>& wanted, double tolerance = 1e-5) {
  REQUIRE(is.size() == wanted.size());
  for (std::size_t i = 0; i < is.size(); ++i) close(is[i], wanted[i], tolerance);
}
inline void all_close(const std::map<std::string, double>& is, const std::map<std::string, double>& wanted,
                      double tolerance = 1e-4) {
  CHECK(is.size() == wanted.size());
  for (const auto& [name, number] : wanted) {
    CAPTURE(name);
    REQUIRE(is.contains(name));
    close(is.at(name), number, tolerance);
  }
}

// The text of what is refused.
template <class Call>
std::string refusal(Call call) {
  try {
    call();
  } catch (const error& e) {
    return e.what();
  }
  return "(nothing was refused)";
}
inline void refuses(const std::string& words, auto call) {
  const std::string is = refusal(call);
  CHECK_MESSAGE(is.find(words) != std::string::npos, is);
}

}  // namespace head_test
