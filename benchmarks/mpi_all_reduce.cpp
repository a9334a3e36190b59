// What the sum of gradients costs over MPI: ours, which has the bits of one process, the library's through all_reduce,
// and MPI_Allreduce of the same bytes by itself. All are measured in turns, so that whatever else the machine does
// meets all; a ratio is the median of those of neighbouring turns.
//
//   mpirun -n 2 bench_mpi_all_reduce [turns]
//
// needs: mpi
#include <gradus/cluster/gradient_exchange.hpp>
#include <gradus/cluster/mpi.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <vector>

using namespace gradus::detail;

namespace {

double median(std::vector<double> all) {
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}

void measure(mpi_ranks& ranks, std::size_t bytes, int turns) {
  const int calls = bytes > 1'000'000 ? 4 : 100;
  gradus::aligned_buffer ours(bytes), theirs(bytes), raw(bytes);
  const auto exchange_of = [&](gradus::aligned_buffer& b, bool by_library) {
    return gradient_exchange(ranks, {{gradus::float32, {b.data(), b.size()}}}, std::size_t{4} << 20, by_library);
  };
  gradient_exchange by_us = exchange_of(ours, false), by_library = exchange_of(theirs, true);
  const auto step = [](gradient_exchange& e) { e.begin(), e.ready(0), e.finish(); };
  const auto secs = [&](auto call) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double from = MPI_Wtime();
    for (int i = 0; i < calls; ++i) call();
    return (MPI_Wtime() - from) / calls;
  };
  std::array<std::vector<double>, 3> taken;
  std::array<std::vector<double>, 2> ratios;
  for (int turn = -1; turn < turns; ++turn) {  // the first warms up
    const std::array<double, 3> now{secs([&] { step(by_us); }), secs([&] { step(by_library); }), secs([&] {
                                      MPI_Allreduce(MPI_IN_PLACE, raw.data(), static_cast<int>(bytes / sizeof(float)),
                                                    MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
                                    })};
    if (turn < 0) continue;
    for (std::size_t i = 0; i < 3; ++i) taken[i].push_back(now[i]);
    for (std::size_t i = 0; i < 2; ++i) ratios[i].push_back(now[i] / now[2]);
  }
  if (ranks.rank() != 0) return;
  std::printf("%zu bytes, %d ranks, median and fastest:", bytes, ranks.size());
  for (std::size_t i = 0; i < 3; ++i)
    std::printf(" %s %.1f, %.1f us;", std::array{"ours", "library_sum", "MPI_Allreduce"}[i], 1e6 * median(taken[i]),
                1e6 * *std::min_element(taken[i].begin(), taken[i].end()));
  std::printf(" %.2f and %.2f of the last\n", median(ratios[0]), median(ratios[1]));
}

}  // namespace

int main(int argc, char** argv) {
  const mpi_library library;
  mpi_ranks ranks(MPI_COMM_WORLD);
  for (const std::size_t bytes : {4096U, 65536U, 4U << 20, 64U << 20})
    measure(ranks, bytes, argc > 1 ? std::atoi(argv[1]) : 51);
}
