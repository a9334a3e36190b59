// This header imports ops that formulas of tensorflow_ops.hpp describe: it finds the card, its operands, and its
// attributes, which are in constants and attributes of TensorFlow's nodes.
#pragma once
#include "../summary/tensorflow_pattern.hpp"
#include "import_nodes.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

class import_words : public import_nodes {
protected:
  using import_nodes::import_nodes;
  ~import_words() = default;

  // Returns this library's node; an empty value means that it waits for needs_.
  value from_pattern(int i, const pattern_match& m);

private:
  bool words_of(int i, const pattern_match& m, std::string_view card_name, std::string_view form,
                const std::vector<value>& operands, std::vector<int>& words);
  bool window_words(int i, const pattern_match& m, std::string_view card_name, const std::vector<value>& operands,
                    std::vector<int>& words);
  bool as_written(int i, const pattern_match& m, value v);
};

// Returns the card of this library that a formula describes, by its name, or null.
const card* card_named(std::string_view name);

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "import_words.ipp"
#endif
