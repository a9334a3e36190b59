// Protobuf's wire format; protozero is used here and nowhere else. Messages are written and read field by field, by
// number, without a schema or generated code. docs/formats/events.md shows what the bytes look like. protozero is used
// if GRADUS_PROTOZERO is defined; otherwise the constructors of writers and readers raise unimplemented.
//
// Writing: proto3 leaves out scalars that are zero, except members of a oneof, so there are two functions for each
// scalar: `integer(7, n)` always writes (oneof members, elements of repeated fields), `integer_if(7, n)` only if n is
// not zero. If the fields are written in ascending number, as the official writers do, the bytes are the official ones.
//
// Reading: the bytes come from outside. Malformed bytes raise status::data_loss; unknown fields, and known ones of
// another wire type, are to be skipped, as official parsers do. No memory is allocated because of a length in the
// bytes.
#pragma once
#include "../base/build.hpp"  // first: it reads the macros of optional libraries

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>
#if defined(GRADUS_PROTOZERO)
#include <protozero/basic_pbf_writer.hpp>
#include <protozero/exception.hpp>
#include <protozero/varint.hpp>
#endif

#include "../base/error.hpp"
#include "../base/optional_library.hpp"

namespace gradus::inline GRADUS_BUILD::detail {
// The buffer that protozero appends to. It is a type of this library, so that its customization cannot collide with
// another library's.
struct wire_buffer {
  std::vector<std::byte>* bytes = nullptr;
};

#if !defined(GRADUS_PROTOZERO)
// Replaces protozero's writer. Its constructors raise, so no other function is ever called.
struct no_protozero_writer {
  template <class... Whatever>
  explicit no_protozero_writer(Whatever&...) {
    refuse_without(protozero_library, "a protobuf message (of event files, .meta files and tf.train.Example)");
  }
  void add_int64(std::uint32_t, std::int64_t) {}
  void add_uint32(std::uint32_t, std::uint32_t) {}
  void add_float(std::uint32_t, float) {}
  void add_double(std::uint32_t, double) {}
  void add_bytes(std::uint32_t, const char*, std::size_t) {}
  void add_message(std::uint32_t, const char*, std::size_t) {}
  template <class Iterator>
  void add_packed_float(std::uint32_t, Iterator, Iterator) {}
  template <class Iterator>
  void add_packed_double(std::uint32_t, Iterator, Iterator) {}
  template <class Iterator>
  void add_packed_int64(std::uint32_t, Iterator, Iterator) {}
};
#endif
}  // namespace gradus::detail

#if defined(GRADUS_PROTOZERO)
template <>
struct protozero::buffer_customization<gradus::detail::wire_buffer> {
  using buffer = gradus::detail::wire_buffer;
  static std::size_t size(const buffer* b) { return b->bytes->size(); }
  static void append(buffer* b, const char* data, std::size_t count) {
    const auto* first = reinterpret_cast<const std::byte*>(data);
    b->bytes->insert(b->bytes->end(), first, first + count);
  }
  static void append_zeros(buffer* b, std::size_t count) { b->bytes->resize(b->bytes->size() + count); }
  static void resize(buffer* b, std::size_t size) { b->bytes->resize(size); }
  // Exact reservations would make growth quadratic; vector's own doubling is better.
  static void reserve_additional(buffer*, std::size_t) {}
  static void erase_range(buffer* b, std::size_t from, std::size_t to) {
    const auto begin = b->bytes->begin();
    b->bytes->erase(begin + static_cast<std::ptrdiff_t>(from), begin + static_cast<std::ptrdiff_t>(to));
  }
  static char* at_pos(buffer* b, std::size_t pos) { return reinterpret_cast<char*>(b->bytes->data() + pos); }
  static void push_back(buffer* b, char c) { b->bytes->push_back(static_cast<std::byte>(c)); }
};
#endif

namespace gradus::inline GRADUS_BUILD {

// Protobuf's own limit for one message.
inline constexpr std::size_t max_message_bytes = (std::size_t{1} << 31) - 1;

class wire_writer {
public:
  // Appends to `out`, which must outlive the writer.
  explicit wire_writer(std::vector<std::byte>& out) : buffer_{&out}, writer_(buffer_) {}
  wire_writer(const wire_writer&) = delete;
  wire_writer& operator=(const wire_writer&) = delete;

  // For int32, int64, enum and bool: a negative number takes ten bytes.
  void integer(std::uint32_t number, std::int64_t value) { writer_.add_int64(number, value); }
  void boolean(std::uint32_t number, bool value) { writer_.add_uint32(number, value ? 1 : 0); }
  void float32(std::uint32_t number, float value) { writer_.add_float(number, value); }
  void float64(std::uint32_t number, double value) { writer_.add_double(number, value); }
  void bytes(std::uint32_t number, std::span<const std::byte> value);
  void bytes(std::uint32_t number, std::string_view value);

  // For proto3 scalars outside a oneof: zero is left out. -0.0 does not count as zero here, nor for protobuf.
  void integer_if(std::uint32_t number, std::int64_t value);
  void boolean_if(std::uint32_t number, bool value);
  void float32_if(std::uint32_t number, float value);
  void float64_if(std::uint32_t number, double value);
  void bytes_if(std::uint32_t number, std::span<const std::byte> value);
  void bytes_if(std::uint32_t number, std::string_view value);

  // Write repeated scalars, packed. An empty list writes nothing.
  void packed(std::uint32_t number, std::span<const float> v);
  void packed(std::uint32_t number, std::span<const double> v);
  void packed(std::uint32_t number, std::span<const std::int64_t> v);

  // Writes a message inside this one: body(wire_writer&) writes its fields. An empty one is written too (`key 00`): the
  // presence of a message is information.
  template <std::invocable<wire_writer&> Body>
  void message(std::uint32_t number, Body&& body) {
    bool empty = false;
    {
      wire_writer inner(*this, number);
      const std::size_t before = buffer_.bytes->size();
      body(inner);
      const std::size_t written = buffer_.bytes->size() - before;
      empty = written == 0;
      fits(number, written);
    }
    if (empty) writer_.add_message(number, "", 0);  // protozero removes an empty one
  }

private:
#if defined(GRADUS_PROTOZERO)
  using protozero_writer = protozero::basic_pbf_writer<detail::wire_buffer>;
#else
  using protozero_writer = detail::no_protozero_writer;
#endif
  static void fits(std::uint32_t number, std::size_t bytes);
  wire_writer(wire_writer& parent, std::uint32_t number) : buffer_(parent.buffer_), writer_(parent.writer_, number) {}
  detail::wire_buffer buffer_;  // all writers of one message append through the root's buffer
  protozero_writer writer_;
};

// The wire types that proto3 uses; groups (3, 4) are refused.
enum class wire : std::uint8_t { varint = 0, fixed64 = 1, length = 2, fixed32 = 5 };

// Returns the field's number and wire type in one value, for `switch (reader.key())`.
constexpr std::uint32_t field(std::uint32_t number, wire type) {
  return number << 3 | static_cast<std::uint32_t>(type);
}

// Walks over the fields of one message:
//
//   for (wire_reader r(bytes); r.next();) switch (r.key()) {
//     case field(2, wire::varint): step = r.integer(); break;
//     case field(5, wire::length): read_summary(r.message()); break;
//     default: break;                                  // a field that is not read is skipped
//   }
//
// The bytes must outlive the reader and its views. Every function raises status::data_loss on malformed bytes.
class wire_reader {
public:
  static constexpr int max_depth = 100;

  explicit wire_reader(std::span<const std::byte> message) : wire_reader(message, 0) {}

  // Steps to the next field, past the value of the current one if that was not read. Returns false at the end.
  bool next();
  std::uint32_t key() const { return key_; }
  std::uint32_t number() const { return key_ >> 3; }
  wire type() const { return static_cast<wire>(key_ & 7); }

  // Return the value of the current field; call one of them once for each field. int32 and enum are `integer` cut to 32
  // bits.
  std::int64_t integer() { return static_cast<std::int64_t>((take(wire::varint), varint())); }
  bool boolean() { return (take(wire::varint), varint()) != 0; }
  float float32() { return std::bit_cast<float>((take(wire::fixed32), fixed<std::uint32_t>())); }
  double float64() { return std::bit_cast<double>((take(wire::fixed64), fixed<std::uint64_t>())); }
  std::span<const std::byte> bytes();
  std::string_view string();
  wire_reader message();

  // Append the current field to `out`: repeated scalars, packed or not, which may come in several pieces.
  void repeated(std::vector<float>& out) { append_fixed<std::uint32_t>(out, wire::fixed32); }
  void repeated(std::vector<double>& out) { append_fixed<std::uint64_t>(out, wire::fixed64); }
  void repeated(std::vector<std::int64_t>& out);

private:
  wire_reader(std::span<const std::byte> message, int depth);

  std::size_t left() const { return static_cast<std::size_t>(end_ - at_); }
  void take(wire expected);
  void skip();
  // Reads by protozero's decoder, whose exceptions are caught here.
  std::uint64_t varint();
  template <std::unsigned_integral Bits>
  Bits fixed() {
    if (left() < sizeof(Bits))
      raise(status::data_loss, text("malformed protobuf message: expected ", sizeof(Bits), " bytes in field ", number(),
                                    ", found ", left()));
    Bits bits = 0;
    for (std::size_t i = 0; i < sizeof(Bits); ++i)
      bits |= static_cast<Bits>(Bits{static_cast<unsigned char>(at_[i])} << (8 * i));
    at_ += sizeof(Bits);
    return bits;
  }
  template <std::unsigned_integral Bits, class Number>
  void append_fixed(std::vector<Number>& out, wire single) {
    if (type() == single) {
      take(single);
      return out.push_back(std::bit_cast<Number>(fixed<Bits>()));
    }
    const auto piece_bytes = bytes();
    if (piece_bytes.size() % sizeof(Bits) != 0)
      raise(status::data_loss, text("malformed protobuf message: field ", number(), " packs ", piece_bytes.size(),
                                    " bytes, not a multiple of ", sizeof(Bits)));
    wire_reader piece(piece_bytes, depth_);
    while (piece.at_ != piece.end_) out.push_back(std::bit_cast<Number>(piece.fixed<Bits>()));
  }

  const char* at_;
  const char* end_;
  std::uint32_t key_ = 0;
  int depth_ = 0;
  bool taken_ = true;
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "wire.ipp"
#endif
