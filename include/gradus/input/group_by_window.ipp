// The bodies of group_by_window.hpp.
#pragma once
#include "../base/body.hpp"
#include "group_by_window.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY grouped_dataset::grouped_dataset(any_dataset source, components to, key_function key,
                                             reduce_function reduce, size_function size, const call_options& how)
    : source_(std::move(source)),
      spec_(detail::announced(std::move(to), "group_by_window")),
      key_(std::move(key)),
      reduce_(std::move(reduce)),
      size_(std::move(size)),
      how_(how) {
  if (!key_ || !reduce_ || !size_) raise(status::invalid_argument, "group_by_window: expected three functions");
}

GRADUS_BODY bool grouped_dataset::pull_unit(datum& out) {
  for (;;) {
    if (!now_.empty()) {
      if (now_[0].pull(out)) {
        detail::check_unit(out, spec_, false, "group_by_window's reduce function");
        return true;
      }
      now_.clear(), made_of_.clear();
    }
    if (ended_ && groups_.empty()) return false;
    if (ended_) {
      flush(groups_.begin()->first);
      continue;
    }
    datum next;
    if (!source_.pull(next)) {
      ended_ = true;
      continue;
    }
    const std::int64_t key = key_(next);
    auto& group = groups_[key];
    group.push_back(std::move(next));
    const std::int64_t full = size_(key);
    if (full < 1)
      raise(status::invalid_argument,
            text("group_by_window: window size must be greater than zero, but got ", full, " for key ", key));
    if (static_cast<std::int64_t>(group.size()) >= full) flush(key);
  }
}

GRADUS_BODY void grouped_dataset::rewind() {
  source_.rewind();
  groups_.clear(), now_.clear(), made_of_.clear();
  ended_ = false;
}

GRADUS_BODY std::string grouped_dataset::external_state() const {
  return how_.stateful ? "a function of group_by_window" : source_.external_state();
}

GRADUS_BODY void grouped_dataset::define(std::string& to) const {
  source_.define(to);
  to += text(".group_by_window(", to_text(spec_), ")");
}

GRADUS_BODY void grouped_dataset::write(position_writer& to) const {
  to.number(ended_ ? 1 : 0);
  to.number(static_cast<std::int64_t>(groups_.size()));
  for (const auto& [key, list] : groups_) {
    to.number(key);
    detail::write_data(to, list);
  }
  to.number(now_.empty() ? 0 : 1);
  if (!now_.empty()) {
    to.number(now_key_);
    detail::write_data(to, made_of_);
    detail::write_made(to, now_[0]);
  }
  source_.write(to);
}

GRADUS_BODY void grouped_dataset::read(position_reader& from) {
  constexpr auto least = std::numeric_limits<std::int64_t>::min(), most = std::numeric_limits<std::int64_t>::max();
  using list = std::vector<datum>;
  const components& spec = source_.element_spec();
  const bool ended = from.number(0, 1, "whether the source of group_by_window has ended") == 1;
  std::map<std::int64_t, list> groups;
  for (auto n = from.number(0, static_cast<std::int64_t>(from.left() / 16), "the groups"); n > 0; --n) {
    const auto key = from.number(least, most, "a group's key");
    groups[key] = detail::read_data<list>(from, spec, "the elements of a group");
  }
  std::vector<any_dataset> now;
  list made_of;
  std::int64_t now_key = 0;
  if (from.number(0, 1, "whether a window comes out") == 1) {
    now_key = from.number(least, most, "a window's key");
    made_of = detail::read_data<list>(from, spec, "the elements of a window");
    now.push_back(make(now_key, made_of));
    detail::read_made(from, now[0]);
  }
  source_.read(from);
  if (!from.apply()) return;
  groups_ = std::move(groups), now_ = std::move(now), made_of_ = std::move(made_of);
  now_key_ = now_key, ended_ = ended;
}

GRADUS_BODY any_dataset grouped_dataset::make(std::int64_t key, const std::vector<datum>& list) const {
  any_dataset d = reduce_(key, from_elements(source_.element_spec(), list));
  if (const auto outside = d.external_state(); !outside.empty() && !how_.stateful)
    raise(status::invalid_argument, text("group_by_window: the function made a dataset that depends on outside state "
                                         "(",
                                         outside, "); declare it with .stateful = true"));
  return d;
}

GRADUS_BODY void grouped_dataset::flush(std::int64_t key) {
  made_of_ = std::move(groups_.find(key)->second);
  groups_.erase(key);
  now_key_ = key;
  now_.push_back(make(key, made_of_));
}

}  // namespace gradus
