// expect: gradus: the compiler cannot run this model function; declare it `constexpr`, a lambda behind its
// within: 8 lines
#include <gradus/gradus.hpp>

#include <string>

#ifdef FIX
constexpr const char* names[] = {"layer0", "layer1"};
#else
const std::string names[] = {"layer" + std::to_string(0), "layer" + std::to_string(1)};
#endif

inline constexpr auto model = [](gradus::graph& g) {
  using namespace gradus;
  auto h = g.placeholder("x", {batch, 2});
  for (const auto& name : names) h = relu(dense(h, {.units = 4, .name = name}));
  return model_spec{.loss = reduce_mean(h), .metrics = {}, .predictions = {}};
};

int main() {
  auto trainer = gradus::make_trainer<model>(gradus::adam{});
  (void)trainer;
}
