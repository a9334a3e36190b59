// Training by all_reduce over gRPC: the bits of one process.
// one thread: its many are gRPC's, whose own locks no sanitizer sees; cluster/transport_ranks.cpp has ours
// needs: grpc
// without sanitizers: gRPC's name resolution leaks ten bytes; cluster/transport_ranks.cpp has what is ours
// costs: 300
#include <gradus/cluster/all_reduce.hpp>
#include <gradus/cluster/connected.hpp>
#include <gradus/cluster/grpc.hpp>
#include <gradus/testing/temp_dir.hpp>

#include <doctest/doctest.h>

#include <array>
#include <string>
#include <thread>
#include <vector>

#include "../train/run_files.hpp"
#include "cluster_models.hpp"
#include "cluster_runs.hpp"

using namespace gradus;
using cluster_models::mlp;
using cluster_models::points;
using cluster_runs::config_of;
using cluster_runs::trained;

namespace {}  // namespace

TEST_CASE("two processes' worth of workers over gRPC") {
  const testing::temp_dir place;
  const points data;
  auto alone =
      make_trainer<mlp>(microbatch{2}, adam{.rate = 0.01}, clip_by_global_norm{0.5}, config_of(place / "alone"));
  alone.train(data.batches(12), {.max_steps = 30});
  const cluster_spec two{{"worker", {text("unix:", place / "w0"), text("unix:", place / "w1")}}};
  std::array<std::string, 2> said;
  std::vector<std::thread> threads;
  for (int k = 0; k < 2; ++k)
    threads.emplace_back([&, k] {
      try {
        server here(gradus::grpc{}, server_def{.cluster = two, .job_name = "worker", .task_index = k});
        auto t = make_trainer<mlp>(connected{here}, all_reduce{}, adam{.rate = 0.01}, clip_by_global_norm{0.5},
                                   config_of(place / "together"));
        t.train(data.batches(6).shard(2, k), {.max_steps = 30});
        here.finish();
      } catch (const std::exception& e) {
        said[static_cast<std::size_t>(k)] = e.what();
      }
    });
  for (auto& t : threads) t.join();
  for (const std::string& what : said) CHECK(what == "");
  CHECK(run_files::difference(trained(place / "together"), trained(place / "alone")) == "");
}
