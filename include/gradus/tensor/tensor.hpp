// This header has arrays in memory: views that own nothing, and aligned buffers that own bytes. They are row-major and
// little-endian.
#pragma once
#include "../base/build.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <utility>
#if defined(__linux__) && __has_include(<sys/mman.h>)
#include <sys/mman.h>
#endif

#include "../base/dtype.hpp"
#include "../base/error.hpp"
#include "../base/shape.hpp"

namespace gradus::inline GRADUS_BUILD {

// Every tensor in an arena starts on a cache line, so that a sweep may run over the padding between two of them.
inline constexpr std::size_t alignment = 64;
constexpr std::size_t align_up(std::size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

// A view for reading: an array's type, extents and first byte. It does not own the array.
struct const_tensor_view {
  dtype type = dtype::none;
  extents dims;
  const std::byte* data = nullptr;

  const_tensor_view() = default;
  const_tensor_view(dtype t, const extents& e, const std::byte* p) : type(t), dims(e), data(p) {}
  // A span is a vector; give extents for more axes. They must hold as many elements as the span.
  template <storable T>
  const_tensor_view(std::span<const T> values)
      : const_tensor_view(values, {static_cast<std::int64_t>(values.size())}) {}
  template <storable T>
  const_tensor_view(std::span<const T> values, const extents& e)
      : type(dtype_of<T>), dims(e), data(reinterpret_cast<const std::byte*>(values.data())) {
    if (count(e) != static_cast<std::int64_t>(values.size()))
      raise(status::invalid_argument,
            text("extents ", to_text(e), " hold ", count(e), " elements, the span has ", values.size()));
  }
  std::size_t size() const { return static_cast<std::size_t>(count(dims)); }
  std::size_t size_bytes() const { return size() * size_of(type); }
  std::span<const std::byte> bytes() const { return {data, size_bytes()}; }
  template <storable T>
  std::span<const T> as() const {
    return {data_as<T>(), size()};
  }
  // Returns the first number; raises as as() does.
  template <storable T>
  const T* data_as() const {
    if (type != dtype_of<T>)
      raise(status::invalid_argument, text("this tensor holds ", name_of(type), ", not ", name_of(dtype_of<T>),
                                           "; read it as ", name_of(type), ", or make it ", name_of(dtype_of<T>)));
    return reinterpret_cast<const T*>(data);
  }
};

// A view that may also be written.
struct tensor_view : const_tensor_view {
  tensor_view() = default;
  tensor_view(dtype t, const extents& e, std::byte* p) : const_tensor_view(t, e, p) {}
  template <storable T>
  tensor_view(std::span<T> values, const extents& e) : const_tensor_view(std::span<const T>(values), e) {}
  template <storable T>
  tensor_view(std::span<T> values) : const_tensor_view(std::span<const T>(values)) {}
  std::byte* mutable_data() const { return const_cast<std::byte*>(data); }
  std::span<std::byte> mutable_bytes() const { return {mutable_data(), size_bytes()}; }
  template <storable T>
  std::span<T> mutable_as() const {
    const auto s = as<T>();
    return {const_cast<T*>(s.data()), s.size()};
  }
};

// Owned bytes, aligned to a cache line, zero at first. Large buffers use large pages where the system has them: a sweep
// over a gigabyte then needs 500 page translations and not 250,000.
class aligned_buffer {
public:
  static constexpr std::size_t large_page = std::size_t{1} << 21, large_from = 2 * large_page;

  aligned_buffer() = default;
  explicit aligned_buffer(std::size_t bytes) : aligned_buffer(untouched(bytes)) {
    if (bytes != 0) std::memset(data_, 0, align_up(bytes));
  }
  // Returns a buffer that is not zeroed: the user of a part zeroes it first, because the system places a page when it
  // is first written, near the processor that writes.
  static aligned_buffer untouched(std::size_t bytes) {
    aligned_buffer b;
    b.size_ = bytes;
    if (bytes == 0) return b;
    b.data_ = static_cast<std::byte*>(::operator new(align_up(bytes), aligned(bytes)));
#if defined(MADV_HUGEPAGE)
    if (bytes >= large_from) ::madvise(b.data_, align_up(bytes), MADV_HUGEPAGE);  // this is a hint and may fail
#endif
    return b;
  }
  aligned_buffer(aligned_buffer&& o) noexcept : data_(o.data_), size_(o.size_) { o.forget(); }
  aligned_buffer& operator=(aligned_buffer&& o) noexcept {
    std::byte* const data = o.data_;
    const std::size_t size = o.size_;
    o.forget();
    release();
    data_ = data, size_ = size;
    return *this;
  }
  ~aligned_buffer() { release(); }
  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::span<std::byte> bytes() { return {data(), size_}; }
  std::span<const std::byte> bytes() const { return {data(), size_}; }

private:
  std::byte* data_ = nullptr;  // no std::unique_ptr: base/owned.hpp says why
  std::size_t size_ = 0;

  static std::align_val_t aligned(std::size_t bytes) {
    return std::align_val_t{bytes >= large_from ? large_page : alignment};
  }

  void release() {
    if (data_ != nullptr) ::operator delete(data_, aligned(size_));
  }
  void forget() { data_ = nullptr, size_ = 0; }
};

}  // namespace gradus
