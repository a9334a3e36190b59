/* exported: a model of gradus as C99. Written by c_header; do not edit. */
#ifndef exported_MODEL_H
#define exported_MODEL_H
#include <math.h>
#include <string.h>

#if defined(__FAST_MATH__) || (defined(__FLT_EVAL_METHOD__) && __FLT_EVAL_METHOD__ != 0 && __FLT_EVAL_METHOD__ != 16)
#error "exported: this header needs floats that are rounded as IEEE 754 says; leave out -ffast-math, and use SSE on x86"
#endif
#if !defined(__GNUC__) || defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#endif
typedef char exported_words_have_32_bits[sizeof(unsigned) == 4 && sizeof(float) == 4 ? 1 : -1];

/* a * b, rounded: no compiler may fuse it with a sum. */
static inline float exported_mul(float a, float b) {
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
static inline const float *exported_one(void) { static const float one = 1.0f; return &one; }
static inline unsigned exported_bits(float x) { unsigned w; memcpy(&w, &x, 4); return w; }
static inline float exported_from(unsigned w) { float x; memcpy(&x, &w, 4); return x; }
static inline float exported_fma(float a, float b, float c) { return exported_mul(a, b) + c; }
static inline float exported_min(float a, float b) { return a < b ? a : b; }
static inline float exported_max(float a, float b) { return a > b ? a : b; }
static inline float exported_abs(float x) { return exported_from(exported_bits(x) & 0x7fffffffu); }
static inline float exported_copysign(float x, float s) { return exported_from((exported_bits(x) & 0x7fffffffu) | (exported_bits(s) & 0x80000000u)); }

/* x = n ln 2 + r; 2^n comes as two factors. */
typedef struct { float r, first, second; } exported_exponent;
static inline exported_exponent exported_halved(float x) {
  exported_exponent e;
  const float magic = 0x1.8p23f, t = exported_fma(x, (float)1.4426950408889634074, magic), n = t - magic;
  const unsigned k = exported_bits(t) - exported_bits(magic) + 254u, half = (k >> 1) & 0x007fffffu;
  e.r = exported_fma(n, 0.000212194440054690583f, exported_fma(n, -0.693359375f, x));
  e.first = exported_from(half << 23);
  e.second = exported_from((k - half) << 23);
  return e;
}
static inline float exported_exp_tail(float r) {
  return exported_fma(r, exported_fma(r, exported_fma(r, exported_fma(r, (float)0.00139265504284959209, (float)0.0083634727221610281),
                                 (float)0.0416665524031902174), (float)0.166665752173736494), 0.5f);
}
static inline float exported_exp(float x) {
  const exported_exponent e = exported_halved(exported_min(89.0f, exported_max(-104.0f, x)));
  const float power = exported_fma(exported_mul(e.r, e.r), exported_exp_tail(e.r), e.r) + 1.0f;
  return exported_mul(exported_mul(power, e.first), e.second);
}
static inline float exported_expm1_within(float x) {
  const exported_exponent e = exported_halved(x);
  const float power = exported_fma(exported_mul(e.r, e.r), exported_exp_tail(e.r), e.r);
  const unsigned mirror = 254u << 23;
  const float inverse = exported_mul(exported_from(mirror - exported_bits(e.first)), exported_from(mirror - exported_bits(e.second)));
  return exported_mul(exported_mul(power + (1.0f - inverse), e.first), e.second);
}
static inline float exported_log(float x) {
  const int small = x < 0x1p-126f;
  const unsigned w = exported_bits(small ? exported_mul(x, 0x1p25f) : x) + (0x3f800000u - 0x3f3504f3u);
  const float k = (exported_from((w >> 23) | exported_bits(0x1p23f)) - (0x1p23f + 127.0f)) - (small ? 25.0f : 0.0f);
  const float f = exported_from((w & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
  const float s = f / (2.0f + f), z = exported_mul(s, s), half_square = exported_mul(exported_mul(0.5f, f), f);
  const float log_tail = exported_fma(z, exported_fma(z, (float)0.23056652002457477, (float)0.285620497937892551),
                               (float)0.400000155131625242);
  const float inner = half_square + exported_mul(z, exported_fma(z, log_tail, (float)(2.0 / 3.0)));
  const float tail = exported_fma(s, inner, exported_fma(k, -0.000212194440054690583f, 0.0f));
  const float r = exported_fma(k, 0.693359375f, f - (half_square - tail));
  if (x > 0.0f) return x < INFINITY ? r : x;
  return x == 0.0f ? -INFINITY : x < 0.0f ? NAN : x;
}
static inline float exported_tanh(float x) {
  const float a = exported_min(10.0f, exported_abs(x)), e = exported_expm1_within(a + a);
  return exported_copysign(e / (e + 2.0f), x);
}
static inline float exported_sigmoid(float x) { return 1.0f / (1.0f + exported_exp(-x)); }
static inline float exported_relu(float x) { return x <= 0.0f ? 0.0f : x; }
static inline float exported_elu(float x) { return x <= 0.0f ? exported_exp(exported_min(x, 0.0f)) - 1.0f : x; }
static inline float exported_gelu(float x) {
  const float slope = (float)(-2 * 0.7978845608028654 * 0.044715), first = (float)(-2 * 0.7978845608028654);
  const float gate = 1.0f / (1.0f + exported_exp(exported_mul(x, exported_fma(exported_mul(x, x), slope, first))));
  return exported_mul(x, gate);
}

/* Sums run on 16 lanes, which are then added in halves; runs of 4096 are added in order. */
static inline float exported_dot(const float *a, int step_a, const float *b, int step_b, int n) {
  float total = 0.0f;
  int i = 0;
  do {
    float lane[16] = {0.0f};
    const int first = i == 0, end = n - i < 4096 ? n : i + 4096;
    int half, j;
    for (; i < end; ++i) lane[i % 16] = exported_fma(a[i * step_a], b[i * step_b], lane[i % 16]);
    for (half = 8; half >= 1; half /= 2)
      for (j = 0; j < half; ++j) lane[j] = lane[j] + lane[j + half];
    total = first ? lane[0] : total + lane[0];
  } while (i < n);
  return total;
}
static inline float exported_chain(const float *a, int step_a, const float *b, int step_b, int n) {
  float s = 0.0f;
  int i;
  for (i = 0; i < n; ++i) s = exported_fma(a[i * step_a], b[i * step_b], s);
  return s;
}
static inline float exported_maximum(const float *x, int n) {
  float total = -INFINITY;
  int i = 0;
  do {
    float lane[16];
    const int first = i == 0, end = n - i < 4096 ? n : i + 4096;
    int half, j;
    for (j = 0; j < 16; ++j) lane[j] = -INFINITY;
    for (; i < end; ++i) lane[i % 16] = exported_max(lane[i % 16], x[i]);
    /* A block that is not full was filled up with -inf. */
    if (n % 16 != 0 && end == n)
      for (j = n % 16; j < 16; ++j) lane[j] = exported_max(lane[j], -INFINITY);
    for (half = 8; half >= 1; half /= 2)
      for (j = 0; j < half; ++j) lane[j] = exported_max(lane[j], lane[j + half]);
    total = first ? lane[0] : exported_max(total, lane[0]);
  } while (i < n);
  return total;
}
/* e^(x - shift) into y where there is one, and its sum. */
static inline float exported_exponentials(float *y, const float *x, float shift, int n) {
  float total = 0.0f;
  int i = 0;
  do {
    float lane[16] = {0.0f};
    const int first = i == 0, end = n - i < 4096 ? n : i + 4096;
    int half, j;
    for (; i < end; ++i) {
      const float e = exported_exp(x[i] - shift);
      if (y) y[i] = e;
      lane[i % 16] = lane[i % 16] + e;
    }
    for (half = 8; half >= 1; half /= 2)
      for (j = 0; j < half; ++j) lane[j] = lane[j] + lane[j + half];
    total = first ? lane[0] : total + lane[0];
  } while (i < n);
  return total;
}
static inline void exported_softmax(float *y, const float *x, int rows, int n) {
  int r, j;
  for (r = 0; r < rows; ++r, x += n, y += n) {
    const float total = exported_exponentials(y, x, exported_maximum(x, n), n);
    for (j = 0; j < n; ++j) y[j] = y[j] / total;
  }
}
static inline void exported_log_softmax(float *y, const float *x, int rows, int n) {
  int r, j;
  for (r = 0; r < rows; ++r, x += n, y += n) {
    const float most = exported_maximum(x, n), log_sum = exported_log(exported_exponentials(0, x, most, n));
    for (j = 0; j < n; ++j) y[j] = (x[j] - most) - log_sum;
  }
}
/* Images [n, h, w, in] with filters [kh, kw, in, out]: a chain over (kh, kw, in), over the places inside the image;
   depthwise each channel has filters of its own, [kh, kw, in, out / in]. */
static inline void exported_conv2d(float *y, const float *x, const float *f, int depthwise, int n, int h, int w, int in, int oh,
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
                s = exported_fma(x[(u * w + v) * in + first + k], f[((a * kw + b) * read + k) * out + o], s);
            }
          *y++ = s;
        }
}
/* Numbers in 8 bits: a scale and a zero point for each part, then codes. */
static inline void exported_quantization(float *pairs, const float *x, int parts, int each) {
  int p, i;
  for (p = 0; p < parts; ++p, x += each, pairs += 2) {
    float low = 0.0f, high = 0.0f, scale;
    int finite = 1;
    for (i = 0; i < each; ++i) {
      finite = finite && (exported_bits(x[i]) & 0x7f800000u) != 0x7f800000u;
      low = x[i] < low ? x[i] : low;
      high = x[i] > high ? x[i] : high;
    }
    scale = high / 255.0f - low / 255.0f;
    pairs[0] = !finite ? NAN : scale >= 0x1p-126f ? scale : 0.0f;
    pairs[1] = pairs[0] > 0.0f ? (float)(int)(-low / scale + 0.5f) : 0.0f;
  }
}
static inline void exported_quantize(unsigned char *codes, const float *x, const float *pairs, int parts, int each) {
  int p, i;
  for (p = 0; p < parts; ++p, pairs += 2)
    for (i = 0; i < each; ++i) {
      const int code = pairs[0] > 0.0f ? (int)(*x / pairs[0] + (pairs[1] + 0.5f)) : 0;
      ++x;
      *codes++ = (unsigned char)(code > 255 ? 255 : code < 0 ? 0 : code);
    }
}
/* Layers of 8 bits: images of codes with filters of codes, their sums as int, a scale and a bias for each channel. */
static inline void exported_frozen_conv2d(float *y, const unsigned char *x, const float *pairs, const signed char *f,
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
          *y++ = exported_mul((float)s, exported_mul(pairs[0], scales[o])) + bias[o];
        }
  }
}
static inline void exported_max_pool(float *y, const float *x, int n, int h, int w, int in, int oh, int ow, int kh, int kw, int sh,
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
              most = any ? exported_max(x[(u * w + v) * in + k], most) : x[(u * w + v) * in + k];
              any = 1;
            }
          *y++ = most;
        }
}

/* a frozen layer [3, 3, 1, 2] */
static const signed char exported_c4[18] = {
  127, -3, 0, 64, -127, 12, 9, 127, 33, -90, -64, 1, 5, 77, 100, -127, -20, 44};

static const float exported_c4_scales[2] = {
  0x1.47ae14p-7f, 0x1.0624dep-8f};

static const float exported_c4_bias[2] = {
  0x1p-2f, -0x1p-3f};

/* conv/kernel [3, 3, 2, 3] */
static const float exported_c7[54] = {
  -0x1.dab06cp-4f, -0x1.80d708p-4f, -0x1.a05c1cp-3f, -0x1.3dcc18p-2f, 0x1.cd4c48p-3f, 0x1.d21678p-4f, -0x1.0cf8aep-2f, 0x1.5bbc68p-2f,
  -0x1.470e42p-3f, 0x1.0dd23p-2f, -0x1.0fc934p-2f, -0x1.c8dfd8p-4f, -0x1.679adp-2f, -0x1.5de3a2p-2f, -0x1.3a0326p-2f, -0x1.6ef6b4p-2f,
  0x1.036378p-2f, 0x1.294edp-2f, -0x1.4022aap-2f, 0x1.5a29bp-5f, 0x1.c975p-3f, -0x1.756208p-4f, -0x1.8cef5cp-3f, -0x1.3faa3p-4f,
  0x1.429148p-2f, 0x1.b1f6a8p-4f, 0x1.6e0e18p-3f, -0x1.bacfp-6f, -0x1.cb08p-12f, 0x1.dab2p-3f, -0x1.026326p-3f, 0x1.5cc9fp-2f,
  0x1.58a6ap-3f, -0x1.cf3dep-4f, 0x1.20e508p-3f, 0x1.bc7218p-4f, -0x1.174da8p-2f, -0x1.1a50aap-2f, 0x1.70f97cp-2f, -0x1.e056b8p-4f,
  0x1.df49ap-3f, 0x1.f8184p-3f, -0x1.612dcp-5f, -0x1.44d8b4p-2f, 0x1.429cb4p-2f, -0x1.126e62p-3f, 0x1.c49bdp-5f, -0x1.73b00cp-3f,
  0x1.26d088p-2f, 0x1.49bfp-8f, 0x1.bb8248p-3f, -0x1.31221cp-2f, 0x1.16f988p-4f, -0x1.6d36d2p-3f};

/* conv/bias [3] */
static const float exported_c9[3] = {
  0x0p+0f, 0x0p+0f, 0x0p+0f};

/* hidden/kernel [27, 6] */
static const float exported_c14[162] = {
  0x1.607f1cp-2f, -0x1.7804cep-2f, 0x1.6ab9e8p-3f, 0x1.508f38p-3f, 0x1.8b78fcp-2f, 0x1.7f9a7p-4f, 0x1.f133a8p-3f, -0x1.6daeeep-2f,
  0x1.02ad6p-6f, -0x1.8ba3a4p-3f, 0x1.16c5cp-2f, 0x1.5d3bd8p-3f, 0x1.fb8068p-3f, -0x1.e5075p-4f, -0x1.991a6ep-3f, -0x1.7298a8p-2f,
  -0x1.8407f8p-2f, -0x1.619d2cp-2f, -0x1.013cccp-2f, -0x1.4efc2p-5f, -0x1.677b0ap-2f, 0x1.012268p-4f, 0x1.4c3308p-2f, 0x1.61b05cp-2f,
  -0x1.12828cp-3f, 0x1.5ba12p-6f, 0x1.c1f87p-4f, 0x1.ae1eap-4f, 0x1.80eb98p-3f, -0x1.02772p-4f, -0x1.4eb27cp-3f, -0x1.4ee1dcp-2f,
  0x1.a8fef8p-2f, -0x1.2b8ae8p-2f, -0x1.2dc70cp-2f, -0x1.2e7b78p-4f, -0x1.4c5efcp-2f, -0x1.9c68c8p-2f, -0x1.b3ee06p-3f, -0x1.1c5d34p-3f,
  0x1.92d43p-2f, -0x1.82ac74p-3f, 0x1.9c2498p-2f, 0x1.9c13p-4f, -0x1.9b9fc8p-4f, -0x1.1f98fep-2f, -0x1.0d12ap-2f, 0x1.44e598p-2f,
  -0x1.3b28cp-2f, -0x1.bb483ep-3f, 0x1.96403p-4f, -0x1.74164p-7f, -0x1.5bb33p-3f, -0x1.446384p-3f, 0x1.3ea75p-4f, -0x1.613518p-2f,
  0x1.408a44p-2f, -0x1.61afc4p-3f, 0x1.8f560cp-2f, 0x1.3ce988p-3f, -0x1.3bd244p-2f, 0x1.87a16p-6f, 0x1.652d7p-4f, -0x1.70e328p-3f,
  0x1.54016cp-2f, -0x1.24fd3ap-2f, -0x1.17459cp-2f, 0x1.f2bdap-4f, 0x1.4c8fcp-3f, -0x1.851bb2p-3f, 0x1.585b3cp-2f, -0x1.58834ap-2f,
  -0x1.a6fce6p-2f, -0x1.a57ed4p-3f, 0x1.b797d8p-3f, -0x1.ab5daep-2f, 0x1.419acp-5f, -0x1.13b88cp-3f, -0x1.13c0bp-2f, -0x1.fe11a8p-4f,
  -0x1.3d981p-3f, 0x1.5dae5p-5f, 0x1.b6886p-3f, 0x1.86384p-3f, 0x1.0c732p-6f, 0x1.14cdd8p-2f, 0x1.0d6608p-2f, -0x1.3203f8p-3f,
  0x1.5930bp-2f, 0x1.e93798p-3f, -0x1.a1549p-2f, -0x1.bf5b9p-5f, 0x1.3ed398p-2f, -0x1.70d53p-3f, -0x1.69d298p-2f, 0x1.8ba51p-2f,
  0x1.4224ap-5f, -0x1.5d854p-4f, -0x1.e116p-9f, 0x1.939bb4p-2f, 0x1.78c0c8p-3f, 0x1.cd513p-5f, 0x1.97193p-3f, -0x1.43c4b2p-2f,
  -0x1.2cda54p-2f, 0x1.405314p-2f, 0x1.0d7dep-3f, -0x1.9beb7p-5f, -0x1.c39da2p-3f, 0x1.76a61p-4f, -0x1.4bf1e8p-2f, -0x1.70d818p-3f,
  0x1.9a5ee4p-2f, -0x1.ea6826p-3f, 0x1.738238p-3f, -0x1.7404ep-4f, -0x1.fecb88p-4f, -0x1.d4dfp-6f, -0x1.1f5ecp-2f, 0x1.8f8bcp-2f,
  0x1.919b2p-6f, -0x1.4b351ap-2f, 0x1.01d5ecp-2f, -0x1.11782cp-2f, -0x1.e07dp-9f, -0x1.a2e4dep-2f, 0x1.160354p-2f, -0x1.27a2p-2f,
  -0x1.bdb09ap-3f, -0x1.ec6fb8p-4f, 0x1.41357p-4f, 0x1.02450cp-2f, 0x1.888cf4p-2f, 0x1.9a477p-2f, -0x1.bfeb66p-3f, -0x1.ab6928p-2f,
  -0x1.48e1ccp-3f, 0x1.e1df4p-4f, 0x1.a0496cp-2f, 0x1.ec4f8p-3f, 0x1.30cb6p-6f, 0x1.10360cp-2f, -0x1.18c5bp-3f, -0x1.798ap-10f,
  -0x1.96ba32p-2f, -0x1.e19262p-3f, 0x1.7eac94p-2f, -0x1.6c921p-4f, 0x1.267f14p-2f, -0x1.acb76ap-3f, 0x1.c4e248p-3f, 0x1.254998p-3f,
  0x1.19172p-2f, 0x1.15f444p-2f, 0x1.e9041p-5f, -0x1.81a8ecp-2f, -0x1.e9193cp-3f, 0x1.ac26cp-4f, 0x1.38e79p-3f, -0x1.32d628p-3f,
  0x1.5328dp-2f, 0x1.4da2c8p-3f};

/* hidden/bias [6] */
static const float exported_c16[6] = {
  0x0p+0f, 0x0p+0f, 0x0p+0f, 0x0p+0f, 0x0p+0f, 0x0p+0f};

/* logits/kernel [6, 4] */
static const float exported_c19[24] = {
  -0x1.668208p-3f, -0x1.6b179ap-1f, 0x1.22b03p-1f, 0x1.373e2p-2f, -0x1.1c88a4p-1f, 0x1.cb9008p-3f, -0x1.2355a8p-3f, -0x1.207e2p-4f,
  -0x1.606e1ep-1f, 0x1.333058p-1f, 0x1.efc95p-2f, 0x1.d950ap-2f, -0x1.7e357cp-1f, 0x1.a6d058p-2f, 0x1.7b80e8p-3f, -0x1.71a3e4p-1f,
  0x1.de49d8p-2f, -0x1.620e74p-1f, 0x1.004058p-1f, 0x1.b2ec1p-2f, 0x1.47034p-6f, -0x1.2852ep-3f, -0x1.0c4288p-1f, -0x1.570b5cp-1f};

/* logits/bias [4] */
static const float exported_c21[4] = {
  0x0p+0f, 0x0p+0f, 0x0p+0f, 0x0p+0f};

enum {
  exported_batch = 1,
  exported_in_x = 36,
  exported_out_y = 4,
  exported_work = 263 /* floats that a call works on */
};

static inline void exported_predict(const float *in_x, float *out_y, float *work) {
  int i, j;
  exported_quantization((work + 0), in_x, 1, 36);
  exported_quantize((unsigned char *)(work + 2), in_x, (work + 0), 1, 36);
  exported_frozen_conv2d((work + 11), (unsigned char *)(work + 2), (work + 0), exported_c4, exported_c4_scales, exported_c4_bias, 0, 1, 6, 6, 1, 6, 6, 2, 3, 3, 1, 1, 1, 1);
  for (i = 0; i < 72; ++i) (work + 83)[i] = exported_relu((work + 11)[i]);
  exported_conv2d((work + 155), (work + 83), exported_c7, 0, 1, 6, 6, 2, 6, 6, 3, 3, 3, 1, 1, 1, 1);
  for (i = 0; i < 108; ++i) (work + 0)[i] = (work + 155)[i] + exported_c9[i % 3];
  for (i = 0; i < 108; ++i) (work + 108)[i] = exported_relu((work + 0)[i]);
  exported_max_pool((work + 0), (work + 108), 1, 6, 6, 3, 3, 3, 2, 2, 2, 2, 0, 0);
  for (i = 0; i < 1; ++i)
    for (j = 0; j < 6; ++j)
      (work + 27)[i * 6 + j] = exported_dot((work + 0) + i * 27, 1, exported_c14 + j * 1, 6, 27);
  for (i = 0; i < 6; ++i) (work + 0)[i] = (work + 27)[i] + exported_c16[i];
  for (i = 0; i < 6; ++i) (work + 6)[i] = exported_tanh((work + 0)[i]);
  for (i = 0; i < 1; ++i)
    for (j = 0; j < 4; ++j)
      (work + 0)[i * 4 + j] = exported_chain((work + 6) + i * 6, 1, exported_c19 + j * 1, 4, 6);
  for (i = 0; i < 4; ++i) (work + 4)[i] = (work + 0)[i] + exported_c21[i];
  exported_softmax((work + 0), (work + 4), 1, 4);
  memcpy(out_y, (work + 0), 4 * sizeof(float));
  (void)i, (void)j, (void)work;
}
#endif
