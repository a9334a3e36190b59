// The bodies of text_message.hpp.
#pragma once
#include <charconv>

#include "../base/body.hpp"
#include "text_message.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY void text_message_reader::fail(std::string_view expected) const {
  std::string found = "the end";
  if (at_ < text_.size()) {
    const char c = text_[at_];
    found =
        c > ' ' && c != '\x7f' ? text('\'', c, '\'') : text("byte ", static_cast<int>(static_cast<unsigned char>(c)));
  }
  raise(status::data_loss, text("malformed text message: at byte ", at_, " expected ", expected, ", found ", found));
}

// Returns the next character that is neither white space nor part of a comment; 0 at the end.
GRADUS_BODY char text_message_reader::peek() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == '#')
      at_ = std::min(text_.find('\n', at_), text_.size());
    else if (c == ' ' || (c >= '\t' && c <= '\r'))
      ++at_;
    else
      return c;
  }
  return '\0';
}

GRADUS_BODY std::string_view text_message_reader::word() {
  peek();
  const std::size_t from = at_;
  const auto belongs = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
           c == '+' || c == '-';
  };
  while (at_ < text_.size() && belongs(text_[at_])) ++at_;
  return text_.substr(from, at_ - from);
}

GRADUS_BODY bool text_message_reader::next() {
  if (!taken_) skip();
  if (open_.back().in_list) {
    if (takes(',')) {
      taken_ = false;
      return true;
    }
    if (!takes(']')) fail("',' or ']'");
    open_.back().in_list = false;
  }
  for (;;) {
    while (takes(',') || takes(';')) {
    }
    message& here = open_.back();
    const char c = peek();
    if (c == '\0' || c == '}' || c == '>') {
      if (c != here.closes || (c == '\0' && at_ != text_.size()))
        fail(here.closes == '\0' ? text("a field") : text("a field or '", here.closes, '\''));
      if (c != '\0') ++at_, open_.pop_back();
      return false;
    }
    here.name = word();
    if (here.name.empty()) fail("a field's name");
    const bool colon = takes(':');
    const char first = peek();
    if (!colon && first != '{' && first != '<') fail("':'");
    taken_ = false;
    if (first != '[') return true;
    ++at_;
    if (takes(']')) {
      taken_ = true;
      continue;  // no element
    }
    here.in_list = true;
    return true;
  }
}

GRADUS_BODY void text_message_reader::take() {
  if (taken_) raise(status::internal, "a field of a text message is read twice");
  taken_ = true;
}

GRADUS_BODY void text_message_reader::enter() {
  take();
  const char c = peek();
  if (c != '{' && c != '<') fail("a message");
  if (open_.size() > 64) fail("no more than 64 messages in one another");
  ++at_;
  open_.push_back({c == '{' ? '}' : '>'});
}

GRADUS_BODY std::string text_message_reader::string() {
  take();
  if (peek() != '"' && peek() != '\'') fail("a string");
  std::string out;
  while (peek() == '"' || peek() == '\'') {
    const char quote = text_[at_++];
    while (at_ < text_.size() && text_[at_] != quote) {
      char c = text_[at_];
      if (c == '\n') fail("the quote that ends a string");
      ++at_;
      if (c != '\\') {
        out += c;
        continue;
      }
      constexpr std::string_view letters = "abfnrtv\\'\"?", meanings = "\a\b\f\n\r\t\v\\'\"?";
      const char e = at_ < text_.size() ? text_[at_] : '\0';
      const auto digit_of = [&](int base) {
        const char d = at_ < text_.size() ? text_[at_] : '\0';
        const int n = d >= '0' && d <= '9'   ? d - '0'
                      : d >= 'a' && d <= 'f' ? d - 'a' + 10
                      : d >= 'A' && d <= 'F' ? d - 'A' + 10
                                             : 99;
        return n < base ? n : -1;
      };
      if (const auto which = letters.find(e); e != '\0' && which != std::string_view::npos) {
        out += meanings[which], ++at_;
        continue;
      }
      const bool hex = e == 'x' || e == 'X';
      if (hex) ++at_;
      int code = 0, digits = 0;
      for (int d = 0; digits < (hex ? 2 : 3) && (d = digit_of(hex ? 16 : 8)) >= 0; ++digits, ++at_)
        code = code * (hex ? 16 : 8) + d;
      if (digits == 0 || code > 255) fail("an escape");
      out += static_cast<char>(static_cast<unsigned char>(code));
    }
    if (at_ == text_.size()) fail("the quote that ends a string");
    ++at_;
  }
  return out;
}

GRADUS_BODY std::int64_t text_message_reader::integer() {
  take();
  peek();
  const std::size_t from = at_;
  const std::string_view digits = word();
  std::int64_t n = 0;
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), n);
  if (problem != std::errc{} || end != digits.data() + digits.size()) {
    at_ = from;
    fail("a whole number of 64 bits");
  }
  return n;
}

GRADUS_BODY bool text_message_reader::boolean() {
  take();
  peek();
  const std::size_t from = at_;
  const std::string_view w = word();
  const bool yes = w == "true" || w == "True" || w == "t" || w == "1";
  if (!yes && w != "false" && w != "False" && w != "f" && w != "0") {
    at_ = from;
    fail("true or false");
  }
  return yes;
}

GRADUS_BODY void text_message_reader::skip() {
  const std::size_t outside = open_.size();
  for (bool more = true; more;) {
    if (!taken_) {
      const char c = peek();
      if (c == '{' || c == '<')
        enter();
      else if (c == '"' || c == '\'')
        string();
      else if (taken_ = true; word().empty())
        fail("a value");
    }
    more = open_.size() > outside;
    if (more) next();
  }
}

GRADUS_BODY void text_message_writer::string(std::string_view name, std::string_view value) {
  std::string& out = out_->append(indent_, ' ').append(name).append(": \"");
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    constexpr std::string_view plain = "\n\r\t\"'\\", letters = "nrt\"'\\";
    if (const auto which = plain.find(c); which != std::string_view::npos)
      out += '\\', out += letters[which];
    else if (byte >= 0x20 && byte < 0x7F)
      out += c;
    else
      for (const int shift : {9, 6, 3, 0}) out += shift == 9 ? '\\' : static_cast<char>('0' + ((byte >> shift) & 7));
  }
  out += "\"\n";
}
GRADUS_BODY void text_message_writer::integer(std::string_view name, std::int64_t value) {
  out_->append(indent_, ' ').append(name).append(": ").append(text(value)) += '\n';
}
GRADUS_BODY void text_message_writer::boolean(std::string_view name, bool value) {
  out_->append(indent_, ' ').append(name).append(value ? ": true\n" : ": false\n");
}

}  // namespace gradus
