// A graph_summary turns the summaries of a graph, or tensors that a program names, into fetches of a run and values of
// its results.
//
//   const gradus::graph_summary all = gradus::merge_all(g);      // g.summary_scalar, summary_histogram, ...
//   writer.add_summary(all.values(s.run(all.fetches(), feeds)), step);
#pragma once
#include "../base/build.hpp"

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../run/base_session.hpp"
#include "../summary/values.hpp"

namespace gradus::inline GRADUS_BUILD {

class graph_summary {
public:
  graph_summary() = default;
  // Adds scalars and their tags. Raises invalid_argument for a tensor that is not one number.
  graph_summary(std::vector<std::pair<std::string, value>> scalars);
  graph_summary(std::initializer_list<std::pair<std::string, value>> scalars)
      : graph_summary(std::vector<std::pair<std::string, value>>(scalars)) {}

  // Returns true if there is nothing to show.
  bool empty() const { return shown_.empty(); }
  const std::vector<fetch>& fetches() const { return fetches_; }
  // Makes values from a run's results for the fetches. Raises what summarize_output raises (summary/outputs.hpp).
  summary_values values(std::span<const const_tensor_view> results) const;

private:
  friend graph_summary merge_all(graph& g);
  struct shown {
    int kind;  // of `output`
    std::string tag;
    std::size_t at;  // among the fetches; the rate of audio follows it
  };
  void add(int kind, std::string_view tag, value v);
  std::vector<shown> shown_;
  std::vector<fetch> fetches_;
};

// Returns all summaries of the graph, as tf.summary.merge_all does. Raises invalid_argument for a scalar that is not a
// number, and failed_precondition for images if nothing in the program can make them.
graph_summary merge_all(graph& g);

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "graph_summary.ipp"
#endif
