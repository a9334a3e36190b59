// Functions of the standard library that a template calls on types which do not depend on its parameters.
//
// The functions of std::vector and std::span are constexpr, and a compiler instantiates a constexpr function where it
// is named, even in a template that no program uses: an include of the header then costs as much as its use. These
// templates are not constexpr, so that a template that calls them costs nothing until it is instantiated itself. For
// each type of element a std::span made of a pointer and a number takes 2 MB of g++ 12, made of a std::vector 3.6 MB.
#pragma once
#include "build.hpp"

#include <cstddef>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace gradus::inline GRADUS_BUILD {
namespace detail {

template <class T>
inline std::span<const T> const_span(const T* first, std::size_t n) {
  return {first, n};
}
template <class T>
inline std::span<const T> const_span(const std::vector<T>& list) {
  return {list.data(), list.size()};
}
inline std::span<const std::byte> text_bytes(std::string_view s) {
  return const_span(reinterpret_cast<const std::byte*>(s.data()), s.size());
}
template <class List>
inline void resize_to(List& list, std::size_t n) {
  list.resize(n);
}
template <class List, class T>
inline void append_to(List& list, T&& last) {
  list.push_back(std::forward<T>(last));
}

}  // namespace detail
}  // namespace gradus
