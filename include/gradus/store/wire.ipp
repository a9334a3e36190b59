// The bodies of wire.hpp.
#pragma once
#include "../base/body.hpp"
#include "wire.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY void wire_writer::bytes(std::uint32_t number, std::span<const std::byte> value) {
  bytes(number, {reinterpret_cast<const char*>(value.data()), value.size()});
}

GRADUS_BODY void wire_writer::bytes(std::uint32_t number, std::string_view value) {
  fits(number, value.size());
  writer_.add_bytes(number, value.data(), value.size());
}

GRADUS_BODY void wire_writer::integer_if(std::uint32_t number, std::int64_t value) {
  if (value != 0) integer(number, value);
}

GRADUS_BODY void wire_writer::boolean_if(std::uint32_t number, bool value) {
  if (value) boolean(number, value);
}

GRADUS_BODY void wire_writer::float32_if(std::uint32_t number, float value) {
  if (std::bit_cast<std::uint32_t>(value) != 0) float32(number, value);
}

GRADUS_BODY void wire_writer::float64_if(std::uint32_t number, double value) {
  if (std::bit_cast<std::uint64_t>(value) != 0) float64(number, value);
}

GRADUS_BODY void wire_writer::bytes_if(std::uint32_t number, std::span<const std::byte> value) {
  if (!value.empty()) bytes(number, value);
}

GRADUS_BODY void wire_writer::bytes_if(std::uint32_t number, std::string_view value) {
  if (!value.empty()) bytes(number, value);
}

GRADUS_BODY void wire_writer::packed(std::uint32_t number, std::span<const float> v) {
  fits(number, v.size_bytes());
  writer_.add_packed_float(number, v.begin(), v.end());
}

GRADUS_BODY void wire_writer::packed(std::uint32_t number, std::span<const double> v) {
  fits(number, v.size_bytes());
  writer_.add_packed_double(number, v.begin(), v.end());
}

GRADUS_BODY void wire_writer::packed(std::uint32_t number, std::span<const std::int64_t> v) {
  fits(number, v.size() * 10);
  writer_.add_packed_int64(number, v.begin(), v.end());
}

GRADUS_BODY void wire_writer::fits(std::uint32_t number, std::size_t bytes) {
  if (bytes > max_message_bytes)
    raise(status::invalid_argument,
          text("protobuf field ", number, " holds at most ", max_message_bytes, " bytes, this one has ", bytes));
}

GRADUS_BODY bool wire_reader::next() {
  if (!taken_) skip();
  if (at_ == end_) return false;
  const std::uint64_t key = varint();
  if (key >> 3 == 0 || key > std::numeric_limits<std::uint32_t>::max())
    raise(status::data_loss, "malformed protobuf message: expected a field number between 1 and 536870911");
  const auto type = static_cast<unsigned>(key & 7);
  if (type != 0 && type != 1 && type != 2 && type != 5)
    raise(status::data_loss,
          text("malformed protobuf message: expected wire type 0, 1, 2 or 5, found ", type, " in field ", key >> 3));
  key_ = static_cast<std::uint32_t>(key);
  taken_ = false;
  return true;
}

GRADUS_BODY std::span<const std::byte> wire_reader::bytes() {
  take(wire::length);
  const std::uint64_t n = varint();
  if (n > left())
    raise(status::data_loss, text("malformed protobuf message: field ", number(), " says it holds ", n,
                                  " bytes, of which ", left(), " are left"));
  const auto* first = reinterpret_cast<const std::byte*>(at_);
  at_ += n;
  return {first, static_cast<std::size_t>(n)};
}

GRADUS_BODY std::string_view wire_reader::string() {
  const auto b = bytes();
  return {reinterpret_cast<const char*>(b.data()), b.size()};
}

GRADUS_BODY wire_reader wire_reader::message() {
  if (depth_ == max_depth) raise(status::data_loss, text("malformed protobuf message: nested deeper than ", max_depth));
  return wire_reader(bytes(), depth_ + 1);
}

GRADUS_BODY void wire_reader::repeated(std::vector<std::int64_t>& out) {
  if (type() == wire::varint) return out.push_back(integer());
  for (wire_reader piece(bytes(), depth_); piece.at_ != piece.end_;)
    out.push_back(static_cast<std::int64_t>(piece.varint()));
}

GRADUS_BODY wire_reader::wire_reader(std::span<const std::byte> message, int depth)
    : at_(reinterpret_cast<const char*>(message.data())), end_(at_ + message.size()), depth_(depth) {
  if constexpr (!detail::has_protozero)
    detail::refuse_without(detail::protozero_library,
                           "reading a protobuf message (of event files, .meta files and tf.train.Example)");
}

GRADUS_BODY void wire_reader::take(wire expected) {
  if (taken_) raise(status::internal, text("the value of protobuf field ", number(), " was taken twice"));
  if (type() != expected)
    raise(status::data_loss, text("malformed protobuf message: expected wire type ", static_cast<int>(expected),
                                  ", found ", static_cast<int>(type()), " in field ", number()));
  taken_ = true;
}

GRADUS_BODY void wire_reader::skip() {
  switch (type()) {
  case wire::varint: integer(); break;
  case wire::fixed64: float64(); break;
  case wire::length: bytes(); break;
  case wire::fixed32: float32(); break;
  }
}

GRADUS_BODY std::uint64_t wire_reader::varint() {
  const char* problem = nullptr;
#if defined(GRADUS_PROTOZERO)
  try {
    return protozero::decode_varint(&at_, end_);
  } catch (const protozero::exception& e) {
    problem = e.what();
  }
#endif
  raise(status::data_loss, text("malformed protobuf message: ", problem));
}

}  // namespace gradus
