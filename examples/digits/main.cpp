// digits: a 784-128-10 classifier, trained, saved, shown and resumed.
//
// Without --data it draws its own digits and writes them as IDX files; from there on everything goes through the real
// reader. Kill it and run it again: it continues from the last checkpoint, and ends with the same bits. With
// --cluster in_process it trains on threads: parameter servers, and workers that share each batch. With
// --cluster simulated the same program runs in virtual time, with faults that --seed draws, and ends with the same
// bits. With --cluster grpc it is one task of a cluster, which it finds in TF_CONFIG (scripts/cluster.sh starts all).
// With --cluster all_reduce workers train without parameter servers, on threads; with --cluster mpi as the processes
// that mpirun starts (mpirun -n 4 build/bin/digits --cluster mpi).
//
// With --asynchronous no worker waits for another, so who comes first decides the bits. With --logs as well, --cluster
// replay repeats such a run from its logs, to the bit:
//
//   digits --cluster in_process --asynchronous --logs runs/logs --fresh
//   digits --cluster replay --asynchronous --logs runs/logs --model_dir runs/again --until STEP    of the checkpoint
#include <CLI/CLI.hpp>
#include <cstdio>
#include <gradus/cluster/all_reduce.hpp>
#include <gradus/cluster/connected.hpp>
#include <gradus/cluster/local_cluster.hpp>
#include <gradus/cluster/replay.hpp>
#include <gradus/cluster/simulated.hpp>
#include <gradus/gradus.hpp>
#include <gradus/summary/hparams.hpp>
#include <gradus/train/step_times.hpp>
#include <string>
#include <vector>

#ifdef GRADUS_EXAMPLE_GRPC
#include <gradus/checkpoint/wait.hpp>
#include <gradus/cluster/grpc.hpp>
#include <gradus/train/run_environment.hpp>
#endif
#ifdef GRADUS_EXAMPLE_MPI
#include <gradus/cluster/mpi.hpp>
#endif

#include "draw.hpp"
#include "model.hpp"

namespace {

struct options {
  std::string data, model_dir = "runs/digits", cache = "runs/digits-data", cluster, certs, logs;
  std::int64_t steps = 1900, batch = 128, train_digits = 20000, test_digits = 4000, save_steps = 50;
  int threads = 2, ps = 1, workers = 2;
  std::uint64_t seed = 0, until = 0;
  bool fresh = false, profile = false, asynchronous = false, print_orders = false;
};

// The drawn digits as IDX files: made once, then read like any others.
std::string draw_into_cache(const options& o) {
  const std::string dir = gradus::join_path(o.cache, gradus::text("drawn-", o.train_digits, "-", o.test_digits));
  gradus::make_directories(gradus::posix{}, dir);
  const auto write = [&](const char* name, std::int64_t n, std::uint64_t seed) {
    const std::string stem = gradus::join_path(dir, name), labels = stem + "-labels-idx1-ubyte";
    if (std::FILE* there = std::fopen(labels.c_str(), "rb")) {  // labels are written last
      std::fclose(there);
      return;
    }
    std::fprintf(stderr, "drawing %lld digits into %s\n", static_cast<long long>(n), stem.c_str());
    const auto drawn = digits::draw_digits(n, seed);
    gradus::write_idx(stem + "-images-idx3-ubyte", {std::span<const std::uint8_t>(drawn.images), {n, 28, 28}});
    gradus::write_idx(labels, std::span<const std::uint8_t>(drawn.labels));
  };
  write("train", o.train_digits, 1);
  write("test", o.test_digits, 2);
  return dir;
}

// The folder with the digits. Ranks of MPI share a machine's cache, which the first of them fills; the others, which
// find it half filled, draw into one of their own.
std::string find_data(const options& o, int rank = 0) {
  if (!o.data.empty()) return o.data;
  options own = o;
  if (rank != 0) own.cache = gradus::join_path(o.cache, gradus::text("rank-", rank));
  return draw_into_cache(own);
}

void forget(const std::string& dir) {
  const gradus::posix files;
  std::vector<std::string> names;
  if (files.list(dir, names) != 0) return;
  for (const auto& name : names)
    if (name == "checkpoint" || name.starts_with("model-") || name.find("tfevents") != std::string::npos)
      files.remove(gradus::join_path(dir, name));
}

void forget(const options& o) {
  forget(o.model_dir);
  forget(gradus::join_path(o.model_dir, "eval"));
}

// What the run was, and what came of it, beside the evaluation's numbers: pages HPARAMS and TEXT.
void write_result(const options& o, const gradus::evaluation& result) {
  const std::int64_t step = result.global_step();
  gradus::summary_writer<> log(gradus::join_path(o.model_dir, "eval"));
  log.add_summary(gradus::hparams_start({{"batch", o.batch}, {"seed", o.seed}}), step);
  log.add_summary(
      gradus::text_summary("result", gradus::text("**", 100 * result["accuracy"], "%** of the test digits after ", step,
                                                  " steps of ", o.batch, " digits")),
      step);
  log.add_summary(gradus::hparams_end(gradus::trial_status::success), step);
  log.close();
}

// `how`: sync_replicas or all_reduce, which end with the same bits, or asynchronous. `more`: where updates are logged.
template <class How, class... More>
auto make_trainer(const options& o, const gradus::server& here, const How& how, const More&... more) {
  return gradus::make_trainer<digits::model>(
      gradus::connected{here}, how, more..., gradus::adam{},
      gradus::exponential_decay{.initial = 2e-3, .decay_steps = 300, .decay_rate = 0.7, .staircase = true},
      gradus::clip_by_global_norm{5.0}, gradus::exponential_moving_average{.decay = 0.99}, gradus::threads{o.threads},
      gradus::progress{},
      gradus::run_config{.model_dir = o.model_dir,
                         .tf_random_seed = o.seed,
                         .save_summary_steps = 10,
                         .save_checkpoints_steps = static_cast<double>(o.save_steps)});
}
auto test_digits(const std::string& data) { return gradus::idx(gradus::join_path(data, "test")).batch(1000); }

// One task: of a cluster, or alone.
template <class How = gradus::sync_replicas, class... More>
void train(const options& o, const std::string& data, const gradus::server& here, const How& how = {},
           const More&... more) {
  auto trainer = make_trainer(o, here, how, more...);
  auto batches = gradus::idx(gradus::join_path(data, "train"))
                     .shuffle(o.train_digits, o.seed)
                     .repeat()
                     .batch(o.batch / here.workers());
  if (here.workers() == 1)
    trainer.train(batches, {.max_steps = o.steps});
  else
    trainer.train(batches.shard(here.workers(), here.worker()), {.max_steps = o.steps});
  if (!here.is_chief()) return;

  const auto result = trainer.evaluate(test_digits(data));
  const auto averaged = trainer.evaluate(test_digits(data), {.use_averages = true, .name = "eval_averages"});
  std::printf("step %lld: test accuracy %.2f%%, loss %.4f (averaged parameters: %.2f%%)\n",
              static_cast<long long>(result.global_step()), 100 * result["accuracy"], result["loss"],
              100 * averaged["accuracy"]);
  write_result(o, result);
  if (o.profile) {
    auto some = gradus::idx(gradus::join_path(data, "train")).batch(o.batch);
    std::printf("%s", trainer.profile(some).table().c_str());
    gradus::summary_writer<> log(o.model_dir);  // beside the graph
    log.add_run_metadata("a step", gradus::step_times_of(trainer.profile(some, 1), trainer.steps()), o.steps);
    log.close();
  }
  std::printf("checkpoints and curves are in %s: tensorboard --logdir %s\n", o.model_dir.c_str(), o.model_dir.c_str());
}

#ifdef GRADUS_EXAMPLE_GRPC
// The evaluator: looks at each checkpoint that the chief writes, until the last.
void evaluate(const options& o, const std::string& data, const gradus::server& here) {
  gradus::for_each_checkpoint(gradus::posix{}, o.model_dir, [&](const std::string& path) {
    const auto seen = make_trainer(o, here, gradus::sync_replicas{})
                          .evaluate(test_digits(data), {.name = "evaluator", .checkpoint_path = path});
    std::printf("evaluator: step %lld: test accuracy %.2f%%\n", static_cast<long long>(seen.global_step()),
                100 * seen["accuracy"]);
    return seen.global_step() < o.steps;
  });
}

int run_task(const options& o, const std::string& data) {
  const auto config = gradus::run_config::from_environment();
  const gradus::server here(o.certs.empty() ? gradus::grpc{} : gradus::grpc{gradus::mtls{o.certs, config.task_type()}},
                            config);
  if (here.is_ps())
    here.join();
  else if (config.task_type() == "evaluator")
    evaluate(o, data, here);
  else
    train(o, data, here);
  here.finish();
  return 0;
}
#endif

#ifdef GRADUS_EXAMPLE_MPI
// A rank: of how many, only MPI knows.
void run_rank(const options& o) {
  gradus::mpi{}.run([&](gradus::server& here) {
    if (o.batch % here.workers() != 0 || (o.profile && here.workers() > 1))
      gradus::raise(
          gradus::status::invalid_argument,
          gradus::text("several ranks have no --profile, and share a batch evenly: ", o.batch, " by ", here.workers()));
    if (here.is_chief() && o.fresh) forget(o);
    train(o, find_data(o, here.worker()), here, gradus::all_reduce{});
  });
}
#endif

int run(const options& o) {
#ifdef GRADUS_EXAMPLE_MPI
  if (o.cluster == "mpi") return run_rank(o), 0;
#endif
  const bool in_cluster = !o.cluster.empty();
  if (in_cluster && o.cluster != "grpc" && (o.batch % o.workers != 0 || o.profile)) {
    std::fprintf(stderr, "digits: a cluster has no --profile, and its workers share a batch evenly: %lld by %d\n",
                 static_cast<long long>(o.batch), o.workers);
    return 1;
  }
  if (o.print_orders) {
    gradus::print_orders(o.logs, [](const std::string& line) { std::printf("%s\n", line.c_str()); });
    return 0;
  }
  if (o.logs.empty() && (o.asynchronous || o.cluster == "replay"))
    return std::fprintf(stderr, "digits: give the folder of the logs, --logs DIR, as well\n"), 1;
  const std::string data = find_data(o);
  if (o.fresh) forget(o);
#ifdef GRADUS_EXAMPLE_GRPC
  if (o.cluster == "grpc") return run_task(o, data);
#endif
  const auto task = [&](gradus::server& here) {
    if (here.is_ps()) return here.join();
    if (o.logs.empty()) return train(o, data, here);
    using how = gradus::distribution_strategy;
    train(o, data, here, o.asynchronous ? how(gradus::asynchronous{}) : how(gradus::sync_replicas{}),
          gradus::recovery::log{.directory = o.logs});
  };
  if (o.cluster == "in_process") {
    gradus::local_cluster{.ps = o.ps, .workers = o.workers}.run(task);
  } else if (o.cluster == "replay") {
    const auto r = gradus::replay{.logs = o.logs, .until = o.until}.run(task);
    std::printf("repeated updates %llu to %llu of %llu\n", static_cast<unsigned long long>(r.begin + 1),
                static_cast<unsigned long long>(r.end), static_cast<unsigned long long>(r.logged));
  } else if (o.cluster == "all_reduce") {
    gradus::local_cluster{.ps = 0, .workers = o.workers}.run(
        [&](gradus::server& here) { train(o, data, here, gradus::all_reduce{}); });
  } else if (in_cluster) {
    const auto report = gradus::simulated{.seed = o.seed,
                                          .ps = o.ps,
                                          .workers = o.workers,
                                          .faults = gradus::simulated_faults::drawn(o.seed),
                                          .most_secs = 1e6}
                            .run(task);
    const auto& c = report.counts;
    std::printf("%s\n", gradus::text("simulated with seed ", report.seed, ": ", report.secs, " s, ", c.messages,
                                     " messages, ", c.lost + c.cut_off, " lost, ", c.doubled, " doubled, ", c.late,
                                     " late, ", c.crashes + c.ps_crashes, " crashes; history ", report.hash)
                            .c_str());
  } else {
    train(o, data, gradus::server::create_local_server());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  options o;
  CLI::App app{
      "Trains a 784-128-10 classifier on handwritten digits: drawn by the program, or MNIST.\n"
      "Started again it continues from its last checkpoint."};
  app.add_option("--data", o.data, "folder with MNIST's IDX files, plain or .gz; without it digits are drawn");
  app.add_option("--model_dir", o.model_dir, "checkpoints and TensorBoard events")->capture_default_str();
  app.add_option("--cache", o.cache, "where drawn digits are kept")->capture_default_str();
  app.add_option("--steps", o.steps, "train until this global step")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000000000));
  app.add_option("--batch", o.batch, "examples per step")->capture_default_str()->check(CLI::Range(1, 100000));
  app.add_option("--train_digits", o.train_digits, "how many to draw for training")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000000000));
  app.add_option("--test_digits", o.test_digits, "how many to draw for testing")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000000000));
  app.add_option("--save_checkpoints_steps", o.save_steps, "steps between checkpoints; 0: none")
      ->capture_default_str()
      ->check(CLI::Range(0, 1000000000));
  app.add_option("--threads", o.threads, "threads of the executor")->capture_default_str()->check(CLI::Range(1, 1024));
  std::vector<std::string> clusters{"in_process", "simulated", "all_reduce", "replay"};
#ifdef GRADUS_EXAMPLE_GRPC
  app.add_option("--certs", o.certs,
                 "with --cluster grpc: folder of ca.pem, and of ROLE.pem and ROLE.key of each role");
  clusters.emplace_back("grpc");
#endif
#ifdef GRADUS_EXAMPLE_MPI
  clusters.emplace_back("mpi");
#endif
  app.add_option("--cluster", o.cluster,
                 "parameter servers and workers that share each batch: in_process, on threads; simulated, in virtual "
                 "time with faults; grpc, as the task of TF_CONFIG; replay, as the run of --logs was. Workers alone: "
                 "all_reduce, on threads; mpi, as the processes of mpirun")
      ->check(CLI::IsMember(clusters));
  app.add_option("--ps", o.ps, "parameter servers of the cluster")->capture_default_str()->check(CLI::Range(1, 64));
  app.add_option("--workers", o.workers, "workers of the cluster")->capture_default_str()->check(CLI::Range(1, 64));
  app.add_flag("--asynchronous", o.asynchronous, "workers do not wait for each other; takes --logs");
  app.add_option("--logs", o.logs, "folder in which parameter servers log updates (in_process, simulated, replay)");
  app.add_option("--until", o.until, "with --cluster replay: the last update to be repeated; 0: the last one logged");
  app.add_flag("--print_orders", o.print_orders, "print whose gradient is in which update of --logs, and nothing else");
  app.add_option("--seed", o.seed, "of initial values, shuffling, and simulated faults")->capture_default_str();
  app.add_flag("--fresh", o.fresh, "start over: delete the checkpoints and events in model_dir first");
  app.add_flag("--profile", o.profile,
               "when trained, print where the time of a step goes, and write it for TensorBoard");
  CLI11_PARSE(app, argc, argv);
  try {
    return run(o);
  } catch (const gradus::error& e) {
    std::fprintf(stderr, "digits: %s\n", e.what());
    return 1;
  }
}
