// expect: gradus: the compiler cannot run this model function; declare it `constexpr`
// at most: 34 lines
#include <gradus/gradus.hpp>
#include <gradus/train/predictor.hpp>

#include <string>

#ifdef FIX
constexpr std::string_view name() { return "x"; }
#else
inline std::string name() { return std::to_string(1); }
#endif
inline constexpr auto model = [](gradus::graph& g) {
  using namespace gradus;
  auto y = dense(g.placeholder(name(), {batch, 8}), {.units = 3});
  return model_spec{.loss = reduce_mean(square(y)), .metrics = {}, .predictions = {{"y", y}}};
};

int main() { gradus::predictor<model> p({.model_dir = "run"}); }
