// A storage keeps the elements of a queue; the kinds of queues differ by their storage. A storage has no lock; the core
// calls it under its own.
#pragma once
#include "../../base/build.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "../../base/random.hpp"
#include "element.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

class queue_storage {
public:
  virtual ~queue_storage() = default;
  virtual std::int64_t size() const = 0;
  // Returns the number of elements that may be taken now.
  virtual std::int64_t available([[maybe_unused]] bool closed) const { return size(); }
  // Returns true if a call for several elements takes those that are there and waits for the rest. Otherwise the call
  // waits until all are there.
  virtual bool gathers() const { return true; }
  // Reserves room for all elements that were ever made, so that `put` and `put_back` cannot fail.
  virtual void reserve([[maybe_unused]] std::int64_t all) {}
  virtual void put(queue_element* e) = 0;
  // Puts back the elements that were taken last, given in the order in which they were taken.
  virtual void put_back(element_chain& taken) = 0;
  virtual queue_element* take() = 0;  // of the available elements
};

// Gives elements in the order of insertion. Source: tf.queue.FIFOQueue.
class fifo_storage final : public queue_storage {
public:
  std::int64_t size() const override { return list_.size(); }
  void put(queue_element* e) override { list_.push_back(e); }
  void put_back(element_chain& taken) override { list_.prepend(taken); }
  queue_element* take() override { return list_.pop_front(); }

private:
  element_chain list_;
};

// Gives any of the elements, all equally likely; the last element moves to the place of the one that was taken. While
// the queue is open, min_after_dequeue elements stay. Source: tf.queue.RandomShuffleQueue. The draws are those of
// base/random.hpp, so the orders are not TensorFlow's.
class shuffle_storage final : public queue_storage {
public:
  // If both seeds are 0, a seed is drawn.
  shuffle_storage(std::int64_t min_after_dequeue, std::uint64_t seed, std::uint64_t seed2);
  ~shuffle_storage() override;
  std::int64_t size() const override { return static_cast<std::int64_t>(list_.size()); }
  std::int64_t available(bool closed) const override;
  void reserve(std::int64_t all) override;
  void put(queue_element* e) override { list_.push_back(e); }
  void put_back(element_chain& taken) override;
  queue_element* take() override;

private:
  std::int64_t min_after_dequeue_;
  random_stream draws_;
  std::vector<queue_element*> list_;
};

// Gives the element with the smallest key first, and of equal keys the one that was enqueued first. Source:
// tf.queue.PriorityQueue, which does not specify the order of equal keys.
class priority_storage final : public queue_storage {
public:
  ~priority_storage() override;
  std::int64_t size() const override { return static_cast<std::int64_t>(heap_.size()); }
  bool gathers() const override { return false; }  // so that the elements of one call are sorted
  void reserve(std::int64_t all) override;
  void put(queue_element* e) override;
  void put_back(element_chain& taken) override;
  queue_element* take() override;

private:
  std::vector<queue_element*> heap_;
  std::uint64_t next_ = 0;
};

std::unique_ptr<queue_storage> make_storage(const queue_spec& spec);

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "storage.ipp"
#endif
