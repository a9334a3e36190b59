// This header has, as text, the functions that a model written as C99 calls (c_header.hpp).
#pragma once
#include "../base/build.hpp"

#include <string_view>

namespace gradus::inline GRADUS_BUILD::detail {

// This text is the beginning of every header; `@` stands for the header's name. Its formulas are those of cpu/math.hpp
// and cpu/sums.hpp, in the same order: a product is rounded before it is added to a sum.
inline constexpr std::string_view c_functions = R"(
#if defined(__FAST_MATH__) || (defined(__FLT_EVAL_METHOD__) && __FLT_EVAL_METHOD__ != 0 && __FLT_EVAL_METHOD__ != 16)
#error "@: this header needs floats that are rounded as IEEE 754 says; leave out -ffast-math, and use SSE on x86"
#endif
#if !defined(__GNUC__) || defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#endif
typedef char @_words_have_32_bits[sizeof(unsigned) == 4 && sizeof(float) == 4 ? 1 : -1];

/* a * b, rounded: no compiler may fuse it with a sum. */
static inline float @_mul(float a, float b) {
  float p = a * b;
#if !defined(__GNUC__) || defined(__clang__)
#elif defined(__FMA__) || defined(__FMA4__) || defined(__AVX512F__)
  __asm__("" : "+x"(p));
#elif defined(__x86_64__) || defined(__i386__)
#elif defined(__aarch64__)
  __asm__("" : "+w"(p));
#elif defined(__ARM_FEATURE_FMA)
  __asm__("" : "+t"(p));
#elif defined(__arm__)
#elif defined(__riscv_flen)
  __asm__("" : "+f"(p));
#else
  __asm__("" : "+m"(p));
#endif
  return p;
}
/* A vector of ones, read with a step of 0. */
static inline const float *@_one(void) { static const float one = 1.0f; return &one; }
static inline unsigned @_bits(float x) { unsigned w; memcpy(&w, &x, 4); return w; }
static inline float @_from(unsigned w) { float x; memcpy(&x, &w, 4); return x; }
static inline float @_fma(float a, float b, float c) { return @_mul(a, b) + c; }
static inline float @_min(float a, float b) { return a < b ? a : b; }
static inline float @_max(float a, float b) { return a > b ? a : b; }
static inline float @_abs(float x) { return @_from(@_bits(x) & 0x7fffffffu); }
static inline float @_copysign(float x, float s) { return @_from((@_bits(x) & 0x7fffffffu) | (@_bits(s) & 0x80000000u)); }

/* x = n ln 2 + r; 2^n comes as two factors. */
typedef struct { float r, first, second; } @_exponent;
static inline @_exponent @_halved(float x) {
  @_exponent e;
  const float magic = 0x1.8p23f, t = @_fma(x, (float)1.4426950408889634074, magic), n = t - magic;
  const unsigned k = @_bits(t) - @_bits(magic) + 254u, half = (k >> 1) & 0x007fffffu;
  e.r = @_fma(n, 0.000212194440054690583f, @_fma(n, -0.693359375f, x));
  e.first = @_from(half << 23);
  e.second = @_from((k - half) << 23);
  return e;
}
static inline float @_exp_tail(float r) {
  return @_fma(r, @_fma(r, @_fma(r, @_fma(r, (float)0.00139265504284959209, (float)0.0083634727221610281),
                                 (float)0.0416665524031902174), (float)0.166665752173736494), 0.5f);
}
static inline float @_exp(float x) {
  const @_exponent e = @_halved(@_min(89.0f, @_max(-104.0f, x)));
  const float power = @_fma(@_mul(e.r, e.r), @_exp_tail(e.r), e.r) + 1.0f;
  return @_mul(@_mul(power, e.first), e.second);
}
static inline float @_expm1_within(float x) {
  const @_exponent e = @_halved(x);
  const float power = @_fma(@_mul(e.r, e.r), @_exp_tail(e.r), e.r);
  const unsigned mirror = 254u << 23;
  const float inverse = @_mul(@_from(mirror - @_bits(e.first)), @_from(mirror - @_bits(e.second)));
  return @_mul(@_mul(power + (1.0f - inverse), e.first), e.second);
}
static inline float @_log(float x) {
  const int small = x < 0x1p-126f;
  const unsigned w = @_bits(small ? @_mul(x, 0x1p25f) : x) + (0x3f800000u - 0x3f3504f3u);
  const float k = (@_from((w >> 23) | @_bits(0x1p23f)) - (0x1p23f + 127.0f)) - (small ? 25.0f : 0.0f);
  const float f = @_from((w & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
  const float s = f / (2.0f + f), z = @_mul(s, s), half_square = @_mul(@_mul(0.5f, f), f);
  const float log_tail = @_fma(z, @_fma(z, (float)0.23056652002457477, (float)0.285620497937892551),
                               (float)0.400000155131625242);
  const float inner = half_square + @_mul(z, @_fma(z, log_tail, (float)(2.0 / 3.0)));
  const float tail = @_fma(s, inner, @_fma(k, -0.000212194440054690583f, 0.0f));
  const float r = @_fma(k, 0.693359375f, f - (half_square - tail));
  if (x > 0.0f) return x < INFINITY ? r : x;
  return x == 0.0f ? -INFINITY : x < 0.0f ? NAN : x;
}
static inline float @_tanh(float x) {
  const float a = @_min(10.0f, @_abs(x)), e = @_expm1_within(a + a);
  return @_copysign(e / (e + 2.0f), x);
}
static inline float @_sigmoid(float x) { return 1.0f / (1.0f + @_exp(-x)); }
static inline float @_relu(float x) { return x <= 0.0f ? 0.0f : x; }
static inline float @_elu(float x) { return x <= 0.0f ? @_exp(@_min(x, 0.0f)) - 1.0f : x; }
static inline float @_gelu(float x) {
  const float slope = (float)(-2 * 0.7978845608028654 * 0.044715), first = (float)(-2 * 0.7978845608028654);
  const float gate = 1.0f / (1.0f + @_exp(@_mul(x, @_fma(@_mul(x, x), slope, first))));
  return @_mul(x, gate);
}

/* Sums run on 16 lanes, which are then added in halves; runs of 4096 are added in order. */
static inline float @_dot(const float *a, int step_a, const float *b, int step_b, int n) {
  float total = 0.0f;
  int i = 0;
  do {
    float lane[16] = {0.0f};
    const int first = i == 0, end = n - i < 4096 ? n : i + 4096;
    int half, j;
    for (; i < end; ++i) lane[i % 16] = @_fma(a[i * step_a], b[i * step_b], lane[i % 16]);
    for (half = 8; half >= 1; half /= 2)
      for (j = 0; j < half; ++j) lane[j] = lane[j] + lane[j + half];
    total = first ? lane[0] : total + lane[0];
  } while (i < n);
  return total;
}
static inline float @_chain(const float *a, int step_a, const float *b, int step_b, int n) {
  float s = 0.0f;
  int i;
  for (i = 0; i < n; ++i) s = @_fma(a[i * step_a], b[i * step_b], s);
  return s;
}
static inline float @_maximum(const float *x, int n) {
  float total = -INFINITY;
  int i = 0;
  do {
    float lane[16];
    const int first = i == 0, end = n - i < 4096 ? n : i + 4096;
    int half, j;
    for (j = 0; j < 16; ++j) lane[j] = -INFINITY;
    for (; i < end; ++i) lane[i % 16] = @_max(lane[i % 16], x[i]);
    /* A block that is not full was filled up with -inf. */
    if (n % 16 != 0 && end == n)
      for (j = n % 16; j < 16; ++j) lane[j] = @_max(lane[j], -INFINITY);
    for (half = 8; half >= 1; half /= 2)
      for (j = 0; j < half; ++j) lane[j] = @_max(lane[j], lane[j + half]);
    total = first ? lane[0] : @_max(total, lane[0]);
  } while (i < n);
  return total;
}
/* e^(x - shift) into y where there is one, and its sum. */
static inline float @_exponentials(float *y, const float *x, float shift, int n) {
  float total = 0.0f;
  int i = 0;
  do {
    float lane[16] = {0.0f};
    const int first = i == 0, end = n - i < 4096 ? n : i + 4096;
    int half, j;
    for (; i < end; ++i) {
      const float e = @_exp(x[i] - shift);
      if (y) y[i] = e;
      lane[i % 16] = lane[i % 16] + e;
    }
    for (half = 8; half >= 1; half /= 2)
      for (j = 0; j < half; ++j) lane[j] = lane[j] + lane[j + half];
    total = first ? lane[0] : total + lane[0];
  } while (i < n);
  return total;
}
static inline void @_softmax(float *y, const float *x, int rows, int n) {
  int r, j;
  for (r = 0; r < rows; ++r, x += n, y += n) {
    const float total = @_exponentials(y, x, @_maximum(x, n), n);
    for (j = 0; j < n; ++j) y[j] = y[j] / total;
  }
}
static inline void @_log_softmax(float *y, const float *x, int rows, int n) {
  int r, j;
  for (r = 0; r < rows; ++r, x += n, y += n) {
    const float most = @_maximum(x, n), log_sum = @_log(@_exponentials(0, x, most, n));
    for (j = 0; j < n; ++j) y[j] = (x[j] - most) - log_sum;
  }
}
/* Images [n, h, w, in] with filters [kh, kw, in, out]: a chain over (kh, kw, in), over the places inside the image;
   depthwise each channel has filters of its own, [kh, kw, in, out / in]. */
static inline void @_conv2d(float *y, const float *x, const float *f, int depthwise, int n, int h, int w, int in, int oh,
                            int ow, int out, int kh, int kw, int sh, int sw, int above, int left) {
  const int read = depthwise ? 1 : in;
  int i, r, c, o, a, b, k;
  for (i = 0; i < n; ++i, x += h * w * in)
    for (r = 0; r < oh; ++r)
      for (c = 0; c < ow; ++c)
        for (o = 0; o < out; ++o) {
          const int first = depthwise ? o / (out / in) : 0;
          float s = 0.0f;
          for (a = 0; a < kh; ++a)
            for (b = 0; b < kw; ++b) {
              const int u = r * sh - above + a, v = c * sw - left + b;
              if (u < 0 || u >= h || v < 0 || v >= w) continue;
              for (k = 0; k < read; ++k)
                s = @_fma(x[(u * w + v) * in + first + k], f[((a * kw + b) * read + k) * out + o], s);
            }
          *y++ = s;
        }
}
/* Numbers in 8 bits: a scale and a zero point for each part, then codes. */
static inline void @_quantization(float *pairs, const float *x, int parts, int each) {
  int p, i;
  for (p = 0; p < parts; ++p, x += each, pairs += 2) {
    float low = 0.0f, high = 0.0f, scale;
    int finite = 1;
    for (i = 0; i < each; ++i) {
      finite = finite && (@_bits(x[i]) & 0x7f800000u) != 0x7f800000u;
      low = x[i] < low ? x[i] : low;
      high = x[i] > high ? x[i] : high;
    }
    scale = high / 255.0f - low / 255.0f;
    pairs[0] = !finite ? NAN : scale >= 0x1p-126f ? scale : 0.0f;
    pairs[1] = pairs[0] > 0.0f ? (float)(int)(-low / scale + 0.5f) : 0.0f;
  }
}
static inline void @_quantize(unsigned char *codes, const float *x, const float *pairs, int parts, int each) {
  int p, i;
  for (p = 0; p < parts; ++p, pairs += 2)
    for (i = 0; i < each; ++i) {
      const int code = pairs[0] > 0.0f ? (int)(*x / pairs[0] + (pairs[1] + 0.5f)) : 0;
      ++x;
      *codes++ = (unsigned char)(code > 255 ? 255 : code < 0 ? 0 : code);
    }
}
/* Layers of 8 bits: images of codes with filters of codes, their sums as int, a scale and a bias for each channel. */
static inline void @_frozen_conv2d(float *y, const unsigned char *x, const float *pairs, const signed char *f,
                                   const float *scales, const float *bias, int depthwise, int n, int h, int w, int in,
                                   int oh, int ow, int out, int kh, int kw, int sh, int sw, int above, int left) {
  const int read = depthwise ? 1 : in;
  int i, r, c, o, a, b, k;
  for (i = 0; i < n; ++i, x += h * w * in, pairs += 2) {
    const int zero = (int)pairs[1];
    for (r = 0; r < oh; ++r)
      for (c = 0; c < ow; ++c)
        for (o = 0; o < out; ++o) {
          const int first = depthwise ? o / (out / in) : 0;
          int s = 0;
          for (a = 0; a < kh; ++a)
            for (b = 0; b < kw; ++b) {
              const int u = r * sh - above + a, v = c * sw - left + b;
              if (u < 0 || u >= h || v < 0 || v >= w) continue;
              for (k = 0; k < read; ++k)
                s += (x[(u * w + v) * in + first + k] - zero) * f[((a * kw + b) * read + k) * out + o];
            }
          *y++ = @_mul((float)s, @_mul(pairs[0], scales[o])) + bias[o];
        }
  }
}
static inline void @_max_pool(float *y, const float *x, int n, int h, int w, int in, int oh, int ow, int kh, int kw, int sh,
                              int sw, int above, int left) {
  int i, r, c, k, a, b;
  for (i = 0; i < n; ++i, x += h * w * in)
    for (r = 0; r < oh; ++r)
      for (c = 0; c < ow; ++c)
        for (k = 0; k < in; ++k) {
          float most = 0.0f;
          int any = 0;
          for (a = 0; a < kh; ++a)
            for (b = 0; b < kw; ++b) {
              const int u = r * sh - above + a, v = c * sw - left + b;
              if (u < 0 || u >= h || v < 0 || v >= w) continue;
              most = any ? @_max(x[(u * w + v) * in + k], most) : x[(u * w + v) * in + k];
              any = 1;
            }
          *y++ = most;
        }
}
)";

}  // namespace gradus::detail
