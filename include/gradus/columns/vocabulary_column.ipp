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

}  // namespace gradus
