// The bodies of device_spec.hpp.
#pragma once
#include <charconv>

#include "../base/body.hpp"
#include "../base/error.hpp"
#include "device_spec.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY device_spec device_spec::from_string(std::string_view s) {
  device_spec spec;
  const auto refuse = [&](std::string_view part, std::string_view why) {
    raise(status::invalid_argument, text("\"", s, "\" is no device: \"", part, "\" ", why,
                                         "; expected /job:NAME/replica:N/task:N/device:TYPE:N, or parts of it"));
  };
  const auto number = [&](std::string_view part, std::string_view digits) -> or_none<int> {
    int n = 0;
    const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), n);
    if (problem != std::errc{} || end != digits.data() + digits.size() || n < 0) refuse(part, "has no number");
    return n;
  };
  for (std::string_view rest = s; !rest.empty();) {
    const auto slash = rest.find('/');
    const std::string_view part = rest.substr(0, slash);
    rest.remove_prefix(slash == std::string_view::npos ? rest.size() : slash + 1);
    if (part.empty()) continue;
    const auto colon = part.find(':');
    const std::string_view key = part.substr(0, colon);
    std::string_view of = colon == std::string_view::npos ? std::string_view() : part.substr(colon + 1);
    if (key == "job") {
      if (of.empty()) refuse(part, "has no name");
      spec.job = of;
    } else if (key == "replica") {
      spec.replica = number(part, of);
    } else if (key == "task") {
      spec.task = number(part, of);
    } else if (key == "device" || key == "cpu" || key == "CPU" || key == "gpu" || key == "GPU") {
      if (!spec.device_type.empty()) refuse(part, "is a second device");
      const bool short_form = key != "device";
      const auto second = of.find(':');
      spec.device_type = short_form ? key : of.substr(0, second);
      for (char& c : spec.device_type)
        if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
      if (!short_form) of = second == std::string_view::npos ? "*" : of.substr(second + 1);
      if (spec.device_type.empty()) refuse(part, "has no type");
      if (of != "*" && !(short_form && colon == std::string_view::npos)) spec.device_index = number(part, of);
    } else {
      refuse(part, "is not known");
    }
  }
  return spec;
}

GRADUS_BODY std::string device_spec::to_string() const {
  std::string out;
  if (!job.empty()) out += text("/job:", job);
  if (replica.has_value()) out += text("/replica:", replica.value());
  if (task.has_value()) out += text("/task:", task.value());
  if (!device_type.empty())
    out += text("/device:", device_type, ':', device_index.has_value() ? text(device_index.value()) : std::string("*"));
  return out;
}

GRADUS_BODY device_spec device_spec::merged(const device_spec& other) const {
  device_spec all = *this;
  if (!other.job.empty()) all.job = other.job;
  if (other.replica.has_value()) all.replica = other.replica;
  if (other.task.has_value()) all.task = other.task;
  if (!other.device_type.empty()) all.device_type = other.device_type;
  if (other.device_index.has_value()) all.device_index = other.device_index;
  return all;
}

}  // namespace gradus
