// Golden numbers: JSON files beside this header. Their strings "nan", "inf" and "-inf" stand for the values.
#pragma once
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

namespace golden {

using json = nlohmann::json;

inline json read(const char* file) {
#if defined(GRADUS_SOURCE_DIR)
  const std::filesystem::path folder = GRADUS_SOURCE_DIR "/tests/golden";
#else
  const auto folder = std::filesystem::path(__FILE__).parent_path();
#endif
  std::ifstream in(folder / file);
  return json::parse(in);
}
inline double number(const json& j) {
  if (!j.is_string()) return j.get<double>();
  const auto s = j.get<std::string>();
  return s == "nan"   ? std::numeric_limits<double>::quiet_NaN()
         : s == "inf" ? std::numeric_limits<double>::infinity()
                      : -std::numeric_limits<double>::infinity();
}
template <class T>
std::vector<T> numbers(const json& j) {
  std::vector<T> out;
  for (const auto& x : j) out.push_back(static_cast<T>(number(x)));
  return out;
}
// |got - want| <= atol + rtol |want|; NaN and infinities must be the same.
inline bool near(double got, double want, double rtol, double atol) {
  if (std::isnan(want)) return std::isnan(got);
  if (std::isinf(want)) return got == want;
  return std::abs(got - want) <= atol + rtol * std::abs(want);
}

}  // namespace golden
