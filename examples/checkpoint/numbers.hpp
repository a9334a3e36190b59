// The elements of a record as numbers: statistics, differences, the first few as text.
#pragma once
#include <charconv>
#include <cmath>
#include <cstring>
#include <gradus/codec/codec.hpp>
#include <limits>

namespace tool {

// Calls f(T{}) with the type that a dtype's elements have in memory; the small floats and bool as they are stored.
template <class F>
decltype(auto) with_type(gradus::dtype t, F&& f) {
  switch (t) {
  case gradus::dtype::float32: return f(float{});
  case gradus::dtype::float64: return f(double{});
  case gradus::dtype::int32: return f(std::int32_t{});
  case gradus::dtype::int64: return f(std::int64_t{});
  case gradus::dtype::bfloat16: return f(gradus::bfloat{});
  case gradus::dtype::float16: return f(gradus::half{});
  case gradus::dtype::int8: return f(std::int8_t{});
  case gradus::dtype::int16: return f(std::int16_t{});
  case gradus::dtype::uint16: return f(std::uint16_t{});
  case gradus::dtype::uint32: return f(std::uint32_t{});
  case gradus::dtype::uint64: return f(std::uint64_t{});
  case gradus::dtype::float8_e4m3: return f(gradus::e4m3{});
  case gradus::dtype::float8_e5m2: return f(gradus::e5m2{});
  default: return f(std::uint8_t{});
  }
}
// What it is computed with.
inline float wide(gradus::half x) { return static_cast<float>(x); }
inline float wide(gradus::bfloat x) { return static_cast<float>(x); }
inline float wide(gradus::e4m3 x) { return static_cast<float>(x); }
inline float wide(gradus::e5m2 x) { return static_cast<float>(x); }
template <class T>
T wide(T x) {
  return x;
}

// The shortest text that reads back as the same number of this type.
template <class T>
std::string number_text(T x) {
  char digits[64];
  return {digits, std::to_chars(digits, digits + sizeof digits, x).ptr};
}

template <class T>
class elements {  // whatever their alignment
public:
  explicit elements(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::size_t size() const { return bytes_.size() / sizeof(T); }
  auto operator[](std::size_t i) const {
    T x{};
    std::memcpy(&x, bytes_.data() + i * sizeof(T), sizeof(T));
    return wide(x);
  }

private:
  std::span<const std::byte> bytes_;
};

// Of the finite elements, but for the counts. `min` and `max` exactly, also of int64.
struct statistics {
  std::uint64_t count = 0, zeros = 0, nans = 0, infinities = 0;
  std::string min, max;  // empty: there is no finite element
  double mean = 0, deviation = 0;
};

inline statistics statistics_of(const gradus::record& r) {
  return with_type(r.type, [&]<class T>(T) {
    const elements<T> all(r.bytes);
    using number = decltype(all[0]);
    statistics s;
    s.count = all.size();
    number least{}, most{};
    std::uint64_t finite = 0;
    double squares = 0;  // of the distances from the mean, by Welford's recurrence
    for (std::size_t i = 0; i < all.size(); ++i) {
      const number x = all[i];
      if constexpr (std::floating_point<number>) {
        if (std::isnan(x)) ++s.nans;
        if (std::isinf(x)) ++s.infinities;
        if (!std::isfinite(x)) continue;
      }
      if (x == number{}) ++s.zeros;
      if (finite == 0 || x < least) least = x;
      if (finite == 0 || x > most) most = x;
      const double from_mean = static_cast<double>(x) - s.mean;
      s.mean += from_mean / static_cast<double>(++finite);
      squares += from_mean * (static_cast<double>(x) - s.mean);
    }
    if (finite != 0) {
      s.min = number_text(least), s.max = number_text(most);
      s.deviation = std::sqrt(squares / static_cast<double>(finite));
    }
    return s;
  });
}

inline std::vector<std::string> first_values(const gradus::record& r, std::size_t most) {
  return with_type(r.type, [&]<class T>(T) {
    const elements<T> all(r.bytes);
    std::vector<std::string> out;
    for (std::size_t i = 0; i < std::min(most, all.size()); ++i)
      out.push_back(r.type == gradus::boolean ? (all[i] != 0 ? "true" : "false") : number_text(all[i]));
    return out;
  });
}

// How two records of one dtype and extents differ.
struct difference {
  std::uint64_t count = 0;            // elements that differ
  double absolute = 0, relative = 0;  // the largest; relative to the larger of the two
  std::size_t at = 0;                 // where the largest absolute one is
  bool beyond = false;                // of the tolerance
  bool any() const { return count != 0; }
};

// Without tolerances bits are compared: 0 and -0 differ, a NaN equals itself. A tolerance is one of finite numbers: an
// infinity is within it of itself alone, a NaN of other NaNs.
inline difference difference_of(const gradus::record& a, const gradus::record& b, double atol, double rtol) {
  difference d;
  if (a.bytes.size() == b.bytes.size() &&
      (a.bytes.empty() || std::memcmp(a.bytes.data(), b.bytes.data(), a.bytes.size()) == 0))
    return d;
  with_type(a.type, [&]<class T>(T) {
    const elements<T> left(a.bytes), right(b.bytes);
    for (std::size_t i = 0; i < left.size(); ++i) {
      if (std::memcmp(a.bytes.data() + i * sizeof(T), b.bytes.data() + i * sizeof(T), sizeof(T)) == 0) continue;
      const auto x = left[i], y = right[i];
      ++d.count;
      double apart = 0, larger = 0;
      if constexpr (std::floating_point<std::remove_cv_t<decltype(x)>>) {
        const double p = x, q = y;
        if (std::isnan(p) && std::isnan(q)) continue;  // other bits, the same meaning
        apart = p == q ? 0 : std::abs(p - q), larger = std::max(std::abs(p), std::abs(q));
        if (!std::isfinite(apart)) apart = std::numeric_limits<double>::infinity();
      } else {
        const auto p = static_cast<std::uint64_t>(x), q = static_cast<std::uint64_t>(y);
        apart = static_cast<double>(x > y ? p - q : q - p);  // modulo 2^64: no overflow
        larger = std::max(std::abs(static_cast<double>(x)), std::abs(static_cast<double>(y)));
      }
      if (apart > d.absolute) d.absolute = apart, d.at = i;
      if (apart > 0) d.relative = std::max(d.relative, std::isfinite(apart) ? apart / larger : apart);
      const bool within = std::isfinite(apart) && apart <= atol + rtol * std::abs(static_cast<double>(y));
      d.beyond = d.beyond || !within;
    }
    if (atol == 0 && rtol == 0) d.beyond = d.any();
  });
  return d;
}

}  // namespace tool
