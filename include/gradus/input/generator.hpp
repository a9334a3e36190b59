// from_generator gives elements that a function of the program makes.
//
//   from_generator({{"x", float32, {3}}}, [] {
//     return [i = 0](datum& e) mutable { ...; return ++i < 100; };      false: the end, the arrays hold no element
//   })
//
// The outer function begins an iteration; the inner one gets arrays as announced and fills them. No position can hold
// the state of the generator: it counts elements, and restoring makes them again and passes over them. That is right if
// it always makes the same ones; so saving applies external_state_policy. Declare it .stateful = false if it does, and
// the policy does not apply.
#pragma once
#include "unit_stage.hpp"

namespace gradus::inline GRADUS_BUILD {

class generated_dataset final : public detail::unit_stage<generated_dataset, false> {
public:
  using next_function = std::function<bool(datum&)>;
  using begin_function = std::function<next_function()>;

  generated_dataset(components spec, begin_function begin, const call_options& how);
  // A copy begins again and goes to the same place.
  generated_dataset(const generated_dataset& o);
  generated_dataset(generated_dataset&&) = default;
  generated_dataset& operator=(generated_dataset&&) = default;
  generated_dataset& operator=(const generated_dataset& o);

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
  call_options how_;
  next_function next_;
  std::int64_t given_ = 0;
  bool ended_ = false;
};

generated_dataset from_generator(components spec, generated_dataset::begin_function begin,
                                 const call_options& how = {.stateful = true});

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "generator.ipp"
#endif
