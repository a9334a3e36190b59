// Pointers that own what they point to. They have of std::unique_ptr what this library's own members need. Each
// std::unique_ptr<T> that a header has as a member costs every program that includes the header 1.4 MB and some
// milliseconds of its compilation (g++ 12), since it instantiates a tuple; these cost nothing that can be measured.
#pragma once
#include "build.hpp"

#include <cstddef>
#include <memory>
#include <utility>

namespace gradus::inline GRADUS_BUILD {
namespace detail {

// T may be incomplete where the pointer is declared, and must be complete where it is destroyed.
template <class T>
class owned {
public:
  owned() = default;
  owned(std::nullptr_t) {}
  explicit owned(T* p) : p_(p) {}
  template <class U>
  owned(std::unique_ptr<U> p) : p_(p.release()) {}
  owned(owned&& o) noexcept : p_(o.release()) {}
  owned& operator=(owned&& o) noexcept {
    reset(o.release());
    return *this;
  }
  ~owned() { reset(); }

  T* get() const { return p_; }
  T& operator*() const { return *p_; }
  T* operator->() const { return p_; }
  explicit operator bool() const { return p_ != nullptr; }
  bool operator==(std::nullptr_t) const { return p_ == nullptr; }
  T* release() {
    T* const p = p_;
    p_ = nullptr;
    return p;
  }
  void reset(T* p = nullptr) {
    static_assert(sizeof(T) > 0);
    T* const before = p_;
    p_ = p;
    delete before;
  }

private:
  T* p_ = nullptr;
};

// The same for an array of n elements, each of which is value-initialized.
template <class T>
class owned_array {
public:
  owned_array() = default;
  explicit owned_array(std::size_t n) : p_(new T[n]()) {}
  owned_array(owned_array&& o) noexcept : p_(o.p_) { o.p_ = nullptr; }
  owned_array& operator=(owned_array&& o) noexcept {
    T* const from = o.p_;
    o.p_ = nullptr;
    T* const before = p_;
    p_ = from;
    delete[] before;
    return *this;
  }
  ~owned_array() { delete[] p_; }

  T* get() const { return p_; }
  T& operator[](std::size_t i) const { return p_[i]; }

private:
  T* p_ = nullptr;
};

template <class T, class... Args>
owned<T> make_owned(Args&&... args) {
  return owned<T>(new T(std::forward<Args>(args)...));
}

}  // namespace detail
}  // namespace gradus
