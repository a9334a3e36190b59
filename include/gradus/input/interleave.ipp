// The bodies of interleave.hpp.
#pragma once
#include "../base/body.hpp"
#include "interleave.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY interleaved_dataset::interleaved_dataset(any_dataset source, components to, function f,
                                                     const call_options& how)
    : interleaved_dataset(std::move(source), std::move(to), std::move(f),
                          interleave_options{.stateful = how.stateful}) {
  flat_ = true;
}

GRADUS_BODY interleaved_dataset::interleaved_dataset(any_dataset source, components to, function f,
                                                     const interleave_options& how)
    : source_(std::move(source)),
      spec_(detail::announced(std::move(to), "interleave or flat_map")),
      f_(std::move(f)),
      how_(how) {
  if (!f_) raise(status::invalid_argument, "interleave: expected a function");
  if (how.cycle_length < 1 || how.cycle_length > 65536 || how.block_length < 1)
    raise(status::invalid_argument, text("interleave: cycle_length must be 1 to 65536 and block_length > 0, found ",
                                         how.cycle_length, " and ", how.block_length));
  open_.resize(static_cast<std::size_t>(how.cycle_length));
}

GRADUS_BODY interleaved_dataset::interleaved_dataset(const interleaved_dataset& o)
    : unit_stage(o), source_(o.source_), spec_(o.spec_), f_(o.f_), how_(o.how_), flat_(o.flat_), open_(o.open_.size()) {
  std::vector<std::byte> at;
  position_writer to(at);
  o.write(to);
  position_reader from(at, true);
  read(from);
}

GRADUS_BODY interleaved_dataset& interleaved_dataset::operator=(const interleaved_dataset& o) {
  interleaved_dataset copy(o);
  return *this = std::move(copy);
}

GRADUS_BODY bool interleaved_dataset::pull_unit(datum& out) {
  std::size_t passed = 0;  // open datasets passed over in a row, because they were not ready
  while (!ended_ || open_count_ > 0) {
    slot& s = open_[at_];
    if (s.made != nullptr) {
      if (how_.parallel && !how_.deterministic && passed < open_.size() && !s.made->ready()) {
        ++passed;
        turn();
        continue;
      }
      if (s.made->pull(out)) {
        detail::check_unit(out, spec_, false, "interleave's function");
        if (++given_ == how_.block_length) turn();
        return true;
      }
      s.made.reset();
      --open_count_;
      turn();
    } else if (!ended_) {
      if (source_.pull(s.from)) {
        s.made = make(s.from);
        ++open_count_;
      } else {
        ended_ = true;
      }
    } else {
      ++passed;
      turn();
    }
  }
  return false;
}

GRADUS_BODY void interleaved_dataset::rewind() {
  source_.rewind();
  for (auto& s : open_) s.made.reset();
  at_ = 0, given_ = 0, open_count_ = 0, ended_ = false;
}

GRADUS_BODY std::string interleaved_dataset::external_state() const {
  return how_.stateful ? text("a function of ", flat_ ? "flat_map" : "interleave") : source_.external_state();
}

GRADUS_BODY void interleaved_dataset::define(std::string& to) const {
  source_.define(to);
  to += flat_ ? text(".flat_map(", to_text(spec_), ")")
              : text(".interleave(", to_text(spec_), "; ", how_.cycle_length, ", ", how_.block_length, ")");
}

GRADUS_BODY void interleaved_dataset::write(position_writer& to) const {
  to.number(ended_ ? 1 : 0);
  to.number(static_cast<std::int64_t>(at_));
  to.number(given_);
  for (const auto& s : open_) {
    to.number(s.made != nullptr ? 1 : 0);
    if (s.made == nullptr) continue;
    s.from.write(to);
    s.made->write(to);
  }
  source_.write(to);
}

GRADUS_BODY void interleaved_dataset::read(position_reader& from) {
  const bool ended = from.number(0, 1, "whether interleave's source has ended") == 1;
  const auto at = from.number(0, how_.cycle_length - 1, "whose turn it is in interleave");
  const auto given = from.number(0, how_.block_length - 1, "what was given in this turn of interleave");
  std::vector<slot> open(open_.size());
  std::size_t count = 0;
  for (auto& s : open) {
    if (from.number(0, 1, "whether a dataset is open in interleave") == 0) continue;
    ++count;
    s.from.read(from, source_.element_spec());
    s.made = make(s.from);
    s.made->read(from);
  }
  source_.read(from);
  if (!from.apply()) return;
  open_ = std::move(open), open_count_ = count;
  at_ = static_cast<std::size_t>(at), given_ = given, ended_ = ended;
}

GRADUS_BODY interleaved_dataset::opened::opened(any_dataset d, std::int64_t ahead) {
  if (ahead > 0)
    ahead_.emplace_back(std::move(d), ahead);
  else
    plain_.push_back(std::move(d));
}

GRADUS_BODY void interleaved_dataset::opened::write(position_writer& to) const {
  if (!ahead_.empty()) return ahead_[0].write(to);
  to.number(0);  // as prefetch writes it: nothing was taken since
  plain_[0].write(to);
}

GRADUS_BODY void interleaved_dataset::opened::read(position_reader& from) {
  if (!ahead_.empty()) return ahead_[0].read(from);
  const auto behind = from.number(0, 256, "what prefetch delivered");
  plain_[0].read(from);
  if (from.apply())
    for (std::int64_t i = 0; i < behind; ++i) plain_[0].pull({}, 0, 1);
}

GRADUS_BODY void interleaved_dataset::turn() {
  at_ = (at_ + 1) % open_.size();
  given_ = 0;
}

GRADUS_BODY detail::owned<interleaved_dataset::opened> interleaved_dataset::make(const datum& element) const {
  any_dataset d = f_(element);
  if (const auto outside = d.external_state(); !outside.empty() && !how_.stateful)
    raise(status::invalid_argument, text("interleave: the function made a dataset that depends on outside state (",
                                         outside, "); declare it with .stateful = true"));
  components spec = spec_;
  if (!detail::unite(spec, d.element_spec()))
    raise(status::invalid_argument, text("interleave: expected a function that makes datasets of ", to_text(spec_),
                                         ", it made one of ", to_text(d.element_spec())));
  return detail::make_owned<opened>(std::move(d), how_.parallel ? std::min<std::int64_t>(how_.block_length, 1024) : 0);
}

}  // namespace gradus
