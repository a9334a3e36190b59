#include "gradus/run/c_functions.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>
#include <vector>

#include "gradus/cpu/elementwise.hpp"
#include "gradus/cpu/math.hpp"
#include "gradus/cpu/sums.hpp"
#include "gradus/testing/temp_dir.hpp"

using namespace gradus;

// Every function on numbers of every size, with zeros, infinities and NaN: the bits of cpu/math.hpp under `portable`.
TEST_CASE("c_functions: the bits of the library's formulas and sums") {
  using number = detail::lane<float, portable>;
  std::vector<float> x = {0.0f,   -0.0f,   1.0f,  -1.0f, INFINITY, -INFINITY, NAN,
                          1e-45f, -1e-40f, 88.7f, 89.0f, -104.0f,  1e38f};
  std::mt19937 random(1);
  while (x.size() < 20000)
    x.push_back(x.size() % 2 == 0 ? std::bit_cast<float>(static_cast<std::uint32_t>(random()))
                                  : static_cast<float>(random()) / 4294967296.0f * 40 - 20);
  std::vector<float> expected;
  for (float v : x) {
    const number n(v);
    for (const number r : {exp(n), log(n), tanh(n), sigmoid(n), formula<&cards::relu>::at(n),
                           formula<&cards::elu>::at(n), formula<&cards::gelu>::at(n)})
      expected.push_back(r.v);
  }
  const std::vector<float> y(x.begin() + 13, x.end());
  std::vector<float> a, b;
  for (std::size_t i = 1; i < y.size(); i += 2) a.push_back(y[i]);
  for (std::size_t i = 1; i < y.size(); i += 2) b.push_back(y[y.size() - i]);
  for (std::size_t i : {1u, 15u, 16u, 17u, 100u, 4095u, 4096u, 4097u, 8300u}) {
    expected.push_back(dot<portable>(a.data(), b.data(), i));
    expected.push_back(maximum<portable>(a.data(), i));
  }
  std::string text;
  for (char c : detail::c_functions) c == '@' ? text += "f" : text += c;
  const testing::temp_dir dir;
  const auto path = [&](std::string_view name) { return join_path(dir.path(), name); };
  const auto put = [&](std::string_view name, const std::vector<float>& v) {
    std::ofstream(path(name), std::ios::binary)
        .write(reinterpret_cast<const char*>(v.data()), static_cast<std::streamsize>(v.size() * sizeof(float)));
  };
  put("x", x), put("a", a), put("b", b);
  std::ofstream(path("main.c")) << "#include <math.h>\n#include <string.h>\n#include <stdio.h>\n"
                                << text << R"(
static float x[20000], a[20000], b[20000];
int main(int n, char **v) {
  static const int sizes[] = {1, 15, 16, 17, 100, 4095, 4096, 4097, 8300};
  FILE *f = fopen(v[1], "rb"), *g = fopen(v[2], "rb"), *h = fopen(v[3], "rb");
  size_t i, count = fread(x, 4, 20000, f), more = fread(a, 4, 20000, g) + fread(b, 4, 20000, h);
  for (i = 0; i < count; ++i) {
    const float r[7] = {f_exp(x[i]), f_log(x[i]), f_tanh(x[i]), f_sigmoid(x[i]), f_relu(x[i]), f_elu(x[i]), f_gelu(x[i])};
    fwrite(r, sizeof r, 1, stdout);
  }
  for (i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) {
    const float r[2] = {f_dot(a, 1, b, 1, sizes[i]), f_maximum(a, sizes[i])};
    fwrite(r, sizeof r, 1, stdout);
  }
  return n == 4 && more > 0 ? 0 : 1;
}
)";
  const char* said = std::getenv("GRADUS_CC");
  const std::string cc = said != nullptr && *said != 0 ? said : "gcc";
  for (const char* flags : {"-std=c99 -O2", "-std=gnu99 -O3 -march=native"}) {
    const std::string build =
        cc + " -Wall -Wextra -Werror -pedantic " + flags + " " + path("main.c") + " -o " + path("main") + " -lm";
    REQUIRE_MESSAGE(std::system(build.c_str()) == 0, build);
    REQUIRE(std::system(
                (path("main") + " " + path("x") + " " + path("a") + " " + path("b") + " >" + path("y")).c_str()) == 0);
    std::ifstream file(path("y"), std::ios::binary);
    std::stringstream all;
    all << file.rdbuf();
    const std::string bytes = all.str();
    REQUIRE(bytes.size() == expected.size() * sizeof(float));
    int differ = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      float r;
      std::memcpy(&r, bytes.data() + i * sizeof r, sizeof r);
      const bool same = std::bit_cast<std::uint32_t>(r) == std::bit_cast<std::uint32_t>(expected[i]) ||
                        (r != r && expected[i] != expected[i]);
      if (!same && ++differ < 5)
        MESSAGE("function ", i % 7, " of ", x[i / 7 % x.size()], ": ", r, " and ", expected[i]);
    }
    CHECK_MESSAGE(differ == 0, flags);
  }
}
