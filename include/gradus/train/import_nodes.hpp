// This header holds what an import knows about the nodes of a file, and about those that it has made: values, and the
// numbers that TensorFlow computes in a graph and that this library must know before a run (shapes, axes).
// graph_importer.hpp has the whole importer.
#pragma once
#include "../base/build.hpp"

#include <memory>
#include <string>
#include <vector>

#include "../graph/graph.hpp"
#include "../summary/graph_index.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// The largest extent of a graph that comes from elsewhere. How many elements a tensor may have, the graph says itself
// (graph/size_limit.hpp).
inline constexpr std::int64_t most_extent = std::int64_t{1} << 27;

class import_nodes {
public:
  graph& of() { return *g_; }
  const graph_index& nodes() const { return index_; }

protected:
  explicit import_nodes(graph_def d)
      : g_(std::make_unique<graph>(gradus::mode::predict)),
        index_(std::move(d)),
        made_(static_cast<std::size_t>(index_.size())) {}
  ~import_nodes() = default;

  // This is an extent, or a number of a shape that is computed: n, or n times the batch.
  struct number {
    std::int64_t n = 0;
    bool batch = false;
    bool operator==(const number&) const = default;
  };
  struct numbers {
    std::vector<number> list = {};
    bool scalar = false;
  };
  struct made_node {
    value v = {};
    status kind = status::unknown;
    std::string problem = {};
    bool done() const { return bool(v) || !problem.empty(); }
  };

  std::unique_ptr<graph> g_;
  graph_index index_;
  std::vector<made_node> made_;
  std::vector<int> needs_;  // nodes for which the one that is being made waits
  int steps_ = 0;           // that were needed to compute a shape

  made_node& at(int i) { return made_[static_cast<std::size_t>(i)]; }
  // Returns the tensor if it is there; otherwise adds its node to needs_. Raises the problem of a tensor that cannot be
  // made.
  value have(tensor_place t);
  bool have_all(const std::vector<tensor_place>& list, std::vector<value>& out);
  value input(int i, std::size_t k);
  [[noreturn]] void refuse(int i, std::string_view why, status kind = status::invalid_argument) const;

  dtype type_of(int i, std::string_view key) const;
  shape shape_of(int i, std::string_view key) const;
  void check_extents(int i, const shape& s) const;
  const tensor_def& constant_of(int i, tensor_place t) const;
  const tensor_def* constant_at(tensor_place t) const;
  // Reads a tensor of whole numbers that is known before a run; returns false if it waits for needs_.
  bool whole_numbers(int i, tensor_place t, numbers& out, int depth = 0);
  bool shape_numbers(int i, tensor_place t, shape& out);
  bool axes_of(int i, tensor_place t, int rank, int& mask, bool all_if_empty);
  static int to_extent(const import_nodes& self, int i, const number& n);

  // Add a node under the name of the file's node i, or a constant, under `name` unless it is empty.
  value add(const card& op, const std::vector<value>& operands, const std::vector<int>& words, int i);
  value constant(int i, const tensor_def& t, std::string_view name);
};

// Returns the elements of an int32 or int64 constant, and none for another type.
std::vector<std::int64_t> whole_numbers_in(const tensor_def& t);

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "import_nodes.ipp"
#endif
