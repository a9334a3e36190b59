// The bodies of vocabulary_column.hpp.
#pragma once
#include "../base/body.hpp"
#include "vocabulary_column.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY vocabulary_rule::vocabulary_rule(std::string_view what, std::string key, feature_kind kind,
                                             vocabulary_info info, std::int64_t other)
    : keyed_rule(what, std::move(key), kind), info_(std::move(info)), other_(other) {
  if (info_.num_oov_buckets < 0)
    raise(status::invalid_argument,
          text(what, " \"", this->key(), "\": expected num_oov_buckets of 0 or more, found ", info_.num_oov_buckets));
}

GRADUS_BODY bool vocabulary_rule::add(std::string_view token) {
  const bool added = ids_.emplace(token, info_.vocabulary_size).second;
  info_.vocabulary_size += added ? 1 : 0;
  return added;
}

GRADUS_BODY std::int64_t vocabulary_rule::id_of(std::string_view s) const {
  if (const auto found = ids_.find(s); found != ids_.end()) return found->second;
  if (info_.num_oov_buckets == 0) return other_;
  return info_.vocabulary_size +
         static_cast<std::int64_t>(fingerprint64(s) % static_cast<std::uint64_t>(info_.num_oov_buckets));
}

}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY categorical_column categorical_column_with_vocabulary_list(std::string key,
                                                                       std::initializer_list<std::string_view> list,
                                                                       const vocabulary_list_options& o) {
  return detail::vocabulary_list(std::move(key), list, feature_kind::text, o);
}

GRADUS_BODY categorical_column categorical_column_with_vocabulary_list(std::string key,
                                                                       const std::vector<std::string>& list,
                                                                       const vocabulary_list_options& o) {
  return detail::vocabulary_list(std::move(key), list, feature_kind::text, o);
}

GRADUS_BODY categorical_column categorical_column_with_vocabulary_list(std::string key,
                                                                       std::initializer_list<std::int64_t> list,
                                                                       const vocabulary_list_options& o) {
  return detail::vocabulary_list(std::move(key), list, feature_kind::int64, o);
}

GRADUS_BODY categorical_column categorical_column_with_vocabulary_list(std::string key,
                                                                       const std::vector<std::int64_t>& list,
                                                                       const vocabulary_list_options& o) {
  return detail::vocabulary_list(std::move(key), list, feature_kind::int64, o);
}

GRADUS_BODY categorical_column categorical_column_with_vocabulary_file(std::string key, std::string vocabulary_file,
                                                                       const vocabulary_file_options& o,
                                                                       const any_file_system& fs) {
  const std::string what = text("categorical_column_with_vocabulary_file \"", key, "\"");
  const auto refuse = [&](const auto&... pieces) { raise(status::invalid_argument, text(what, ": ", pieces...)); };
  if (vocabulary_file.empty()) refuse("expected the path of a vocabulary file, found \"\"");
  if (o.vocabulary_size && *o.vocabulary_size < 1)
    refuse("expected a vocabulary_size of at least 1, found ", *o.vocabulary_size, "; leave it away to use all lines");
  if (o.num_oov_buckets > 0 && o.default_value) refuse("expected num_oov_buckets or a default_value, found both");
  auto rule = std::make_shared<detail::vocabulary_rule>(
      "categorical_column_with_vocabulary_file", std::move(key), o.dtype,
      vocabulary_info{.vocabulary_file = vocabulary_file, .num_oov_buckets = o.num_oov_buckets},
      o.default_value.value_or(-1));
  if (fs.exists(vocabulary_file) == ENOENT) refuse("there is no file \"", vocabulary_file, '"');
  text_lines lines(read_file(fs, vocabulary_file, o.limits), vocabulary_file, o.limits);
  std::string_view line;
  while ((!o.vocabulary_size || lines.taken() < *o.vocabulary_size) && lines.next(line)) {
    if (o.dtype == feature_kind::int64) {
      std::int64_t number = 0;
      const auto [end, e] = std::from_chars(line.data(), line.data() + line.size(), number);
      if (e != std::errc{} || end != line.data() + line.size())
        refuse("expected a whole number in line ", lines.taken(), " of \"", vocabulary_file, "\", found \"", line, '"');
      if (rule->add(detail::decimal_text(number))) continue;
    } else if (rule->add(line)) {
      continue;
    }
    raise(status::failed_precondition, text(what, ": line ", lines.taken(), " of \"", vocabulary_file, "\" holds \"",
                                            line, "\" again; remove one of them"));
  }
  if (lines.taken() == 0) refuse('"', vocabulary_file, "\" has no lines");
  if (o.vocabulary_size && lines.taken() < *o.vocabulary_size)
    refuse("expected a vocabulary_size of at most ", lines.taken(), ", the lines of \"", vocabulary_file, "\", found ",
           *o.vocabulary_size);
  return categorical_column(std::move(rule));
}

}  // namespace gradus
