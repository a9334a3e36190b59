// How the workers of a run without parameter servers sum what each has computed: arrays in buckets, rows, numbers.
//
// Each bucket is cut into as many slices as there are ranks. Every rank sends slice k to rank k, which adds the slices
// that it gets in the tree of microbatch{size} and sends the sum to all ranks. So each rank sends and receives less
// than twice the arrays' size however many ranks there are, and the additions of each number are those of one process.
// Each rank sends small buckets whole to all ranks, and every rank adds.
#pragma once
#include "../base/build.hpp"

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
  // The arrays are the same on all ranks, in memory that is laid out in the same way, and must not move. Arrays that
  // follow each other in memory share buckets. With `by_library` the network computes the sums (rank_network::sum),
  // once all arrays are final. Allocates memory for at most one more copy of each array.
  gradient_exchange(rank_network& network, std::vector<array> arrays, std::size_t bucket_bytes, bool by_library);

  // begin() begins a step. Then call ready(i) once for every array, in the same order on all ranks, when nothing
  // changes the array any more; full buckets are sent at once. finish() returns when the arrays hold the sums.
  void begin();
  void ready(std::size_t i);
  void finish();

  std::size_t bucket_count() const { return buckets_.size(); }

private:
  struct bucket {
    dtype type = dtype::none;
    std::span<std::byte> bytes = {};
    std::size_t arrays = 0, left = 0;  // number of arrays in it, and of those that are not final
    std::vector<std::size_t> sends, receives, sends_of_sum, receives_of_sum;  // numbers of messages
    std::vector<aligned_buffer> from;                                         // messages of other ranks
  };

  rank_network* network_;
  std::vector<array> arrays_;
  bool by_library_;
  std::vector<bucket> buckets_;
  std::vector<std::pair<std::size_t, std::size_t>> buckets_of_;  // the first and last bucket of each array
  dense_sum sum_;

  // Up to this size a bucket is sent whole, since a message then takes longer than the sending of its bytes.
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

// Returns the bytes of all ranks in the order of ranks; every rank gives the same number of bytes.
std::vector<std::byte> gather(rank_network& network, std::span<const std::byte> own);
// The same where rank k gives bytes_of_rank[k] bytes.
std::vector<std::byte> gather(rank_network& network, std::span<const std::byte> own,
                              std::span<const std::size_t> bytes_of_rank);
// Copies the bytes of rank 0 to all ranks.
void broadcast(rank_network& network, std::vector<std::byte>& bytes);

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "gradient_exchange.ipp"
#endif
