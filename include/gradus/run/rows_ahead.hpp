// When a training step begins, this class prefetches the rows that its sparse updates will change: where there are few,
// the latency of memory is most of the step, and so it overlaps with the forward pass.
//
// Which rows these are is guessed from the graph: a sparse gradient's row numbers come from a placeholder of as many
// numbers of the same type, perhaps with others in place of some (embedding_lookup_sparse). A wrong guess only costs
// time.
#pragma once
#include "../base/build.hpp"

#include <type_traits>
#include <utility>
#include <vector>

#include "../pass/minimize.hpp"
#include "machine.hpp"
#include "variables.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

class rows_ahead {
public:
  static constexpr std::size_t most = 256;  // rows: with a few slots each they fit the nearest caches

  // Analyses the updates of a training graph.
  void find(const runnable& r);
  // For every such update that has few rows, prefetches those of the variable and of its slots. It does so only where
  // all variables are updated alike and some update may be sparse.
  template <class Device, class Update, bool MayBeSparse = true>
  void ask(step_machine& m, variable_arena& variables) const {
    if constexpr (Update::uniform && MayBeSparse)
      for (const pair& p : found_) {
        const node& update = m.what().at(p.update);
        const tensor_view ids = m.view(p.ids);
        if (ids.size() > most) continue;
        update.type == float64 ? ask_of<Device, Update, double>(m, variables, update, ids, m.source(p.ids))
                               : ask_of<Device, Update, float>(m, variables, update, ids, m.source(p.ids));
      }
  }

private:
  static constexpr int deepest = 8;
  struct pair {
    int update, ids;
  };
  std::vector<pair> found_;

  template <class Device, class Update, class T>
  static void ask_of(step_machine& m, variable_arena& variables, const node& update, const tensor_view& ids,
                     const std::byte* rows) {
    using single_type = std::remove_cvref_t<decltype(std::declval<const Update&>().single())>;
    std::byte* const theta = m.address(m.what().graph.view.edges[update.first]);
    T* mirrors[single_type::mirror_count + 1] = {};
    for (std::size_t k = 0; k < single_type::mirror_count; ++k)
      mirrors[k] = reinterpret_cast<T*>(variables.mirror_base(k) + (theta - variables.value_base()));
    const auto many = static_cast<std::size_t>(update.dims[0]);
    const std::size_t width = many == 0 ? 0 : static_cast<std::size_t>(gradus::count(update.dims)) / many;
    const auto prefetch = [&]<class Index>(const Index* at) {
      Device::template prefetch_rows<single_type>(reinterpret_cast<const T*>(theta), mirrors, many, width, at,
                                                  ids.size());
    };
    ids.type == int64 ? prefetch(reinterpret_cast<const std::int64_t*>(rows))
                      : prefetch(reinterpret_cast<const std::int32_t*>(rows));
  }
  static int placeholder_of(const runnable& r, int i, const node& rows, int depth);
};

}  // namespace gradus::inline GRADUS_BUILD::detail

#ifndef GRADUS_COMPILED
#include "rows_ahead.ipp"
#endif
