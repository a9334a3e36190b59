// What the tool prints: text that no file can forge, tables, JSON.
//
// Names and metadata come from files that anybody may have written. Whatever could move a cursor, reorder a line or end
// it is printed as an escape; so are bytes that are no UTF-8.
#pragma once
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <gradus/store/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace tool {

// The code point at the front of UTF-8, and how many bytes it takes.
inline std::pair<unsigned, std::size_t> code_point(std::string_view s) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(s[i]); };
  const unsigned first = byte(0);
  const std::size_t n = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  unsigned code = n == 1 ? first : first & (0xFFu >> (n + 1));
  for (std::size_t i = 1; i < n; ++i) code = code << 6 | (byte(i) & 0x3Fu);
  return {code, n};
}
// Controls (C0, DEL, C1), line and paragraph separators, marks that change the direction of text or cannot be seen.
inline bool is_unseen(unsigned c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0xAD || (c >= 0x200B && c <= 0x200F) ||
         (c >= 0x2028 && c <= 0x202E) || (c >= 0x2060 && c <= 0x206F) || c == 0xFEFF || c == 0x061C ||
         (c >= 0xE0000 && c <= 0xE007F);
}
inline void append_hex(std::string& out, unsigned n, int digits) {
  while (digits-- > 0) out += "0123456789abcdef"[n >> (4 * digits) & 15];
}

// As it may be shown on a terminal. Backslashes are doubled, so that nothing looks like an escape that is none.
inline std::string visible(std::string_view s) {
  const bool utf8 = gradus::is_utf8(s);
  std::string out;
  while (!s.empty()) {
    const auto [code, n] = utf8 ? code_point(s) : std::pair(unsigned{static_cast<unsigned char>(s[0])}, std::size_t{1});
    if (code == '\\')
      out += "\\\\";
    else if (code < 0x80 ? is_unseen(code) : !utf8)
      out += "\\x", append_hex(out, code, 2);
    else if (is_unseen(code))
      out += "\\u{", append_hex(out, code, code > 0xFFFF ? 6 : 4), out += '}';
    else
      out += s.substr(0, n);
    s.remove_prefix(n);
  }
  return out;
}

// A JSON string. What is no UTF-8 has no place in JSON: it is given as `visible` shows it.
inline std::string quoted_json(std::string_view s) {
  if (!gradus::is_utf8(s)) return quoted_json(visible(s));
  std::string out = "\"";
  while (!s.empty()) {
    const auto [code, n] = code_point(s);
    if (code == '"' || code == '\\')
      out += '\\', out += s[0];
    else if (is_unseen(code) && code <= 0xFFFF)
      out += "\\u", append_hex(out, code, 4);
    else if (is_unseen(code))
      for (const unsigned half : {0xD800 + ((code - 0x10000) >> 10), 0xDC00 + ((code - 0x10000) & 0x3FF)})
        out += "\\u", append_hex(out, half, 4);
    else
      out += s.substr(0, n);
    s.remove_prefix(n);
  }
  return out + '"';
}

// JSON, written from front to back: json.open('{').put("step", 7).key("files").open('[').put("a").close().close()
class json_out {
public:
  json_out& open(char bracket) {
    comma();
    text_ += bracket, closing_ += bracket == '{' ? '}' : ']', first_ = true;
    return *this;
  }
  json_out& close() {
    text_ += closing_.back(), closing_.pop_back(), first_ = false;
    return *this;
  }
  json_out& key(std::string_view name) {
    comma();
    text_ += quoted_json(name) + ":", first_ = true;
    return *this;
  }
  json_out& put(std::string_view s) { return raw(quoted_json(s)); }
  json_out& put(const char* s) { return put(std::string_view(s)); }
  json_out& put(std::same_as<bool> auto b) { return raw(b ? "true" : "false"); }
  template <std::integral Number>
    requires(!std::same_as<Number, bool>)
  json_out& put(Number n) {
    return raw(gradus::text(n));
  }
  json_out& put(double x) {
    if (std::isfinite(x)) return raw(gradus::text(x));
    return put(std::isnan(x) ? "NaN" : x > 0 ? "Infinity" : "-Infinity");  // as protobuf and TensorBoard write them
  }
  json_out& null() { return raw("null"); }
  template <class T>
  json_out& put(std::string_view name, const T& value) {
    return key(name).put(value);
  }
  // What is JSON already.
  json_out& raw(std::string_view value) {
    comma();
    text_ += value, first_ = false;
    return *this;
  }
  const std::string& str() const { return text_; }

private:
  void comma() {
    if (!first_) text_ += ',';
    first_ = false;
  }
  std::string text_, closing_;
  bool first_ = true;
};

// Columns as wide as they need; those with a numeric head are aligned at their right: "+bytes".
inline std::string table(const std::vector<std::vector<std::string>>& rows) {
  const auto width_of = [](std::string_view s) {  // of what `visible` gives: always UTF-8
    std::size_t n = 0;
    for (const char c : s) n += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    return n;
  };
  std::string out;
  if (rows.empty()) return out;
  std::vector<std::size_t> widths(rows[0].size());
  const auto shown = [&](std::size_t row, std::size_t i) {
    const std::string_view cell = rows[row][i];
    return row == 0 && cell.starts_with('+') ? cell.substr(1) : cell;
  };
  for (std::size_t row = 0; row < rows.size(); ++row)
    for (std::size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], width_of(shown(row, i)));
  for (std::size_t row = 0; row < rows.size(); ++row) {
    std::string line;
    for (std::size_t i = 0; i < widths.size(); ++i) {
      const auto cell = shown(row, i);
      const std::string gap(widths[i] - width_of(cell), ' ');
      line += i == 0 ? "" : "  ";
      line += rows[0][i].starts_with('+') ? gap + std::string(cell) : std::string(cell) + gap;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  }
  return out;
}

// Both mains end with this: it returns the program's exit code, or 2 if standard output did not take all that was
// printed.
inline int finished(const char* program, int code) {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  // An earlier write may have failed, of which only the mark is left.
  const char* why = errno != 0 ? std::strerror(errno) : "a write failed";
  std::fprintf(stderr,
               "%s: standard output took only a part of the result, or nothing: %s; make room there, or print to "
               "another place\n",
               program, why);
  return 2;
}

}  // namespace tool
