// An estimator's predict returns this range, which is read once, and which makes a run for each batch when it reaches
// the batch.
//
//   for (const gradus::prediction& p : est.predict(input_fn))
//     std::printf("%d\n", p["classes"].as<std::int32_t>()[0]);
#pragma once
#include "../base/build.hpp"

#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../tensor/tensor.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
class prediction_run;
}

// The predictions of one example, or of a batch: views that are valid until the next one is read.
class prediction {
public:
  // Raises not_found, with the known names.
  const_tensor_view operator[](std::string_view key) const;
  // Returns the tensor of a model that predicts a single one without a name. Raises failed_precondition if it has
  // several.
  operator const_tensor_view() const;
  std::size_t size() const { return items_.size(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }

private:
  friend class detail::prediction_run;
  std::vector<std::pair<std::string, const_tensor_view>> items_;
};

namespace detail {
// Makes the runs. It holds the current prediction until it has ended.
class prediction_run {
public:
  virtual ~prediction_run() = default;
  virtual void begin() = 0;
  virtual void next() = 0;
  virtual bool ended() const = 0;
  const prediction& current() const { return shown_; }

protected:
  void clear() { shown_.items_.clear(); }
  void add(const std::string& key, const const_tensor_view& v) { shown_.items_.emplace_back(key, v); }

private:
  prediction shown_;
};
}  // namespace detail

class prediction_range {
public:
  class iterator {
  public:
    using iterator_category = std::input_iterator_tag;
    using value_type = prediction;
    using difference_type = std::ptrdiff_t;
    using pointer = const prediction*;
    using reference = const prediction&;

    explicit iterator(detail::prediction_run& run) : run_(&run) {}
    reference operator*() const { return run_->current(); }
    pointer operator->() const { return &**this; }
    iterator& operator++() {
      run_->next();
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const { return run_->ended(); }

  private:
    detail::prediction_run* run_;
  };

  explicit prediction_range(std::shared_ptr<detail::prediction_run> run) : run_(std::move(run)) {}
  // Builds the graph and makes the first run. A second call continues at the current position.
  iterator begin() {
    run_->begin();
    return iterator(*run_);
  }
  std::default_sentinel_t end() const { return {}; }

private:
  std::shared_ptr<detail::prediction_run> run_;
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "prediction_range.ipp"
#endif
