// from_generator gives elements that a function of the program makes.
//
//   from_generator({{"x", float32, {3}}}, [] {
//     return [i = 0](datum& e) mutable { ...; return ++i < 100; };      false is the end; the arrays hold no element
//   })
//
// The outer function begins an iteration. The inner function gets arrays with the given components and fills them. A
// position cannot hold the state of the generator. It holds the number of elements instead, and restoring it makes
// these elements again and passes over them. This is right only if the generator always makes the same elements, so
// saving applies external_state_policy. If it always does, declare it .stateful = false, and the policy does not apply.
#pragma once
#include "unit_stage.hpp"

namespace gradus::inline GRADUS_BUILD {

class generated_dataset final : public detail::unit_stage<generated_dataset, false> {
public:
  using next_function = std::function<bool(datum&)>;
  using begin_function = std::function<next_function()>;

  generated_dataset(components spec, begin_function begin, const call_options& how);
  // A copy calls `begin` again and goes to the same place.
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
