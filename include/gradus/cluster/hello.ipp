// The bodies of hello.hpp.
#pragma once
#include "../base/body.hpp"
#include "hello.hpp"
#include "protocol/bytes.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
inline constexpr std::uint32_t fingerprint_version = 1;
}

GRADUS_BODY std::vector<std::byte> to_bytes(const cluster_fingerprint& f) {
  std::vector<std::byte> made;
  detail::bytes_out out(made);
  out.number(detail::fingerprint_version);
  for (const std::string* s : {&f.version, &f.model, &f.rule, &f.arithmetic}) out.string(*s);
  out.number(static_cast<std::uint32_t>(f.settings.size()));
  for (const auto& [name, content] : f.settings) out.string(name), out.string(content);
  out.number(static_cast<std::uint32_t>(f.variables.size()));
  for (const auto& v : f.variables) {
    out.string(v.name);
    out.number(v.type);
    out.number(static_cast<std::uint8_t>(v.dims.rank));
    for (int i = 0; i < v.dims.rank; ++i) out.number(v.dims[i]);
  }
  return made;
}

GRADUS_BODY cluster_fingerprint cluster_fingerprint_from(std::span<const std::byte> bytes) {
  detail::bytes_in in(bytes, "fingerprint of a peer");
  if (const auto version = in.number<std::uint32_t>(); version != detail::fingerprint_version)
    in.refuse(text("it is of version ", version, ", here it is version ", detail::fingerprint_version));
  cluster_fingerprint f;
  for (std::string* s : {&f.version, &f.model, &f.rule, &f.arithmetic}) *s = in.string();
  const std::size_t settings = in.count(8);
  for (std::size_t i = 0; i < settings; ++i) {
    auto name = in.string();
    auto content = in.string();
    if (!f.settings.empty() && name <= f.settings.back().first)
      in.refuse(text("its setting \"", name, "\" comes behind \"", f.settings.back().first, "\""));
    f.settings.emplace_back(std::move(name), std::move(content));
  }
  const std::size_t variables = in.count(6);
  for (std::size_t i = 0; i < variables; ++i) {
    cluster_fingerprint::variable v{.name = in.string(), .type = in.number<dtype>()};
    if (size_of(v.type) == 0) in.refuse(text("the variable \"", v.name, "\" has an element type that is none"));
    const int rank = in.number<std::uint8_t>();
    if (rank > max_rank)
      in.refuse(text("the variable \"", v.name, "\" has rank ", rank, "; expected at most ", max_rank));
    for (int k = 0; k < rank; ++k) v.dims.push(in.number<std::int64_t>());
    f.variables.push_back(std::move(v));
  }
  in.end();
  return f;
}

GRADUS_BODY std::string difference_of(const cluster_fingerprint& a, std::string_view a_name,
                                      const cluster_fingerprint& b, std::string_view b_name) {
  const auto differ = [&](std::string_view what, std::string_view of_a, std::string_view of_b) {
    return text(what, " of ", a_name, " is ", of_a, ", that of ", b_name, " is ", of_b);
  };
  const auto quoted = [](std::string_view s) { return text('"', s, '"'); };
  if (a.version != b.version) return differ("the library version", a.version, b.version);
  if (a.model != b.model) return differ("the model", quoted(a.model), quoted(b.model));
  if (a.rule != b.rule) return differ("the rule", quoted(a.rule), quoted(b.rule));
  if (a.arithmetic != b.arithmetic) return differ("the arithmetic", quoted(a.arithmetic), quoted(b.arithmetic));
  // Both are in the order of their names.
  for (std::size_t i = 0, j = 0; i < a.settings.size() || j < b.settings.size(); ++i, ++j) {
    const bool only_a = j == b.settings.size() || (i < a.settings.size() && a.settings[i].first < b.settings[j].first);
    const bool only_b = !only_a && (i == a.settings.size() || b.settings[j].first < a.settings[i].first);
    if (only_a) return text("the setting \"", a.settings[i].first, "\" of ", a_name, " is unknown to ", b_name);
    if (only_b) return text("the setting \"", b.settings[j].first, "\" of ", b_name, " is unknown to ", a_name);
    if (a.settings[i].second != b.settings[j].second)
      return differ(text("the setting \"", a.settings[i].first, "\""), a.settings[i].second, b.settings[j].second);
  }
  for (std::size_t i = 0; i < a.variables.size() && i < b.variables.size(); ++i) {
    const auto &x = a.variables[i], &y = b.variables[i];
    const auto shown = [](const auto& v) { return text(name_of(v.type), " ", to_text(v.dims)); };
    if (x.name != y.name) return differ(text("variable ", i), quoted(x.name), quoted(y.name));
    if (x.type != y.type || x.dims != y.dims) return differ(text("the variable \"", x.name, "\""), shown(x), shown(y));
  }
  if (a.variables.size() != b.variables.size()) {
    const bool more = a.variables.size() > b.variables.size();
    const auto& extra = (more ? a : b).variables[more ? b.variables.size() : a.variables.size()];
    return text("the variable \"", extra.name, "\" of ", more ? a_name : b_name, " is unknown to ",
                more ? b_name : a_name);
  }
  return {};
}

GRADUS_BODY void must_agree(const cluster_fingerprint& a, std::string_view a_name, const cluster_fingerprint& b,
                            std::string_view b_name) {
  if (const std::string difference = difference_of(a, a_name, b, b_name); !difference.empty())
    raise(status::failed_precondition,
          text("these tasks cannot train one model: ", difference, "; start all tasks from one build of one program"));
}

}  // namespace gradus
