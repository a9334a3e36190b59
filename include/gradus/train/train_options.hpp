// What a trainer's calls take, the error page of what they cannot take, and what a refused trainer's user calls.
#pragma once
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "../input/dataset.hpp"
#include "evaluation.hpp"

namespace gradus {

struct train_options {
  std::int64_t max_steps = 0;  // stop when global_step is there: a resumed run does the rest. One of the two.
  std::int64_t steps = 0;      // stop after so many steps of this call
};
struct evaluate_options {
  std::int64_t steps = 0;          // batches; 0: until the data ends
  bool use_averages = false;       // with exponential_moving_average: evaluate the averages in place of the parameters
  std::string_view name = "eval";  // its events go to model_dir/<name>
};

// The error page of what is trained on.
template <class D>
struct dataset_fits {
  static_assert(
      dataset<D>,
      "gradus: this is not a dataset; make one with idx, from_memory or from_spans, or see input/stage.hpp for "
      "what yours needs.");
  static_assert(!dataset<D> || batched_dataset<D>,
                "gradus: a trainer takes batches, and this dataset gives one element at a time; end the pipeline with "
                "`.batch(n)`.");
  static_assert(!batched_dataset<D>,
                "gradus: this dataset is const, but reading moves it on; give the trainer one that may change.");
  static constexpr bool value = false;
};

namespace detail {

template <class D>
concept batches_to_change = batched_dataset<std::remove_reference_t<D>>;  // a const one is not movable

// What a refused trainer's user calls; the refusal has been printed.
struct refused_trainer {
  template <class Dataset>
  void train(Dataset&&, const train_options&) {}
  template <class Dataset>
  evaluation evaluate(Dataset&&, const evaluate_options& = {}) {
    return {};
  }
  template <class Dataset, class See>
  void predict(Dataset&&, See&&) {}
  std::int64_t global_step() const { return 0; }
};

}  // namespace detail

}  // namespace gradus
