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

  generated(components spec, begin_function begin, const calling& how);
  // A copy begins again and goes to the same place.
  generated(const generated& o);
  generated(generated&&) = default;
  generated& operator=(generated&&) = default;
  generated& operator=(const generated& o);

  const components& element_spec() const { return spec_; }
  bool pull_unit(datum& out);
  void rewind();
  std::string external_state() const { return how_.stateful ? "from_generator" : ""; }
  void define(std::string& to) const { to += text("generator(", to_text(spec_), ")"); }
  void write(position_writer& to) const;
  void read(position_reader& from);

private:
  components spec_;
  begin_function begin_;
  calling how_;
  next_function next_;
  std::int64_t given_ = 0;
  bool ended_ = false;
};

generated from_generator(components spec, generated::begin_function begin, const calling& how = {.stateful = true});

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "generator.ipp"
#endif
