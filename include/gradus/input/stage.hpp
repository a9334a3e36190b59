// This header defines datasets and the functions that all of them have.
//
// A dataset is a value that yields elements. An element is a row of components, each with a name, a dtype and extents.
// A dataset writes elements into memory of the caller and allocates nothing while it runs. A stage wraps a dataset in
// another dataset, so a pipeline is one type, which the compiler can optimize as a whole:
//
//   auto input = idx("data/mnist/train").shuffle(60000).repeat().batch(128);
//
// To write your own, derive from composable<yours> and provide
//   element_spec()           returns the components, the same for all elements; they live as long as the dataset
//   pull(out, first, n)      writes the next n elements into rows first, first+1, ... of the arrays `out` and returns
//                            how many, fewer than n only at the end. With an empty `out` it passes over them
//   rewind()                 begins the next iteration
//   define(text)             appends the kind of this dataset, with all that decides the order of elements
//   write(position) const    appends the position at which the dataset stands
//   read(position)           goes to a position; changes nothing unless position.apply()
// and, if it can give any element at any time, so that shuffle need not hold copies:
//   size()                   returns the number of elements
//   element(i, out, row)     writes element i into row `row`
// and optionally
//   pull(datum)              reads the next element (of a batched dataset: batch) with its own extents; returns false
//                            at the end. It is required if element_spec() holds any_extent
//   cardinality()            returns the number of elements (batches) of an iteration
//   external_state()         returns the name of the state that the stream depends on besides the position, or ""
//
// dataset.hpp lists the stages that most programs need, combinators.hpp all of them.
#pragma once
#include "../base/build.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../base/dtype.hpp"
#include "../base/error.hpp"
#include "../base/shape.hpp"
#include "../base/state.hpp"
#include "../tensor/tensor.hpp"
#include "cardinality.hpp"
#include "dataset_concept.hpp"
#include "datum.hpp"
#include "external_state.hpp"
#include "iterate.hpp"
#include "position.hpp"
#include "stage_list.hpp"

namespace gradus::inline GRADUS_BUILD {

// Every dataset has these functions. The stages are defined in headers of their own; dataset.hpp includes those of
// shuffle, repeat, take, skip, batch, prefetch and shard.
template <class Self>
class composable : public blob {
public:
  // Returns the elements in random order from a window of `buffer` elements (shuffle.hpp).
  auto shuffle(std::int64_t buffer, std::uint64_t seed = 0, bool reshuffle_each_iteration = true) const& {
    return shuffled_dataset<Self>(self(), buffer, seed, reshuffle_each_iteration);
  }
  auto shuffle(std::int64_t buffer, std::uint64_t seed = 0, bool reshuffle_each_iteration = true) && {
    return shuffled_dataset<Self>(std::move(self()), buffer, seed, reshuffle_each_iteration);
  }
  // Returns the elements n times over, or, for -1, for ever (repeat.hpp).
  auto repeat(std::int64_t n = -1) const& { return repeated_dataset<Self>(self(), n); }
  auto repeat(std::int64_t n = -1) && { return repeated_dataset<Self>(std::move(self()), n); }
  // Returns the first n elements (of batches: batches), -1 for all (repeat.hpp).
  auto take(std::int64_t n) const& { return taken_dataset<Self>(self(), n); }
  auto take(std::int64_t n) && { return taken_dataset<Self>(std::move(self()), n); }
  // Returns all but the first n elements (of batches: batches) (repeat.hpp).
  auto skip(std::int64_t n) const& { return skipped_dataset<Self>(self(), n); }
  auto skip(std::int64_t n) && { return skipped_dataset<Self>(std::move(self()), n); }
  // Returns batches of n elements, as a trainer consumes them (batch.hpp).
  auto batch(std::int64_t n, bool drop_remainder = false) const&
    requires(!batched_dataset<Self>)
  {
    return batches<Self>(self(), n, drop_remainder);
  }
  auto batch(std::int64_t n, bool drop_remainder = false) &&
        requires(!batched_dataset<Self>)
  {
    return batches<Self>(std::move(self()), n, drop_remainder);
  }
  Self batch(std::int64_t, bool = false) const&
    requires(batched_dataset<Self>)
  __attribute__((unavailable("gradus: this dataset is batched already; one batch(n) is enough")));
  // Adds a thread that reads up to n elements (of batches: batches) ahead (prefetch.hpp).
  auto prefetch(std::int64_t n) && { return prefetched_dataset<Self>(std::move(self()), n); }
  auto prefetch(std::int64_t n) const& { return prefetched_dataset<Self>(self(), n); }
  // The same, with a thread that `run` starts.
  auto prefetch(std::int64_t n, const task_system& run) && {
    return prefetched_dataset<Self>(std::move(self()), n, run);
  }
  auto prefetch(std::int64_t n, const task_system& run) const& { return prefetched_dataset<Self>(self(), n, run); }

  // Returns every count-th element, beginning with number `index` (shard.hpp).
  auto shard(std::int64_t count, std::int64_t index) const& { return shard_of<Self>(self(), count, index); }
  auto shard(std::int64_t count, std::int64_t index) && { return shard_of<Self>(std::move(self()), count, index); }

  // The stages below hold their source as an any_dataset (any_dataset.hpp); each has a header of its own.

  // Calls f(datum&), which changes an element (of a batched dataset: a batch) and keeps its components (map.hpp).
  auto map(auto f, const map_options& how = {}) && {
    static_assert(detail::complete<mapped_dataset<batched_dataset<Self>>>, GRADUS_HEADER_OF(map, map));
    return mapped_dataset<batched_dataset<Self>>(std::move(*this).detached(), std::move(f), how);
  }
  auto map(auto f, const map_options& how = {}) const& {
    static_assert(detail::complete<mapped_dataset<batched_dataset<Self>>>, GRADUS_HEADER_OF(map, map));
    return mapped_dataset<batched_dataset<Self>>(detached(), std::move(f), how);
  }
  // Calls f(const datum& from, datum& to), which makes another element, with the components `to` (map.hpp).
  auto map(components to, auto f, const map_options& how = {}) && {
    static_assert(detail::complete<mapped_dataset<batched_dataset<Self>>>, GRADUS_HEADER_OF(map, map));
    return mapped_dataset<batched_dataset<Self>>(std::move(*this).detached(), std::move(to), std::move(f), how);
  }
  auto map(components to, auto f, const map_options& how = {}) const& {
    static_assert(detail::complete<mapped_dataset<batched_dataset<Self>>>, GRADUS_HEADER_OF(map, map));
    return mapped_dataset<batched_dataset<Self>>(detached(), std::move(to), std::move(f), how);
  }
  // Returns the elements for which keep(const datum&) returns true (filter.hpp).
  auto filter(auto keep, const call_options& how = {}) && {
    static_assert(detail::complete<filtered_dataset<batched_dataset<Self>>>, GRADUS_HEADER_OF(filter, filter));
    return filtered_dataset<batched_dataset<Self>>(std::move(*this).detached(), std::move(keep), how);
  }
  auto filter(auto keep, const call_options& how = {}) const& {
    static_assert(detail::complete<filtered_dataset<batched_dataset<Self>>>, GRADUS_HEADER_OF(filter, filter));
    return filtered_dataset<batched_dataset<Self>>(detached(), std::move(keep), how);
  }
  // Returns the elements of this dataset and then those of `other` (concatenate.hpp).
  template <class Other>
  auto concatenate(Other&& other) && {
    static_assert(detail::complete<concatenated_dataset<batched_dataset<Self>>>,
                  GRADUS_HEADER_OF(concatenate, concatenate));
    return concatenated_dataset<batched_dataset<Self>>(std::move(*this).detached(), std::forward<Other>(other));
  }
  template <class Other>
  auto concatenate(Other&& other) const& {
    static_assert(detail::complete<concatenated_dataset<batched_dataset<Self>>>,
                  GRADUS_HEADER_OF(concatenate, concatenate));
    return concatenated_dataset<batched_dataset<Self>>(detached(), std::forward<Other>(other));
  }
  // Reads the elements once, and keeps them in memory or in a file (cache.hpp).
  auto cache(std::string path = {}) && {
    static_assert(detail::complete<cached_dataset<batched_dataset<Self>>>, GRADUS_HEADER_OF(cache, cache));
    return cached_dataset<batched_dataset<Self>>(std::move(*this).detached(), std::move(path));
  }
  // The same. `log` is called with the line that tells why a file is written again; without `log` the line goes to
  // stderr.
  template <class Log>
  auto cache(std::string path, Log log) && {
    static_assert(detail::complete<cached_dataset<batched_dataset<Self>>>, GRADUS_HEADER_OF(cache, cache));
    return cached_dataset<batched_dataset<Self>>(std::move(*this).detached(), std::move(path), std::move(log));
  }
  auto cache(std::string path = {}) const& {
    static_assert(detail::complete<cached_dataset<batched_dataset<Self>>>, GRADUS_HEADER_OF(cache, cache));
    return cached_dataset<batched_dataset<Self>>(detached(), std::move(path));
  }
  // Adds a component "index" in front, which counts from `start` (enumerate.hpp).
  auto enumerate(std::int64_t start = 0) && {
    static_assert(detail::complete<detail::later<Self, enumerated_dataset>>, GRADUS_HEADER_OF(enumerate, enumerate));
    return detail::later<Self, enumerated_dataset>(std::move(*this).detached(), start);
  }
  auto enumerate(std::int64_t start = 0) const& {
    static_assert(detail::complete<detail::later<Self, enumerated_dataset>>, GRADUS_HEADER_OF(enumerate, enumerate));
    return detail::later<Self, enumerated_dataset>(detached(), start);
  }
  // Returns windows, each of `size` stacked elements that are `stride` apart. A window begins every `shift` elements;
  // shift 0 means `size` (window.hpp).
  auto window(std::int64_t size, std::int64_t shift = 0, std::int64_t stride = 1, bool drop_remainder = false) && {
    static_assert(detail::complete<detail::later<Self, windowed_dataset>>, GRADUS_HEADER_OF(window, window));
    return detail::later<Self, windowed_dataset>(std::move(*this).detached(), size, shift, stride, drop_remainder);
  }
  auto window(std::int64_t size, std::int64_t shift = 0, std::int64_t stride = 1, bool drop_remainder = false) const& {
    static_assert(detail::complete<detail::later<Self, windowed_dataset>>, GRADUS_HEADER_OF(window, window));
    return detail::later<Self, windowed_dataset>(detached(), size, shift, stride, drop_remainder);
  }
  // Returns each element once (unique.hpp).
  auto unique() && {
    static_assert(detail::complete<detail::later<Self, unique_elements>>, GRADUS_HEADER_OF(unique, unique));
    return detail::later<Self, unique_elements>(std::move(*this).detached());
  }
  auto unique() const& {
    static_assert(detail::complete<detail::later<Self, unique_elements>>, GRADUS_HEADER_OF(unique, unique));
    return detail::later<Self, unique_elements>(detached());
  }
  // Returns batches of n elements, padded to one length (padded_batch.hpp).
  auto padded_batch(std::int64_t n, const detail::later<Self, padded_batch_options>& how = {}) && {
    static_assert(detail::complete<detail::later<Self, padded_batches>>, GRADUS_HEADER_OF(padded_batch, padded_batch));
    return detail::later<Self, padded_batches>(std::move(*this).detached(), n, how);
  }
  auto padded_batch(std::int64_t n, const detail::later<Self, padded_batch_options>& how = {}) const& {
    static_assert(detail::complete<detail::later<Self, padded_batches>>, GRADUS_HEADER_OF(padded_batch, padded_batch));
    return detail::later<Self, padded_batches>(detached(), n, how);
  }
  // Returns batches of elements of about the same length (bucket.hpp).
  auto bucket_by_sequence_length(auto length, const detail::later<Self, bucket_options>& how) && {
    static_assert(detail::complete<detail::later<Self, bucketed_batches>>,
                  GRADUS_HEADER_OF(bucket_by_sequence_length, bucket));
    return detail::later<Self, bucketed_batches>(std::move(*this).detached(), std::move(length), how);
  }
  auto bucket_by_sequence_length(auto length, const detail::later<Self, bucket_options>& how) const& {
    static_assert(detail::complete<detail::later<Self, bucketed_batches>>,
                  GRADUS_HEADER_OF(bucket_by_sequence_length, bucket));
    return detail::later<Self, bucketed_batches>(detached(), std::move(length), how);
  }
  // Returns the elements, which have the components `to`, of the datasets that f makes of each element, one dataset
  // after the other (interleave.hpp).
  auto flat_map(components to, auto f, const call_options& how = {}) && {
    static_assert(detail::complete<detail::later<Self, interleaved_dataset>>, GRADUS_HEADER_OF(flat_map, interleave));
    return detail::later<Self, interleaved_dataset>(std::move(*this).detached(), std::move(to), std::move(f), how);
  }
  auto flat_map(components to, auto f, const call_options& how = {}) const& {
    static_assert(detail::complete<detail::later<Self, interleaved_dataset>>, GRADUS_HEADER_OF(flat_map, interleave));
    return detail::later<Self, interleaved_dataset>(detached(), std::move(to), std::move(f), how);
  }
  // The same, but several datasets are open at a time and take turns (interleave.hpp).
  auto interleave(components to, auto f, const detail::later<Self, interleave_options>& how) && {
    static_assert(detail::complete<detail::later<Self, interleaved_dataset>>, GRADUS_HEADER_OF(interleave, interleave));
    return detail::later<Self, interleaved_dataset>(std::move(*this).detached(), std::move(to), std::move(f), how);
  }
  auto interleave(components to, auto f, const detail::later<Self, interleave_options>& how) const& {
    static_assert(detail::complete<detail::later<Self, interleaved_dataset>>, GRADUS_HEADER_OF(interleave, interleave));
    return detail::later<Self, interleaved_dataset>(detached(), std::move(to), std::move(f), how);
  }
  // Gathers elements by key. When a key has window_size of them, `reduce` makes a dataset of this window, whose
  // elements are returned (group_by_window.hpp).
  auto group_by_window(components to, auto key, auto reduce, auto window_size, const call_options& how = {}) && {
    static_assert(detail::complete<detail::later<Self, grouped_dataset>>,
                  GRADUS_HEADER_OF(group_by_window, group_by_window));
    return detail::later<Self, grouped_dataset>(std::move(*this).detached(), std::move(to), std::move(key),
                                                std::move(reduce), std::move(window_size), how);
  }
  auto group_by_window(components to, auto key, auto reduce, auto window_size, const call_options& how = {}) const& {
    static_assert(detail::complete<detail::later<Self, grouped_dataset>>,
                  GRADUS_HEADER_OF(group_by_window, group_by_window));
    return detail::later<Self, grouped_dataset>(detached(), std::move(to), std::move(key), std::move(reduce),
                                                std::move(window_size), how);
  }
  // Returns elements that are batches already, of at most n rows, as batches for a trainer (batch.hpp makes batches of
  // single elements).
  auto as_batches(std::int64_t n) && {
    static_assert(detail::complete<detail::later<Self, elements_as_batches>>, GRADUS_HEADER_OF(as_batches, as_batches));
    return detail::later<Self, elements_as_batches>(std::move(*this).detached(), n);
  }
  auto as_batches(std::int64_t n) const& {
    static_assert(detail::complete<detail::later<Self, elements_as_batches>>, GRADUS_HEADER_OF(as_batches, as_batches));
    return detail::later<Self, elements_as_batches>(detached(), n);
  }
  // Returns f(this), so that a part of a pipeline can be a function.
  auto apply(auto&& f) && { return f(std::move(self())); }
  auto apply(auto&& f) const& { return f(self()); }

  // Returns the number of elements (batches) of one iteration, or infinite_cardinality, or unknown_cardinality.
  std::int64_t cardinality() const {
    if constexpr (indexed_dataset<Self>)
      return self().size();
    else
      return unknown_cardinality;
  }
  // Returns the name of the state that the stream depends on besides its position, or "" if there is none.
  std::string external_state() const { return {}; }
  // Sets the policy of save for that state, if this is the last stage of the pipeline; the default is fail. `log` is
  // called with the warning.
  Self on_external_state(external_state_policy policy) && {
    rule_ = std::make_shared<const detail::external_state_rule>(policy);
    return std::move(self());
  }
  template <class Log>
  Self on_external_state(external_state_policy policy, Log log) && {
    rule_ = std::make_shared<const detail::logging_rule<Log>>(policy, std::move(log));
    return std::move(self());
  }

  // The loop for (const datum& e : dataset) gives the elements from the present position on.
  auto begin() { return unit_iterator<Self>(self()); }
  std::default_sentinel_t end() const { return {}; }
  // Reads the next element (of a batched dataset: batch) with its extents. Returns false at the end.
  bool next(datum& out) { return detail::read_unit(self(), out); }

  // Writes the next element or batch into `out`, which has one array for each component of element_spec().
  // A dataset writes one element into arrays of the components' extents, and returns false at the end.
  // A batched dataset writes up to batch_size() elements into arrays with room for so many rows, and returns how many,
  // 0 at the end.
  // Raises invalid_argument if an array does not fit its component.
  auto next(std::span<const tensor_view> out) {
    if constexpr (batched_dataset<Self>) {
      check(out, self().batch_size());
      return self().pull(out, 0, self().batch_size());
    } else {
      check(out, detail::one_element);
      return self().pull(out, 0, 1) == 1;
    }
  }
  // Writes up to n elements into arrays with room for n rows; returns how many, fewer than n only at the end.
  std::int64_t next_batch(std::span<const tensor_view> out, std::int64_t n) {
    static_assert(!batched_dataset<Self>, "gradus: this dataset has its batch already; call next(out)");
    if (n < 0) raise(status::invalid_argument, text("cannot read ", n, " elements"));
    check(out, n);
    return self().pull(out, 0, n);
  }

  // Adds the position to a list of state as one entry: where the next element comes from, with epochs and random draws.
  void remembers(state_list& list, std::string_view name = "input") { list.dynamic(name, *this); }

  // Raises failed_precondition if the stream depends on state besides the position, and on_external_state did not allow
  // it.
  void save(std::vector<std::byte>& out) const override { save(out, rule_.get()); }
  template <class Log>
  void save(std::vector<std::byte>& out, external_state_policy policy, const Log& log) const {
    save(out, detail::logging_rule<const Log&>(policy, log));
  }
  void save(std::vector<std::byte>& out, const detail::external_state_rule& rule) const { save(out, &rule); }
  // Raises data_loss if the position is damaged or belongs to another pipeline; this pipeline then stays where it is.
  void load(std::span<const std::byte> in) override {
    std::string definition;
    self().define(definition);
    for (const bool apply : {false, true}) {
      position_reader from(in, apply);
      detail::check_definition(from, definition);
      self().read(from);
      detail::check_end(from);
    }
  }

  // Returns true: if no step was made, a repaired pipeline may take the place of the one that failed.
  bool may_start_anew() const override { return true; }

protected:
  composable() = default;
  ~composable() = default;
  // Takes the policy of on_external_state from the dataset that this one will hold.
  template <class Other>
  void take_rule_of(const composable<Other>& held) {
    rule_ = held.rule_;
  }

private:
  template <class>
  friend class composable;

  Self& self() { return static_cast<Self&>(*this); }
  const Self& self() const { return static_cast<const Self&>(*this); }
  auto detached() && { return any_units<batched_dataset<Self>>(std::move(self())); }
  auto detached() const& { return any_units<batched_dataset<Self>>(self()); }

  // A null rule is that of external_state_policy::fail.
  void save(std::vector<std::byte>& out, const detail::external_state_rule* rule) const {
    detail::allow_by(rule, self().external_state());
    std::string definition;
    self().define(definition);
    position_writer to(out);
    detail::write_definition(to, definition);
    self().write(to);
  }
  void check(std::span<const tensor_view> out, std::int64_t rows) const {
    detail::check_rows(self().element_spec(), out, rows);
  }

  std::shared_ptr<const detail::external_state_rule> rule_;
};

}  // namespace gradus
#undef GRADUS_HEADER_OF
