// costs: 300
// runs: digits
// needs: mpi
// without sanitizers: what MPI does itself is reported
// The demo as users start it over MPI: `mpirun -n 2 digits --cluster mpi`.
#include <doctest/doctest.h>

#include "demo.hpp"

TEST_CASE("mpirun -n 2 digits --cluster mpi: the bits of two workers as threads") {
  constexpr int steps = 24;  // a rank that waits keeps its processor busy
  const gradus::testing::temp_dir place;
  const auto run = [&](std::vector<std::string> words) {
    processes::process p(std::move(words), place / "output",
                         {"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"});
    p.wait();
    const auto bytes = gradus::read_file(gradus::posix{}, place / "output");
    CHECK_MESSAGE(p.succeeded(), std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  };
  run(demo::words(place, "threads", {"--cluster", "all_reduce", "--workers", "2"}, steps));
  auto words = demo::words(place, "ranks", {"--cluster", "mpi"}, steps);
  words.insert(words.begin(), {"/usr/bin/env", "mpirun", "-n", "2", "--allow-run-as-root", "--oversubscribe", "--mca",
                               "btl", "self,vader"});
  run(words);
  const auto expected = demo::trained(place, "threads");
  CHECK(expected.step == steps);
  CHECK(run_files::difference(demo::trained(place, "ranks"), expected) == "");
}
