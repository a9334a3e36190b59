// group_by_window gathers elements by a key. When a key has its number of elements, a function makes a dataset of them,
// and group_by_window gives the elements of that dataset. At the end of the source it does the same with the groups
// that are left, the smallest key first.
//
//   .group_by_window({{"x", float32, {any_extent, 8}}}, [](const datum& e) { return e.value<std::int64_t>("label"); },
//                    [](std::int64_t, any_dataset window) { return std::move(window).batch(16); },
//                    [](std::int64_t) { return 16; })
#pragma once
#include "../base/build.hpp"

#include <map>

#include "elements.hpp"

namespace gradus::inline GRADUS_BUILD {

class grouped_dataset final : public detail::unit_stage<grouped_dataset, false> {
public:
  using key_function = std::function<std::int64_t(const datum&)>;
  using reduce_function = std::function<any_dataset(std::int64_t, any_dataset)>;
  using size_function = std::function<std::int64_t(std::int64_t)>;

  grouped_dataset(any_dataset source, components to, key_function key, reduce_function reduce, size_function size,
                  const call_options& how);

  const components& element_spec() const { return spec_; }
  bool pull_unit(datum& out);
  void rewind();
  std::string external_state() const;
  void define(std::string& to) const;
  // The position is the groups; the window that is being given, with its elements and its position; and the source's
  // position.
  void write(position_writer& to) const;
  void read(position_reader& from);

private:
  any_dataset make(std::int64_t key, const std::vector<datum>& list) const;
  void flush(std::int64_t key);

  any_dataset source_;
  components spec_;
  key_function key_;
  reduce_function reduce_;
  size_function size_;
  call_options how_;
  std::map<std::int64_t, std::vector<datum>> groups_;
  std::vector<any_dataset> now_;  // the window that is being given, if any
  std::vector<datum> made_of_;
  std::int64_t now_key_ = 0;
  bool ended_ = false;
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "group_by_window.ipp"
#endif
