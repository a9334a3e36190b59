// The fused kernels beside the separate ones, bit for bit: drawn convolutions with a pool behind, whole and in parts.
#include <gradus/cpu/pooled_conv.hpp>

#include "divided.hpp"
#include "windows.hpp"

#include <limits>

using namespace window_test;
using namespace divided_test;

namespace {
struct pool {
  int h, w;
  bool relu, bias;
};
template <class T>
using numbers = std::vector<T>;

template <class T>
bool equal(const numbers<T>& a, const numbers<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

// Whole, and the same bits in parts.
template <const card* Op, class T, class A>
numbers<T> get(const std::vector<int>& dims, int n, std::size_t count, std::initializer_list<dtype> types,
               const std::vector<const void*>& operands) {
  bool same = true;
  const auto y = same_in_parts<Op, T, A>(dims, n, count, types, operands, same);
  CHECK(same);
  return y;
}

template <class T, class A>
void check(const problem& p, const pool& q, const numbers<T>& x, lcg& random) {
  constexpr dtype t = dtype_of<T>;
  const auto channels = static_cast<std::size_t>(p.out);
  const int down = p.oh() / q.h, across = p.ow() / q.w;
  const std::size_t pooled = static_cast<std::size_t>(p.n * down * across) * channels;
  const auto w = random.reals<T>(p.w_size()), b = random.reals<T>(channels), dy = random.reals<T>(pooled);

  // By separate kernels. What a formula makes of one number is written here.
  auto act = get<&cards::conv2d, T, A>(p.lowered(), p.n, p.y_size(), {t, t, t}, {x.data(), w.data()});
  for (std::size_t i = 0; i < act.size(); ++i) {
    if (q.bias) act[i] = act[i] + b[i % channels];
    if (q.relu) act[i] = act[i] <= T(0) ? T(0) : act[i];
  }
  const std::vector<int> behind{0, p.oh(), p.ow(), p.out, down, across, p.out, q.h, q.w, q.h, q.w, 0, 0};
  const auto most = get<&cards::max_pool, T, A>(behind, p.n, pooled, {t, t}, {act.data()});
  auto up = get<&cards::max_pool_grad, T, A>(behind, p.n, act.size(), {t, t, t}, {act.data(), dy.data()});
  if (q.relu)
    for (std::size_t i = 0; i < up.size(); ++i) up[i] = act[i] > T(0) ? up[i] : T(0);
  const auto filters = get<&cards::conv2d_filter, T, A>(p.lowered(), p.n, p.w_size(), {t, t, t}, {x.data(), up.data()});
  const auto bias = get<&cards::sum, T, A>({1, 2, 0, p.out}, p.n * p.oh() * p.ow(), channels, {t, t}, {up.data()});

  // In one.
  std::vector<int> dims = p.lowered();
  dims.insert(dims.end(), {q.h, q.w, q.relu ? 1 : 0});
  std::vector<const void*> operands{x.data(), w.data()};
  if (q.bias) operands.push_back(b.data());
  const auto packed =
      q.bias
          ? get<&cards::conv2d_pool, unsigned char, A>(dims, p.n, pooled * (sizeof(T) + 1), {uint8, t, t, t}, operands)
          : get<&cards::conv2d_pool, unsigned char, A>(dims, p.n, pooled * (sizeof(T) + 1), {uint8, t, t}, operands);
  numbers<T> values(pooled);
  if (pooled != 0) std::memcpy(values.data(), packed.data(), pooled * sizeof(T));
  CHECK(equal(values, most));
  CHECK(equal(get<&cards::conv2d_unpool, T, A>(dims, p.n, up.size(), {t, uint8, t}, {packed.data(), dy.data()}), up));
  CHECK(equal(get<&cards::conv2d_pool_filter, T, A>(dims, p.n, p.w_size(), {t, t, uint8, t},
                                                    {x.data(), packed.data(), dy.data()}),
              filters));
  CHECK(
      equal(get<&cards::conv2d_pool_bias, T, A>(dims, p.n, channels, {t, uint8, t}, {packed.data(), dy.data()}), bias));
}

template <class T, class A>
void check_drawn(lcg& random, int i) {
  problem p = draw(random);
  if (random(3) == 0) p.h += 12, p.w += static_cast<int>(random(80));  // long rows, and sums that are trees
  if (i % 12 == 0) p.n = 0;
  const auto up_to = [&](int n) { return 1 + static_cast<int>(random(static_cast<std::uint32_t>(n < 8 ? n : 8))); };
  const pool q{up_to(p.oh()), up_to(p.ow()), random(4) != 0, random(4) != 0};
  auto x = random.reals<T>(p.x_size());
  if (random(3) == 0)  // ties
    for (auto& v : x) v = static_cast<T>(static_cast<int>(v * 3));
  if (random(8) == 0 && !x.empty()) x[x.size() / 2] = std::numeric_limits<T>::quiet_NaN();
  check<T, A>(p, q, x, random);
}
}  // namespace

TEST_CASE("a convolution with its pool in one: the separate kernels' bits") {
  lcg random{8};
  for (int i = 0; i < 60; ++i) {
    CAPTURE(i);
    check_drawn<float, fast>(random, i);
    check_drawn<double, fast>(random, i);
    check_drawn<float, portable>(random, i);
  }
}

TEST_CASE("the largest pool, with as many channels as registers take and one more") {
  lcg random{9};
  for (const int channels : {1, 64, 65}) {
    const problem p{2, 17, 70, 3, channels, 2, 2, 1, 1, true};
    const auto x = random.reals<float>(p.x_size());
    check<float, fast>(p, {8, 8, true, true}, x, random);
    check<float, fast>(p, {1, 64, true, true}, x, random);
    check<float, fast>(p, {1, 1, true, false}, x, random);
  }
}
