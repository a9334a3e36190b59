// A program lists its summaries once in named collections of calls, as TensorFlow keeps tf.summary's ops in a graph's
// collections.
//
//   summary_collections all;
//   all.add([&] { return histogram_summary("hidden/kernel", weights); });
//   ...
//   if (const auto values = merge_all_summaries(all)) writer.add_summary(*values, step);
#pragma once
#include "../base/build.hpp"

#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "values.hpp"

namespace gradus::inline GRADUS_BUILD {

// Collections of functions that make values. `merge_all` runs those of one collection, in the order in which they were
// added, and merges their values. The summaries of a graph (g.summary_scalar, ...) are the graph's own collection
// "summaries"; its merge_all is `summarize_outputs` (outputs.hpp), which a trainer calls.
class summary_collections {
public:
  using maker = std::function<summary_values()>;
  static constexpr std::string_view summaries = "summaries";  // where TensorFlow puts a summary by default

  void add(maker make, std::initializer_list<std::string_view> collections = {summaries});
  // Returns nullopt if the collection is empty. Raises invalid_argument for a tag that occurs twice.
  std::optional<summary_values> merge_all(std::string_view collection = summaries) const;

private:
  std::vector<maker> makers_;
  std::vector<std::pair<std::string, std::size_t>> members_;
};

// Does the same as `merge_all`. tf.merge_all_summaries(key) uses the collections of the default graph instead.
std::optional<summary_values> merge_all_summaries(const summary_collections& of,
                                                  std::string_view key = summary_collections::summaries);

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "collections.ipp"
#endif
