// A seq is a growable array for constant evaluation. Compilers count evaluated statements: with std::vector the most
// expensive pass needs 2.8 times the steps that it needs with this class (clang), so graphs and passes use seq to grow
// arrays, and raw pointers to read them.
#pragma once
#include "../base/build.hpp"

#include <type_traits>
#include <utility>

namespace gradus::inline GRADUS_BUILD {

namespace detail {
// Copies eight elements in a statement, because clang counts statements against the limit of a constant evaluation.
template <class T>
constexpr void copy_run(T* to, const T* from, int n) {
  int i = 0;
  for (; i + 8 <= n; i += 8)
    to[i] = from[i], to[i + 1] = from[i + 1], to[i + 2] = from[i + 2], to[i + 3] = from[i + 3], to[i + 4] = from[i + 4],
    to[i + 5] = from[i + 5], to[i + 6] = from[i + 6], to[i + 7] = from[i + 7];
  for (; i < n; ++i) to[i] = from[i];
}
template <class T>
struct seq {
  T* first = nullptr;
  int count = 0, capacity = 0;

  constexpr seq() = default;
  constexpr seq(int n, const T& x) : first(n != 0 ? new T[static_cast<unsigned>(n)] : nullptr), count(n), capacity(n) {
    int i = 0;
    for (; i + 8 <= n; i += 8)
      first[i] = x, first[i + 1] = x, first[i + 2] = x, first[i + 3] = x, first[i + 4] = x, first[i + 5] = x,
      first[i + 6] = x, first[i + 7] = x;
    for (; i < n; ++i) first[i] = x;
  }
  // Returns n zeros.
  static constexpr seq zeroed(int n) {
    seq s;
    s.first = new T[static_cast<unsigned>(n)]{}, s.count = s.capacity = n;
    return s;
  }
  constexpr seq(const seq& o) : seq() { append(o.first, o.count); }
  constexpr seq(seq&& o) noexcept
      : first(std::exchange(o.first, nullptr)),
        count(std::exchange(o.count, 0)),
        capacity(std::exchange(o.capacity, 0)) {}
  constexpr seq& operator=(const seq& o) {
    if (this != &o) count = 0, append(o.first, o.count);
    return *this;
  }
  constexpr seq& operator=(seq&& o) noexcept {
    T* mine = first;  // no swap through a by-value parameter: g++ 12 frees that twice in constant evaluation
    first = o.first, count = o.count, capacity = o.capacity;
    o.first = nullptr, o.count = o.capacity = 0;
    delete[] mine;
    return *this;
  }
  constexpr ~seq() { delete[] first; }

  // Copies in one step of clang's budget, whatever n is; g++ counts operations, and its limit is high enough.
  static constexpr void copy(T* to, const T* from, int n) {
#if defined(__clang__)
    if constexpr (std::is_trivially_copyable_v<T>) {
      if (n != 0) __builtin_memcpy(to, from, sizeof(T) * static_cast<unsigned>(n));
      return;
    }
#endif
    for (int i = 0; i < n; ++i) to[i] = from[i];
  }
  constexpr void reserve(int n) {
    if (n <= capacity) return;
    T* grown = new T[static_cast<unsigned>(n)];
    copy(grown, first, count);
    delete[] first;
    first = grown, capacity = n;
  }
  constexpr void push(T x) {
    if (count == capacity) reserve(2 * capacity + 16);
    first[count++] = std::move(x);
  }
  constexpr void append(const T* from, int n) {
    if (count + n > capacity) reserve(2 * (count + n) + 16);
    copy(first + count, from, n);
    count += n;
  }
  constexpr T* data() { return first; }
  constexpr const T* data() const { return first; }
  constexpr T& operator[](int i) { return first[i]; }
  constexpr const T& operator[](int i) const { return first[i]; }
  constexpr int size() const { return count; }
  constexpr bool empty() const { return count == 0; }
  constexpr T* begin() { return first; }
  constexpr T* end() { return first + count; }
  constexpr const T* begin() const { return first; }
  constexpr const T* end() const { return first + count; }
};

}  // namespace detail

}  // namespace gradus
