// This header has masks by regular expression. It is a separate header, since <regex> costs a second of compile time
// and needs exceptions.
#pragma once
#include "../base/build.hpp"

#include <regex>
#include <string>

#include "../base/error.hpp"
#include "mask.hpp"

namespace gradus::inline GRADUS_BUILD {

// Chooses variables in whose name the expression (ECMAScript) is found: matching("kernel$"), matching("^encoder/").
// PyTorch users select parameters in the same way, with re.search over named_parameters().
class matching {
public:
  matching() : matching(std::string_view{}) {}  // every variable
  explicit matching(std::string_view expression) : text_(expression) {
    try {
      expression_.assign(expression.begin(), expression.end(), std::regex::ECMAScript | std::regex::optimize);
    } catch (const std::regex_error& e) {
      raise(status::invalid_argument, text("matching: \"", expression, "\" is no regular expression: ", e.what()));
    }
  }
  bool operator()(std::string_view name, const extents&) const {
    return std::regex_search(name.begin(), name.end(), expression_);
  }

  // A cluster serializes the expression with these two functions.
  const std::string& sent_as() const { return text_; }
  static matching from_sent(const std::string& expression) { return matching(expression); }

private:
  std::string text_;
  std::regex expression_;
};

}  // namespace gradus
