// The rules of order in cpu/conv.hpp's head, on single numbers, and kernels compared with them bit for bit.
#pragma once
#include "divided.hpp"
#include "windows.hpp"

namespace window_test {

template <class T, class A>
struct plain {
  using one = detail::lane<T, A>;
  problem p;
  std::vector<T> x, w, dy;  // w: [kh, out, kw, in] for dx

  bool inside(int y, int x_) const { return y >= 0 && y < p.h && x_ >= 0 && x_ < p.w; }
  static std::size_t at(std::initializer_list<int> extents, std::initializer_list<int> place) {
    return kernel_test::at(extents, place);
  }
  T pixel(int i, int h, int v, int c) const { return x[at({p.n, p.h, p.w, p.in}, {i, h, v, c})]; }
  T upstream(int i, int oh, int ow, int o) const { return dy[at({p.n, p.oh(), p.ow(), p.out}, {i, oh, ow, o})]; }
  std::vector<T> forward() const {
    std::vector<T> y;
    kernel_test::places({p.n, p.oh(), p.ow(), p.out}, [&](const std::vector<int>& to) {
      one sum(T(0));
      kernel_test::places({p.kh, p.kw, p.in}, [&](const std::vector<int>& k) {
        const int h = to[1] * p.sh - p.above() + k[0], v = to[2] * p.sw - p.left() + k[1];
        if (inside(h, v))
          sum =
              fma(one(pixel(to[0], h, v, k[2])), one(w[at({p.kh, p.kw, p.in, p.out}, {k[0], k[1], k[2], to[3]})]), sum);
      });
      y.push_back(sum.v);
    });
    return y;
  }
  std::vector<T> filter() const {
    std::vector<T> df;
    kernel_test::places({p.kh, p.kw, p.in, p.out}, [&](const std::vector<int>& k) {
      one total(T(0));
      for (int i = 0; i < p.n; ++i) {
        one sum(T(0));
        kernel_test::places({p.oh(), p.ow()}, [&](const std::vector<int>& o) {
          const int h = o[0] * p.sh - p.above() + k[0], v = o[1] * p.sw - p.left() + k[1];
          if (h >= 0 && h < p.h)
            sum = fma(one(inside(h, v) ? pixel(i, h, v, k[2]) : T(0)), one(upstream(i, o[0], o[1], k[3])), sum);
        });
        total = total + sum;
      }
      df.push_back(total.v);
    });
    return df;
  }
  std::vector<T> input() const {
    std::vector<T> dx;
    kernel_test::places({p.n, p.h, p.w, p.in}, [&](const std::vector<int>& to) {
      one total(T(0)), sum(T(0));
      const auto add = [&](int kh, int kw) {
        const int down = to[1] + p.above() - kh, across = to[2] + p.left() - kw;
        if (down < 0 || down % p.sh != 0 || down / p.sh >= p.oh()) return;
        if (across < 0 || across % p.sw != 0 || across / p.sw >= p.ow()) return;
        for (int o = 0; o < p.out; ++o)
          sum = fma(one(upstream(to[0], down / p.sh, across / p.sw, o)),
                    one(w[at({p.kh, p.out, p.kw, p.in}, {kh, o, kw, to[3]})]), sum);
      };
      if (p.in >= 16 || p.kw * p.in > 256) {
        for (int kh = 0; kh < p.kh; ++kh)
          for (int kw = 0; kw < p.kw; ++kw) add(kh, kw);
        total = sum;
      } else {
        for (int kw = p.kw - 1; kw >= 0; --kw) {  // ow from left to right
          sum = one(T(0));
          for (int kh = 0; kh < p.kh; ++kh) add(kh, kw);
          total = total + sum;
        }
      }
      dx.push_back(total.v);
    });
    return dx;
  }
};
template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}
template <class T, class A>
plain<T, A> drawn(const problem& p, lcg& random) {
  return {p, random.reals<T>(p.x_size()), random.reals<T>(p.w_size()), random.reals<T>(p.y_size())};
}
template <class T, class A>
void check_order(const problem& p, lcg& random) {
  INFO(p.n, " x ", p.h, " x ", p.w, " x ", p.in, ", window ", p.kh, " x ", p.kw, ", strides ", p.sh, ", ", p.sw,
       ", out ", p.out, p.same ? ", same" : "");
  using namespace divided_test;
  const auto q = drawn<T, A>(p, random);
  constexpr dtype t = dtype_of<T>;
  bool same = true;
  CHECK(same_bits(
      same_in_parts<&cards::conv2d, T, A>(p.lowered(), p.n, p.y_size(), {t, t, t}, {q.x.data(), q.w.data()}, same),
      q.forward()));
  CHECK(same_bits(same_in_parts<&cards::conv2d_filter, T, A>(p.lowered(), p.n, p.w_size(), {t, t, t},
                                                             {q.x.data(), q.dy.data()}, same),
                  q.filter()));
  CHECK(same_bits(same_in_parts<&cards::conv2d_input, T, A>(p.lowered(), p.n, p.x_size(), {t, t, t},
                                                            {q.w.data(), q.dy.data()}, same),
                  q.input()));
  CHECK(same);
}

// The compiled form, whose tiles are chosen by the compiler.
using lowered_dims = std::array<int, 13>;
template <const card* Op, lowered_dims E>
constexpr detail::signature signature_of = [] {
  detail::signature s;
  s.op = Op;
  for (auto& t : s.types) t = float32;
  for (int i = 0; i < 13; ++i) s.dims[i] = E[static_cast<std::size_t>(i)];
  return s;
}();
template <const card* Op, lowered_dims E>
std::vector<float> compiled(const problem& p, std::size_t size, const std::vector<float>& a,
                            const std::vector<float>& b) {
  std::vector<float> y(size, -7.0f);
  std::byte* args[] = {reinterpret_cast<std::byte*>(y.data()),
                       reinterpret_cast<std::byte*>(const_cast<float*>(a.data())),
                       reinterpret_cast<std::byte*>(const_cast<float*>(b.data()))};
  op_kernel<Op>::template run<fast>(detail::fixed<signature_of<Op, E>>{p.n, 1}, args);
  return y;
}
template <lowered_dims E>
void check_compiled(const problem& p, lcg& random) {
  const auto dims = p.lowered();
  REQUIRE(std::equal(dims.begin(), dims.end(), E.begin()));
  const auto q = drawn<float, fast>(p, random);
  CHECK(same_bits(compiled<&cards::conv2d, E>(p, p.y_size(), q.x, q.w), q.forward()));
  CHECK(same_bits(compiled<&cards::conv2d_filter, E>(p, p.w_size(), q.x, q.dy), q.filter()));
  CHECK(same_bits(compiled<&cards::conv2d_input, E>(p, p.x_size(), q.w, q.dy), q.input()));
}

}  // namespace window_test
