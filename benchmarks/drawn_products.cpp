// Matrix products of shapes drawn by a seed, beside OpenBLAS and, where it is installed, Eigen, in the same process on
// one thread: single rows and columns, a few of either, and squarish ones, in all four forms of transposition. Extents
// are read when it runs.
// needs: cblas
//
//   bench_drawn_products [seed [shapes]]       OPENBLAS_NUM_THREADS=1, and OPENBLAS_CORETYPE where it needs one
//
// Without a seed each run draws other shapes, and prints its seed. For each shape the three take turns; a figure is the
// median of its turns. The last lines are the distribution of our speed over the faster of the other two.
#include <gradus/cpu/matmul.hpp>
#include <gradus/tensor/tensor.hpp>

#include <cblas.h>

#if __has_include(<eigen3/Eigen/Core>)
#include <eigen3/Eigen/Core>
#define HAS_EIGEN 1
#else
#define HAS_EIGEN 0
#endif

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

namespace {

using namespace gradus;

struct drawn {
  std::uint64_t state;
  int below(int n) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return static_cast<int>((state >> 33) % static_cast<std::uint64_t>(n));
  }
  int between(int least, int most) { return least + below(most - least + 1); }
};

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
double median(std::vector<double> x) {
  std::nth_element(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2), x.end());
  return x[x.size() / 2];
}

struct shape_of {
  int m, k, n;
  bool ta, tb;
};
shape_of draw(drawn& r, int which) {
  const int few = r.between(2, 17), wide = r.between(32, 1024), deep = r.between(32, 1024);
  const bool ta = r.below(2) != 0, tb = r.below(2) != 0;
  switch (which % 5) {
  case 0: return {1, deep, wide, ta, tb};
  case 1: return {r.between(2, 6), deep, wide, ta, tb};
  case 2: return {wide, deep, few, ta, tb};
  case 3: return {wide, r.between(1, 4), deep, ta, tb};  // what a gradient of weights is with few examples
  default: return {few * 8, deep, wide, ta, tb};
  }
}

struct turns {
  std::vector<double> ours, blas, eigen;
};
void multiply_by_eigen([[maybe_unused]] const shape_of& s, [[maybe_unused]] const float* a,
                       [[maybe_unused]] const float* b, [[maybe_unused]] float* c) {
#if HAS_EIGEN
  using matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const Eigen::Map<const matrix> x(a, s.ta ? s.k : s.m, s.ta ? s.m : s.k), y(b, s.tb ? s.n : s.k, s.tb ? s.k : s.n);
  Eigen::Map<matrix> z(c, s.m, s.n);
  if (s.m == 1) {  // as a vector, for which Eigen has code of its own
    const Eigen::Map<const Eigen::RowVectorXf> row(a, s.k);
    Eigen::Map<Eigen::RowVectorXf> to(c, s.n);
    if (s.tb)
      to.noalias() = row * y.transpose();
    else
      to.noalias() = row * y;
    return;
  }
  if (s.ta && s.tb)
    z.noalias() = x.transpose() * y.transpose();
  else if (s.ta)
    z.noalias() = x.transpose() * y;
  else if (s.tb)
    z.noalias() = x * y.transpose();
  else
    z.noalias() = x * y;
#endif
}
void multiply_by_blas(const shape_of& s, const float* a, const float* b, float* c) {
  if (s.m == 1)
    cblas_sgemv(CblasRowMajor, s.tb ? CblasNoTrans : CblasTrans, s.tb ? s.n : s.k, s.tb ? s.k : s.n, 1, b,
                s.tb ? s.k : s.n, a, 1, 0, c, 1);
  else
    cblas_sgemm(CblasRowMajor, s.ta ? CblasTrans : CblasNoTrans, s.tb ? CblasTrans : CblasNoTrans, s.m, s.n, s.k, 1, a,
                s.ta ? s.m : s.k, b, s.tb ? s.k : s.n, 0, c, s.n);
}

double compare(const shape_of& s) {
  const auto floats = [](int x, int y) { return static_cast<std::size_t>(x) * static_cast<std::size_t>(y); };
  aligned_buffer memory[3] = {aligned_buffer(4 * floats(s.m, s.n)), aligned_buffer(4 * floats(s.m, s.k)),
                              aligned_buffer(4 * floats(s.k, s.n))};
  drawn r{0x9E3779B97F4A7C15u};
  for (int i = 1; i < 3; ++i)
    for (std::size_t j = 0; j < memory[i].size() / 4; ++j)
      reinterpret_cast<float*>(memory[i].data())[j] = static_cast<float>(r.below(2001)) / 1000 - 1;
  std::byte* args[3] = {memory[0].data(), memory[1].data(), memory[2].data()};
  const auto *a = reinterpret_cast<const float*>(args[1]), *b = reinterpret_cast<const float*>(args[2]);
  auto* c = reinterpret_cast<float*>(args[0]);
  const detail::signature what{&cards::matmul, {float32, float32, float32}, {1, s.m, s.k, s.n, s.ta, s.tb}, {}};
  const double flops = 2.0 * s.m * s.k * s.n;
  const int many = static_cast<int>(std::max(1.0, 2e6 / flops));
  turns t;
  const auto turn = [&](std::vector<double>& to, auto f) {
    f();
    const double start = seconds();
    for (int i = 0; i < many; ++i) f();
    to.push_back((seconds() - start) / many);
  };
  for (int i = 0; i < 31; ++i) {
    turn(t.ours, [&] { op_kernel<&cards::matmul>::run<fast>(detail::dynamic{1, 1, 0, 1, what}, args); });
    turn(t.blas, [&] { multiply_by_blas(s, a, b, c); });
    if (HAS_EIGEN) turn(t.eigen, [&] { multiply_by_eigen(s, a, b, c); });
  }
  double other = median(t.blas);
  if (HAS_EIGEN) other = std::min(other, median(t.eigen));
  const double ratio = other / median(t.ours);
  std::printf("%c%c %4d x %4d x %4d   ours %7.2f  OpenBLAS %7.2f", s.ta ? 'T' : 'N', s.tb ? 'T' : 'N', s.m, s.k, s.n,
              flops / median(t.ours) * 1e-9, flops / median(t.blas) * 1e-9);
  if (HAS_EIGEN) std::printf("  Eigen %7.2f", flops / median(t.eigen) * 1e-9);
  std::printf(" GFLOP/s   ratio %.2f\n", ratio);
  return ratio;
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t seed = argc > 1 ? static_cast<std::uint64_t>(std::atoll(argv[1])) : std::random_device()();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  drawn r{seed * 0x9E3779B97F4A7C15u};
  const int shapes = argc > 2 ? std::atoi(argv[2]) : 40;
  std::vector<double> ratios;
  for (int i = 0; i < shapes; ++i) ratios.push_back(compare(draw(r, i)));
  if (ratios.empty()) return 0;
  std::sort(ratios.begin(), ratios.end());
  const auto at = [&](double q) {
    return ratios[static_cast<std::size_t>(q * static_cast<double>(ratios.size() - 1))];
  };
  std::printf("ours / best of the others: least %.2f, a tenth %.2f, a quarter %.2f, median %.2f, most %.2f\n", at(0),
              at(0.1), at(0.25), at(0.5), at(1));
}
