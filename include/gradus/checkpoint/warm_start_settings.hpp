// These settings, with TensorFlow's names, choose the variables that a warm start takes over.
//
// This header is separate from the others of this room, since <regex> costs a second of compile time and needs
// exceptions.
#pragma once
#include "../base/build.hpp"

#include <initializer_list>
#include <map>
#include <optional>
#include <regex>

#include "../codec/partition.hpp"
#include "vocab.hpp"

namespace gradus::inline GRADUS_BUILD {

// An element of a list of variables: the full name of a variable, not an expression.
struct variable_named {
  std::string name;
};

// The choice of the variables to warm-start:
//   ".*"                               an expression, over the trainable variables (also the default)
//   {".*"}, {"v1", "v2[^/]"}           a list of expressions, over all variables (accumulators, moving averages, ...)
//   {variable_named{"v1"}}             a list of variables
//   std::nullopt                       only the trainable variables that have a vocab_info
//
// An expression (ECMAScript, which for such patterns means the same as Python's `re`) is matched from the start of the
// name with ":0" behind it, and need not reach its end: "v1" also takes "v10" and "v1/Momentum", "v2[^/]" takes "v2:0"
// but not "v2/Momentum".
class variables_to_warm_start {
public:
  struct element {
    std::string text;
    bool variable = false;
    element(const char* expression) : text(expression) {}
    element(std::string expression) : text(std::move(expression)) {}
    element(variable_named v) : text(std::move(v.name)), variable(true) {}
  };
  enum class forms { expression, list, nothing };

  variables_to_warm_start() : variables_to_warm_start(".*") {}
  variables_to_warm_start(const char* expression) : elements_{element(expression)} {}
  variables_to_warm_start(std::string expression) : elements_{element(std::move(expression))} {}
  variables_to_warm_start(std::nullopt_t) : form_(forms::nothing) {}
  variables_to_warm_start(std::initializer_list<element> list) : form_(forms::list), elements_(list) {}
  variables_to_warm_start(const std::vector<std::string>& list);
  variables_to_warm_start(const std::vector<variable_named>& list);

  forms form() const { return form_; }
  const std::vector<element>& elements() const { return elements_; }

private:
  forms form_ = forms::expression;
  std::vector<element> elements_;
};

struct warm_start_settings {
  std::string ckpt_to_initialize_from =
      {};  // a checkpoint's path, with or without extension; a directory: its newest; or an export (a SavedModel)
  variables_to_warm_start vars_to_warm_start = {};
  // The keys are full names (of a partitioned variable, not of its parts), without ":0".
  std::map<std::string, vocab_info> var_name_to_vocab_info = {};
  std::map<std::string, std::string> var_name_to_prev_var_name =
      {};  // the former name; the map does not change which variables are chosen
  // TensorFlow does not have this: expressions must match a whole name (with or without ":0"), so that "v1" is v1
  // alone.
  bool match_whole_names = false;
  reader_limits limits = {};  // of the checkpoint and of vocabulary files
};

// A variable of this process, or the part of a variable that this process holds.
struct warm_start_target {
  std::string name;  // "w", "w/Adam"; for a part its own name, "emb/part_0", which expressions are matched with
  dtype type = dtype::none;
  extents dims;
  std::span<std::byte> bytes;
  bool trainable = true;
  std::optional<slice_of> slice = std::nullopt;

  const std::string& full_name() const { return slice ? slice->full_name : name; }
  const extents& full() const { return slice ? slice->full : dims; }
};

namespace detail {

struct warm_start_group {
  std::string name;
  std::vector<const warm_start_target*> parts;
};

// Returns the targets that the settings choose, grouped by full name; each name occurs once.
std::vector<warm_start_group> chosen(std::span<const warm_start_target> targets, const warm_start_settings& s);

// Checks that each key of a map names a chosen variable. Raises invalid_argument.
template <class Map>
void check_used(const Map& map, const std::vector<warm_start_group>& groups, const char* setting) {
  std::string unused, viable;
  const auto add = [](std::string& list, std::string_view name) {
    list += text(list.empty() ? "" : ", ", '"', name, '"');
  };
  for (const auto& [name, value] : map)
    if (std::none_of(groups.begin(), groups.end(), [&n = name](const auto& g) { return g.name == n; }))
      add(unused, name);
  if (unused.empty()) return;
  constexpr std::size_t most = 50;
  for (std::size_t i = 0; i < std::min(groups.size(), most); ++i) add(viable, groups[i].name);
  if (groups.size() > most) viable += text(" and ", groups.size() - most, " more");
  raise(status::invalid_argument,
        text(setting, " has variables that are not warm-started: ", unused,
             ". Perhaps they are misspelled, or not chosen by vars_to_warm_start, which takes ",
             viable.empty() ? "none" : viable, ". Nothing was changed."));
}

}  // namespace detail
}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "warm_start_settings.ipp"
#endif
