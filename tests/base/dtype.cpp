#include <gradus/base/dtype.hpp>

#include <doctest/doctest.h>

#include <string>

using gradus::dtype;

// TensorFlow's types.proto: DT_FLOAT = 1, DT_DOUBLE = 2, DT_INT32 = 3, DT_UINT8 = 4, DT_INT64 = 9, DT_BOOL = 10,
// DT_BFLOAT16 = 14, DT_HALF = 19, DT_INT16 = 5, DT_INT8 = 6, DT_UINT16 = 17, DT_UINT32 = 22, DT_UINT64 = 23,
// DT_FLOAT8_E5M2 = 24, DT_FLOAT8_E4M3FN = 25. Files hold these numbers.
static_assert(static_cast<int>(gradus::float32) == 1 && static_cast<int>(gradus::float64) == 2 &&
              static_cast<int>(gradus::int32) == 3 && static_cast<int>(gradus::uint8) == 4 &&
              static_cast<int>(gradus::int64) == 9 && static_cast<int>(gradus::boolean) == 10 &&
              static_cast<int>(gradus::bfloat16) == 14 && static_cast<int>(gradus::float16) == 19 &&
              static_cast<int>(gradus::int16) == 5 && static_cast<int>(gradus::int8) == 6 &&
              static_cast<int>(gradus::uint16) == 17 && static_cast<int>(gradus::uint32) == 22 &&
              static_cast<int>(gradus::uint64) == 23 && static_cast<int>(gradus::float8_e5m2) == 24 &&
              static_cast<int>(gradus::float8_e4m3) == 25);

template <class T>
constexpr bool round_trips =
    std::same_as<gradus::element_t<gradus::dtype_of<T>>, T> && gradus::size_of(gradus::dtype_of<T>) == sizeof(T);
static_assert(round_trips<float> && round_trips<double> && round_trips<std::int32_t> && round_trips<std::int64_t> &&
              round_trips<std::uint8_t> && round_trips<bool> && round_trips<std::int8_t> && round_trips<std::int16_t> &&
              round_trips<std::uint16_t> && round_trips<std::uint32_t> && round_trips<std::uint64_t> &&
              round_trips<gradus::e4m3> && round_trips<gradus::e5m2>);
static_assert(!gradus::computable<std::int8_t> && !gradus::computable<std::uint64_t> &&
              !gradus::computable<gradus::e4m3> && gradus::storable<gradus::e5m2> &&
              gradus::is_for_files(gradus::uint16) && !gradus::is_for_files(gradus::uint8));
static_assert(gradus::computable<float> && gradus::computable<bool> && !gradus::computable<char> &&
              !gradus::computable<long double> && !gradus::computable<void*>);
static_assert(gradus::size_of(gradus::float16) == 2 && gradus::size_of(gradus::bfloat16) == 2);
static_assert(gradus::is_float(gradus::float32) && gradus::is_float(gradus::float64) &&
              !gradus::is_float(gradus::int32) && !gradus::is_float(gradus::float16));

TEST_CASE("every dtype has a name and a size, and a number that is none has neither") {
  int known = 0;
  for (int i = 0; i < 256; ++i) {
    const auto t = static_cast<dtype>(i);
    const bool has_name = gradus::name_of(t) != "none";
    CHECK(has_name == (gradus::size_of(t) > 0));
    known += has_name ? 1 : 0;
  }
  CHECK(known == 15);
  CHECK(std::string(gradus::name_of(gradus::boolean)) == "bool");
  CHECK(std::string(gradus::name_of(gradus::bfloat16)) == "bfloat16");
}
