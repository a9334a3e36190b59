// This header reads a small part of JSON (RFC 8259), strictly: enough for the headers of files, which come from
// outside.
//
//   json_reader in(text);
//   std::string key;
//   in.begin_object();
//   while (in.next_key(key)) in.skip();
//   if (!in.finish()) complain(in.problem());
//
// The caller pulls one value after another. The reader refuses text that two readers could understand differently: a
// key that occurs in an object twice (however it is escaped), text that is no UTF-8, half a surrogate pair, and, where
// a natural number is required, one that has a sign, a fraction, an exponent, or more than 64 bits. It is not
// recursive, so that no nesting exhausts the stack, and it holds sixteen bytes for each key of the objects that are
// open. Any other reader of JSON accepts the text that this one accepts, with the same content.
#pragma once
#include "../base/build.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "../base/error.hpp"
#include "decimal.hpp"

namespace gradus::inline GRADUS_BUILD {

// Returns true if these bytes are UTF-8: nothing cut off or longer than needed, no surrogates, nothing above U+10FFFF.
bool is_utf8(std::string_view s);

// Appends text as a JSON string, as short as possible: it escapes quotes, backslashes and control characters (as
// serde_json, and so the reference writer of safetensors, does it), and nothing else. `s` has to be UTF-8.
void append_json_string(std::string& out, std::string_view s);

class json_reader {
public:
  // Refuses values nested deeper than `max_depth`. `text` must outlive the reader; messages count bytes from
  // `first_byte`.
  explicit json_reader(std::string_view text, int max_depth = 4, std::uint64_t first_byte = 0);

  // After a problem every function returns false, and nothing more is read.
  bool ok() const { return problem_.empty(); }
  const std::string& problem() const { return problem_; }
  // Returns how many values have been read, including containers.
  std::uint64_t values() const { return values_; }

  // Returns how many bytes have been read; after peek() that is where the next value begins.
  std::size_t position() const { return at_; }
  // Returns the first character of the next value, 0 at the end.
  char peek();

  bool begin_object() { return begin('{', true); }
  // Reads the next key, after which its value has to be read; returns false at the object's end.
  bool next_key(std::string& key);
  bool begin_array() { return begin('[', false); }
  // Returns true if there is another element, which then has to be read; false at the array's end.
  bool next_element() { return next(']'); }

  bool string(std::string& out);
  // Reads a number of at most 64 bits, written in digits alone.
  bool natural(std::uint64_t& out) { return whole(out, "a natural number of at most 64 bits, in digits"); }
  // Does the same, with an optional minus sign.
  bool integer(std::int64_t& out) { return whole(out, "a whole number of at most 64 bits, in digits"); }
  bool truth(bool& out);
  // Reads a null if it is next.
  bool null() { return ok() && peek() == 'n' && word("null"); }
  // Reads the next value, and all that is in it, and drops it.
  bool skip();
  // Returns true if there was no problem and nothing but white space is left.
  bool finish();

private:
  struct container {
    bool object, fresh;
    std::size_t keys;  // the number of keys of the containers around it
  };
  struct key_place {
    std::uint64_t hash;
    std::size_t from;
  };

  template <class Number>
  bool whole(Number& out, std::string_view expected) {
    if (!ok()) return false;
    peek();
    const char *from = text_.data() + at_, *end = text_.data() + text_.size();
    const auto [past, error] = std::from_chars(from, end, out);
    if (error != std::errc{} || (past != end && (*past == '.' || *past == 'e' || *past == 'E'))) return fail(expected);
    const char* first = *from == '-' ? from + 1 : from;
    if (*first == '0' && past != first + 1) return fail(expected);
    at_ += static_cast<std::size_t>(past - from), ++values_;
    return true;
  }
  bool fail(std::string_view expected);
  bool begin(char bracket, bool object);
  // Steps over the comma; returns false at the closing bracket, which it reads.
  bool next(char bracket);
  bool close();
  void take();
  bool word(std::string_view w);
  // Reads any number; one that is too large for a double is refused, since readers differ in its value.
  bool number();
  bool quoted(std::string& out);
  // Returns the text between quotes from `at` on; or an error with the place.
  const char* unquote(std::size_t& at, std::string& out) const;
  // Reads the four hexadecimal digits of \uXXXX at `at`.
  bool unit(std::size_t at, std::uint32_t& code) const;
  static void append_utf8(std::string& out, std::uint32_t code);
  static std::uint64_t hash_of(std::string_view s);

  std::string_view text_;
  std::size_t max_depth_;
  std::uint64_t first_byte_, values_ = 0;
  std::size_t at_ = 0;
  std::string problem_, scratch_;
  std::vector<container> open_;
  std::vector<key_place> keys_;
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "json.ipp"
#endif
