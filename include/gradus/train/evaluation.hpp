// This header has the results of a trainer: the numbers of an evaluation, and predictions batch by batch.
#pragma once
#include "../base/build.hpp"

#include <string>
#include <utility>
#include <vector>

#include "../tensor/tensor.hpp"

namespace gradus::inline GRADUS_BUILD {

template <class Source, class... Policies>
class trainer;

namespace detail {
// While an object of this class lives, the averages are in the place of the parameters, if `wanted`.
template <class Stepper, bool HasAverages>
class averages_in_place {
public:
  averages_in_place(Stepper& steps, bool wanted) {
    if (!wanted) return;
    if constexpr (!HasAverages)
      raise(status::invalid_argument,
            "use_averages: there is no average among the trainer's policies; add exponential_moving_average{}");
    steps_ = &steps;
    steps.swap_averages();
  }
  averages_in_place(const averages_in_place&) = delete;
  ~averages_in_place() {
    if (steps_ != nullptr) steps_->swap_averages();
  }

private:
  Stepper* steps_ = nullptr;
};
}  // namespace detail

// An evaluation has "loss" and the model's metrics, by name, and the step.
class evaluation {
public:
  double operator[](std::string_view name) const;
  const std::vector<std::pair<std::string, double>>& values() const { return values_; }
  std::int64_t global_step() const { return step_; }

private:
  template <class, class...>
  friend class trainer;
  void add(std::string_view name, double value);

  std::vector<std::pair<std::string, double>> values_;
  std::int64_t step_ = 0;
};

namespace detail {
// Raises failed_precondition: there is nothing trained that could be read.
[[noreturn]] void raise_untrained(std::string_view model_dir, bool warm_starts);

// Which values of a trainer a call of predict has read; 0: none yet.
struct values_seen {
  std::uint64_t number = 0;
};

void add_prediction(std::vector<std::pair<std::string, const_tensor_view>>& to, std::string_view name,
                    const const_tensor_view& v);
}  // namespace detail

// This is one batch of predictions, by name; the next batch overwrites the views.
class predictions {
public:
  const_tensor_view operator[](std::string_view name) const;
  std::int64_t size() const { return size_; }
  // Calls see(name, view) for each prediction.
  template <class See>
  void for_each(See see) const {
    for (const auto& [name, v] : *items_) see(std::string_view(name), v);
  }

private:
  template <class, class...>
  friend class trainer;
  const std::vector<std::pair<std::string, const_tensor_view>>* items_ = nullptr;
  std::int64_t size_ = 0;
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "evaluation.ipp"
#endif
