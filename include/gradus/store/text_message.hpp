// Protobuf's text format, read and written field by field, by name, without a schema or generated code. It is meant for
// small messages that people write by hand, such as a cluster's.
//
//   for (text_message_reader in(text); in.next();)
//     if (in.name() == "job_name")
//       def.job_name = in.string();
//     else if (in.name() == "cluster")
//       for (in.enter(); in.next();) ...                // false at the end of the message, which is then left
//
// Fields that are not read are skipped. The reader accepts these parts of what the official parser accepts: comments,
// `name: value` followed by ',' or ';' or neither, messages in {} or <>, with a colon or without, lists in [], and
// strings in either quote and in pieces. It does not accept extensions in [brackets]. The text comes from outside:
// malformed text raises status::data_loss, and so does text nested deeper than 64; the reader is not recursive.
#pragma once
#include "../base/build.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../base/error.hpp"

namespace gradus::inline GRADUS_BUILD {

class text_message_reader {
public:
  // `text` must outlive the reader.
  explicit text_message_reader(std::string_view text) : text_(text) {}

  // Steps to the next field of the message that was entered last. Returns false at its end.
  bool next();
  const std::string& name() const { return open_.back().name; }
  // Return the value of the field, or enter it if it is a message; call one of them once for each field.
  void enter();
  std::string string();
  std::int64_t integer();
  bool boolean();

private:
  struct message {
    char closes = '\0';  // zero: the whole text
    bool in_list = false;
    std::string name = {};
  };

  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<message> open_{1};
  bool taken_ = true;

  [[noreturn]] void fail(std::string_view expected) const;
  char peek();
  bool takes(char c) { return peek() == c && (++at_, true); }
  std::string_view word();
  void take();
  void skip();
};

class text_message_writer {
public:
  // Appends to `out`, which must outlive the writer.
  explicit text_message_writer(std::string& out, std::size_t indent = 0) : out_(&out), indent_(indent) {}

  void string(std::string_view name, std::string_view value);
  void integer(std::string_view name, std::int64_t value);
  void boolean(std::string_view name, bool value);
  // body(text_message_writer&) writes the fields.
  template <class Body>
  void message(std::string_view name, Body&& body) {
    out_->append(indent_, ' ').append(name) += " {\n";
    text_message_writer inner(*out_, indent_ + 2);
    body(inner);
    out_->append(indent_, ' ') += "}\n";
  }

private:
  std::string* out_;
  std::size_t indent_;
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "text_message.ipp"
#endif
