// The bodies of bundle_names.hpp.
#pragma once
#include <bit>
#include <charconv>

#include "../base/body.hpp"
#include "bundle_names.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY float running_power(float beta, std::int64_t n) {
  float power = beta;
  for (; n > 1 && power != 0; --n) {
    power *= beta;
    if (power < FLT_MIN) power = 0;
  }
  return power;
}

GRADUS_BODY double running_power(double beta, std::int64_t n) {
  double power = beta;
  for (; n > 1 && power != 0; --n) power = portable_math::product(power, beta);
  return power;
}

GRADUS_BODY std::int64_t factors_in(double power, double beta) {
  if (!(power > DBL_MIN && power < 1 && beta > 0 && beta < 1)) return 0;
  const double n = std::round(std::log(power) / std::log(beta));
  if (!(n >= 1 && n < 1e9) || std::abs(std::pow(beta, n) / power - 1) > 1e-7) return 0;
  return static_cast<std::int64_t>(n);
}

GRADUS_BODY std::int64_t factors_in(float power, float beta) {
  if (!(power > 0 && beta > 0 && power <= beta && beta < 1)) return 0;
  std::int64_t n = 1;
  for (float x = beta; x >= power; ++n) {
    if (x == power) return n;
    const float next = x * beta;
    if (next == x) break;
    x = next;
  }
  return 0;
}

GRADUS_BODY bool is_scalar(const record& r, dtype type) {
  return !r.blob && r.type == type && r.dims.rank == 0 && r.bytes.size() == size_of(type);
}

GRADUS_BODY std::string exact_key(std::string_view name) { return text("exact ", name); }
GRADUS_BODY std::string exact_text(float written, double value) {
  return text(std::bit_cast<std::uint32_t>(written), " ", std::bit_cast<std::uint64_t>(value));
}

GRADUS_BODY std::pair<int, std::string> beta_of(std::string_view name) {
  if (!name.starts_with("beta1_power") && !name.starts_with("beta2_power")) return {0, ""};
  const auto rest = name.substr(11);
  const bool first = rest.empty(), later = rest.size() > 1 && rest[0] == '_' &&
                                           rest.find_first_not_of("0123456789", 1) == std::string_view::npos;
  if (!first && !later) return {0, ""};
  return {name[4] - '0', std::string(first ? rest : rest.substr(1))};
}

GRADUS_BODY std::pair<std::string, std::string> slot_parts(const std::string& name, std::string_view optimizer) {
  const auto at = name.rfind('/');
  if (at == std::string::npos || at == 0 || !std::string_view(name).substr(at + 1).starts_with(optimizer)) return {};
  const std::string rest = name.substr(at + 1 + optimizer.size());
  if (!rest.empty() && (rest.size() < 2 || rest[0] != '_' || rest.find_first_not_of("0123456789", 1) != rest.npos))
    return {};
  return {name.substr(0, at), rest};
}

}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY void tensorflow_names::to_tensorflow(snapshot& content, std::deque<std::vector<std::byte>>& owned) const {
  std::vector<std::string> known;  // names are looked up as they were before the conversion
  for (const auto& r : content.records) known.push_back(r.name);
  std::sort(known.begin(), known.end());
  for (auto& r : content.records) {
    std::string_view power = r.name, group;
    if (power.starts_with("group_") && power.find('/') != power.npos) {
      group = power.substr(6, power.find('/') - 6);
      power = power.substr(power.find('/') + 1);
    }
    const auto [which, number] = detail::beta_of(power);
    if (which != 0 && number.empty() && detail::is_scalar(r, float64)) {
      const double beta = which == 1 ? beta1 : beta2, value = detail::scalar_in<double>(r);
      const std::int64_t n = detail::factors_in(value, beta);
      const float single = static_cast<float>(value);
      std::string name = (scope.empty() ? "" : scope + "/") + text("beta", which, "_power");
      if (!group.empty()) name += text("_", group);
      const float written = n != 0 ? detail::running_power(static_cast<float>(beta), n) : single < FLT_MIN ? 0 : single;
      if ((n != 0 ? detail::running_power(beta, n) : static_cast<double>(written)) != value)
        content.about[detail::exact_key(name)] = detail::exact_text(written, value);
      detail::replace_scalar(r, written, owned);
      r.name = name;
      continue;
    }
    if (r.name == "global_step") {
      r.name = global_step;
      continue;
    }
    if (called.empty() || called == optimizer) continue;
    if (const auto [variable, rest] = detail::slot_parts(r.name, optimizer);
        std::binary_search(known.begin(), known.end(), variable))
      r.name = text(variable, "/", called, rest);
  }
}

GRADUS_BODY void tensorflow_names::from_tensorflow(snapshot& content, std::deque<std::vector<std::byte>>& owned) const {
  std::vector<std::string> known;
  for (const auto& r : content.records) known.push_back(r.name);
  std::sort(known.begin(), known.end());
  const auto there = [&known](const std::string& name) { return std::binary_search(known.begin(), known.end(), name); };
  const std::string prefix = scope.empty() ? "" : scope + "/", slot = called.empty() ? optimizer : called;
  // Returns the variable that a slot belongs to, also by the old names of slots of parts; empty: there is none.
  const auto owner = [&](const std::string& variable) -> std::string {
    if (there(variable)) return variable;
    constexpr std::string_view part = "/part_0";
    if (!variable.ends_with(part)) return {};
    const std::string inner = variable.substr(0, variable.size() - part.size());
    if (there(inner)) return inner;
    // "dnn/hidden/weights/idden/weights": a name, followed by an end of itself
    for (auto at = inner.find('/'); at != inner.npos; at = inner.find('/', at + 1))
      if (there(inner.substr(0, at)) && inner.substr(0, at).ends_with(inner.substr(at + 1))) return inner.substr(0, at);
    return {};
  };

  std::map<std::string, std::int64_t> factors;  // the number of factors in each optimizer's powers
  const auto each_power = [&](auto&& f) {
    for (auto& r : content.records) {
      if (!r.name.starts_with(prefix) || !detail::is_scalar(r, float32)) continue;
      const auto [which, number] = detail::beta_of(std::string_view(r.name).substr(prefix.size()));
      if (which != 0) f(r, which, number);
    }
  };
  each_power([&](const record& r, int which, const std::string& number) {
    const auto n = detail::factors_in(detail::scalar_in<float>(r), static_cast<float>(which == 1 ? beta1 : beta2));
    if (n != 0) factors[number] = n;
  });
  each_power([&](record& r, int which, const std::string& number) {
    const float value = detail::scalar_in<float>(r);
    const double beta = which == 1 ? beta1 : beta2;
    const auto found = factors.find(number);
    // From a power that has become 0 the number of factors cannot be derived; the other power, or else the step, gives
    // it.
    const std::int64_t n = found != factors.end() ? found->second : value == 0 ? content.step + 1 : 0;
    const bool exact = n != 0 && detail::running_power(static_cast<float>(beta), n) == value;
    double read = exact ? detail::running_power(beta, n) : static_cast<double>(value);
    if (const auto note = content.about.find(detail::exact_key(r.name)); note != content.about.end()) {
      const std::string_view both = note->second;
      std::uint64_t bits = 0;
      std::from_chars(both.data() + std::min(both.find(' ') + 1, both.size()), both.data() + both.size(), bits);
      if (const auto noted = std::bit_cast<double>(bits); detail::exact_text(value, noted) == both) read = noted;
      content.about.erase(note);
    }
    detail::replace_scalar(r, read, owned);
    r.name = (number.empty() ? "" : "group_" + number + "/") + text("beta", which, "_power");
  });
  for (auto& r : content.records) {
    if (r.name == global_step) {
      if (const auto step = detail::step_of(r); step && r.type != int64) detail::replace_scalar(r, *step, owned);
      r.name = "global_step";
    } else if (const auto [variable, rest] = detail::slot_parts(r.name, slot); !variable.empty()) {
      const std::string of = owner(variable), name = text(of, "/", optimizer, rest);
      if (!of.empty() && !there(name)) r.name = name;
    }
  }
}

}  // namespace gradus
