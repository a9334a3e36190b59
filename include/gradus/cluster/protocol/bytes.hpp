// The protocol's machines write their state as a sequence of numbers, strings and byte arrays, little-endian, for
// snapshots, logs and hello. A reader checks each length against the remaining bytes.
#pragma once
#include "../../base/build.hpp"

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "../../base/error.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// Bytes that are written and not kept: a record, a snapshot. Large arrays are left where they are, so a gradient or a
// state is not copied on its way to the log.
class gathered_bytes {
public:
  static constexpr std::size_t left_in_place = std::size_t{1} << 15;  // bytes of the smallest array that is not copied

  void clear() { copied_.clear(), left_.clear(); }
  // Returns all bytes, one piece after another. It is valid until something is added, and while the arrays stay.
  std::span<const std::span<const std::byte>> pieces() {
    pieces_.clear();
    std::size_t at = 0;
    const auto up_to = [&](std::size_t end) {
      if (end != at) pieces_.push_back(std::span<const std::byte>(copied_).subspan(at, end - at));
      at = end;
    };
    for (const left& l : left_) up_to(l.behind), pieces_.push_back(l.bytes);
    up_to(copied_.size());
    return pieces_;
  }

private:
  friend class bytes_out;
  struct left {
    std::size_t behind;  // number of copied bytes before it
    std::span<const std::byte> bytes;
  };
  std::vector<std::byte> copied_;
  std::vector<left> left_;
  std::vector<std::span<const std::byte>> pieces_;
};

class bytes_out {
public:
  explicit bytes_out(std::vector<std::byte>& to) : to_(&to) {}
  explicit bytes_out(gathered_bytes& to) : to_(&to.copied_), gathered_(&to) {}
  template <class Number>
    requires(std::is_arithmetic_v<Number> || std::is_enum_v<Number>)
  void number(Number n) {
    add(&n, sizeof n);
  }
  void bytes(std::span<const std::byte> b) {
    number(static_cast<std::uint64_t>(b.size()));
    add(b.data(), b.size());
  }
  // The same for bytes that stay where they are until what is written here was used.
  void lent_bytes(std::span<const std::byte> b) {
    if (gathered_ == nullptr || b.size() < gathered_bytes::left_in_place) return bytes(b);
    number(static_cast<std::uint64_t>(b.size()));
    gathered_->left_.push_back({to_->size(), b});
  }
  void string(std::string_view s) {
    number(static_cast<std::uint32_t>(s.size()));
    add(s.data(), s.size());
  }

private:
  std::vector<std::byte>* to_;
  gathered_bytes* gathered_ = nullptr;  // null: everything is copied

  void add(const void* from, std::size_t n) {  // in one pass: a record may hold a whole gradient
    const auto* const first = static_cast<const std::byte*>(from);
    to_->insert(to_->end(), first, first + n);
  }
};

class bytes_in {
public:
  // `what` names the bytes in errors.
  bytes_in(std::span<const std::byte> from, const char* what) : from_(from), what_(what) {}

  template <class Number>
    requires(std::is_arithmetic_v<Number> || std::is_enum_v<Number>)
  Number number() {
    Number n;
    std::memcpy(&n, take(sizeof n).data(), sizeof n);
    return n;
  }
  std::span<const std::byte> bytes() { return take(number<std::uint64_t>()); }
  std::string string() {
    const auto b = take(number<std::uint32_t>());
    return {reinterpret_cast<const char*>(b.data()), b.size()};
  }
  // Reads the number of entries that follow; each has `least` bytes or more.
  std::size_t count(std::size_t least) {
    const auto n = number<std::uint32_t>();
    if (n > from_.size() / least)
      refuse(text("it says that ", n, " entries follow, and ", from_.size(), " bytes are left"));
    return n;
  }
  std::size_t left() const { return from_.size(); }
  void end() const {
    if (!from_.empty()) refuse(text(from_.size(), " bytes are left behind its end"));
  }
  [[noreturn]] void refuse(const std::string& why) const {
    raise(status::data_loss, text("malformed ", what_, ": ", why));
  }

private:
  std::span<const std::byte> from_;
  const char* what_;

  std::span<const std::byte> take(std::uint64_t n) {
    if (n > from_.size()) refuse(text("expected ", n, " more bytes, and ", from_.size(), " are left"));
    const auto first = from_.first(static_cast<std::size_t>(n));
    from_ = from_.subspan(static_cast<std::size_t>(n));
    return first;
  }
};

}  // namespace gradus::detail
