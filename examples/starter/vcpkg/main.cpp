// A graph whose sizes come from the command line, trained and then asked: y = the mean of the inputs.
#include <cstdio>
#include <cstdlib>
#include <gradus/gradus.hpp>
#include <gradus/run/optimizer.hpp>
#include <vector>

int main(int argc, char** argv) {
  const int inputs = argc > 1 ? std::atoi(argv[1]) : 4;
  if (inputs < 1)
    return std::fprintf(stderr, "starter: expected a number of inputs from 1 on, found \"%s\"\n", argv[1]), 2;
  gradus::graph g;
  auto x = g.placeholder("x", {gradus::batch, inputs});
  auto wanted = g.placeholder("wanted", {gradus::batch, 1});
  auto y = gradus::dense(x, {.units = 1, .name = "y"});
  auto loss = gradus::reduce_mean(gradus::squared_difference(y, wanted));
  gradus::optimizer learner{gradus::gradient_descent{.rate = 0.1}};
  auto train = learner.minimize(loss);
  gradus::session s{g, learner};
  s.initialize(42);

  gradus::random_stream random{1};
  const auto n = static_cast<std::size_t>(inputs);
  std::vector<float> points(32 * n), means(32);
  for (int step = 0; step < 500; ++step) {
    for (std::size_t i = 0; i < means.size(); ++i) {
      float sum = 0;
      for (std::size_t k = 0; k < n; ++k) sum += points[i * n + k] = static_cast<float>(random.uniform());
      means[i] = sum / static_cast<float>(inputs);
    }
    s.run(train, {{"x", points}, {"wanted", means}});
  }
  const auto left = s.run(loss, {{"x", points}, {"wanted", means}}).as<float>()[0];
  std::printf("loss %s 1e-4 after 500 steps\n", left < 1e-4f ? "below" : "not below");
  return left < 1e-4f ? 0 : 1;
}
