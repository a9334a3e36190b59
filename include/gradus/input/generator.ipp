// The bodies of generator.hpp.
#pragma once
#include "../base/body.hpp"
#include "generator.hpp"

namespace gradus {

GRADUS_BODY generated::generated(components spec, begin_function begin, const calling& how)
    : spec_(detail::announced(std::move(spec), "from_generator")), begin_(std::move(begin)), how_(how) {
  if (!begin_) raise(status::invalid_argument, "from_generator: expected a function");
}

GRADUS_BODY generated::generated(const generated& o)
    : unit_stage(o), spec_(o.spec_), begin_(o.begin_), how_(o.how_), given_(o.given_), ended_(o.ended_) {}

GRADUS_BODY generated& generated::operator=(const generated& o) {
  generated copy(o);
  return *this = std::move(copy);
}

GRADUS_BODY bool generated::pull_unit(datum& out) {
  if (ended_) return false;
  if (!next_) {
    next_ = begin_();
    for (std::int64_t i = 0; i < given_; ++i) {
      out.conform(spec_);
      if (!next_(out))
        raise(status::data_loss, text("from_generator: the position is after ", given_,
                                      " elements, but the function "
                                      "made only ",
                                      i, "; it is another one, or depends on more"));
    }
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

GRADUS_BODY void generated::rewind() {
  next_ = nullptr;
  given_ = 0, ended_ = false;
}

GRADUS_BODY void generated::write(position_writer& to) const {
  to.number(given_);
  to.number(ended_ ? 1 : 0);
}

GRADUS_BODY void generated::read(position_reader& from) {
  const auto given = from.number(0, std::numeric_limits<std::int64_t>::max(), "what the generator made");
  const bool ended = from.number(0, 1, "whether the generator has ended") == 1;
  if (!from.apply()) return;
  next_ = nullptr;
  given_ = given, ended_ = ended;
}

GRADUS_BODY generated from_generator(components spec, generated::begin_function begin, const calling& how) {
  return {std::move(spec), std::move(begin), how};
}

}  // namespace gradus
