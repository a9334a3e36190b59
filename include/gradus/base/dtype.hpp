// This header has the element types of tensors. Ops compute in float32, float64, int32, int64, bool and uint8. float16
// and bfloat16 are storage types, which casts and mixed precision use. int8, int16, uint16, uint32, uint64 and the two
// float8 types are only for files (is_for_files): checkpoints and .npy files may hold them, but no graph and no
// variable has them. The enumerators have the numbers of TensorFlow's DataType, so files and graphs use them unchanged.
#pragma once
#include "build.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "float8.hpp"
#include "half.hpp"

namespace gradus::inline GRADUS_BUILD {

enum class dtype : std::uint8_t {
  none = 0,
  float32 = 1,
  float64 = 2,
  int32 = 3,
  uint8 = 4,
  int16 = 5,
  int8 = 6,
  int64 = 9,
  boolean = 10,
  bfloat16 = 14,
  uint16 = 17,
  float16 = 19,
  uint32 = 22,
  uint64 = 23,
  float8_e5m2 = 24,
  float8_e4m3 = 25
};

inline constexpr dtype float32 = dtype::float32, float64 = dtype::float64, int32 = dtype::int32, int64 = dtype::int64,
                       uint8 = dtype::uint8, boolean = dtype::boolean, float16 = dtype::float16,
                       bfloat16 = dtype::bfloat16, int8 = dtype::int8, int16 = dtype::int16, uint16 = dtype::uint16,
                       uint32 = dtype::uint32, uint64 = dtype::uint64, float8_e4m3 = dtype::float8_e4m3,
                       float8_e5m2 = dtype::float8_e5m2;

// Returns the bytes per element; 0 for a value that is not a dtype (a file may hold one).
constexpr std::size_t size_of(dtype t) {
  switch (t) {
  case dtype::uint8:
  case dtype::int8:
  case dtype::float8_e4m3:
  case dtype::float8_e5m2:
  case dtype::boolean: return 1;
  case dtype::int16:
  case dtype::uint16:
  case dtype::float16:
  case dtype::bfloat16: return 2;
  case dtype::float32:
  case dtype::uint32:
  case dtype::int32: return 4;
  case dtype::float64:
  case dtype::uint64:
  case dtype::int64: return 8;
  case dtype::none: break;
  }
  return 0;
}

constexpr std::string_view name_of(dtype t) {
  switch (t) {
  case dtype::float32: return "float32";
  case dtype::float64: return "float64";
  case dtype::int32: return "int32";
  case dtype::uint8: return "uint8";
  case dtype::int64: return "int64";
  case dtype::boolean: return "bool";
  case dtype::bfloat16: return "bfloat16";
  case dtype::float16: return "float16";
  case dtype::int8: return "int8";
  case dtype::int16: return "int16";
  case dtype::uint16: return "uint16";
  case dtype::uint32: return "uint32";
  case dtype::uint64: return "uint64";
  case dtype::float8_e4m3: return "float8_e4m3";
  case dtype::float8_e5m2: return "float8_e5m2";
  case dtype::none: break;
  }
  return "none";
}

constexpr bool is_float(dtype t) { return t == dtype::float32 || t == dtype::float64; }

// Returns true for the types that only files hold: nothing computes with them or casts them.
constexpr bool is_for_files(dtype t) {
  return t == dtype::int8 || t == dtype::int16 || t == dtype::uint16 || t == dtype::uint32 || t == dtype::uint64 ||
         t == dtype::float8_e4m3 || t == dtype::float8_e5m2;
}

// element_t is the C++ type of a dtype, and dtype_of is the dtype of a C++ type. bool is stored as one byte that holds
// 0 or 1.
template <dtype T>
struct element;
template <>
struct element<dtype::float32> {
  using type = float;
};
template <>
struct element<dtype::float64> {
  using type = double;
};
template <>
struct element<dtype::int32> {
  using type = std::int32_t;
};
template <>
struct element<dtype::int64> {
  using type = std::int64_t;
};
template <>
struct element<dtype::uint8> {
  using type = std::uint8_t;
};
template <>
struct element<dtype::boolean> {
  using type = bool;
};
template <>
struct element<dtype::bfloat16> {
  using type = bfloat;
};
template <>
struct element<dtype::float16> {
  using type = half;
};
template <>
struct element<dtype::int8> {
  using type = std::int8_t;
};
template <>
struct element<dtype::int16> {
  using type = std::int16_t;
};
template <>
struct element<dtype::uint16> {
  using type = std::uint16_t;
};
template <>
struct element<dtype::uint32> {
  using type = std::uint32_t;
};
template <>
struct element<dtype::uint64> {
  using type = std::uint64_t;
};
template <>
struct element<dtype::float8_e4m3> {
  using type = e4m3;
};
template <>
struct element<dtype::float8_e5m2> {
  using type = e5m2;
};
template <dtype T>
using element_t = typename element<T>::type;

template <class T>
inline constexpr dtype dtype_of = dtype::none;
template <>
inline constexpr dtype dtype_of<float> = dtype::float32;
template <>
inline constexpr dtype dtype_of<double> = dtype::float64;
template <>
inline constexpr dtype dtype_of<std::int32_t> = dtype::int32;
template <>
inline constexpr dtype dtype_of<std::int64_t> = dtype::int64;
template <>
inline constexpr dtype dtype_of<std::uint8_t> = dtype::uint8;
template <>
inline constexpr dtype dtype_of<bool> = dtype::boolean;
template <>
inline constexpr dtype dtype_of<bfloat> = dtype::bfloat16;
template <>
inline constexpr dtype dtype_of<half> = dtype::float16;
template <>
inline constexpr dtype dtype_of<std::int8_t> = dtype::int8;
template <>
inline constexpr dtype dtype_of<std::int16_t> = dtype::int16;
template <>
inline constexpr dtype dtype_of<std::uint16_t> = dtype::uint16;
template <>
inline constexpr dtype dtype_of<std::uint32_t> = dtype::uint32;
template <>
inline constexpr dtype dtype_of<std::uint64_t> = dtype::uint64;
template <>
inline constexpr dtype dtype_of<e4m3> = dtype::float8_e4m3;
template <>
inline constexpr dtype dtype_of<e5m2> = dtype::float8_e5m2;

constexpr bool is_16_bit_float(dtype t) { return t == dtype::bfloat16 || t == dtype::float16; }

// Calls f<T>() for the element type of a tensor in a graph. Does nothing for types that are only for files.
template <class F>
constexpr void with_element_type(dtype t, F f) {
  switch (t) {
  case dtype::float32: return f.template operator()<float>();
  case dtype::float64: return f.template operator()<double>();
  case dtype::int32: return f.template operator()<std::int32_t>();
  case dtype::int64: return f.template operator()<std::int64_t>();
  case dtype::uint8: return f.template operator()<std::uint8_t>();
  case dtype::boolean: return f.template operator()<bool>();
  case dtype::float16: return f.template operator()<half>();
  case dtype::bfloat16: return f.template operator()<bfloat>();
  default: return;
  }
}
// Converts a number to an element: to a 16-bit type by way of float; to bool, true if it is not 0.
template <class T>
constexpr T element_from(double x) {
  if constexpr (dtype_of<T> == dtype::boolean)
    return x != 0;
  else if constexpr (is_16_bit_float(dtype_of<T>))
    return T(static_cast<float>(x));
  else
    return static_cast<T>(x);
}

// Returns whether an element of this type can be the number: whole numbers have no fraction and an end. A bool is any.
constexpr bool can_hold(dtype t, double x) {
  const auto whole = [x](double first, double end) {
    return x >= first && x < end && static_cast<double>(static_cast<std::int64_t>(x)) == x;
  };
  switch (t) {
  case dtype::int32: return whole(-0x1p31, 0x1p31);
  case dtype::int64: return whole(-0x1p63, 0x1p63);
  case dtype::uint8: return whole(0, 0x1p8);
  default: return true;
  }
}

// The types that an array may hold, and the types in which ops compute.
template <class T>
concept storable = dtype_of<T> != dtype::none;
template <class T>
concept computable = storable<T> && !is_16_bit_float(dtype_of<T>) && !is_for_files(dtype_of<T>);

}  // namespace gradus
