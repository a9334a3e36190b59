// What a session does that depends neither on its device nor on its policies: it finds fetches and feeds, keeps what
// was prepared for each set of fetches, and knows the variables of its graph.
#pragma once
#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "graph_update.hpp"
#include "run_result.hpp"
#include "session_resources.hpp"
#include "session_state.hpp"

namespace gradus::inline GRADUS_BUILD {

// What to compute: a tensor of the graph, or the name of a node.
struct fetch {
  const graph* g = nullptr;
  int id = -1;
  std::string_view name;
  fetch(const value& v) : g(v.g), id(v.id) {}
  fetch(std::string_view n) : name(n) {}
  fetch(const char* n) : name(n) {}
};
// What a placeholder holds in this run: a span, a vector, an xt::xtensor (with tensor/xtensor.hpp), a tensor view.
struct feed {
  const graph* g = nullptr;
  int id = -1;
  std::string_view name;
  const_tensor_view data;
  template <readable_array X>
  feed(const value& v, const X& x) : g(v.g), id(v.id), data(read_view(x)) {}
  template <readable_array X>
  feed(std::string_view n, const X& x) : name(n), data(read_view(x)) {}
};

namespace detail {
// Copies a feed into its placeholder, or only checks it if `to` is null; flat data is taken where the number of
// elements fits.
void accept_feed(std::string_view name, const shape& dims, dtype type, std::int64_t batch_size,
                 const const_tensor_view& data, std::byte* to);
// How many examples a feed holds; -1 if its placeholder has no batch extent.
std::int64_t batch_of(std::string_view name, const shape& dims, const const_tensor_view& data);

// A set of fetches: the part of the graph that they need, planned, and the memory of the runs of it. As many runs as
// overlap have memory of their own; a run that is over leaves its memory to the next.
class prepared_run final : public run_memory_owner {
public:
  struct placeholder {
    int original, node;  // in the session's graph, and in the part
  };
  std::vector<int> fetches;
  std::shared_ptr<const void> keeps;  // what `what` points into
  runnable what;
  std::vector<placeholder> placeholders;
  std::vector<resource_variable*> variables;  // of the part, in its order
  std::vector<bool> reads;                    // of these
  std::vector<resource_variable*> assigned;   // have a value after a run
  resource_variable* counts_draws = nullptr;  // random_step, unless the part writes it itself
  bool draws = false;                         // random numbers
  run_order::kind* kind = nullptr;

  prepared_run* next = nullptr;  // of the session's list

  // Memory of a run that is over, or new.
  run_lease take();
  void take_back(run_memory& m) override;

private:
  // A thread looks first where it has left memory, so that threads do not share cache lines.
  struct alignas(64) place {
    std::atomic<run_memory*> memory{nullptr};
  };
  std::array<place, thread_slots> idle_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<run_memory>> all_;
  run_memory* more_idle_ = nullptr;  // for which there was no place

  std::unique_ptr<run_memory> make();
};

class session_core {
public:
  session_core(graph& g, session_resources* shared);

  graph& of() const { return *g_; }
  session_resources& box() const { return *box_; }
  std::span<resource_variable* const> variables() const { return variables_; }
  resource_variable& variable(std::string_view name) const;  // error: not_found
  resource_variable* random_step() const { return random_step_; }

  // The train op that a node belongs to; null: none.
  graph_update* update_of(const graph_view& v, int id) const;
  std::vector<std::unique_ptr<graph_update>>& updates() { return updates_; }
  // Gives every variable that has no value one: start(v) where no optimizer does.
  void initialize(const std::function<void(resource_variable&)>& start);

  // What is ready to run for these fetches; null: nothing yet.
  prepared_run* prepared_for(std::span<const fetch> fetches);
  // Makes it, unless another thread has meanwhile. `build` has the pruned graph made ready.
  using builder = std::function<runnable(graph pruned, std::shared_ptr<const void>& keeps)>;
  prepared_run& prepare(std::span<const fetch> fetches, bool concurrent, const builder& build);
  // Checks the feeds and copies them to where the run reads them.
  void take_feeds(const prepared_run& p, run_memory& m, std::span<const feed> feeds) const;
  // Before the calls of a run, and after them; both in its turn.
  void start(const prepared_run& p, run_memory& m) const;
  void finish(const prepared_run& p, run_memory& m) const;

  void remembers(state_list& list);

private:
  graph* g_;
  std::unique_ptr<session_resources> own_;
  session_resources* box_;
  std::vector<resource_variable*> variables_;
  resource_variable* random_step_ = nullptr;
  std::vector<std::unique_ptr<graph_update>> updates_;
  variables_without_value without_value_{variables_};
  std::mutex building_;
  std::vector<std::unique_ptr<prepared_run>> prepared_;
  std::atomic<prepared_run*> first_prepared_{nullptr};  // the newest; what it leads to does not change

  resource_variable* find(std::string_view name) const;
  int id_of(const graph* g, int id, std::string_view name) const;
  int feed_id(const feed& f) const;
  // Checks feeds for the placeholders `fed`.
  std::int64_t check_feeds(const prepared_run& p, std::span<const feed> feeds, std::span<const int> fed) const;
  void check_updates(const runnable& r, bool concurrent) const;
  std::unique_ptr<prepared_run> made_for(std::span<const fetch> fetches, bool concurrent, const builder& build) const;
};
}  // namespace detail

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "session_core.ipp"
#endif
