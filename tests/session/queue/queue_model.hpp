// What a queue does, said a second time: two lists of attempts and a list of elements, on one thread, without memory of
// its own and without hurry. The draw of a random shuffle queue is not said; the model knows how many, not which.
#pragma once
#include <gradus/session/queue/spec.hpp>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

class queue_model {
public:
  struct element {
    std::int64_t key, id;
  };
  enum class ends { done, cancelled, out_of_range };
  struct result {
    ends end;
    std::vector<element> taken;
  };
  enum class ops { enqueue, dequeue, dequeue_up_to, close };
  struct attempt {
    int number;
    ops op;
    std::size_t n = 0;
    std::vector<element> elements;  // yet to go in, or taken
  };

  queue_model(gradus::queue_kind kind, std::int64_t capacity, std::int64_t min_after_dequeue)
      : kind_(kind), capacity_(capacity), min_(min_after_dequeue) {}

  // Results of calls that ended, by their number.
  std::map<int, result> ended;

  void start(attempt a) {
    (is_taking(a) ? takers_ : bringers_).push_back(std::move(a));
    settle();
  }
  void close_and_cancel() {
    closed_ = true;
    for (const attempt& a : bringers_) ended[a.number] = {ends::cancelled, {}};
    bringers_.clear();
    settle();
  }
  void cancel(int number) {
    for (auto* line : {&bringers_, &takers_})
      for (std::size_t i = 0; i < line->size(); ++i)
        if ((*line)[i].number == number) {
          const attempt a = (*line)[i];
          line->erase(line->begin() + static_cast<std::ptrdiff_t>(i));
          if (is_taking(a)) give_back(a.elements);
          ended[number] = {ends::cancelled, {}};
          settle();
          return;
        }
  }
  std::int64_t size() const { return static_cast<std::int64_t>(inside_.size()); }
  bool is_closed() const { return closed_; }
  std::vector<int> waiting() const {
    std::vector<int> numbers;
    for (const auto* line : {&bringers_, &takers_})
      for (const attempt& a : *line) numbers.push_back(a.number);
    return numbers;
  }
  std::int64_t bringers() const { return static_cast<std::int64_t>(bringers_.size()); }
  std::int64_t takers() const { return static_cast<std::int64_t>(takers_.size()); }

private:
  gradus::queue_kind kind_;
  std::int64_t capacity_, min_;
  bool closed_ = false;
  std::deque<attempt> bringers_, takers_;
  std::vector<element> inside_;

  static bool is_taking(const attempt& a) { return a.op == ops::dequeue || a.op == ops::dequeue_up_to; }
  void give_back(const std::vector<element>& list) { inside_.insert(inside_.begin(), list.begin(), list.end()); }
  void settle() {
    for (bool moved = true; moved;) {
      moved = false;
      while (bring()) moved = true;
      while (take()) moved = true;
    }
  }
  // One step of the first that brings; whether there was one.
  bool bring() {
    if (bringers_.empty()) return false;
    attempt& a = bringers_.front();
    const auto finish = [&](ends how) {
      ended[a.number] = {how, {}};
      bringers_.pop_front();
      return true;
    };
    if (closed_) return finish(ends::cancelled);
    if (a.op == ops::close) return closed_ = true, finish(ends::done);
    if (a.elements.empty()) return finish(ends::done);
    if (capacity_ >= 0 && size() >= capacity_) return false;
    inside_.push_back(a.elements.front());
    a.elements.erase(a.elements.begin());
    return true;
  }
  // The same for the first that takes.
  bool take() {
    if (takers_.empty()) return false;
    attempt& a = takers_.front();
    const auto finish = [&](ends how) {
      ended[a.number] = {how, how == ends::done ? a.elements : std::vector<element>{}};
      takers_.pop_front();
      return true;
    };
    if (a.elements.size() == a.n) return finish(ends::done);
    const std::size_t wanted = a.n - a.elements.size();
    const std::size_t hidden = closed_ ? 0 : static_cast<std::size_t>(min_);
    const std::size_t there = inside_.size() > hidden ? inside_.size() - hidden : 0;
    if (closed_ && there < wanted) {
      give_back(a.elements);
      a.elements.clear();
      if (a.op == ops::dequeue || inside_.empty()) return finish(ends::out_of_range);
      a.n = inside_.size();
      return true;
    }
    if (there == 0 || (kind_ == gradus::queue_kind::priority && there < wanted)) return false;
    const bool sorted = kind_ == gradus::queue_kind::priority;  // these come together
    for (std::size_t i = 0; i < (sorted ? wanted : 1); ++i) {
      const auto first = !sorted ? inside_.begin()
                                 : std::min_element(inside_.begin(), inside_.end(), [](const auto& x, const auto& y) {
                                     return x.key != y.key ? x.key < y.key : x.id < y.id;
                                   });
      a.elements.push_back(*first);
      inside_.erase(first);
    }
    return true;
  }
};
