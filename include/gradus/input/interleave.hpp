// interleave and flat_map call a function that makes a dataset of each element, and give the elements of these
// datasets.
//
//   .interleave({{"line", uint8, {any_extent}}}, [](const datum& file) { return lines_of(file); },
//               {.cycle_length = 4, .block_length = 16})
//
// cycle_length datasets are open at a time, and take turns in which each gives block_length elements. When a dataset
// ends, the turn passes on, and the dataset of the source's next element takes its place in the cycle. flat_map does
// the same with one open dataset. The order is TensorFlow's, also with `parallel`, which gives every open dataset a
// thread that reads a block ahead. With `parallel` and without `deterministic`, a dataset that is not ready loses its
// turn.
//
// A position holds, for each open dataset, the element that it was made of and its position. So the function must
// always make the same dataset of the same element, or be declared stateful.
#pragma once
#include "../base/owned.hpp"
#include "prefetch.hpp"
#include "unit_stage.hpp"

namespace gradus::inline GRADUS_BUILD {

struct interleave_options {
  std::int64_t cycle_length = 1, block_length = 1;
  bool parallel = false;  // a thread for each open dataset reads a block ahead
  bool deterministic = true;
  bool stateful = false;  // the function depends on more than its argument, or makes datasets that do
};

class interleaved_dataset final : public detail::unit_stage<interleaved_dataset, false> {
  using function = std::function<any_dataset(const datum&)>;

public:
  // Makes flat_map.
  interleaved_dataset(any_dataset source, components to, function f, const call_options& how);
  interleaved_dataset(any_dataset source, components to, function f, const interleave_options& how);
  interleaved_dataset(interleaved_dataset&&) = default;
  interleaved_dataset& operator=(interleaved_dataset&&) = default;
  interleaved_dataset(const interleaved_dataset& o);
  interleaved_dataset& operator=(const interleaved_dataset& o);

  const components& element_spec() const { return spec_; }
  bool pull_unit(datum& out);
  void rewind();
  std::string external_state() const;
  void define(std::string& to) const;
  void write(position_writer& to) const;
  void read(position_reader& from);

private:
  // An open dataset, with or without a thread that reads ahead. Its position is the same in both cases.
  class opened {
  public:
    opened(any_dataset d, std::int64_t ahead);
    bool ready() { return ahead_.empty() || ahead_[0].ready(); }
    bool pull(datum& out) { return ahead_.empty() ? plain_[0].pull(out) : ahead_[0].pull(out); }
    void write(position_writer& to) const;
    void read(position_reader& from);

  private:
    std::vector<any_dataset> plain_;  // either plain_ or ahead_ holds one dataset
    std::vector<prefetched_dataset<any_dataset>> ahead_;
  };
  struct slot {
    datum from;  // the element that `made` was made of
    detail::owned<opened> made;
  };

  void turn();
  detail::owned<opened> make(const datum& element) const;

  any_dataset source_;
  components spec_;
  function f_;
  interleave_options how_;
  bool flat_ = false;
  std::vector<slot> open_;
  std::size_t at_ = 0, open_count_ = 0;
  std::int64_t given_ = 0;
  bool ended_ = false;
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "interleave.ipp"
#endif
