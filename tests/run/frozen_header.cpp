#include "gradus/run/frozen_header.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <map>
#include <random>
#include <sstream>

#include "gradus/ops/frozen.hpp"
#include "gradus/testing/temp_dir.hpp"

using namespace gradus;

namespace {
struct variables {
  std::map<std::string, std::vector<float>> of;
  state_list list;
  std::mt19937 random{17};

  std::vector<float>& add(const std::string& name, const extents& dims, float low = -1, float high = 1) {
    std::vector<float>& v = of[name];
    v.resize(static_cast<std::size_t>(gradus::count(dims)));
    for (float& x : v) x = low + (high - low) * static_cast<float>(random() % 4096) / 4096;
    list.tensor(name, dims, std::span<float>(v));
    return v;
  }
};
std::string refusal_of(const state_list& list, const frozen_header_options& o, status kind) {
  try {
    frozen_header(list, o);
  } catch (const error& e) {
    CHECK(e.kind() == kind);
    return e.what();
  }
  return "";
}
std::string said_by(const std::string& header, const std::string& main) {
  const testing::temp_dir dir;
  const auto path = [&](std::string_view name) { return join_path(dir.path(), name); };
  std::ofstream(path("body.hpp")) << header;
  std::ofstream(path("main.cpp")) << main;
  const char* const compiler = std::getenv("GRADUS_CXX");
  const std::string build = std::string(compiler != nullptr ? compiler : "g++") +
                            " -std=c++20 -O0 -Wall -Wextra -Werror -I" GRADUS_SOURCE_DIR "/include " +
                            path("main.cpp") + " -o " + path("main");
  REQUIRE_MESSAGE(std::system(build.c_str()) == 0, build);
  REQUIRE(std::system((path("main") + " >" + path("said")).c_str()) == 0);
  std::ifstream file(path("said"));
  std::stringstream all;
  all << file.rdbuf();
  return all.str();
}
}  // namespace

TEST_CASE("the constants of the header are the layers' weights, with their batch_norm") {
  variables v;
  const auto& conv = v.add("conv/kernel", {3, 2, 1, 4});
  v.add("conv/kernel/Adam", {3, 2, 1, 4});  // a slot
  const auto& bias = v.add("conv/bias", {4});
  const auto& mean = v.add("conv/bn/moving_mean", {4});
  const auto& variance = v.add("conv/bn/moving_variance", {4}, 0.5f, 2);
  const auto &gamma = v.add("conv/bn/gamma", {4}), &beta = v.add("conv/bn/beta", {4});
  const auto& each = v.add("block 1/each/depthwise_kernel", {3, 3, 4, 2});
  const auto& wide = v.add("wide/kernel", {7, 5});
  v.add("wide/bias", {5});
  const std::string header =
      frozen_header(v.list, {.name = "body", .layers = {{"conv", "conv/bn", 0.01}, {"block 1/each"}, {"wide"}}});

  const std::string said = said_by(header,
                                   "#include \"body.hpp\"\n#include <cstdio>\ntemplate <class W>\nvoid say(const W& "
                                   "w) {\n  for (int c : w.codes) std::printf(\"%d \", c);\n  for (float s : "
                                   "w.scales) std::printf(\"%a \", double(s));\n  for (float b : w.bias) "
                                   "std::printf(\"%a \", double(b));\n}\nint main() {\n  "
                                   "say<gradus::frozen_conv2d_weights<3, 2, 1, 4>>(body::conv);\n  "
                                   "say<gradus::frozen_depthwise_conv2d_weights<3, 3, 4, 2>>(body::block_1_each);\n  "
                                   "say<gradus::frozen_dense_weights<7, 5>>(body::wide);\n}\n");
  std::istringstream numbers(said);
  const auto next = [&] {
    std::string word;
    numbers >> word;
    return std::strtod(word.c_str(), nullptr);
  };
  std::vector<double> codes, scales;
  const auto read = [&](std::size_t weights, std::size_t channels) {
    codes.clear(), scales.clear();
    for (std::size_t i = 0; i < weights; ++i) codes.push_back(next());
    for (std::size_t i = 0; i < channels; ++i) scales.push_back(next());
  };
  read(conv.size(), 4);
  for (std::size_t i = 0; i < conv.size(); ++i) {
    const std::size_t c = i % 4;
    const double folded = conv[i] * (gamma[c] / std::sqrt(variance[c] + 0.01));
    CHECK(std::fabs(codes[i] * scales[c] - folded) <= 0.501 * scales[c]);
  }
  for (std::size_t c = 0; c < 4; ++c)
    CHECK(next() ==
          doctest::Approx((static_cast<double>(bias[c]) - mean[c]) * gamma[c] / std::sqrt(variance[c] + 0.01) + beta[c])
              .epsilon(1e-6));
  read(each.size(), 8);
  const auto exact = quantize_weights<frozen_depthwise_conv2d_weights<3, 3, 4, 2>>(each);
  for (std::size_t i = 0; i < each.size(); ++i) CHECK(codes[i] == exact.codes[i]);
  for (std::size_t c = 0; c < 8; ++c) CHECK(scales[c] == static_cast<double>(exact.scales[c]));
  for (std::size_t c = 0; c < 8; ++c) CHECK(next() == 0);
  read(wide.size(), 5);
  for (std::size_t i = 0; i < wide.size(); ++i)
    CHECK(std::fabs(codes[i] * scales[i % 5] - wide[i]) <= 0.501 * scales[i % 5]);
  for (std::size_t c = 0; c < 5; ++c) CHECK(next() == static_cast<double>(v.of["wide/bias"][c]));
}

TEST_CASE("without a list of layers, all of them") {
  variables v;
  v.add("a/kernel", {2, 3}), v.add("a/kernel/Momentum", {2, 3}), v.add("b/c/depthwise_kernel", {1, 1, 2, 1});
  v.add("default/kernel", {1, 1}), v.add("norm/gamma", {3}), v.add("kernel", {2, 2}), v.add("odd/kernel", {2, 2, 2});
  const std::string header = frozen_header(v.list, {.name = "net"});
  CHECK(header.find("frozen_dense_weights<2, 3> a{\n") != std::string::npos);
  CHECK(header.find("frozen_depthwise_conv2d_weights<1, 1, 2, 1> b_c{\n") != std::string::npos);
  std::size_t constants = 0;
  for (std::size_t at = 0; (at = header.find("constexpr", at)) != std::string::npos; ++at) ++constants;
  CHECK(header.find("frozen_dense_weights<1, 1> default_{\n") != std::string::npos);
  CHECK(constants == 3);
}

TEST_CASE("what frozen_header refuses") {
  variables v;
  v.add("a/kernel", {2, 3}), v.add("b/kernel", {2, 3, 4}), v.add("a/bn/moving_mean", {2});
  v.add("c d/kernel", {1, 1}), v.add("c_d/kernel", {1, 1}), v.add("c_d/bias", {2});
  double wide = 1;
  v.list.tensor("wide/kernel", {1, 1}, std::span<double>(&wide, 1));
  v.add("bad/kernel", {1, 2})[1] = std::numeric_limits<float>::infinity();
  CHECK(refusal_of(v.list, {.name = "2nd"}, status::invalid_argument) ==
        "\"2nd\" is no name for a namespace: it needs letters, digits and _");
  CHECK(
      refusal_of(v.list, {.layers = {{"x"}}}, status::not_found) ==
      "the list holds no layer \"x\", which is a variable \"x/kernel\" or \"x/depthwise_kernel\"; its layers are a, c "
      "d, c_d, wide, bad");
  CHECK(refusal_of(v.list, {.layers = {{"a", "c_d"}}}, status::not_found) ==
        "the list holds no variable \"c_d/moving_mean\", which a batch_norm has; give the scope of one");
  CHECK(refusal_of(v.list, {}, status::invalid_argument) ==
        "the list holds \"a/bn/moving_mean\", so a layer is followed by a batch_norm; give .layers, each with its "
        "batch_norm's scope: a, c d, c_d, wide, bad");
  CHECK(refusal_of(v.list, {.name = "class"}, status::invalid_argument) ==
        "\"class\" is a word of C++, and no name for a namespace");
  CHECK(refusal_of(v.list, {.layers = {{"a", "a/bn"}}}, status::failed_precondition) ==
        "the variable \"a/bn/moving_mean\" is float32[2]; expected float32 [3]");
  CHECK(refusal_of(v.list, {.layers = {{"b"}}}, status::failed_precondition) ==
        "the variable \"b/kernel\" is float32[2, 3, 4]; expected [in, units] or four extents, each above 0");
  CHECK(refusal_of(v.list, {.layers = {{"c d"}, {"c_d"}}}, status::invalid_argument) ==
        "two layers would have the constant \"c_d\"");
  CHECK(refusal_of(v.list, {.layers = {{"c_d"}}}, status::failed_precondition) ==
        "the variable \"c_d/bias\" is float32[2]; expected float32 [1]");
  CHECK(refusal_of(v.list, {.layers = {{"wide"}}}, status::failed_precondition) ==
        "the variable \"wide/kernel\" is float64[1, 1]; expected float32");
  CHECK(refusal_of(v.list, {.layers = {{"bad"}}}, status::invalid_argument) == "weight 1 of frozen weights is inf");
  CHECK(refusal_of(state_list{}, {}, status::not_found) ==
        "the list holds no variable \"<layer>/kernel\" or \"<layer>/depthwise_kernel\", so there is nothing to write; "
        "give the list of what a stepper of the model remembers");
}
