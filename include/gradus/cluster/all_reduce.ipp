// The bodies of all_reduce.hpp.
#pragma once
#include <cstring>

#include "../base/body.hpp"
#include "all_reduce.hpp"
#include "protocol/bytes.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY void check_all_reduce(const all_reduce& how, const server& here, bool has_log, bool has_places) {
  if (how.bucket_bytes < 1)
    raise(status::invalid_argument,
          text("all_reduce: expected bucket_bytes of 1 or more, found ", how.bucket_bytes, "; leave it out for 4 MiB"));
  rank_network* const ranks = here.network()->ranks();
  if (ranks == nullptr)
    raise(status::invalid_argument,
          text("all_reduce: the workers of this cluster have ", here.shards(),
               " parameter servers and do not reach each other; train with sync_replicas{}, or in a cluster without "
               "parameter servers: local_cluster{.ps = 0, .workers = ",
               here.workers(), "}, or gradus::mpi{} (cluster/mpi.hpp)"));
  if (how.sum == library_sum && !ranks->has_sum())
    raise(status::invalid_argument,
          "all_reduce: library_sum is MPI's, and these workers are not under MPI (cluster/mpi.hpp); leave it out");
  if (has_log)
    raise(status::invalid_argument,
          "all_reduce: recovery::log is kept by parameter servers, and there are none; leave it out: a run that is "
          "started again goes on from the chief's checkpoint");
  if (has_places)
    raise(
        status::invalid_argument,
        "all_reduce: a device function or a partitioner gives variables to parameter servers, and here every task has "
        "all variables; leave it out");
}

GRADUS_BODY void broadcast_state(rank_network& network, const state_list& list, write_guard* guard) {
  std::vector<std::byte> all;
  if (network.rank() == 0) {
    bytes_out out(all);
    for (const state_entry& e : list.entries())
      if (e.dynamic == nullptr) out.string(e.name), out.bytes(e.bytes);
  }
  broadcast(network, all);
  if (network.rank() == 0) return;
  bytes_in in(all, "state of worker 0");
  for (const state_entry& e : list.entries()) {
    if (e.dynamic != nullptr) continue;
    if (const std::string name = in.string(); name != e.name)
      in.refuse(text("it has \"", name, "\" where this task has \"", e.name, "\""));
    const std::span<const std::byte> bytes = in.bytes();
    if (bytes.size() != e.bytes.size())
      in.refuse(text("\"", e.name, "\" has ", bytes.size(), " bytes, and ", e.bytes.size(), " here"));
    if (guard != nullptr && guard->active()) guard->before_write(e.bytes);
    if (!bytes.empty()) std::memcpy(e.bytes.data(), bytes.data(), bytes.size());
  }
  in.end();
}

GRADUS_BODY void exchanged_rows::exchange(rank_network& network, std::span<double> outputs, std::int64_t divide_by) {
  // First every rank sends numbers: the bytes of each of its slices, and its outputs.
  const auto ranks = static_cast<std::size_t>(network.size());
  const std::span<const wire_slice> slices = variables_ == 0 ? std::span<const wire_slice>() : pushed_.by_shard()[0];
  std::vector<std::byte> own;
  bytes_out out(own);
  for (const wire_slice& s : slices) out.number(static_cast<std::uint64_t>(s.bytes.size()));
  for (const double x : outputs) out.number(x);
  if (own.empty()) return;
  const std::vector<std::byte> numbers = gather(network, own);
  const std::size_t each = own.size(), first_output = slices.size() * sizeof(std::uint64_t);
  const auto of_rank = [&](std::size_t k) { return numbers.data() + k * each; };
  if (!outputs.empty())
    sum_(outputs.data(), outputs.size(), ranks, 1, [&](std::size_t k) { return of_rank(k) + first_output; });
  if (slices.empty()) return;

  std::vector<std::size_t> sizes(ranks);  // the bytes of all slices of a rank
  const auto bytes_of = [&](std::size_t k, std::size_t slice) {
    std::uint64_t n = 0;
    std::memcpy(&n, of_rank(k) + slice * sizeof n, sizeof n);
    return static_cast<std::size_t>(n);
  };
  for (std::size_t k = 0; k < ranks; ++k)
    for (std::size_t s = 0; s < slices.size(); ++s) sizes[k] += bytes_of(k, s);
  own.clear();
  for (const wire_slice& s : slices) own.insert(own.end(), s.bytes.begin(), s.bytes.end());
  const std::vector<std::byte> all = gather(network, own, sizes);

  gathered_.resize(variables_);
  const auto append = [&](std::size_t slice, std::byte* to) {
    for (std::size_t k = 0, rank_at = 0; k < ranks; rank_at += sizes[k++]) {
      std::size_t at = rank_at;
      for (std::size_t s = 0; s < slice; ++s) at += bytes_of(k, s);
      const std::size_t n = bytes_of(k, slice);
      if (n != 0) std::memcpy(to, all.data() + at, n);
      to += n;
    }
  };
  for (std::size_t i = 0; i < variables_; ++i) {
    gathered& v = gathered_[i];
    std::size_t row_bytes = 0;
    v.bytes = 0;
    for (std::size_t k = 0; k < ranks; ++k) row_bytes += bytes_of(k, 2 * i), v.bytes += bytes_of(k, 2 * i + 1);
    v.type = slices[2 * i + 1].type;
    v.rows.resize(row_bytes / sizeof(std::int64_t));
    if (v.values.size() < v.bytes) v.values = aligned_buffer(v.bytes);
    append(2 * i, reinterpret_cast<std::byte*>(v.rows.data()));
    append(2 * i + 1, v.values.data());
    v.type == float64
        ? dense_sum::divide(reinterpret_cast<double*>(v.values.data()), v.bytes / sizeof(double), divide_by)
        : dense_sum::divide(reinterpret_cast<float*>(v.values.data()), v.bytes / sizeof(float), divide_by);
  }
}

GRADUS_BODY indexed_slices exchanged_rows::of(std::size_t i) const {
  const gathered& v = gathered_[i];
  const const_tensor_view rows(int64, {static_cast<std::int64_t>(v.rows.size())},
                               reinterpret_cast<const std::byte*>(v.rows.data()));
  return {rows, const_tensor_view(v.type, {static_cast<std::int64_t>(v.bytes / size_of(v.type))}, v.values.data())};
}

}  // namespace gradus::detail
