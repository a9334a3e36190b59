// This header has the options of a trainer's calls, the error messages for arguments that they cannot take, and the
// stand-in for a refused trainer.
#pragma once
#include "../base/build.hpp"

#include <cstdint>
#include <string_view>
#include <type_traits>

#include "../input/dataset.hpp"
#include "evaluation.hpp"
#include "progress.hpp"

namespace gradus::inline GRADUS_BUILD {

struct train_options {
  std::int64_t max_steps = 0;  // stop at this global_step: a resumed run does the rest. One of the two.
  std::int64_t steps = 0;      // stop after so many steps of this call; or until_data_end
};
struct hooked_train_options;     // with hooks of a list that is made when the program runs: run_hooks.hpp
struct validated_train_options;  // with a validation while it trains: validation.hpp
struct evaluate_options {
  std::int64_t steps = 0;          // batches; 0: until the data ends
  bool use_averages = false;       // with exponential_moving_average: evaluate the averages in place of the parameters
  std::string_view name = "eval";  // its events go to model_dir/<name>; empty: there are none
  std::string_view checkpoint_path = {};  // empty: the newest, or this trainer's own values
};

namespace detail {

// This adds nothing to the steps of a run that has only policies.
struct nothing_more {
  void remembers(state_list&) {}
  bool is_over() const { return false; }
  bool is_pending(std::int64_t, std::int64_t) const { return false; }
  void begin() {}
  void start(const state_list&, std::int64_t) {}
  void before_run() {}
  void after_run(std::int64_t) {}
  bool should_stop() const { return false; }
  void finish(std::int64_t, std::int64_t) {}
  const char* left_for_the_last_step() const { return ""; }
  void end(std::int64_t) {}
};

template <class D>
concept batches_to_change = batched_dataset<std::remove_reference_t<D>>;  // a const one is not movable

// These overloads refuse data that cannot be trained on; they are unavailable, so that compilers print the caller's
// line first, and the sentence on it.
#define GRADUS_NOT_TRAINED_ON(what, why)                                                         \
  template <class D>                                                                             \
    requires(what)                                                                               \
  void train(const D&, const train_options&) __attribute__((unavailable(why)));                  \
  template <class D>                                                                             \
    requires(what)                                                                               \
  evaluation evaluate(const D&, const evaluate_options& = {}) __attribute__((unavailable(why))); \
  template <class D, class See>                                                                  \
    requires(what)                                                                               \
  void predict(const D&, const See&) __attribute__((unavailable(why)))
struct not_trained_on {
  GRADUS_NOT_TRAINED_ON(!dataset<D>,
                        "gradus: this is not a dataset; make one with idx, from_memory or from_spans, or "
                        "see input/stage.hpp for what yours needs.");
  GRADUS_NOT_TRAINED_ON(dataset<D> && !batched_dataset<D>,
                        "gradus: a trainer takes batches, and this dataset gives one element at a time; end the "
                        "pipeline with `.batch(n)`.");
  GRADUS_NOT_TRAINED_ON(batched_dataset<D>,
                        "gradus: this dataset is const, but reading moves it on; give the trainer "
                        "one that may change.");
};
#undef GRADUS_NOT_TRAINED_ON

// This is the stand-in for a refused trainer; the compiler has printed the reason.
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
