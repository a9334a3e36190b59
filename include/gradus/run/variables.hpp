// The variables of a run are in flat arenas. Trainable ones come first, each on a cache line of its own; gradients and
// the arrays that an optimizer keeps beside a variable (mirrors) are arenas of the same layout. So a norm is one read,
// an update one sweep, a checkpoint one write.
#pragma once
#include "../base/build.hpp"

#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "../base/deferred.hpp"
#include "../base/fnv1a.hpp"
#include "../base/state.hpp"
#include "../graph/graph.hpp"
#include "../tensor/tensor.hpp"

namespace gradus::inline GRADUS_BUILD {

struct variable_info {
  std::string_view name;
  dtype type = dtype::none;
  shape dims;
  initializer init;
  bool trainable = false, local = false;
  bool initialized = false;
  std::size_t offset = 0, bytes = 0;

  std::size_t size() const { return static_cast<std::size_t>(gradus::count(dims)); }
};

// Streams of random numbers are distinguished by name, so that adding a variable leaves the others as they were.
constexpr std::uint64_t stream_of(std::string_view name) { return detail::fnv1a{}.text(name).value(); }

// The cache lines of an array that part `part` of `parts` parts updates.
struct line_range {
  std::size_t first, last;
};
constexpr line_range lines_of_part(std::size_t bytes, int part, int parts) {
  const std::size_t lines = align_up(bytes) / alignment, p = static_cast<std::size_t>(part);
  return {lines * p / static_cast<std::size_t>(parts), lines * (p + 1) / static_cast<std::size_t>(parts)};
}

class variable_arena {
public:
  // Declares a variable, or finds the one of this name, whose dtype and shape must then agree.
  int declare(const variable_info& v);
  // Lays the arenas out, once, after the last declaration. `mirrors` arenas lie beside the trainable part, each with
  // mirror_bytes(k, i) for variable i. By default that is the variable's own size, and the mirror has the variable's
  // offset.
  void allocate(std::size_t mirrors);
  template <class Bytes>
  void allocate(std::size_t mirrors, Bytes mirror_bytes) {
    allocate(mirrors, mirror_bytes, [this](auto zero_part) {
      for (std::size_t i = 0; i < infos_.size(); ++i) zero_part(i, 0, 1);
    });
  }
  // Does the same, but the thread that will update an arena of many pages zeroes it: a page lies in memory near the
  // first thread that wrote to it. touch(zero_part) calls zero_part(i, part, parts) for every part of every variable,
  // each on its thread; arenas that are small are zeroed here.
  template <class Bytes, class Touch>
  void allocate(std::size_t mirrors, Bytes mirror_bytes, Touch touch) {
    steps_ = find("global_step");
    std::size_t at = 0;
    for (int pass = 0; pass < 2; ++pass) {
      for (variable_info& v : infos_)
        if (v.trainable == (pass == 0)) v.offset = at, at += align_up(v.bytes);
      if (pass == 0) trainable_bytes_ = at;
    }
    all_bytes_ = at;
    at += trainable_bytes_;  // gradients
    detail::resize_to(mirror_offsets_, mirrors * infos_.size());
    detail::resize_to(mirror_bytes_, mirrors * infos_.size());
    for (std::size_t k = 0; k < mirrors; ++k)
      for (std::size_t i = 0; i < infos_.size(); ++i) {
        if (!infos_[i].trainable) continue;
        mirror_offsets_[k * infos_.size() + i] = at;
        mirror_bytes_[k * infos_.size() + i] = mirror_bytes(k, i);
        at += align_up(mirror_bytes(k, i));
      }
    bytes_ = at;
    if (bytes_ < aligned_buffer::large_from) {
      memory_ = aligned_buffer(bytes_);
      return;
    }
    memory_ = aligned_buffer::untouched(bytes_);
    touch([this](std::size_t i, int part, int parts) { zero_part(i, part, parts); });
  }
  // Zeroes part `part` of `parts` of the arrays of variable i: its value, gradient and mirrors.
  void zero_part(std::size_t i, int part, int parts);
  // Gives the memory of all mirrors back to the system until they are written again, if they are large and the system
  // takes it. Their values are lost.
  void release_mirrors();

  int find(std::string_view name) const;
  std::size_t size() const { return infos_.size(); }
  variable_info& info(std::size_t i) { return infos_[i]; }
  const variable_info& info(std::size_t i) const { return infos_[i]; }

  // Lists the variables that checkpoints hold, as remembers does (cluster/federated_server.hpp).
  template <class List>
  void list_variables(List& list) {
    for (std::size_t i = 0; i < infos_.size(); ++i)
      if (const variable_info& v = infos_[i]; !v.local && v.name != "global_step")
        list.tensor(v.name, v.type, resolve(v.dims, 1), std::span(value(i), v.bytes));
  }

  bool initialized() const;  // whether all variables of checkpoints have values
  // Counts how often the values were replaced by what is neither a step nor a restore (cluster/federated_server.hpp),
  // so that the owner of the run evaluates and saves them.
  std::int64_t& outside_writes() { return outside_writes_; }
  // Gives the model's own count of steps, the variable "global_step", its value: after each step, and after a restore,
  // since checkpoints hold it once, as the count of the stepper.
  void count_steps(std::int64_t global_step);

  std::byte* value(std::size_t i) { return memory_.data() + infos_[i].offset; }
  std::byte* gradient(std::size_t i) { return memory_.data() + all_bytes_ + infos_[i].offset; }
  std::byte* mirror(std::size_t k, std::size_t i) { return memory_.data() + mirror_offsets_[k * infos_.size() + i]; }
  // These are arenas of one layout: a variable's gradient has the variable's offset, and so have its mirrors where all
  // are of its size.
  std::byte* value_base() { return memory_.data(); }
  std::byte* mirror_base(std::size_t k) { return memory_.data() + all_bytes_ + (k + 1) * trainable_bytes_; }
  std::byte* gradient_base() { return memory_.data() + all_bytes_; }
  std::size_t trainable_bytes() const { return trainable_bytes_; }
  std::size_t mirror_bytes() const { return bytes_ - all_bytes_ - trainable_bytes_; }
  std::size_t bytes() const { return bytes_; }
  // Returns the variable of this name; raises not_found with the names that there are.
  tensor_view named(std::string_view name);
  tensor_view view(std::size_t i) { return {infos_[i].type, resolve(infos_[i].dims, 1), value(i)}; }
  // Returns a mirror that is shaped as its variable.
  tensor_view mirror_view(std::size_t k, std::size_t i);

private:
  std::vector<variable_info> infos_;
  aligned_buffer memory_;
  std::vector<std::size_t> mirror_offsets_, mirror_bytes_;  // of mirror k of variable i at index k size() + i
  int steps_ = -1;                                          // the model's own count of steps
  std::int64_t outside_writes_ = 0;
  std::size_t trainable_bytes_ = 0, all_bytes_ = 0, bytes_ = 0;
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "variables.ipp"
#endif
