// How the workers of a run without parameter servers sum what each has computed: arrays in buckets, rows, numbers.
//
// Each bucket is cut into as many slices as there are ranks. Every rank sends slice k to rank k, which adds all it gets
// in the tree of microbatch{size} and sends the sum to all. So a rank sends and receives less than two arrays however
// many ranks there are, and the additions of each number are those of one process. Small buckets go whole from each
// rank to all, and every rank adds.
#pragma once
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "../tensor/tensor.hpp"
#include "rank_network.hpp"
#include "set_sums.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

class gradient_exchange {
public:
  // An array of each rank, which becomes the sum of all ranks' arrays.
  struct array {
    dtype type = dtype::none;  // float32 or float64
    std::span<std::byte> bytes = {};
  };
  // The arrays are the same on all ranks, but for where they lie; they do not move. Those that follow each other in
  // memory share buckets. `by_library`: the sums are the network's (rank_network::sum), once all arrays are final.
  // Takes memory for at most one array of each once more.
  gradient_exchange(rank_network& network, std::vector<array> arrays, std::size_t bucket_bytes, bool by_library);

  // A step; then ready(i) once for every array, in the same order on all ranks, when nothing changes it any more: full
  // buckets are sent at once. finish() returns with the sums in the arrays' places.
  void begin();
  void ready(std::size_t i);
  void finish();

  std::size_t bucket_count() const { return buckets_.size(); }

private:
  struct bucket {
    dtype type = dtype::none;
    std::span<std::byte> bytes = {};
    std::size_t arrays = 0, left = 0;  // that lie in it, and those that are not final
    std::vector<std::size_t> sends, receives, sends_of_sum, receives_of_sum;  // numbers of messages
    std::vector<aligned_buffer> from;                                         // messages of other ranks
  };

  rank_network* network_;
  std::vector<array> arrays_;
  bool by_library_;
  std::vector<bucket> buckets_;
  std::vector<std::pair<std::size_t, std::size_t>> buckets_of_;  // of each array: first and last
  dense_sum sum_;

  // Below this a bucket is sent whole: a message takes longer than its bytes.
  static constexpr std::size_t small_bytes = std::size_t{1} << 14;

  std::size_t size() const { return static_cast<std::size_t>(network_->size()); }
  std::size_t rank() const { return static_cast<std::size_t>(network_->rank()); }
  bool is_whole(const bucket& b) const { return b.bytes.size() <= small_bytes; }
  std::span<std::byte> slice(const bucket& b, std::size_t k) const;
  void cut(std::size_t bucket_bytes);
  void start(bucket& b);
  void add_and_send(bucket& b);
  void add(const bucket& b, std::span<std::byte> to);
  void wait(std::vector<std::size_t>& messages);
};

// Gathers the same bytes of every rank, as many of each, in the order of ranks.
std::vector<std::byte> gather(rank_network& network, std::span<const std::byte> own);
// As many of each as it says.
std::vector<std::byte> gather(rank_network& network, std::span<const std::byte> own,
                              std::span<const std::size_t> bytes_of_rank);
// Those of rank 0, on all.
void broadcast(rank_network& network, std::vector<std::byte>& bytes);

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "gradient_exchange.ipp"
#endif
