// A storage keeps the elements of a queue; the kinds of queues differ by it. It owns no lock; the core calls it under
// its own.
#pragma once
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
  // True if a call for several takes the elements that are there and waits for the rest. Otherwise it waits until all
  // are there.
  virtual bool gathers() const { return true; }
  // Room for as many as there are in all, so that `put` and `put_back` cannot fail.
  virtual void reserve([[maybe_unused]] std::int64_t all) {}
  virtual void put(queue_element* e) = 0;
  // The elements that were taken last, in the order in which they were taken: as if they had never been.
  virtual void put_back(element_chain& taken) = 0;
  virtual queue_element* take() = 0;  // of the available elements
};

// In the order of insertion. Source: tf.queue.FIFOQueue.
class fifo_storage final : public queue_storage {
public:
  std::int64_t size() const override { return list_.size(); }
  void put(queue_element* e) override { list_.push_back(e); }
  void put_back(element_chain& taken) override { list_.prepend(taken); }
  queue_element* take() override { return list_.pop_front(); }

private:
  element_chain list_;
};

// Any of the elements, all equally likely; the last one takes its place. While the queue is open so many stay.
// Source: tf.queue.RandomShuffleQueue. The draws are those of base/random.hpp, so the orders are not TensorFlow's.
class shuffle_storage final : public queue_storage {
public:
  // Both seeds 0: drawn.
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

// The smallest key comes first, of equal ones that which was enqueued first. Source: tf.queue.PriorityQueue, which
// leaves the order of equal keys open.
class priority_storage final : public queue_storage {
public:
  ~priority_storage() override;
  std::int64_t size() const override { return static_cast<std::int64_t>(heap_.size()); }
  bool gathers() const override { return false; }  // so that what comes together is sorted
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
