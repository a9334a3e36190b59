// zip_datasets gives the elements of several datasets side by side; it ends with the first dataset that ends. An error
// of one dataset is raised when the others have been read on as well, as in TensorFlow 2, so that what comes after it
// is still side by side; where several fail at once, it is the first one's.
//
//   auto both = zip_datasets(images, labels);    the components of the first, then those of the second, ...
#pragma once
#include "../base/build.hpp"

#include <exception>
#include <initializer_list>
#include <limits>

#include "cardinality.hpp"
#include "unit_stage.hpp"

namespace gradus::inline GRADUS_BUILD {

template <bool Batched>
class zipped_dataset final : public detail::unit_stage<zipped_dataset<Batched>, Batched> {
public:
  // Raises invalid_argument for no dataset, for two components of one name, and for different batch sizes.
  explicit zipped_dataset(std::vector<any_units<Batched>> sources)
      : sources_(std::move(sources)), units_(sources_.size()) {
    if (sources_.empty()) raise(status::invalid_argument, "zip_datasets: expected at least one dataset");
    for (const auto& s : sources_) {
      for (const auto& c : s.element_spec()) {
        for (const auto& other : spec_)
          if (other.name == c.name)
            raise(status::invalid_argument, text("zip_datasets: two components are called \"", c.name,
                                                 "\"; rename one of them (map to other components)"));
        spec_.push_back(c);
      }
      if constexpr (Batched)
        if (s.batch_size() != sources_[0].batch_size())
          raise(status::invalid_argument, text("zip_datasets: batches of ", sources_[0].batch_size(), " and of ",
                                               s.batch_size(), "; batch after zip_datasets, or alike"));
    }
  }

  const components& element_spec() const { return spec_; }
  std::int64_t batch_size() const
    requires Batched
  {
    return sources_[0].batch_size();
  }
  bool pull_unit(datum& out) {
    std::exception_ptr failure;
    for (std::size_t i = 0; !ended_ && i < sources_.size(); ++i)
#if defined(__cpp_exceptions)
      try {
        ended_ = !sources_[i].pull(units_[i]);
      } catch (...) {
        if (failure == nullptr) failure = std::current_exception();
      }
#else
      ended_ = !sources_[i].pull(units_[i]);
#endif
    if (failure != nullptr) std::rethrow_exception(failure);
    if (ended_) return false;
    out.clear();
    for (const auto& unit : units_)
      for (std::size_t k = 0; k < unit.size(); ++k) {
        const auto& c = unit.about(k);
        const tensor_view to = out.add(c.name, c.type, c.dims);
        if (const auto bytes = unit[k].bytes(); !bytes.empty())
          std::memcpy(to.mutable_data(), bytes.data(), bytes.size());
      }
    if (Batched) detail::check_unit(out, spec_, true, "zip_datasets");  // the last batches may differ in rows
    return true;
  }
  void rewind() {
    for (auto& s : sources_) s.rewind();
    ended_ = false;
  }
  std::int64_t cardinality() const {
    std::int64_t n = infinite_cardinality;
    for (const auto& s : sources_) n = detail::cardinality_zipped(n, s.cardinality());
    return n;
  }
  std::string external_state() const {
    for (const auto& s : sources_)
      if (auto found = s.external_state(); !found.empty()) return found;
    return {};
  }
  void define(std::string& to) const {
    to += "zip(";
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      if (i > 0) to += ", ";
      sources_[i].define(to);
    }
    to += ")";
  }
  // The position is a number that says whether the end was found, then those of the sources. Version 0.5.0 and earlier
  // did not write the number; both its values are such that the position of no source begins with them.
  void write(position_writer& to) const {
    to.number(ended_ ? at_end : before_end);
    for (const auto& s : sources_) s.write(to);
  }
  void read(position_reader& from) {
    using limits = std::numeric_limits<std::int64_t>;
    position_reader ahead = from;
    const std::int64_t found =
        ahead.left() < sizeof at_end ? 0 : ahead.number(limits::min(), limits::max(), "whether zip has ended");
    if (found == at_end || found == before_end) from = ahead;
    for (auto& s : sources_) s.read(from);
    if (from.apply()) ended_ = found == at_end;
  }

private:
  static constexpr std::int64_t before_end = -0x7a69702000000000, at_end = before_end - 1;  // "zip "

  std::vector<any_units<Batched>> sources_;
  std::vector<datum> units_;
  components spec_;
  bool ended_ = false;  // a source has ended: the others are not read on
};

// Zips datasets of elements, or batched datasets.
template <dataset First, dataset... Rest>
auto zip_datasets(First first, Rest... rest) {
  constexpr bool batched = batched_dataset<First>;
  static_assert(((batched_dataset<Rest> == batched) && ...),
                "gradus: zip_datasets takes datasets of elements, or batched ones, not both");
  std::vector<any_units<batched>> sources;
  sources.emplace_back(std::move(first));
  (sources.emplace_back(std::move(rest)), ...);
  return zipped_dataset<batched>(std::move(sources));
}
inline zipped_dataset<false> zip_datasets(std::vector<any_dataset> sources) {
  return zipped_dataset<false>(std::move(sources));
}

}  // namespace gradus
