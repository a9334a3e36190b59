// An op of your own, from outside the library: one card, one kernel. It works in compiled models and, named by the
// policy ops<&card>, in interpreted ones; gradients pass through it like through any other.
//
// The op is a running sum along the last axis; its gradient is the same sum, run backwards.
#include <cstdio>
#include <gradus/gradus.hpp>
#include <vector>

namespace mine {

struct cumsum_attr {
  int reverse;
};
constexpr void infer(gradus::inference& r) {
  r.type = r.in_type(0), r.dims = r.in(0);
  if (!gradus::is_float(r.type)) r.refuse("takes float32 or float64, got ", r.type);
  if (r.dims.rank == 0) r.refuse("needs an axis to run along");
}
constexpr void gradient(gradus::backward&);
constexpr void lower(gradus::lowering& l) {
  l.dims[0] = 0;                                    // rows, known when a step runs
  l.dims[1] = l.in(0).back();                       // a constant of the compiled kernel
  l.dims[2] = l.attributes<cumsum_attr>().reverse;  // a flag
  l.rows = gradus::count(l.in(0)) / l.in(0).back();
}
inline constexpr gradus::card cumsum_card{
    .name = "Cumsum", .operands = 1, .infer = infer, .gradient = gradient, .lower = lower};

constexpr gradus::value cumsum(gradus::value x, bool reverse = false) {
  return x.g->add_with(cumsum_card, {x}, cumsum_attr{reverse});
}
constexpr void gradient(gradus::backward& b) { b.to(0, cumsum(b.dy, b.attributes<cumsum_attr>().reverse == 0)); }

}  // namespace mine

template <>
struct gradus::op_kernel<&mine::cumsum_card> {
  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    gradus::dispatch_type<0, float, double>(s, [&]<class T>() {
      T* y = gradus::at<T>(a, 0);
      const T* x = gradus::at<const T>(a, 1);
      const std::int64_t n = s.dim(1);
      for (std::int64_t row = 0; row < s.dim(0); ++row, x += n, y += n) {
        T sum = 0;
        for (std::int64_t k = 0; k < n; ++k) {
          const std::int64_t at = s.raw(2) != 0 ? n - 1 - k : k;
          y[at] = sum += x[at];
        }
      }
    });
  }
};

// Learns the increments of a path from its points.
inline constexpr auto path_model = [](gradus::graph& g) {
  using namespace gradus;
  auto x = g.placeholder("x", {batch, 3});
  auto path = g.placeholder("path", {batch, 4});
  auto steps = dense(x, {.units = 4, .name = "steps"});
  return model_spec{
      .loss = reduce_mean(square(mine::cumsum(steps) - path)), .metrics = {}, .predictions = {{"steps", steps}}};
};

int main() {
  std::vector<float> x, path;
  gradus::random_stream random{7};
  for (int i = 0; i < 256; ++i) {
    float in[3], at = 0;
    for (float& v : in) x.push_back(v = static_cast<float>(random.uniform()));
    for (int k = 0; k < 4; ++k) path.push_back(at += in[k % 3] * static_cast<float>(k + 1));
  }
  const auto dataset = [&] {
    return gradus::from_spans("x", std::span<const float>(x), gradus::extents{3}, "path", std::span<const float>(path),
                              gradus::extents{4});
  };
  const auto train = [&](const char* how, auto trainer) {
    trainer->train(dataset().repeat().batch(32), {.max_steps = 2000});
    const double loss = trainer->evaluate(dataset().batch(256))["loss"];
    std::printf("%s: loss %.2e\n", how, loss);
    return loss;
  };
  auto compiled = gradus::make_trainer<path_model>(gradus::adam{.rate = 0.02});
  auto interpreted = gradus::make_trainer(path_model, gradus::adam{.rate = 0.02}, gradus::ops<&mine::cumsum_card>{});
  const double a = train("compiled", &compiled), b = train("interpreted", &interpreted);
  return a == b && a < 1e-3 ? 0 : 1;
}
