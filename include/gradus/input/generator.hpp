// from_generator: elements that a function of the program's makes.
//
//   from_generator({{"x", float32, {3}}}, [] {
//     return [i = 0](datum& e) mutable { ...; return ++i < 100; };      false: the end, what was written is no element
//   })
//
// The outer function begins an iteration; the inner one gets arrays as announced and fills them. Where the generator
// stands no position can hold: it counts elements, and restoring makes them again and passes over them. That is right
// if it always makes the same ones; so saving asks first (external_state_policy). Declare it .stateful = false if it
// does, and nothing is asked.
#pragma once
#include "unit_stage.hpp"

namespace gradus {

class generated final : public detail::unit_stage<generated, false> {
public:
  using next_function = std::function<bool(datum&)>;
  using begin_function = std::function<next_function()>;

  generated(components spec, begin_function begin, const calling& how)
      : spec_(detail::announced(std::move(spec), "from_generator")), begin_(std::move(begin)), how_(how) {
    if (!begin_) raise(status::invalid_argument, "from_generator: expected a function");
  }
  // A copy begins again and goes to the same place.
  generated(const generated& o)
      : unit_stage(o), spec_(o.spec_), begin_(o.begin_), how_(o.how_), given_(o.given_), ended_(o.ended_) {}
  generated(generated&&) = default;
  generated& operator=(generated&&) = default;
  generated& operator=(const generated& o) {
    generated copy(o);
    return *this = std::move(copy);
  }

  const components& element_spec() const { return spec_; }
  bool pull_unit(datum& out) {
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
  void rewind() {
    next_ = nullptr;
    given_ = 0, ended_ = false;
  }
  std::string external_state() const { return how_.stateful ? "from_generator" : ""; }
  void define(std::string& to) const { to += text("generator(", to_text(spec_), ")"); }
  void write(position_writer& to) const {
    to.number(given_);
    to.number(ended_ ? 1 : 0);
  }
  void read(position_reader& from) {
    const auto given = from.number(0, std::numeric_limits<std::int64_t>::max(), "what the generator made");
    const bool ended = from.number(0, 1, "whether the generator has ended") == 1;
    if (!from.apply()) return;
    next_ = nullptr;
    given_ = given, ended_ = ended;
  }

private:
  components spec_;
  begin_function begin_;
  calling how_;
  next_function next_;
  std::int64_t given_ = 0;
  bool ended_ = false;
};

inline generated from_generator(components spec, generated::begin_function begin,
                                const calling& how = {.stateful = true}) {
  return {std::move(spec), std::move(begin), how};
}

}  // namespace gradus
