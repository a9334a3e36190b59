// The bodies of generator.hpp.
#pragma once
#include "../base/body.hpp"
#include "generator.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY generated_dataset::generated_dataset(components spec, begin_function begin, const call_options& how)
    : spec_(detail::announced(std::move(spec), "from_generator")), begin_(std::move(begin)), how_(how) {
  if (!begin_) raise(status::invalid_argument, "from_generator: expected a function");
}

GRADUS_BODY generated_dataset::generated_dataset(const generated_dataset& o)
    : unit_stage(o), spec_(o.spec_), begin_(o.begin_), how_(o.how_), given_(o.given_), ended_(o.ended_) {}

GRADUS_BODY generated_dataset& generated_dataset::operator=(const generated_dataset& o) {
  generated_dataset copy(o);
  return *this = std::move(copy);
}

GRADUS_BODY bool generated_dataset::pull_unit(datum& out) {
  if (ended_) return false;
  if (!next_) {
    auto next = begin_();
    for (std::int64_t i = 0; i < given_; ++i) {
      out.conform(spec_);
      if (!next(out))
        raise(status::data_loss, text("from_generator: the position is after ", given_,
                                      " elements, but the function "
                                      "made only ",
                                      i, "; it is another one, or depends on more"));
    }
    next_ = std::move(next);  // now that it is where the position is
  }
  out.conform(spec_);
  if (!next_(out)) {
    ended_ = true;
    return false;
  }
  detail::check_unit(out, spec_, false, "from_generator's function");
  ++given_;
  return true;
}

GRADUS_BODY void generated_dataset::rewind() {
  next_ = nullptr;
  given_ = 0, ended_ = false;
}

GRADUS_BODY void generated_dataset::write(position_writer& to) const {
  to.number(given_);
  to.number(ended_ ? 1 : 0);
}

GRADUS_BODY void generated_dataset::read(position_reader& from) {
  const auto given = from.number(0, std::numeric_limits<std::int64_t>::max(), "what the generator made");
  const bool ended = from.number(0, 1, "whether the generator has ended") == 1;
  if (!from.apply()) return;
  next_ = nullptr;
  given_ = given, ended_ = ended;
}

GRADUS_BODY generated_dataset from_generator(components spec, generated_dataset::begin_function begin,
                                             const call_options& how) {
  return {std::move(spec), std::move(begin), how};
}

}  // namespace gradus
