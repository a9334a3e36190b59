// Matrix products of shapes drawn by a seed, beside OpenBLAS and, where they are installed, Eigen and oneDNN, in the
// same process on one thread: single rows and columns, a few of either, few terms, and others, in all four forms of
// transposition. Extents are read when it runs.
// needs: cblas
// takes: onednn
//
//   OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 bench_drawn_products [seed [shapes]]      without a seed others each time
//
// OpenBLAS may need OPENBLAS_CORETYPE (SKYLAKEX, or HASWELL for AVX2), and oneDNN takes the processor's widest
// registers unless DNNL_MAX_CPU_ISA=AVX2 says otherwise. For each shape all take turns, and so does one chain of FMAs;
// a figure is the median of its turns. The last lines are the distribution of our speed over that of the fastest peer:
// apart for shapes with ten registers of results or more, and for the rest, whose few sums wait for one another. For
// those the share of the bound is shown as well: the latency of the FMAs of one sum (k, or k / 16 where sums are trees:
// n = 1, or m = 1 and n <= 16), or all FMAs at the peak if that takes longer. Then come the ten worst shapes.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // g++ 12 says it of its own AVX-512 functions, in Eigen
#endif
#include "yardstick.hpp"

#include <gradus/cpu/matmul.hpp>
#include <gradus/tensor/tensor.hpp>

#include <cblas.h>

#if __has_include(<eigen3/Eigen/Core>)
#include <eigen3/Eigen/Core>
#define HAS_EIGEN 1
#else
#define HAS_EIGEN 0
#endif
#if defined(GRADUS_TAKES_ONEDNN)
#include <oneapi/dnnl/dnnl.h>
#define HAS_ONEDNN 1
#else
#define HAS_ONEDNN 0
#endif

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace gradus;
using yardstick::all_chains, yardstick::drawn, yardstick::fma_seconds, yardstick::median, yardstick::number,
    yardstick::seconds, yardstick::show;

struct shape_of {
  int m, k, n;
  bool ta, tb;
};
shape_of draw(drawn& r, int which) {
  const int few = r.between(2, 17), wide = r.between(32, 1024), deep = r.between(32, 1024);
  const bool ta = r.below(2) != 0, tb = r.below(2) != 0;
  const auto any = [&] { return static_cast<int>(std::exp2(r.between(100, 900) / 100.0)); };  // 2 to 512
  switch (which % 9) {
  case 0: return {1, deep, wide, ta, tb};
  case 1: return {r.between(2, 6), deep, wide, ta, tb};
  case 2: return {wide, deep, few, ta, tb};
  case 3: return {wide, r.between(1, 4), deep, ta, tb};  // what a gradient of weights is with few examples
  case 4: return {few * 8, deep, wide, ta, tb};
  case 5: return {wide, deep, 1, ta, tb};
  case 6: return {r.between(1, 8), 2 * deep, r.between(1, 16), ta, tb};  // few results
  case 7: return {r.between(2, 64), r.between(2, 64), r.between(2, 64), ta, tb};
  default: {
    const int m = any(), k = any(), n = any();
    return {m, k, n, ta, tb};
  }
  }
}

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
  if (s.n == 1) {
    const Eigen::Map<const Eigen::VectorXf> column(b, s.k);
    Eigen::Map<Eigen::VectorXf> to(c, s.m);
    if (s.ta)
      to.noalias() = x.transpose() * column;
    else
      to.noalias() = x * column;
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
  else if (s.n == 1)
    cblas_sgemv(CblasRowMajor, s.ta ? CblasTrans : CblasNoTrans, s.ta ? s.k : s.m, s.ta ? s.m : s.k, 1, a,
                s.ta ? s.m : s.k, b, 1, 0, c, 1);
  else
    cblas_sgemm(CblasRowMajor, s.ta ? CblasTrans : CblasNoTrans, s.tb ? CblasTrans : CblasNoTrans, s.m, s.n, s.k, 1, a,
                s.ta ? s.m : s.k, b, s.tb ? s.k : s.n, 0, c, s.n);
}
void multiply_by_onednn([[maybe_unused]] const shape_of& s, [[maybe_unused]] const float* a,
                        [[maybe_unused]] const float* b, [[maybe_unused]] float* c) {
#if HAS_ONEDNN
  dnnl_sgemm(s.ta ? 'T' : 'N', s.tb ? 'T' : 'N', s.m, s.n, s.k, 1, a, s.ta ? s.m : s.k, b, s.tb ? s.k : s.n, 0, c, s.n);
#endif
}

struct line {
  bool many;  // whether there are ten registers of results
  double ratio, share, latency;
  std::string text;
};

line compare(const shape_of& s) {
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
  struct library {
    const char* name;
    std::function<void()> multiply;
    std::vector<double> turns = {};
  };
  std::vector<library> all{{"ours",
                            [&] {
                              op_kernel<&cards::matmul>::run<fast>(detail::dynamic{1, 1, 0, 1, what}, args);
                            }},
                           {"OpenBLAS", [&] { multiply_by_blas(s, a, b, c); }}};
  if (HAS_EIGEN) all.push_back({"Eigen", [&] { multiply_by_eigen(s, a, b, c); }});
  if (HAS_ONEDNN) all.push_back({"oneDNN", [&] { multiply_by_onednn(s, a, b, c); }});
  std::vector<double> latencies, fmas;
  std::vector<float> first;
  for (int i = 0; i < 31; ++i) {
    for (library& l : all) {
      l.multiply();
      if (i == 0) {  // a library that was led to wrong kernels is no peer
        if (first.empty()) first.assign(c, c + floats(s.m, s.n));
        for (std::size_t at = 0; at < first.size(); ++at)
          if (std::abs(first[at] - c[at]) > 1e-4f * static_cast<float>(s.k)) {
            std::printf("%s computed %g for %g\n", l.name, static_cast<double>(c[at]), static_cast<double>(first[at]));
            std::exit(1);
          }
      }
      const double start = seconds();
      for (int n = 0; n < many; ++n) l.multiply();
      l.turns.push_back((seconds() - start) / many);
    }
    latencies.push_back(fma_seconds<1>()), fmas.push_back(fma_seconds<all_chains>());
  }
  const double ours = median(all[0].turns);
  double best = 1e9;
  for (std::size_t i = 1; i < all.size(); ++i) best = std::min(best, median(all[i].turns));
  const bool trees = detail::sums_are_dots(s.m, s.k, s.n);
  const double waits = (trees ? s.k / 16.0 + 4 : s.k) * median(latencies),
               works = flops / 2 / static_cast<double>(number::width) * median(fmas);
  line l{s.m * s.n >= 10 * static_cast<int>(number::width),
         best / ours,
         std::max(waits, works) / ours,
         median(latencies),
         {}};
  char text[256];
  int at = std::snprintf(text, sizeof text, "%c%c %4d x %4d x %4d  %s ", s.ta ? 'T' : 'N', s.tb ? 'T' : 'N', s.m, s.k,
                         s.n, l.many ? "    " : "few ");
  for (const library& x : all)
    at += std::snprintf(text + at, sizeof text - static_cast<std::size_t>(at), " %s %7.2f ", x.name,
                        flops / median(x.turns) * 1e-9);
  std::snprintf(text + at, sizeof text - static_cast<std::size_t>(at), "GFLOP/s   ratio %.2f, share of the bound %.2f",
                l.ratio, l.share);
  l.text = text;
  return l;
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t seed = argc > 1 ? static_cast<std::uint64_t>(std::atoll(argv[1])) : std::random_device()();
  std::printf("seed %llu, %zu bits, beside OpenBLAS%s%s\n", static_cast<unsigned long long>(seed), 32 * number::width,
              HAS_EIGEN ? ", Eigen" : " (no Eigen)", HAS_ONEDNN ? ", oneDNN" : " (no oneDNN)");
  drawn r{seed * 0x9E3779B97F4A7C15u};
  const int shapes = argc > 2 ? std::atoi(argv[2]) : 200;
  std::vector<line> lines;
  for (int i = 0; i < shapes; ++i) {
    lines.push_back(compare(draw(r, i)));
    std::printf("%s\n", lines.back().text.c_str());
  }
  for (const bool many : {true, false}) {
    std::vector<double> ratios, shares;
    for (const line& l : lines)
      if (l.many == many) ratios.push_back(l.ratio), shares.push_back(l.share);
    std::printf("%zu shapes with %s\n", ratios.size(),
                many ? "ten registers of results or more" : "fewer than ten registers of results");
    show("ours / best of the others", ratios);
    if (!many) show("share of the bound", shares);
  }
  std::vector<double> latencies;
  for (const line& l : lines) latencies.push_back(l.latency);
  if (lines.empty()) return 0;
  std::printf("an FMA waits %.2f ns for the one before, which is 4 cycles at %.2f GHz\n", 1e9 * median(latencies),
              4e-9 / median(latencies));
  std::sort(lines.begin(), lines.end(), [](const line& x, const line& y) { return x.ratio < y.ratio; });
  std::printf("the worst:\n");
  for (std::size_t i = 0; i < lines.size() && i < 10; ++i) std::printf("%s\n", lines[i].text.c_str());
}
