#include <gradus/run/rows_ahead.hpp>

#include <doctest/doctest.h>

#include <gradus/ops/embedding.hpp>
#include <gradus/update/rules/ftrl.hpp>

#include "models.hpp"

using namespace run_test;

namespace {
struct asked {
  const void* theta;
  std::size_t row_count, width;
  std::vector<std::int64_t> rows;
};
std::vector<asked> questions;
// A device that writes down what it is asked for.
struct watched : cpu<fast> {
  template <class Single, class T, class Index>
  static void prefetch_rows(const T* theta, T* const*, std::size_t row_count, std::size_t width, const Index* rows,
                            std::size_t n) {
    questions.push_back({theta, row_count, width, {rows, rows + n}});
  }
};
// One list of ids is looked up as it is, the other is padded, which the graph replaces; a dense variable beside them.
constexpr auto lists = [](graph& g) {
  const auto plain = g.placeholder("plain", {batch, 3}, int32), padded = g.placeholder("padded", {batch, 2}, int64);
  const auto table = g.variable("table", {40, 4});
  const auto rows = reduce_sum(gather(table, plain));
  const auto wide = reduce_sum(sparse_linear(padded, {.num_buckets = 50}));
  return model_spec{.loss = square(rows + wide + g.variable("bias", {})), .metrics = {}, .predictions = {}};
};
// Row numbers that come from no placeholder of as many.
constexpr auto computed = [](graph& g) {
  const auto x = g.placeholder("x", {batch, 8});
  const auto table = g.variable("table", {8, 4});
  return model_spec{.loss = reduce_sum(gather(table, argmax(x))), .metrics = {}, .predictions = {}};
};
template <auto Build, class Device>
struct trained {
  using update = decltype(composed{ftrl{.rate = 0.1}});
  using model = interpreted_model<Device, ops<>, gating::op, false, false>;
  stepper<model, update, Device> steps{model{Build}, composed{ftrl{.rate = 0.1}}};
  trained() {
    steps.allocate();
    steps.initialize(1);
  }
  void step(std::int64_t examples, std::int64_t shift) {
    step_machine& m = steps.template bound<mode::train>(examples);
    steps.template placeholders<mode::train>([&](const placeholder_info& p) {
      for (std::int64_t i = 0, n = gradus::count(resolve(p.dims, examples)); i < n; ++i)
        if (p.type == int32)
          reinterpret_cast<std::int32_t*>(m.address(p.node))[i] = static_cast<std::int32_t>((i * 7 + shift) % 40);
        else if (p.type == int64)
          reinterpret_cast<std::int64_t*>(m.address(p.node))[i] = i % 5 == 3 ? -1 : (i * 11 + shift) % 50;
    });
    steps.train_step();
  }
};
}  // namespace

TEST_CASE("a step asks for the rows that its placeholders list, before anything else") {
  questions.clear();
  trained<lists, watched> t;
  t.step(2, 1);
  REQUIRE(questions.size() == 2);
  for (const asked& q : questions)
    if (q.row_count == 40) {
      CHECK(q.width == 4);
      CHECK(q.rows == std::vector<std::int64_t>{1, 8, 15, 22, 29, 36});
      CHECK(q.theta == t.steps.variables().value(static_cast<std::size_t>(t.steps.variables().find("table"))));
    } else {
      CHECK(q.row_count == 50);
      CHECK(q.width == 1);
      CHECK(q.rows == std::vector<std::int64_t>{1, 12, 23, -1});
    }
}

TEST_CASE("many rows are not asked for at once") {
  questions.clear();
  trained<lists, watched> t;
  t.step(200, 0);
  CHECK(questions.empty());
  t.step(100, 0);  // 300 of the one, 200 of the other
  REQUIRE(questions.size() == 1);
  CHECK(questions[0].row_count == 50);
}

TEST_CASE("rows that are computed are not guessed") {
  questions.clear();
  trained<computed, watched> t;
  t.step(4, 0);
  CHECK(questions.empty());
}

TEST_CASE("to ask, or not, changes no number") {
  trained<lists, watched> silent;
  trained<lists, cpu<fast>> asking;
  for (std::int64_t k = 0; k < 5; ++k) silent.step(3, k), asking.step(3, k);
  for (std::size_t i = 0; i < asking.steps.variables().size(); ++i) {
    const auto a = silent.steps.variables().view(i).bytes(), b = asking.steps.variables().view(i).bytes();
    CHECK(std::equal(a.begin(), a.end(), b.begin(), b.end()));
  }
}
