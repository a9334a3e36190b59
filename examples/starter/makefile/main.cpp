// Fits y = a x + b to the points on standard input, one "x y" a line, with gradients written by hand and no graph at
// all.
#include <cstdio>
#include <gradus/cpu/device.hpp>
#include <gradus/run/updater.hpp>
#include <gradus/update/clip.hpp>
#include <gradus/update/rules/adam.hpp>
#include <gradus/update/schedules/cosine.hpp>
#include <vector>

int main() {
  std::vector<float> x, y;
  for (float a = 0, b = 0; std::scanf("%f %f", &a, &b) == 2;) x.push_back(a), y.push_back(b);
  if (x.empty()) return std::fprintf(stderr, "fit: expected lines of two numbers, found none\n"), 2;

  std::vector<float> line(2), slope(2);  // a and b, and the loss's slope at each
  gradus::updater learner{gradus::adam{}, gradus::cosine_decay{.initial = 0.1, .decay_steps = 2000},
                          gradus::clip_by_global_norm{10.0}};
  learner.track("line", line);
  for (int step = 0; step < 2000; ++step) {
    slope = {0, 0};
    for (std::size_t i = 0; i < x.size(); ++i) {
      const float off = line[0] * x[i] + line[1] - y[i], each = 2 * off / static_cast<float>(x.size());
      slope[0] += each * x[i];
      slope[1] += each;
    }
    learner.apply({{"line", slope}});
  }
  std::printf("y = %.3f x + %.3f\n", static_cast<double>(line[0]), static_cast<double>(line[1]));
}
