// A run_result holds the fetched tensors of a session's run, as views of memory that is theirs while the result lives.
// After that the session's next run of the same fetches uses the memory again; a result must not outlive its session.
//
//   const auto y = s.run("y", {{"x", data}});            // a run_result: a const_tensor_view
//   const auto both = s.run({"y", "loss"}, feeds);       // run_results: both[0], both[1]
//   const float first = s.run("y", feeds).as<float>()[0];
//   const auto numbers = s.run("y", feeds).as<float>();  // a result_values: a span that holds the result
#pragma once
#include "../base/build.hpp"

#include <memory>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "../tensor/access.hpp"
#include "feed.hpp"
#include "machine.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {

// Whole cache lines keep the memory that a run writes apart from that of other runs. Two runs on one line wait for it
// at every write, which costs a small run half of its speed.
template <class T>
struct line_allocator {
  using value_type = T;
  line_allocator() = default;
  template <class U>
  line_allocator(const line_allocator<U>&) {}
  T* allocate(std::size_t n) { return static_cast<T*>(::operator new(align_up(n * sizeof(T)), lines)); }
  void deallocate(T* p, std::size_t) { ::operator delete(p, lines); }
  bool operator==(const line_allocator&) const { return true; }

private:
  static constexpr std::align_val_t lines{alignment};
};
template <class T>
using line_vector = std::vector<T, line_allocator<T>>;

// A machine of one set of fetches with the state of one run. A set of fetches keeps these for its next runs.
struct alignas(alignment) run_memory {
  step_machine machine;
  line_vector<const_tensor_view> results;   // of the fetches
  line_vector<const_tensor_view> operands;  // of the ops that run after the kernels
  std::vector<aligned_buffer> copies;       // of results that are variables, which other runs may change
  std::vector<feed> given;                  // the values of placeholders that ops set,
  std::vector<feed> feeds;                  // and with them everything that is fed
  line_vector<int> fed;                     // the placeholder of each feed, in the session's graph
  std::vector<std::shared_ptr<void>> kept;  // memory of the ops before and after the kernels
  std::int64_t number = -1;                 // of a run that draws random numbers
  run_memory* next_idle = nullptr;
};
// The owner to which a result's memory returns.
class run_memory_owner {
public:
  virtual void take_back(run_memory& m) = 0;

protected:
  ~run_memory_owner() = default;
};
class run_lease {
public:
  run_lease() = default;
  run_lease(run_memory_owner& owner, run_memory& memory) : owner_(&owner), memory_(&memory) {}
  run_lease(run_lease&& o) noexcept : owner_(std::exchange(o.owner_, nullptr)), memory_(o.memory_) {}
  run_lease& operator=(run_lease&& o) noexcept {
    std::swap(owner_, o.owner_), std::swap(memory_, o.memory_);
    return *this;
  }
  ~run_lease() {
    if (owner_ != nullptr) owner_->take_back(*memory_);
  }
  run_memory& operator*() const { return *memory_; }
  run_memory* operator->() const { return memory_; }

private:
  run_memory_owner* owner_ = nullptr;
  run_memory* memory_ = nullptr;
};

}  // namespace detail

class run_result;

// These are the tensors of a run, in the order of its fetches.
class run_results {
public:
  explicit run_results(detail::run_lease lease) : lease_(std::move(lease)), size_(lease_->results.size()) {}
  // Takes the first n of them.
  run_results(run_results&& all, std::size_t n) : run_results(std::move(all.lease_), n) {}

  std::size_t size() const { return size_; }
  const const_tensor_view& operator[](std::size_t i) const& { return lease_->results[i]; }
  run_result operator[](std::size_t i) &&;  // it holds the memory of all
  // With end(), this makes it a std::span<const const_tensor_view>, too.
  const const_tensor_view* begin() const { return lease_->results.data(); }
  const const_tensor_view* end() const { return begin() + size_; }

private:
  friend class run_result;
  detail::run_lease lease_;
  std::size_t size_ = 0;

  run_results(detail::run_lease lease, std::size_t n) : lease_(std::move(lease)), size_(n) {}
};

// The numbers of a run's result, a span. It holds the result, so that the memory is its own as long as it lives.
template <class T>
class result_values : public std::span<const T> {
public:
  result_values(std::span<const T> values, detail::run_lease lease)
      : std::span<const T>(values), lease_(std::move(lease)) {}

private:
  detail::run_lease lease_;
};
template <class T>
struct array_access<result_values<T>> : array_access<std::span<const T>> {};

// The tensor of a run that fetched one.
class run_result : public const_tensor_view {
public:
  template <class T>
  std::span<const T> as() const& {
    return const_tensor_view::as<T>();
  }
  // Of a result that nothing else holds: s.run(...).as<float>().
  template <class T>
  result_values<T> as() && {
    return {const_tensor_view::as<T>(), std::move(lease_)};
  }
  explicit run_result(detail::run_lease lease) : const_tensor_view(lease->results[0]), lease_(std::move(lease)) {}
  // Takes one of several, the first.
  explicit run_result(run_results&& all, std::size_t i = 0)
      : const_tensor_view(all.begin()[i]), lease_(std::move(all.lease_)) {}

private:
  detail::run_lease lease_;
};
inline run_result run_results::operator[](std::size_t i) && { return run_result(std::move(*this), i); }
template <>
struct array_access<run_result> {
  static const_tensor_view read(const run_result& x) { return x; }
};

}  // namespace gradus
