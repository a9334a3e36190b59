// costs: 120
// needs: mpi
// without sanitizers: what MPI does itself is reported; all_reduce.cpp sanitizes the steps, over threads
// Ranks that mpirun starts: this program is their program as well. They end with the bits of one process, also where
// one of them has failed, or was killed, and all were started again.
#include <gradus/cluster/mpi.hpp>

#include <gradus/cluster/all_reduce.hpp>
#include <gradus/cluster/connected.hpp>
#include <gradus/testing/temp_dir.hpp>

#include <doctest/doctest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "../message.hpp"
#include "../train/run_files.hpp"
#include "../whole/cluster_models.hpp"
#include "../whole/process.hpp"

namespace {
using namespace gradus;
using cluster_models::points;
using testing::temp_dir;

constexpr int parts = 4, round_batch = 12;
constexpr const char* rank_case = "what a rank does*";

run_files::content trained(const std::string& dir) {
  auto found = run_files::newest_checkpoint(posix{}, dir);
  std::erase_if(found.records, [](const auto& r) { return r.first.starts_with("input "); });
  return found;
}
std::string word(const char* name) {
  const char* const found = std::getenv(name);
  return found != nullptr ? found : "";
}

// This program as `ranks` ranks, 0: without mpirun; what it printed.
struct job {
  std::string said;
  bool succeeded = false;

  job(const std::string& dir, int ranks, std::int64_t steps, const std::string& how = "") {
    std::vector<std::string> words{std::filesystem::read_symlink("/proc/self/exe").string(),
                                   text("--test-case=", rank_case), "--no-version"};
    if (ranks != 0)
      words.insert(words.begin(), {"/usr/bin/env", "mpirun", "-n", text(ranks), "--allow-run-as-root",
                                   "--oversubscribe", "--mca", "btl", "self,vader"});
    const temp_dir place;
    const std::string output = place / "said";
    processes::process p(words, output,
                         {"GRADUS_MPI_DIR=" + dir, text("GRADUS_MPI_STEPS=", steps), "GRADUS_MPI_HOW=" + how,
                          "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"});
    p.wait();
    succeeded = p.succeeded();
    const std::vector<std::byte> bytes = read_file(posix{}, output);
    said.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
};

}  // namespace

TEST_CASE("what a rank does, where one of the cases below has started it") {
  const std::string dir = word("GRADUS_MPI_DIR"), how = word("GRADUS_MPI_HOW");
  if (dir.empty()) return;
  const std::int64_t steps = std::atoll(word("GRADUS_MPI_STEPS").c_str());
  mpi{}.run([&](server& here) {
    const points data;
    auto t = make_trainer<cluster_models::mlp>(
        connected{here},
        all_reduce{.bucket_bytes = 500,
                   .sum = how == "library" && here.workers() > 1 ? library_sum : all_reduce_sum::tree},
        microbatch{parts}, adam{.rate = 0.01}, clip_by_global_norm{0.5}, exponential_moving_average{.decay = 0.9},
        run_config{.model_dir = dir, .tf_random_seed = 7, .save_summary_steps = 0, .checkpoint_save_graph_def = false});
    auto batches = data.batches(round_batch / here.workers()).shard(here.workers(), here.worker());
    if (how == "leaves" && here.worker() == 1) return t.train(batches.take(5), {.max_steps = steps});
    if (how == "fails" || how == "dies") {
      t.train(batches, {.max_steps = steps / 2});  // behind its end the chief saves
      t.train(batches, {.max_steps = steps / 2 + 5});
      if (here.worker() == 1 && how == "dies") std::raise(SIGKILL);
      if (here.worker() == 1) throw std::runtime_error("the disk is gone");
    }
    t.train(batches, {.max_steps = steps});
  });
}

TEST_CASE("ranks end with the bits of one process, also where one has failed or died and all were started again") {
  const temp_dir place;
  const job alone(place / "alone", 0, 30);
  CAPTURE(alone.said);
  REQUIRE(alone.succeeded);
  for (const int ranks : {1, 2, 4}) {
    const job together(place / text(ranks), ranks, 30);
    CAPTURE(together.said);
    REQUIRE(together.succeeded);
    CHECK(run_files::difference(trained(place / text(ranks)), trained(place / "alone")) == "");
  }
  for (const std::string how : {"fails", "dies"}) {
    const std::string dir = place / how;
    const job ends(dir, 2, 30, how);
    CAPTURE(ends.said);
    CHECK_FALSE(ends.succeeded);
    if (how == "fails") CHECK(says(ends.said, "gradus: worker 1 of 2 has failed: the disk is gone"));
    CHECK(trained(dir).step >= 15);
    CHECK(trained(dir).step < 30);
    CHECK(job(dir, 2, 30).succeeded);
    CHECK(run_files::difference(trained(dir), trained(place / "alone")) == "");
  }
}

TEST_CASE("the library's own sum trains as well, and a rank that leaves ends the run of the others") {
  const temp_dir place;
  const job by_library(place / "library", 2, 30, "library");
  CAPTURE(by_library.said);
  CHECK(by_library.succeeded);
  CHECK(trained(place / "library").step == 30);
  const job leaves(place / "leaves", 2, 30, "leaves");
  CAPTURE(leaves.said);
  CHECK(leaves.succeeded);
  CHECK(says(leaves.said, "other workers have left"));
  CHECK(trained(place / "leaves").step == 5);
}
