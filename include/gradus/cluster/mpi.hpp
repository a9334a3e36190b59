// This header trains by all_reduce over MPI: mpirun starts a program once for each worker. It is the only header that
// includes mpi.h; neither the umbrella nor another header includes this one.
//
//   int main() {
//     gradus::mpi{}.run([](gradus::server& here) {
//       auto trainer = gradus::make_trainer<model>(gradus::connected{here}, gradus::all_reduce{}, gradus::adam{},
//                                                  gradus::run_config{.model_dir = "/shared/run"});
//       trainer.train(data().shard(here.workers(), here.worker()), {.max_steps = 10'000});
//     });
//   }
//
// Rank 0 is the chief. Without mpirun there is one process, which trains alone. An error that leaves the program of one
// rank ends the job: the error is printed, then MPI_Abort ends all ranks. If the job is started again, all ranks go on
// from the chief's last checkpoint.
#pragma once
#include "../base/build.hpp"

// These macros leave out MPI's old C++ bindings, which some implementations still have, and which need another library
// to link.
#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX 1
#endif
#ifndef MPICH_SKIP_MPICXX
#define MPICH_SKIP_MPICXX 1
#endif
#include <mpi.h>

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../base/error.hpp"
#include "rank_network.hpp"
#include "server.hpp"
#include "task_crew.hpp"

namespace gradus::inline GRADUS_BUILD {

struct mpi {
  static constexpr std::string_view protocol = "mpi";

  // Calls the program once in this process, and returns when the programs of all ranks have ended. MPI is initialized
  // before and finalized after it, unless it was initialized already.
  // Raises unavailable if MPI cannot be initialized, and, with one rank, the program's error. With several ranks such
  // an error ends the job, so run does not return.
  void run(const std::function<void(server& here)>& program) const;
};

namespace detail {

// A rank of MPI. Calls come from one thread at a time, which need not be the first.
class mpi_ranks final : public rank_network {
public:
  // The ranks of a communicator, which is duplicated.
  explicit mpi_ranks(MPI_Comm of) {
    check("MPI_Comm_dup", MPI_Comm_dup(of, &all_));
    MPI_Comm_rank(all_, &rank_);
    MPI_Comm_size(all_, &size_);
  }
  mpi_ranks(const mpi_ranks&) = delete;
  mpi_ranks& operator=(const mpi_ranks&) = delete;
  ~mpi_ranks() override { MPI_Comm_free(&all_); }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  bool all_take_part(bool this_one) override { return agreed(this_one, false).takes_part; }
  std::size_t send(int to, std::span<const std::byte> bytes) override {
    check("MPI_Isend",
          MPI_Isend(bytes.data(), count_of(bytes.size()), MPI_BYTE, to, 0, all_, &requests_.emplace_back()));
    return requests_.size() - 1;
  }
  std::size_t receive(int from, std::span<std::byte> into) override {
    check("MPI_Irecv",
          MPI_Irecv(into.data(), count_of(into.size()), MPI_BYTE, from, 0, all_, &requests_.emplace_back()));
    return requests_.size() - 1;
  }
  void wait(std::size_t number) override {
    check("MPI_Wait", MPI_Wait(&requests_[number], MPI_STATUS_IGNORE));
    if (++ended_ == requests_.size()) requests_.clear(), ended_ = 0;
  }
  bool has_sum() const override { return true; }
  void sum(dtype type, std::span<std::byte> values) override {
    check("MPI_Allreduce", MPI_Allreduce(MPI_IN_PLACE, values.data(), count_of(values.size() / size_of(type)),
                                         type == float64 ? MPI_DOUBLE : MPI_FLOAT, MPI_SUM, all_));
  }
  void fail(const std::exception_ptr& error) override { end_job(error); }

  // Announces to the other ranks that the program of this one has ended, until all have ended.
  void depart() {
    while (!agreed(false, true).has_ended) {
    }
  }
  // Prints the error, and ends all ranks.
  [[noreturn]] void end_job(const std::exception_ptr& error) const {
    std::fprintf(stderr, "gradus: worker %d of %d has failed: %s\n", rank_, size_, error_text(error).c_str());
    std::fflush(nullptr);
    MPI_Abort(all_, 1);
    std::abort();  // MPI_Abort does not return
  }

private:
  struct round {
    bool takes_part, has_ended;  // of all ranks
  };
  MPI_Comm all_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1;
  std::vector<MPI_Request> requests_;
  std::size_t ended_ = 0;  // number of requests that have ended

  static void check(const char* call, int result) {
    if (result != MPI_SUCCESS) raise(status::unavailable, text(call, " has failed with error ", result));
  }
  static int count_of(std::size_t n) {
    if (n > INT_MAX)
      raise(status::invalid_argument, text("a message of ", n,
                                           " bytes or values: MPI sends 2^31 - 1 at once at most; "
                                           "give all_reduce a smaller bucket_bytes"));
    return static_cast<int>(n);
  }
  round agreed(bool takes_part, bool has_ended) {
    int said[2] = {takes_part ? 1 : 0, has_ended ? 1 : 0};
    check("MPI_Allreduce", MPI_Allreduce(MPI_IN_PLACE, said, 2, MPI_INT, MPI_MIN, all_));
    return {said[0] != 0, said[1] != 0};
  }
};

// Initializes MPI, and finalizes it at the end of the block, unless it was initialized before.
class mpi_library {
public:
  mpi_library() {
    int runs = 0;
    MPI_Initialized(&runs);
    if (runs != 0) return;
    int level = MPI_THREAD_SINGLE;
    if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level) != MPI_SUCCESS)
      raise(status::unavailable, "MPI cannot be begun; start the program by mpirun, or leave mpi{} out");
    is_ours_ = true;
  }
  mpi_library(const mpi_library&) = delete;
  mpi_library& operator=(const mpi_library&) = delete;
  ~mpi_library() {
    if (is_ours_) MPI_Finalize();
  }

private:
  bool is_ours_ = false;
};

}  // namespace detail

inline void mpi::run(const std::function<void(server& here)>& program) const {
  const detail::mpi_library library;
  detail::mpi_ranks ranks(MPI_COMM_WORLD);
  if (ranks.size() == 1) {
    server here(server::local_def());
    return program(here);
  }
  try {
    job_tasks workers{"worker", {}};
    for (int k = 0; k < ranks.size(); ++k) workers.tasks.emplace_back(text("rank", k, ":0"));
    server here({.cluster = {workers}, .job_name = "worker", .task_index = ranks.rank(), .protocol = "mpi"},
                std::make_shared<detail::rank_task>(ranks), {});
    program(here);
  } catch (...) {
    ranks.end_job(std::current_exception());
  }
  ranks.depart();
}

}  // namespace gradus
