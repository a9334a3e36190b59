// choose_from_datasets takes each element from one of several datasets; another dataset, of numbers, chooses which.
//
//   choose_from_datasets({a, b, c}, range_dataset(3).repeat(100))
//   sample_from_datasets({a, b}, {0.9, 0.1}, 7)                     at random, by weight
//
// A dataset that has ended is passed over. The end comes with the end of the choices, or when all datasets have ended.
#pragma once
#include "map.hpp"
#include "range.hpp"
#include "unit_stage.hpp"

namespace gradus::inline GRADUS_BUILD {

class chosen_elements final : public detail::unit_stage<chosen_elements, false> {
public:
  // Raises invalid_argument for no dataset, for different components, and for choices that are not an int64 scalar.
  // `never` says of each source whether it is never chosen, and so not waited for; empty: of none.
  chosen_elements(std::vector<any_dataset> sources, any_dataset choices, std::vector<bool> never = {});

  const components& element_spec() const { return spec_; }
  bool pull_unit(datum& out);
  void rewind();
  std::string external_state() const;
  void define(std::string& to) const;
  void write(position_writer& to) const;
  void read(position_reader& from);

private:
  std::vector<any_dataset> sources_;
  any_dataset choices_;
  std::vector<bool> ended_, never_;
  components spec_;
  datum choice_;
};

chosen_elements choose_from_datasets(std::vector<any_dataset> datasets, any_dataset choices);

// Draws each dataset with a probability proportional to its weight; without weights, all with the same probability. A
// dataset that has ended is still drawn, and is passed over.
chosen_elements sample_from_datasets(std::vector<any_dataset> datasets, std::vector<double> weights,
                                     std::uint64_t seed);

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "choose.ipp"
#endif
