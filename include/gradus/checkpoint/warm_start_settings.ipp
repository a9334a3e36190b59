// The bodies of warm_start_settings.hpp.
#pragma once
#include "../base/body.hpp"
#include "warm_start_settings.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY variables_to_warm_start::variables_to_warm_start(const std::vector<std::string>& list)
    : form_(forms::list) {
  for (const auto& s : list) elements_.emplace_back(s);
}

GRADUS_BODY variables_to_warm_start::variables_to_warm_start(const std::vector<variable_named>& list)
    : form_(forms::list) {
  for (const auto& v : list) elements_.emplace_back(v);
}

}  // namespace gradus

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY std::vector<warm_start_group> chosen(std::span<const warm_start_target> targets,
                                                 const warm_start_settings& s) {
  using forms = variables_to_warm_start::forms;
  const auto& elements = s.vars_to_warm_start.elements();
  const forms form = s.vars_to_warm_start.form();
  std::vector<bool> take(targets.size());
  for (const auto& e : elements) {
    if (e.variable != elements.front().variable)
      raise(status::invalid_argument,
            "vars_to_warm_start holds both expressions and variables; give a list of one kind");
    bool any = false;
    const auto add = [&](auto&& matches) {
      for (std::size_t i = 0; i < targets.size(); ++i)
        if ((form == forms::list || targets[i].trainable) && matches(targets[i])) take[i] = any = true;
    };
    if (e.variable) {
      add([&](const warm_start_target& t) { return t.name == e.text || t.full_name() == e.text; });
      if (!any)
        raise(status::not_found, text("vars_to_warm_start names the variable \"", e.text,
                                      "\", which is not here; give its full name, without \":0\""));
      continue;
    }
    try {
      const std::regex expression(e.text, std::regex::ECMAScript | std::regex::optimize);
      add([&](const warm_start_target& t) {
        const std::string name = t.name + ":0";
        if (s.match_whole_names) return std::regex_match(t.name, expression) || std::regex_match(name, expression);
        return std::regex_search(name, expression, std::regex_constants::match_continuous);
      });
    } catch (const std::regex_error& problem) {
      raise(status::invalid_argument,
            text("vars_to_warm_start: \"", e.text, "\" is no regular expression: ", problem.what()));
    }
  }
  if (form == forms::nothing)
    for (std::size_t i = 0; i < targets.size(); ++i) take[i] = targets[i].trainable;

  std::vector<warm_start_group> groups;
  std::map<std::string_view, std::size_t> by_name;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (!take[i]) continue;
    const auto [at, added] = by_name.emplace(targets[i].full_name(), groups.size());
    if (added) groups.push_back({targets[i].full_name(), {}});
    groups[at->second].parts.push_back(&targets[i]);
  }
  return groups;
}

}  // namespace gradus::detail
