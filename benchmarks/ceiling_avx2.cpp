// What training steps of fixed shapes can take on AVX2: W3a to W3d by hand, for 16 registers of 8 floats, beside our
// compiled steps in the same process. It is no library: every shape is a constant, and the layouts serve these steps
// alone. The losses of 20 steps are compared with ours, to 1e-4.
//
//   bench_ceiling_avx2      configured with -march=haswell, so that ours and the peak have the same width
//
// Where batches are of 16 and more, a vector is 8 examples: then a layer of 10 or 4 units fills its registers, softmax
// is vertical, and no gradient of an input needs transposed weights. Activations lie in panels of 16 examples
// [batch / 16][units][16], weights as [out][in]. A tile is up to 6 rows of 2 registers: 12 sums, 2 loads and a
// broadcast in 16 registers; its heights are even (32 rows are 4 x 5 + 2 x 6, not 5 x 6 + 2). The gradient of weights
// is never stored: its tile is the update. Adam's root and quotient are the machine's estimates
// and one step of Newton's each.
#include <cstdio>

#if defined(__AVX2__) && defined(__FMA__)
#include "models.hpp"
#include "yardstick.hpp"

#include <gradus/update/rules/adam.hpp>
#include <gradus/update/rules/gradient_descent.hpp>

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

namespace {

using vector = __m256;
using gradus::aligned_buffer;

vector load(const float* p) { return _mm256_loadu_ps(p); }
void store(float* p, vector v) { _mm256_storeu_ps(p, v); }
vector all(float x) { return _mm256_set1_ps(x); }
float sum(vector v) {
  const __m128 a = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  const __m128 b = _mm_add_ps(a, _mm_movehl_ps(a, a));
  return _mm_cvtss_f32(_mm_add_ss(b, _mm_movehdup_ps(b)));
}

class floats {
public:
  explicit floats(int n) : memory_(4 * static_cast<std::size_t>(n)) {}
  operator float*() { return reinterpret_cast<float*>(memory_.data()); }

private:
  aligned_buffer memory_;
};

vector exponential(vector x) {  // Cephes
  const vector n = _mm256_round_ps(_mm256_mul_ps(x, all(1.44269504f)), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  vector r = _mm256_fnmadd_ps(n, all(0.693359375f), x);
  r = _mm256_fnmadd_ps(n, all(-2.12194440e-4f), r);
  vector p = all(1.9875691500e-4f);
  for (const float c : {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f})
    p = _mm256_fmadd_ps(p, r, all(c));
  p = _mm256_fmadd_ps(_mm256_mul_ps(p, r), r, _mm256_add_ps(r, all(1)));
  const __m256i power = _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23);
  return _mm256_mul_ps(p, _mm256_castsi256_ps(power));
}

// out[j][i] = in[i][j], 8 x 8.
[[gnu::always_inline]] inline void transpose(const float* in, int in_stride, float* out, int out_stride) {
  vector r[8], t[8];
  for (int i = 0; i < 4; ++i)
    for (int half = 0; half < 2; ++half)  // two rows' halves in a register, which spares the last shuffles
      r[i + 4 * half] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(in + i * in_stride + 4 * half)),
                                             _mm_loadu_ps(in + (i + 4) * in_stride + 4 * half), 1);
  for (int half = 0; half < 2; ++half) {
    vector* const x = r + 4 * half;
    const vector a = _mm256_unpacklo_ps(x[0], x[1]), b = _mm256_unpackhi_ps(x[0], x[1]),
                 c = _mm256_unpacklo_ps(x[2], x[3]), d = _mm256_unpackhi_ps(x[2], x[3]);
    t[4 * half] = _mm256_shuffle_ps(a, c, 0x44), t[4 * half + 1] = _mm256_shuffle_ps(a, c, 0xEE);
    t[4 * half + 2] = _mm256_shuffle_ps(b, d, 0x44), t[4 * half + 3] = _mm256_shuffle_ps(b, d, 0xEE);
  }
  for (int i = 0; i < 8; ++i) store(out + i * out_stride, t[i]);
}

// acc = sum over s < Segments and k < K of a(r, s, k) b(s, k): then done(r, left, right) for each of R rows.
template <int R, int Segments, int K, class Done>
[[gnu::always_inline]] inline void tile(const float* a, int row, int step, int segment, const float* b, int b_step,
                                        int b_segment, Done done) {
  vector left[R], right[R];
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r) left[r] = right[r] = _mm256_setzero_ps();
  for (int s = 0; s < Segments; ++s) {
    const float *x = a + s * segment, *y = b + s * b_segment;
#pragma GCC unroll 2
    for (int k = 0; k < K; ++k) {
      const vector y0 = load(y), y1 = load(y + 8);
#pragma GCC unroll 6
      for (int r = 0; r < R; ++r) {
        const vector v = _mm256_broadcast_ss(x + r * row);
        left[r] = _mm256_fmadd_ps(v, y0, left[r]);
        right[r] = _mm256_fmadd_ps(v, y1, right[r]);
      }
      x += step, y += b_step;
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r) done(r, left[r], right[r]);
}
// Calls f.operator()<R>(first row) for tiles of nearly equal heights, at most 6.
template <int Rows, class F>
[[gnu::always_inline]] inline void even_tiles(F f) {
  constexpr int count = (Rows + 5) / 6, low = Rows / count, high = Rows % count;
  int row = 0;
  if constexpr (high != 0)
    for (int i = 0; i < high; ++i, row += low + 1) f.template operator()<low + 1>(row);
  for (int i = high; i < count; ++i, row += low) f.template operator()<low>(row);
}

struct by_descent {
  static constexpr int slots = 0;
  vector rate;
  explicit by_descent(double r) : rate(all(static_cast<float>(r))) {}
  void begin() {}
  vector operator()(vector p, vector g, vector&, vector&) const { return _mm256_fnmadd_ps(rate, g, p); }
};
struct by_adam {
  static constexpr int slots = 2;
  double rate, power1 = 1, power2 = 1;
  vector alpha = {};
  explicit by_adam(double r) : rate(r) {}
  void begin() {
    power1 *= 0.9, power2 *= 0.999;
    alpha = all(static_cast<float>(rate * std::sqrt(1 - power2) / (1 - power1)));
  }
  vector operator()(vector p, vector g, vector& m, vector& v) const {
    m = _mm256_fmadd_ps(all(0.1f), _mm256_sub_ps(g, m), m);
    v = _mm256_fmadd_ps(all(0.001f), _mm256_fmsub_ps(g, g, v), v);
    const vector x = _mm256_max_ps(v, all(1e-30f));
    vector root = _mm256_rsqrt_ps(x);
    root = _mm256_mul_ps(root, _mm256_fnmadd_ps(_mm256_mul_ps(_mm256_mul_ps(all(0.5f), x), root), root, all(1.5f)));
    const vector under = _mm256_fmadd_ps(x, root, all(1e-8f));
    vector share = _mm256_rcp_ps(under);
    share = _mm256_mul_ps(share, _mm256_fnmadd_ps(under, share, all(2)));
    return _mm256_fnmadd_ps(_mm256_mul_ps(alpha, m), share, p);
  }
};

// One dense layer of a batch of B, a multiple of 16.
template <int B, int In, int Out, class Rule, bool First>
struct layer {
  static_assert(B % 16 == 0 && In % 16 == 0);
  static constexpr int panels = B / 16;
  static constexpr int stride = In / 16 % 2 == 1 ? In : In + 16;  // so that rows of weights meet all sets of the cache
  static constexpr int blocks = (In + 255) / 256, block = In / blocks;  // of a panel of inputs that stays in L1
  static_assert(block * blocks == In);
  floats weight{Out * stride}, bias{Out + 8}, y{B * Out}, dy{B * Out};
  floats turned{B * In};  // the inputs: of the first layer in panels of examples, else in panels [in / 16][batch][16]
  floats slot[2] = {floats{Rule::slots == 0 ? 0 : Out * stride}, floats{Rule::slots == 0 ? 0 : Out * stride}};
  floats bias_slot[2] = {floats{Out + 8}, floats{Out + 8}};

  void start(const float* kernel, const float* b) {
    for (int i = 0; i < In; ++i)
      for (int o = 0; o < Out; ++o) weight[o * stride + i] = kernel[i * Out + o];
    std::copy_n(b, Out, static_cast<float*>(bias));
  }
  // x: of the first layer, the batch as it comes; else the panels of the layer before.
  template <bool Relu>
  void forward(float* x) {
    for (int b = 0; b < B; b += 8)
      for (int i = 0; i < In; i += 8)
        if (First)
          transpose(x + b * In + i, In, turned + b / 16 * In * 16 + i * 16 + b % 16, 16);
        else
          transpose(x + b / 16 * In * 16 + i * 16 + b % 16, 16, turned + i / 16 * B * 16 + b * 16 + i % 16, 16);
    if (First) x = turned;
    for (int k = 0; k < blocks; ++k)
      for (int p = 0; p < panels; ++p)
        even_tiles<Out>([&]<int R>(int row) {
          float* const to = y + (p * Out + row) * 16;
          tile<R, 1, block>(weight + row * stride + k * block, stride, 1, 0, x + (p * In + k * block) * 16, 16, 0,
                            [&](int r, vector left, vector right) {
                              const vector before0 = k == 0 ? all(bias[row + r]) : load(to + r * 16),
                                           before1 = k == 0 ? before0 : load(to + r * 16 + 8);
                              left = _mm256_add_ps(left, before0), right = _mm256_add_ps(right, before1);
                              if (Relu && k == blocks - 1)
                                left = _mm256_max_ps(left, _mm256_setzero_ps()),
                                right = _mm256_max_ps(right, _mm256_setzero_ps());
                              store(to + r * 16, left), store(to + r * 16 + 8, right);
                            });
        });
  }
  // The gradient of the inputs, which are the layer before's results after relu.
  void backward(const float* x, float* dx) {
    for (int p = 0; p < panels; ++p)
      even_tiles<In>([&]<int R>(int row) {
        const int at = (p * In + row) * 16;
        tile<R, 1, Out>(weight + row, 1, stride, 0, dy + p * Out * 16, 16, 0, [&](int r, vector left, vector right) {
          const auto masked = [&](int i, vector v) {
            store(dx + at + i, _mm256_and_ps(v, _mm256_cmp_ps(load(x + at + i), _mm256_setzero_ps(), _CMP_GT_OQ)));
          };
          masked(r * 16, left), masked(r * 16 + 8, right);
        });
      });
  }
  // x: of the first layer, the batch as it comes.
  void update(const Rule& rule, const float* x) {
    for (int i = 0; i < In; i += 16) {
      const float* const from = First ? x + i : turned + i * B;
      constexpr int step = First ? In : 16;
      even_tiles<Out>([&]<int R>(int row) {
        tile<R, panels, 16>(
            dy + row * 16, 16, 1, Out * 16, from, step, 16 * step, [&](int r, vector left, vector right) {
              const int at = (row + r) * stride + i;
              change(rule, weight + at, slot, at, left), change(rule, weight + at + 8, slot, at + 8, right);
              if (row + r + R < Out) {  // what the next tile will change
                _mm_prefetch(reinterpret_cast<const char*>(weight + at + R * stride), _MM_HINT_T0);
                for (int s = 0; s < Rule::slots; ++s)
                  _mm_prefetch(reinterpret_cast<const char*>(slot[s] + at + R * stride), _MM_HINT_T0);
              }
            });
      });
    }
    for (int o = 0; o < Out; o += 8) {
      float g[8] = {};
      for (int j = 0; j < 8 && o + j < Out; ++j) {
        vector v = _mm256_setzero_ps();
        for (int p = 0; p < panels; ++p) {
          const float* const at = dy + (p * Out + o + j) * 16;
          v = _mm256_add_ps(v, _mm256_add_ps(load(at), load(at + 8)));
        }
        g[j] = sum(v);
      }
      change(rule, bias + o, bias_slot, o, load(g));
    }
  }

private:
  [[gnu::always_inline]] static void change(const Rule& rule, float* p, floats* slots, int at, vector g) {
    vector s0 = {}, s1 = {};
    if constexpr (Rule::slots == 2) s0 = load(slots[0] + at), s1 = load(slots[1] + at);
    store(p, rule(load(p), g, s0, s1));
    if constexpr (Rule::slots == 2) store(slots[0] + at, s0), store(slots[1] + at, s1);
  }
};

template <int B, class Rule, int... Widths>
class classifier {
  static constexpr std::array<int, sizeof...(Widths)> widths{Widths...};
  static constexpr int depth = sizeof...(Widths) - 1, classes = widths[depth];
  template <std::size_t... I>
  static auto layers_of(std::index_sequence<I...>) -> std::tuple<layer<B, widths[I], widths[I + 1], Rule, I == 0>...>;
  decltype(layers_of(std::make_index_sequence<depth>{})) layers_;
  Rule rule_;

  template <int I>
  void forward(float* x) {
    auto& l = std::get<I>(layers_);
    l.template forward<(I + 1 < depth)>(x);
    if constexpr (I + 1 < depth) forward<I + 1>(l.y);
  }
  template <int I>
  void backward(const float* x) {
    auto& l = std::get<I>(layers_);
    if constexpr (I > 0) {
      auto& before = std::get<I - 1>(layers_);
      l.backward(before.y, before.dy);
    }
    l.update(rule_, x);
    if constexpr (I > 0) backward<I - 1>(x);
  }
  float loss(const std::int32_t* labels) {
    auto& last = std::get<depth - 1>(layers_);
    float loss = 0;
    double product = 1;  // of the sums, each of at most `classes`: one logarithm for all
    for (int b = 0; b < B; b += 8) {
      float* const y = last.y + b / 16 * classes * 16 + b % 16;
      float* const dy = last.dy + b / 16 * classes * 16 + b % 16;
      vector most = load(y), total = _mm256_setzero_ps(), e[classes];
      for (int c = 1; c < classes; ++c) most = _mm256_max_ps(most, load(y + c * 16));
      for (int c = 0; c < classes; ++c)
        e[c] = exponential(_mm256_sub_ps(load(y + c * 16), most)), total = _mm256_add_ps(total, e[c]);
      const vector share = _mm256_div_ps(all(1.0f / B), total);
      for (int c = 0; c < classes; ++c) store(dy + c * 16, _mm256_mul_ps(e[c], share));
      alignas(32) float m[8], t[8];
      _mm256_store_ps(m, most), _mm256_store_ps(t, total);
      for (int j = 0; j < 8; ++j) {
        const int label = labels[b + j];
        dy[label * 16 + j] -= 1.0f / B;
        loss += m[j] - y[label * 16 + j];
        product *= static_cast<double>(t[j]);
      }
    }
    return (loss + static_cast<float>(std::log(product))) / B;
  }

public:
  explicit classifier(double rate) : rule_(rate) {}
  template <class Values>
  void start(const Values& values) {
    const auto each = [&]<std::size_t... I>(std::index_sequence<I...>) {
      (std::get<I>(layers_).start(values[2 * I].data(), values[2 * I + 1].data()), ...);
    };
    each(std::make_index_sequence<depth>{});
  }
  float step(float* x, const void* labels) {
    rule_.begin();
    forward<0>(x);
    const float l = loss(static_cast<const std::int32_t*>(labels));
    backward<depth - 1>(x);
    return l;
  }
};
static_assert(128 * 3.33 < 1022);  // log2 of the product of 128 sums of 10

// 8-16-1, one example, gradient descent: every number is in a register or in L1.
class small_regression {
  alignas(32) float w1_[8][16] = {}, b1_[16] = {}, w2_[16] = {};
  float b2_ = 0, rate_;

public:
  explicit small_regression(double rate) : rate_(static_cast<float>(rate)) {}
  template <class Values>
  void start(const Values& v) {
    std::copy_n(v[0].data(), 128, &w1_[0][0]), std::copy_n(v[1].data(), 16, b1_);
    std::copy_n(v[2].data(), 16, w2_), b2_ = v[3][0];
  }
  float step(const float* x, const void* target) {
    vector h0 = load(b1_), h1 = load(b1_ + 8), k0 = _mm256_setzero_ps(), k1 = _mm256_setzero_ps();
#pragma GCC unroll 4
    for (int i = 0; i < 8; i += 2) {  // four chains
      const vector a = _mm256_broadcast_ss(x + i), b = _mm256_broadcast_ss(x + i + 1);
      h0 = _mm256_fmadd_ps(a, load(w1_[i]), h0), h1 = _mm256_fmadd_ps(a, load(w1_[i] + 8), h1);
      k0 = _mm256_fmadd_ps(b, load(w1_[i + 1]), k0), k1 = _mm256_fmadd_ps(b, load(w1_[i + 1] + 8), k1);
    }
    const vector zero = _mm256_setzero_ps(), w0 = load(w2_), w1 = load(w2_ + 8);
    h0 = _mm256_max_ps(_mm256_add_ps(h0, k0), zero), h1 = _mm256_max_ps(_mm256_add_ps(h1, k1), zero);
    const float d = sum(_mm256_fmadd_ps(h0, w0, _mm256_mul_ps(h1, w1))) + b2_ - *static_cast<const float*>(target);
    const vector s = all(2 * d * rate_);
    store(w2_, _mm256_fnmadd_ps(s, h0, w0)), store(w2_ + 8, _mm256_fnmadd_ps(s, h1, w1));
    b2_ -= 2 * d * rate_;
    const vector g0 = _mm256_and_ps(_mm256_mul_ps(s, w0), _mm256_cmp_ps(h0, zero, _CMP_GT_OQ)),
                 g1 = _mm256_and_ps(_mm256_mul_ps(s, w1), _mm256_cmp_ps(h1, zero, _CMP_GT_OQ));
    store(b1_, _mm256_sub_ps(load(b1_), g0)), store(b1_ + 8, _mm256_sub_ps(load(b1_ + 8), g1));
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      const vector a = _mm256_broadcast_ss(x + i);
      store(w1_[i], _mm256_fnmadd_ps(a, g0, load(w1_[i]))),
          store(w1_[i] + 8, _mm256_fnmadd_ps(a, g1, load(w1_[i] + 8)));
    }
    return d * d;
  }
};

template <auto Build, class Ceiling, class Rule>
void row(const char* name, const Rule& rule, std::int64_t batch_size, std::uint32_t classes, double flops,
         yardstick::sampler& machine) {
  using namespace gradus;
  stepper<training::compiled<Build>, decltype(composed{rule}), cpu<fast>, serial, subnormals::flush> trainer(
      {}, composed{rule});
  trainer.allocate();
  trainer.initialize(1);
  training::batches data(trainer, trainer.template bound<mode::train>(batch_size), batch_size, classes);
  std::vector<std::vector<float>> values;  // kernel, bias, kernel, bias, ...
  for (std::size_t i = 0; i < trainer.variables().size(); ++i) {
    const auto& about = trainer.variables().info(i);
    if (about.type != float32 || !about.trainable) continue;
    const auto* const from = reinterpret_cast<const float*>(trainer.variables().value(i));
    values.emplace_back(from, from + about.size());
  }
  auto by_hand = std::make_unique<Ceiling>(*rule.rate);
  by_hand->start(values);
  std::size_t at = 0;
  const auto step = [&] {
    const std::size_t i = at++ % training::batches::count;
    return by_hand->step(reinterpret_cast<float*>(data.columns[0].all.data() + i * data.columns[0].apart),
                         data.columns[1].all.data() + i * data.columns[1].apart);
  };
  const tensor_view loss = trainer.template output_of<mode::train>(output::loss);
  for (int i = 0; i < 20; ++i) {
    data.feed();
    trainer.train_step();
    const float ours = *reinterpret_cast<const float*>(loss.data), theirs = step();
    if (!(std::abs(ours - theirs) <= 1e-4f * std::abs(ours))) {
      std::printf("%s: in step %d the loss by hand is %.9g, ours %.9g\n", name, i, static_cast<double>(theirs),
                  static_cast<double>(ours));
      std::exit(1);
    }
  }
  std::vector<yardstick::contender> both{{"ours", [&] { data.feed(), trainer.train_step(); }},
                                         {"by hand", [&] { yardstick::keep(step()); }}};
  machine.take();
  take_turns(both, machine, 51);
  const double ours = yardstick::median(both[0].turns), hand = yardstick::median(both[1].turns);
  const double limit = flops / machine.fma() * 1e-9;
  std::printf("%-36s by hand %10.3f us, %3.0f %% of FLOPs; ours %10.3f us, %3.0f %%; ceiling / ours %.2f\n", name,
              1e6 * hand, 100 * limit / hand, 1e6 * ours, 100 * limit / ours, hand / ours);
  std::fflush(stdout);
}

}  // namespace

int main() {
  using namespace gradus;
  const subnormal_scope flushing(subnormal_mode::flush);
  std::printf("by hand for 256 bits; ours and the peak have %zu\n", 32 * yardstick::number::width);
  yardstick::sampler machine;
  row<training::regression, small_regression>("W3/a_mlp_8-16-1_b1_sgd", gradient_descent{.rate = 1e-3}, 1, 1,
                                              4.0 * 8 * 16 + 6.0 * 16, machine);
  row<training::mlp<32, 64, 64, 4>, classifier<16, by_adam, 32, 64, 64, 4>>(
      "W3/b_mlp_32-64-64-4_b16_adam", adam{.rate = 1e-3}, 16, 4, 16 * (4.0 * 32 * 64 + 6.0 * 64 * 64 + 6.0 * 64 * 4),
      machine);
  row<training::mlp<784, 128, 0, 10>, classifier<32, by_descent, 784, 128, 10>>(
      "W3/c_mlp_784-128-10_b32_sgd", gradient_descent{.rate = 1e-2}, 32, 10, 32 * (4.0 * 784 * 128 + 6.0 * 128 * 10),
      machine);
  row<training::mlp<784, 512, 256, 10>, classifier<128, by_adam, 784, 512, 256, 10>>(
      "W3/d_mlp_784-512-256-10_b128_adam", adam{.rate = 1e-3}, 128, 10,
      128 * (4.0 * 784 * 512 + 6.0 * 512 * 256 + 6.0 * 256 * 10), machine);
  machine.take();
  machine.print();
}
#else
int main() { std::puts("this program needs AVX2 and FMA: configure with -march=haswell or newer"); }
#endif
