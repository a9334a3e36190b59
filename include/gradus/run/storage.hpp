// Where a runner's tables and tensors live: on the heap, grown before the first step; or in arrays of fixed size, for a
// stack, a static, a microcontroller without a heap.
#pragma once
#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "../graph/node.hpp"
#include "../tensor/tensor.hpp"

namespace gradus {

// One kernel invocation, ready to go: a step is a loop over these.
struct bound_call {
  kernel_function run = nullptr;  // nullptr: run by the session (updates, the global norm)
  std::byte** args = nullptr;
  call_size size;
  const kernel_details* what = nullptr;
  int node = -1;
};

struct heap_storage {
  template <class T>
  using table = std::vector<T>;
  using memory = buffer;

  template <class T>
  static void resize(std::vector<T>& t, std::size_t n) {
    t.resize(n);
  }
  // At least this many bytes, zero where new; what was there is lost.
  static void reserve(buffer& b, std::size_t bytes) {
    if (b.size() < bytes) b = buffer(bytes);
  }
};

// Capacities, counted by the compiler.
struct capacities {
  std::size_t entries = 0, bytes = 0;
};

template <capacities C>
struct static_storage {
  template <class T>
  class table {
  public:
    T& operator[](std::size_t i) { return items_[i]; }
    const T& operator[](std::size_t i) const { return items_[i]; }
    std::size_t size() const { return size_; }
    T* data() { return items_.data(); }
    const T* data() const { return items_.data(); }
    T* begin() { return items_.data(); }
    T* end() { return items_.data() + size_; }
    const T* begin() const { return items_.data(); }
    const T* end() const { return items_.data() + size_; }
    void grow(std::size_t n) { size_ = n; }

  private:
    std::array<T, C.entries + 1> items_{};
    std::size_t size_ = 0;
  };
  class memory {
  public:
    std::byte* data() { return bytes_; }
    const std::byte* data() const { return bytes_; }
    std::size_t size() const { return C.bytes; }

  private:
    alignas(alignment) std::byte bytes_[C.bytes + 1] = {};
  };

  template <class T>
  static void resize(table<T>& t, std::size_t n) {
    if (n > C.entries) __builtin_trap();  // counted by the compiler: cannot happen
    t.grow(n);
  }
  static void reserve(memory&, std::size_t bytes) {
    if (bytes > C.bytes) raise(status::resource_exhausted, "the batch is larger than this static_batch holds");
  }
};

}  // namespace gradus
