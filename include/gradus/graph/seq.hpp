// A growable array for constant evaluation. Compilers count evaluated statements: with std::vector the costliest pass
// needs 2.8 times the steps of this one (clang), so graphs and passes grow these, and read them through raw pointers.
#pragma once
#include <type_traits>
#include <utility>

namespace gradus {

template <class T>
struct seq {
  T* first = nullptr;
  int count = 0, capacity = 0;

  constexpr seq() = default;
  constexpr seq(int n, const T& x) : first(n != 0 ? new T[static_cast<unsigned>(n)] : nullptr), count(n), capacity(n) {
    for (int i = 0; i < n; ++i) first[i] = x;
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

  // One step of clang's budget, whatever n is; g++ counts operations and has enough of them.
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

}  // namespace gradus
