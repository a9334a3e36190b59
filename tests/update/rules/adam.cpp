// without sanitizers: published numbers; whole/conformance_{norms,matrices} run the same loops under them
#include <gradus/update/rules/adam.hpp>

#include "../trajectory.hpp"

using namespace gradus;

using trajectory::set;

namespace {
adam make(const golden::json& p, sparse_mode sparse) {
  adam rule{.sparse = sparse};
  set(rule.rate, p, "learning_rate");
  set(rule.beta1, p, "beta1");
  set(rule.beta2, p, "beta2");
  set(rule.epsilon, p, "epsilon");
  return rule;
}
}  // namespace

TEST_CASE("adam with decay_all follows TensorFlow's Adam, dense and sparse") {
  CHECK(trajectory::replay_all("Adam", [](const auto& p) { return make(p, sparse_mode::decay_all); }) == 6);
}

TEST_CASE("adam follows contrib's LazyAdam by default") {
  CHECK(adam{}.sparse == sparse_mode::lazy);
  CHECK(trajectory::replay_all("LazyAdam", [](const auto& p) { return make(p, sparse_mode::lazy); }) == 2);
}

TEST_CASE("adam keeps the powers of beta as running products, listed as state") {
  composed update{adam{}};
  state_list list;
  update.remembers(list);
  REQUIRE(list.entries().size() == 2);
  CHECK(list.entries()[0].name == "beta1_power");
  CHECK(list.entries()[1].name == "beta2_power");
  const auto* power = reinterpret_cast<const double*>(list.find("beta1_power")->bytes.data());
  CHECK(*power == 0.9);
  update.finish();
  CHECK(*power == 0.9 * 0.9);
}

TEST_CASE("a decay_all step on some rows has the bits of a dense step with zeros") {
  constexpr std::size_t rows = 7, width = 21;
  const composed all{adam{.sparse = sparse_mode::decay_all}};
  const auto& update = all.single();
  std::vector<float> dense(rows * width), theta[2], m[2], v[2];
  for (std::size_t i = 0; i < rows * width; ++i) {
    for (int k = 0; k < 2; ++k) {
      theta[k].push_back(0.25f * static_cast<float>(i % 13) - 1);
      m[k].push_back(0.01f * static_cast<float>(i % 7)), v[k].push_back(0.001f * static_cast<float>(i % 5));
    }
  }
  const std::int64_t listed[] = {5, 2};
  std::vector<float> values;
  for (std::size_t i = 0; i < 2 * width; ++i) values.push_back(static_cast<float>(i) * 0.125f - 2);
  for (std::size_t i = 0; i < width; ++i) dense[5 * width + i] = values[i], dense[2 * width + i] = values[width + i];
  float* const a[] = {m[0].data(), v[0].data()};
  float* const b[] = {m[1].data(), v[1].data()};
  const auto c = update.prepare<float>(0);
  sweep<fast>(update, c, 1.0f, theta[0].data(), dense.data(), a, rows * width);
  std::vector<std::int32_t> scratch(row_chains::scratch(2));
  sweep_rows<fast>(update, c, 1.0f, theta[1].data(), b, rows, width, listed, values.data(), 2, scratch);
  CHECK(theta[0] == theta[1]);
  CHECK(m[0] == m[1]);
  CHECK(v[0] == v[1]);
}
