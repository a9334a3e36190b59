// filter gives the elements (of a batched dataset: the batches) that a function keeps.
#pragma once
#include "unit_stage.hpp"

namespace gradus::inline GRADUS_BUILD {

template <bool Batched>
class filtered_dataset final : public detail::unit_stage<filtered_dataset<Batched>, Batched> {
public:
  filtered_dataset(any_units<Batched> source, std::function<bool(const datum&)> keep, const call_options& how)
      : source_(std::move(source)), keep_(std::move(keep)), how_(how) {
    if (!keep_) raise(status::invalid_argument, "filter: expected a function");
  }

  const components& element_spec() const { return source_.element_spec(); }
  std::int64_t batch_size() const
    requires Batched
  {
    return source_.batch_size();
  }
  bool pull_unit(datum& out) {
    while (source_.pull(out))
      if (keep_(out)) return true;
    return false;
  }
  void rewind() { source_.rewind(); }
  std::string external_state() const { return how_.stateful ? "a function of filter" : source_.external_state(); }
  void define(std::string& to) const {
    source_.define(to);
    to += ".filter";
  }
  void write(position_writer& to) const { source_.write(to); }
  void read(position_reader& from) { source_.read(from); }

private:
  any_units<Batched> source_;
  std::function<bool(const datum&)> keep_;
  call_options how_;
};

}  // namespace gradus
