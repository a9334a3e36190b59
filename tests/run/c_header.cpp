#include "gradus/run/c_header.hpp"

#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>

#include "../edge/exported/model.hpp"
#include "gradus/cpu/device.hpp"
#include "gradus/cpu/frozen.hpp"
#include "gradus/ops/layer.hpp"
#include "gradus/ops/loss.hpp"
#include "gradus/run/static_step.hpp"
#include "gradus/testing/temp_dir.hpp"
#include "gradus/update/rules/adam.hpp"
#include "gradus/update/rules/gradient_descent.hpp"

using namespace gradus;

namespace {

std::string command_of(const char* name, const char* otherwise) {
  const char* said = std::getenv(name);
  return said != nullptr && *said != 0 ? said : otherwise;
}
// What a C program says that includes the header: for each of `calls` inputs the predictions' bytes.
std::string run_c(const std::string& header, const std::string& flags, const std::vector<float>& x, int in, int calls,
                  const std::string& predict, int out) {
  const testing::temp_dir dir;
  const auto path = [&](std::string_view name) { return join_path(dir.path(), name); };
  std::ofstream(path("model.h")) << header;
  std::ofstream(path("main.c")) << "#include \"model.h\"\n#include <stdio.h>\n"
                                << "int main(void) {\n  static float x[" << in << "], y[" << out
                                << "], work[model_work];\n  int k;\n  for (k = 0; k < " << calls << "; ++k) {\n"
                                << "    if (fread(x, sizeof x, 1, stdin) != 1) return 1;\n    " << predict
                                << "\n    fwrite(y, sizeof y, 1, stdout);\n  }\n  return 0;\n}\n";
  std::ofstream(path("x"), std::ios::binary)
      .write(reinterpret_cast<const char*>(x.data()), static_cast<std::streamsize>(x.size() * sizeof(float)));
  const std::string build = command_of("GRADUS_CC", "gcc") + " -Wall -Wextra -Werror -pedantic " + flags + " " +
                            path("main.c") + " -o " + path("main") + " -lm";
  REQUIRE_MESSAGE(std::system(build.c_str()) == 0, build);
  REQUIRE(std::system((path("main") + " <" + path("x") + " >" + path("y")).c_str()) == 0);
  std::ifstream file(path("y"), std::ios::binary);
  std::stringstream all;
  all << file.rdbuf();
  return all.str();
}
template <class T>
std::string bytes_of(const T& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(values[0])};
}
void fill(std::span<float> to, std::mt19937& random, float wide) {
  for (auto& v : to) v = (static_cast<float>(random()) / 4294967296.0f * 2 - 1) * wide;
}
// Trains a batch of four, one example at a time, and predicts it: in C that is four calls of a header for one example,
// and not one of a header for four.
template <auto Build, name_literal Out>
void compare_one_by_one(bool of_four_differs) {
  auto s = make_static_stepper<Build>(static_batch<4>{}, adam{.rate = 0.01}, one_by_one{}, portable{});
  s.initialize(17);
  std::mt19937 random(5);
  for (int i = 0; i < 3; ++i) {
    fill(s.template input<"x">(), random, 1);
    s.step();
  }
  state_list list;
  s.remembers(list);
  fill(s.template input<"x">(), random, 1.5f);
  const auto in = s.template input<"x">();
  const std::vector<float> x(in.begin(), in.end());
  const std::string expected = bytes_of(s.template predict<Out>());
  const int inputs = static_cast<int>(x.size()), outputs = static_cast<int>(s.template prediction<Out>().size());
  const auto said = [&](std::int64_t size, int calls) {
    return run_c(c_header(Build, list, {.batch = size}), "-std=c99 -O2", x, inputs / calls, calls,
                 "model_predict(x, y, work);", outputs / calls);
  };
  CHECK(said(1, 4) == expected);
  CHECK((said(4, 1) != expected) == of_four_differs);
}
// Trains a little, then predicts on random inputs here and in C, with each of these flags.
template <auto Build, std::int64_t Batch, name_literal Out>
void compare(std::initializer_list<const char*> flags) {
  auto s = make_static_stepper<Build>(static_batch<Batch>{}, adam{.rate = 0.01}, portable{});
  s.initialize(17);
  std::mt19937 random(5);
  for (int i = 0; i < 3; ++i) {
    fill(s.template input<"x">(), random, 1);
    s.step();
  }
  state_list list;
  s.remembers(list);
  const auto header = c_header(Build, list, {.batch = Batch});
  std::vector<float> x;
  std::string expected;
  constexpr int calls = 60;
  for (int k = 0; k < calls; ++k) {
    fill(s.template input<"x">(), random, k % 3 == 0 ? 20.0f : 1.5f);
    const auto in = s.template input<"x">();
    x.insert(x.end(), in.begin(), in.end());
    expected += bytes_of(s.template predict<Out>());
  }
  const int in = static_cast<int>(s.template input<"x">().size()),
            out = static_cast<int>(s.template prediction<Out>().size());
  for (const char* f : flags)
    CHECK_MESSAGE(run_c(header, f, x, in, calls, "model_predict(x, y, work);", out) == expected, f);
}

template <activation F>
constexpr auto mlp = [](graph& g) {
  const auto x = g.placeholder("x", {batch, 8});
  auto h = dense(x, {.units = 20, .name = "first", .activation = F});
  h = dense(h, {.units = 12, .name = "second", .activation = F});
  const auto y = softmax(dense(h, {.units = 5, .name = "last"}));
  return model_spec{.loss = reduce_mean(square(y)), .metrics = {}, .predictions = {{"y", y}}};
};
// One unit, so that the products are trees; 5000 inputs, so that they have two runs.
constexpr auto column = [](graph& g) {
  const auto x = g.placeholder("x", {batch, 5000});
  const auto y = sigmoid(dense(x, {.units = 1, .name = "last"}));
  return model_spec{.loss = reduce_mean(square(y)), .metrics = {}, .predictions = {{"y", y}}};
};
constexpr auto pictures = [](graph& g) {
  const auto x = g.placeholder("x", {batch, 9, 7, 2});
  auto h = conv2d(x, {.filters = 5, .padding = padding::same, .name = "one", .activation = relu});
  h = max_pool(h, {.pool_size = 2, .padding = padding::same});
  h = conv2d(h, {.filters = 3, .kernel_size = {2, 3}, .strides = {1, 2}, .name = "two", .activation = elu});
  h = max_pool(h, {.pool_size = {2, 1}, .strides = 1});
  const auto y = log_softmax(dense(reshape(h, {batch, 3 * 3}), {.units = 4, .name = "last"}));
  return model_spec{.loss = reduce_mean(square(y)), .metrics = {}, .predictions = {{"y", y}}};
};
// A body in 8 bits below layers of float32, and what lies between.
template <class Weights>
constexpr Weights drawn_weights(std::uint64_t seed) {
  random_stream r{.seed = seed};
  Weights w{};
  for (auto& c : w.codes) c = static_cast<std::int8_t>(static_cast<int>(r.below(255)) - 127);
  for (auto& s : w.scales) s = (0.25f + uniform_float(r.word())) / 256;
  for (auto& b : w.bias) b = uniform_float(r.word()) - 0.5f;
  return w;
}
constexpr auto first_weights = drawn_weights<frozen_conv2d_weights<3, 2, 2, 5>>(1);
constexpr auto each_weights = drawn_weights<frozen_depthwise_conv2d_weights<2, 3, 5, 2>>(2);
constexpr auto wide_weights = drawn_weights<frozen_dense_weights<10, 7>>(3);
constexpr auto frozen = [](graph& g) {
  const auto x = g.placeholder("x", {batch, 9, 7, 2});
  auto h = frozen_conv2d<first_weights>(x, {.strides = {2, 1}, .padding = padding::same, .activation = relu});
  h = frozen_depthwise_conv2d<each_weights>(h, {.activation = tanh});
  h = depthwise_conv2d(
      h, {.kernel_size = {2, 3}, .padding = padding::same, .name = "float", .activation = relu, .trainable = false});
  h = frozen_dense<wide_weights>(reduce_mean(h, {1, 2}));
  const auto y = dense(h, {.units = 4, .name = "last"});
  return model_spec{.loss = reduce_mean(square(y)), .metrics = {}, .predictions = {{"y", y}}};
};
// Sums along rows and of all; along columns, by chains and by trees.
constexpr auto row_sums = [](graph& g) {
  const auto x = g.placeholder("x", {batch, 300, 5});
  const auto w = g.variable("w", {5}, {.init = ones});
  const auto y = reduce_sum(x * w, {2}) + reshape(reduce_mean(x, {1, 2}), {batch, 1});
  return model_spec{.loss = reduce_mean(y), .metrics = {}, .predictions = {{"y", y}}};
};
constexpr auto column_sums = [](graph& g) {
  const auto x = g.placeholder("x", {batch, 300, 5});
  const auto w = g.variable("w", {5}, {.init = ones});
  const auto y = reduce_mean(x * w, {1}) - reduce_sum(reshape(x, {batch, 20, 15, 5}), {1, 2}) * 0.125 +
                 reduce_sum(reshape(x, {batch, 5, 300}), {2}) * reshape(reduce_mean(x, {1, 2}), {batch, 1});
  return model_spec{.loss = reduce_mean(square(y)), .metrics = {}, .predictions = {{"y", y}}};
};
constexpr auto short_columns = [](graph& g) {
  const auto x = g.placeholder("x", {batch, 30, 25});
  const auto w = g.variable("w", {25}, {.init = ones});
  const auto y = reduce_mean(x * w, {1});
  return model_spec{.loss = reduce_mean(square(y)), .metrics = {}, .predictions = {{"y", y}}};
};
// Broadcasting along any axes, constants, transposed products, the other formulas.
constexpr auto formulas = [](graph& g) {
  const auto x = g.placeholder("x", {batch, 3, 4});
  const auto w = g.variable("w", {3, 1}), v = g.variable("v", {1, 4});
  auto h = x * w + v;
  h = gelu(h) + g.constant({0.25, -2.0, 1e-40}, {3, 1});
  h = rsqrt(square(h) + 0.5) - sqrt(abs(h)) / exp(neg(h) * 0.125);
  h = maximum(minimum(h, 3.0), log(square(x) + 1e-30));
  h = squared_difference(h, w);
  const auto flat = reshape(h, {batch, 12});
  const auto m = g.variable("m", {6, 12});
  const auto y = matmul(flat, m, {.transpose_b = true});
  return model_spec{.loss = reduce_mean(square(y)), .metrics = {}, .predictions = {{"y", y}}};
};

}  // namespace

TEST_CASE("c_header: dense layers give the bits of the policy portable") {
  compare<mlp<tanh>, 1, "y">({"-std=c99 -O2", "-std=c99 -O0", "-std=gnu99 -O3 -march=native"});
  compare<mlp<relu>, 4, "y">({"-std=c99 -O2", "-std=gnu99 -O3 -march=native"});
  compare<mlp<sigmoid>, 3, "y">({"-std=c99 -O2", "-std=gnu99 -O3 -march=native"});
}
TEST_CASE("c_header: for one example it gives the bits of predict with one_by_one, whatever the trainer's batch is") {
  compare_one_by_one<mlp<tanh>, "y">(true);
  compare_one_by_one<pictures, "y">(true);
}
TEST_CASE("c_header: sums that are trees") {
  compare<column, 1, "y">({"-std=c99 -O2", "-std=gnu99 -O3 -march=native"});
  compare<column, 2, "y">({"-std=c99 -O2"});
}
TEST_CASE("c_header: convolutions and pools") {
  compare<pictures, 1, "y">({"-std=c99 -O2", "-std=gnu99 -O3 -march=native"});
  compare<pictures, 2, "y">({"-std=c99 -O2"});
}
TEST_CASE("c_header: formulas and broadcasting") {
  compare<formulas, 1, "y">({"-std=c99 -O2", "-std=gnu99 -O3 -march=native"});
  compare<formulas, 5, "y">({"-std=c99 -O2"});
}

TEST_CASE("c_header: layers in 8 bits, depthwise convolutions, sums and means") {
  compare<frozen, 1, "y">({"-std=c99 -O2", "-std=c99 -O0", "-std=gnu99 -O3 -march=native"});
  compare<frozen, 3, "y">({"-std=c99 -O2"});
  compare<row_sums, 2, "y">({"-std=c99 -O2", "-std=gnu99 -O3 -march=native"});
  compare<column_sums, 1, "y">({"-std=c99 -O2", "-std=gnu99 -O3 -march=native"});
  compare<column_sums, 2, "y">({"-std=c99 -O2"});
  compare<short_columns, 2, "y">({"-std=c99 -O2", "-std=gnu99 -O3 -march=native"});
}
TEST_CASE("c_header: two inputs and two predictions, in the model's order") {
  constexpr auto model = [](graph& g) {
    const auto b = g.placeholder("b", {batch, 2}), a = g.placeholder("a/1", {batch, 2});
    const auto sum = a + b, twice = sum + sum;
    return model_spec{.loss = reduce_mean(sum), .metrics = {}, .predictions = {{"twice", twice}, {"a/sum", sum}}};
  };
  const auto header = c_header(model, state_list{}, {.batch = 2});
  CHECK(header.find("model_predict(const float *in_b, const float *in_a_1, float *out_twice, float *out_a_sum, "
                    "float *work)") != std::string::npos);
  const std::vector<float> x{1, 2, 3, 4, 10, 20, 30, 40};
  CHECK(run_c(header, "-std=c99 -O2", x, 8, 1, "model_predict(x, x + 4, y, y + 4, work);", 8) ==
        bytes_of(std::vector<float>{22, 44, 66, 88, 11, 22, 33, 44}));
}

TEST_CASE("c_header: what it cannot write is refused by name") {
  const auto refused = [](auto model, const state_list& list, const c_header_options& o, status kind,
                          std::string_view text) {
    try {
      c_header(model, list, o);
      FAIL("not refused");
    } catch (const error& e) {
      CHECK(e.kind() == kind);
      CHECK(std::string_view(e.what()) == text);
    }
  };
  const auto y = [](graph&, value v) { return model_spec{.loss = {}, .metrics = {}, .predictions = {{"y", v}}}; };
  const state_list none;
  refused(
      [&](graph& g) {
        return y(g, erf(g.placeholder("x", {batch, 2})));
      },
      none, {}, status::unimplemented,
      "the op Erf cannot be written as C: there is no C for it; docs/edge.md lists what there is");
  refused(
      [&](graph& g) {
        return y(g, argmax(g.placeholder("x", {batch, 2})));
      },
      none, {}, status::unimplemented,
      "the op ArgMax cannot be written as C: it is int64, and a header computes in float32");
  refused(
      [&](graph& g) {
        return y(g, exp(g.placeholder("x", {batch, 2}, float64)));
      },
      none, {}, status::unimplemented,
      "the op Placeholder \"x\" cannot be written as C: it is float64, and a header computes in float32");
  refused(
      [&](graph& g) {
        const auto x = g.placeholder("x", {batch, 2, 2});
        return y(g, matmul(x, x));
      },
      none, {}, status::unimplemented,
      "the op MatMul cannot be written as C: its second operand is a stack of matrices");
  const auto dense_model = [&](graph& g) { return y(g, dense(g.placeholder("x", {batch, 2}), {.units = 1})); };
  refused(
      dense_model, none, {}, status::not_found,
      "the model reads the variable \"dense/kernel\", and the list does not hold it; give the list of what a stepper "
      "of this model remembers");
  state_list other;
  float numbers[3] = {};
  other.tensor("dense/kernel", extents{3, 1}, std::span<float>(numbers));
  refused(dense_model, other, {}, status::failed_precondition,
          "the variable \"dense/kernel\" is float32[2, 1] in the model, and float32[3, 1] in the list");
  refused(dense_model, none, {.name = "my model"}, status::invalid_argument,
          "\"my model\" is no name for a C header: it needs letters, digits and _");
  const auto twins = [](std::string_view in, std::string_view out) {
    return [=](graph& g) {
      const auto a = g.placeholder("x_1", {batch, 2}), b = g.placeholder(in, {batch, 2});
      return model_spec{.loss = {}, .metrics = {}, .predictions = {{"a_b", a + b}, {out, a - b}}};
    };
  };
  refused(twins("x/1", "y"), none, {}, status::invalid_argument,
          "\"x/1\" and \"x_1\" would both be called in_x_1 in C; rename one of them in the model");
  refused(twins("x", "a/b"), none, {}, status::invalid_argument,
          "\"a/b\" and \"a_b\" would both be called out_a_b in C; rename one of them in the model");
  refused(
      [&](graph& g) {
        return y(g, exp(g.placeholder("x", {batch, 2})));
      },
      none, {.batch = std::int64_t{1} << 30}, status::unimplemented,
      "the op Placeholder \"x\" cannot be written as C: a call would have more than 2^31 - 1 numbers, and the header "
      "counts with int; choose a batch below 1073741824");
  refused(dense_model, none, {.batch = 0}, status::invalid_argument, "a batch of 0; expected 1 or more");
  refused(
      [](graph& g) {
        return model_spec{.loss = g.placeholder("x", {batch, 2}), .metrics = {}, .predictions = {}};
      },
      none, {}, status::invalid_argument, "the graph has no predictions, so there is nothing to write as C");
}

// The boards' program includes the header that is kept in the repository. $GRADUS_WRITE=1 writes it anew.
TEST_CASE("c_header: tests/edge/exported/model.h is what is written") {
  auto s = make_static_stepper<exported_model>(static_batch<1>{}, gradient_descent{.rate = 0.1}, portable{});
  s.initialize(31);
  state_list list;
  s.remembers(list);
  const auto header = c_header(exported_model, list, {.name = "exported"});
  const std::string path = GRADUS_SOURCE_DIR "/tests/edge/exported/model.h";
  if (command_of("GRADUS_WRITE", "") == "1") std::ofstream(path) << header;
  std::ifstream file(path);
  std::stringstream all;
  all << file.rdbuf();
  CHECK(all.str() == header);
}
