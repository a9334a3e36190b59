// The ids of these categorical columns are places in a vocabulary, which is a list, or the lines of a text file.
//
//   auto sex = categorical_column_with_vocabulary_list("sex", {"f", "m"});                  "f" is 0, "m" is 1
//   auto zip = categorical_column_with_vocabulary_list("zip", {8001, 8002}, {.num_oov_buckets = 2});
//   auto word = categorical_column_with_vocabulary_file("word", "words.txt", {.num_oov_buckets = 5});
//
// A value that is not in the vocabulary gets the id size + fingerprint64(text) mod num_oov_buckets. Without such
// buckets it gets the default_value, which is -1 by default and which look-ups pass over. TensorFlow 1.15 does the
// same. The file is read once, when the column is made.
#pragma once
#include "../base/build.hpp"

#include <initializer_list>
#include <unordered_map>

#include "../store/file.hpp"
#include "../store/text_lines.hpp"
#include "categorical_column.hpp"

namespace gradus::inline GRADUS_BUILD {

struct vocabulary_list_options {
  std::int64_t default_value = -1, num_oov_buckets = 0;
};
struct vocabulary_file_options {
  std::optional<std::int64_t> vocabulary_size = {};  // number of lines to use; not given: all
  std::int64_t num_oov_buckets = 0;
  std::optional<std::int64_t> default_value = {};  // -1
  feature_kind dtype = feature_kind::text;         // int64: the lines are whole numbers
  reader_limits limits = {};                       // limits of the file's size and of a line's length
};

namespace detail {

// The vocabulary is kept as text. An integer is kept and looked up as its decimal text, and matches no other text.
class vocabulary_rule final : public keyed_rule {
public:
  vocabulary_rule(std::string_view what, std::string key, feature_kind kind, vocabulary_info info, std::int64_t other);
  // Adds a token with the next id. Returns false if the vocabulary has it already.
  bool add(std::string_view token);
  std::int64_t num_buckets() const override { return info_.vocabulary_size + info_.num_oov_buckets; }
  vocabulary_info vocabulary() const override { return info_; }

private:
  struct text_hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  std::int64_t id_of(std::string_view s) const override;
  std::int64_t id_of(std::int64_t v) const override { return id_of(std::string_view(decimal_text(v))); }

  vocabulary_info info_;
  std::int64_t other_;
  std::unordered_map<std::string, std::int64_t, text_hash, std::equal_to<>> ids_;
};

template <class Values>
categorical_column vocabulary_list(std::string key, const Values& list, feature_kind kind,
                                   const vocabulary_list_options& o) {
  constexpr std::string_view what = "categorical_column_with_vocabulary_list";
  if (std::empty(list))
    raise(status::invalid_argument, text(what, " \"", key, "\": expected a vocabulary, found none"));
  if (o.num_oov_buckets > 0 && o.default_value != -1)
    raise(status::invalid_argument,
          text(what, " \"", key, "\": expected num_oov_buckets or a default_value, found both"));
  auto rule = std::make_shared<vocabulary_rule>(what, key, kind, vocabulary_info{.num_oov_buckets = o.num_oov_buckets},
                                                o.default_value);
  for (const auto& v : list) {
    bool added;
    if constexpr (std::is_integral_v<std::remove_cvref_t<decltype(v)>>)
      added = rule->add(decimal_text(v));
    else
      added = rule->add(v);
    if (!added)
      raise(status::invalid_argument, text(what, " \"", key, "\": \"", v, "\" is in the vocabulary twice; keep one"));
  }
  return categorical_column(std::move(rule));
}

}  // namespace detail

// The id is the place in the list, from 0. The feature is text, or int64 for a list of integers.
categorical_column categorical_column_with_vocabulary_list(std::string key,
                                                           std::initializer_list<std::string_view> list,
                                                           const vocabulary_list_options& o = {});
categorical_column categorical_column_with_vocabulary_list(std::string key, const std::vector<std::string>& list,
                                                           const vocabulary_list_options& o = {});
categorical_column categorical_column_with_vocabulary_list(std::string key, std::initializer_list<std::int64_t> list,
                                                           const vocabulary_list_options& o = {});
categorical_column categorical_column_with_vocabulary_list(std::string key, const std::vector<std::int64_t>& list,
                                                           const vocabulary_list_options& o = {});

// The id is the number of the line, from 0. Raises these errors, whose messages name the file,
//   invalid_argument     if settings make no sense, the file does not exist, it has fewer lines than vocabulary_size,
//                        or, with dtype int64, a line is not a whole number
//   failed_precondition  if the same line comes twice
// and the errors of reading a file.
categorical_column categorical_column_with_vocabulary_file(std::string key, std::string vocabulary_file,
                                                           const vocabulary_file_options& o = {},
                                                           const any_file_system& fs = {});

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "vocabulary_column.ipp"
#endif
