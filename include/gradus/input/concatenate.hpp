// concatenate gives the elements of one dataset, and then those of another one with the same components.
#pragma once
#include "cardinality.hpp"
#include "unit_stage.hpp"

namespace gradus::inline GRADUS_BUILD {

template <bool Batched>
class concatenated_dataset final : public detail::unit_stage<concatenated_dataset<Batched>, Batched> {
public:
  // An extent in which the two datasets differ becomes any_extent. Raises invalid_argument if they differ in names,
  // types or ranks.
  concatenated_dataset(any_units<Batched> first, any_units<Batched> second)
      : sources_{std::move(first), std::move(second)}, spec_(sources_[0].element_spec()) {
    if (!detail::unite(spec_, sources_[1].element_spec()))
      raise(status::invalid_argument, text("concatenate: expected two datasets of the same components, found ",
                                           to_text(spec_), " and ", to_text(sources_[1].element_spec())));
  }

  const components& element_spec() const { return spec_; }
  std::int64_t batch_size() const
    requires Batched
  {
    return std::max(sources_[0].batch_size(), sources_[1].batch_size());
  }
  std::int64_t pull(std::span<const tensor_view> out, std::int64_t first, std::int64_t n) {
    std::int64_t done = 0;
    while (done < n) {
      const std::int64_t got = sources_[at_].pull(out, first + done, n - done);
      done += got;
      if (Batched && got > 0) break;
      if (done == n || at_ == 1) break;
      at_ = 1;
    }
    return done;
  }
  bool pull(datum& out) { return pull_unit(out); }
  bool pull_unit(datum& out) {
    while (!sources_[at_].pull(out)) {
      if (at_ == 1) return false;
      at_ = 1;
    }
    return true;
  }
  void rewind() {
    for (auto& s : sources_) s.rewind();
    at_ = 0;
  }
  std::int64_t cardinality() const {
    return detail::cardinality_concatenated(sources_[0].cardinality(), sources_[1].cardinality());
  }
  std::string external_state() const {
    auto found = sources_[0].external_state();
    return found.empty() ? sources_[1].external_state() : found;
  }
  void define(std::string& to) const {
    sources_[0].define(to);
    to += ".concatenate(";
    sources_[1].define(to);
    to += ")";
  }
  void write(position_writer& to) const {
    to.number(at_ == 1 ? 1 : 0);
    for (const auto& s : sources_) s.write(to);
  }
  void read(position_reader& from) {
    const bool second = from.number(0, 1, "which dataset of concatenate") == 1;
    for (auto& s : sources_) s.read(from);
    if (from.apply()) at_ = second ? 1 : 0;
  }

private:
  any_units<Batched> sources_[2];
  components spec_;
  std::size_t at_ = 0;
};

}  // namespace gradus
