// The bodies of json.hpp.
#pragma once
#include "../base/body.hpp"
#include "../base/fnv1a.hpp"
#include "json.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY bool is_utf8(std::string_view s) {
  const auto byte = [&s](std::size_t i) { return i < s.size() ? static_cast<unsigned char>(s[i]) : 0u; };
  for (std::size_t i = 0; i < s.size();) {
    const unsigned first = byte(i);
    if (first < 0x80) {
      ++i;
      continue;
    }
    const std::size_t length = first >= 0xC2 && first < 0xE0   ? 2
                               : first >= 0xE0 && first < 0xF0 ? 3
                               : first >= 0xF0 && first < 0xF5 ? 4
                                                               : 0;
    if (length == 0) return false;
    for (std::size_t k = 1; k < length; ++k)
      if ((byte(i + k) & 0xC0) != 0x80) return false;
    const unsigned second = byte(i + 1);
    if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) || (first == 0xF0 && second < 0x90) ||
        (first == 0xF4 && second > 0x8F))
      return false;
    i += length;
  }
  return true;
}

GRADUS_BODY void append_json_string(std::string& out, std::string_view s) {
  constexpr std::string_view hex = "0123456789abcdef", plain = "btnvfr";
  out += '"';
  for (const char c : s) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      out += '\\', out += c;
    else if (code >= 8 && code <= 13 && code != 11)
      out += '\\', out += plain[code - 8u];
    else if (code < 0x20)
      out += "\\u00", out += hex[code >> 4], out += hex[code & 15u];
    else
      out += c;
  }
  out += '"';
}

GRADUS_BODY json_reader::json_reader(std::string_view text, int max_depth, std::uint64_t first_byte)
    : text_(text), max_depth_(static_cast<std::size_t>(max_depth)), first_byte_(first_byte) {}

GRADUS_BODY char json_reader::peek() {
  while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t'))
    ++at_;
  return at_ < text_.size() ? text_[at_] : '\0';
}

GRADUS_BODY bool json_reader::next_key(std::string& key) {
  if (!next('}')) return false;
  if (peek() != '"') return fail("a key");
  const std::size_t from = at_;
  if (!quoted(key)) return false;
  if (peek() != ':') return fail("':'");
  ++at_;
  keys_.push_back({hash_of(key), from});
  return true;
}

GRADUS_BODY bool json_reader::string(std::string& out) {
  if (!ok()) return false;
  if (peek() != '"') return fail("a string");
  ++values_;
  return quoted(out);
}

GRADUS_BODY bool json_reader::truth(bool& out) {
  if (!ok()) return false;
  out = peek() == 't';
  return out || peek() == 'f' ? word(out ? "true" : "false") : fail("true or false");
}

GRADUS_BODY bool json_reader::skip() {
  const std::size_t outside = open_.size();
  take();
  while (ok() && open_.size() > outside)
    if (open_.back().object ? next_key(scratch_) : next_element()) take();
  return ok();
}

GRADUS_BODY bool json_reader::finish() {
  if (ok() && peek() != '\0') fail("the end");
  if (ok() && at_ != text_.size()) fail("the end");  // a zero byte is no white space
  return ok();
}

GRADUS_BODY bool json_reader::fail(std::string_view expected) {
  if (!ok()) return false;
  const std::string found = at_ == text_.size() ? "the end"
                            : text_[at_] > ' ' && text_[at_] != '\x7f'
                                ? text('\'', text_[at_], '\'')
                                : text("byte ", static_cast<unsigned char>(text_[at_]));
  problem_ = text("at byte ", first_byte_ + at_, " expected ", expected, ", found ", found);
  return false;
}

GRADUS_BODY bool json_reader::begin(char bracket, bool object) {
  if (!ok()) return false;
  if (peek() != bracket) return fail(object ? "an object" : "a list");
  if (open_.size() == max_depth_) return fail(text("no more than ", max_depth_, " containers in one another"));
  ++at_, ++values_;
  open_.push_back({object, true, keys_.size()});
  return true;
}

GRADUS_BODY bool json_reader::next(char bracket) {
  if (!ok()) return false;
  if (peek() == bracket) return ++at_, close();
  if (!open_.back().fresh) {
    if (peek() != ',') return fail(text("',' or '", bracket, '\''));
    ++at_;
    if (peek() == bracket) return fail("something behind the comma");
  }
  open_.back().fresh = false;
  return true;
}

GRADUS_BODY bool json_reader::close() {
  const auto mine = keys_.begin() + static_cast<std::ptrdiff_t>(open_.back().keys);
  std::string a, b;
  const auto text_of = [this](const key_place& k, std::string& out) -> const std::string& {
    std::size_t at = k.from;
    unquote(at, out);
    return out;
  };
  // Different keys with one hash may have been made on purpose: their text is compared, at no higher cost than for
  // others.
  const auto before = [&](const key_place& x, const key_place& y) {
    return x.hash != y.hash ? x.hash < y.hash : text_of(x, a) < text_of(y, b);
  };
  if (keys_.end() - mine > 1) {
    std::sort(mine, keys_.end(), before);
    const auto twice = std::adjacent_find(mine, keys_.end(),
                                          [&](const auto& x, const auto& y) { return !before(x, y) && !before(y, x); });
    if (twice != keys_.end())
      problem_ = text("the key \"", text_of(*twice, a), "\" stands in the object that ends at byte ",
                      first_byte_ + at_ - 1, " twice");
  }
  keys_.erase(mine, keys_.end());
  open_.pop_back();
  return false;
}

GRADUS_BODY void json_reader::take() {
  if (!ok()) return;
  switch (peek()) {
  case '{': begin('{', true); break;
  case '[': begin('[', false); break;
  case '"': string(scratch_); break;
  case 't': word("true"); break;
  case 'f': word("false"); break;
  case 'n': word("null"); break;
  default: number();
  }
}

GRADUS_BODY bool json_reader::word(std::string_view w) {
  if (text_.substr(at_, w.size()) != w) return fail(w);
  at_ += w.size(), ++values_;
  return true;
}

GRADUS_BODY bool json_reader::number() {
  const std::size_t from = at_;
  std::size_t i = at_;
  const auto digits = [&] {
    const std::size_t first = i;
    while (i < text_.size() && text_[i] >= '0' && text_[i] <= '9') ++i;
    return i - first;
  };
  const auto is = [&](char c) { return i < text_.size() && text_[i] == c; };
  if (is('-')) ++i;
  const bool zero = is('0');
  const std::size_t whole = digits();
  bool good = whole != 0 && !(zero && whole > 1);
  if (good && is('.')) ++i, good = digits() != 0;
  if (good && (is('e') || is('E'))) {
    ++i;
    if (is('+') || is('-')) ++i;
    good = digits() != 0;
  }
  double value = 0;
  if (good) good = detail::decimal_at(text_.data() + from, text_.data() + i, value).ec == std::errc{};
  if (!good) return fail("a value");
  at_ = i, ++values_;
  return true;
}

GRADUS_BODY bool json_reader::quoted(std::string& out) {
  std::size_t at = at_;
  const char* wrong = unquote(at, out);
  if (wrong == nullptr && !is_utf8(out)) wrong = "text in UTF-8", at = at_;
  if (wrong != nullptr) return at_ = at, fail(wrong);
  at_ = at;
  return true;
}

GRADUS_BODY const char* json_reader::unquote(std::size_t& at, std::string& out) const {
  out.clear();
  for (++at; at < text_.size() && text_[at] != '"';) {
    std::size_t plain = at;
    while (plain < text_.size() && text_[plain] != '"' && text_[plain] != '\\' &&
           static_cast<unsigned char>(text_[plain]) >= 0x20)
      ++plain;
    out.append(text_, at, plain - at);
    if (at = plain; at == text_.size() || text_[at] == '"') break;
    if (text_[at] != '\\') return "no control character in a string";
    constexpr std::string_view letters = "\"\\/bfnrt", meanings = "\"\\/\b\f\n\r\t";
    const char letter = at + 1 < text_.size() ? text_[at + 1] : '\0';
    if (const auto which = letters.find(letter); letter != '\0' && which != std::string_view::npos) {
      out += meanings[which], at += 2;
      continue;
    }
    std::uint32_t code = 0, low = 0;
    if (!unit(at, code) || (code >= 0xDC00 && code < 0xE000)) return "an escape";
    at += 6;
    if (code >= 0xD800 && code < 0xDC00) {
      if (!unit(at, low) || low < 0xDC00 || low >= 0xE000) return "the second half of a surrogate pair";
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00), at += 6;
    }
    append_utf8(out, code);
  }
  if (at == text_.size()) return "the quote that ends a string";
  ++at;
  return nullptr;
}

GRADUS_BODY bool json_reader::unit(std::size_t at, std::uint32_t& code) const {
  if (text_.size() - at < 6 || text_[at] != '\\' || text_[at + 1] != 'u') return false;
  const char* from = text_.data() + at + 2;
  return std::from_chars(from, from + 4, code, 16).ptr == from + 4;
}

GRADUS_BODY void json_reader::append_utf8(std::string& out, std::uint32_t code) {
  const auto put = [&out](std::uint32_t byte) { out += static_cast<char>(static_cast<unsigned char>(byte)); };
  if (code < 0x80) return put(code);
  if (code >= 0x10000)
    put(0xF0 | code >> 18), put(0x80 | (code >> 12 & 0x3F));
  else if (code >= 0x800)
    put(0xE0 | code >> 12);
  else
    return put(0xC0 | code >> 6), put(0x80 | (code & 0x3F));
  put(0x80 | (code >> 6 & 0x3F)), put(0x80 | (code & 0x3F));
}

GRADUS_BODY std::uint64_t json_reader::hash_of(std::string_view s) { return detail::fnv1a{}.text(s).value(); }

}  // namespace gradus
