// The bodies of bundle_entry.hpp.
#pragma once
#include "../base/body.hpp"
#include "bundle_entry.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY std::string bundle_type_name(int type) {
  if (size_of(static_cast<dtype>(type)) != 0) return std::string(name_of(static_cast<dtype>(type)));
  const auto* known = find_opaque_type(&opaque_type::tensorflow, type);
  return known != nullptr ? std::string(known->name) : text("DT_", type);
}

GRADUS_BODY int bundle_type_of(std::string_view name) {
  if (const dtype t = dtype_named(name); t != dtype::none) return static_cast<int>(t);
  if (const auto* known = find_opaque_type(&opaque_type::name, name)) return known->tensorflow;
  for (int type = 1; type < most_bundle_type; ++type)
    if (type != bundle_strings && bundle_type_name(type) == name) return type;
  return 0;
}

GRADUS_BODY void put_integer_if(std::vector<std::byte>& out, unsigned field, std::int64_t n) {
  if (n != 0) put_varint(out, field << 3), put_varint(out, static_cast<std::uint64_t>(n));
}

GRADUS_BODY void put_message(std::vector<std::byte>& out, unsigned field, std::span<const std::byte> message) {
  put_varint(out, field << 3 | 2u), put_varint(out, message.size()), put_bytes(out, message);
}

GRADUS_BODY std::vector<std::byte> bundle_header_bytes(int shards) {
  std::vector<std::byte> out, version;
  put_integer_if(version, 1, bundle_version);
  put_integer_if(out, 1, shards);
  put_message(out, 3, version);
  return out;
}

GRADUS_BODY std::vector<std::byte> bytes_of(const bundle_entry& e) {
  std::vector<std::byte> out, shape;
  for (const std::int64_t d : e.dims) {
    std::vector<std::byte> dim;
    put_integer_if(dim, 1, d);
    put_message(shape, 2, dim);
  }
  put_integer_if(out, 1, e.type);
  put_message(out, 2, shape);
  put_integer_if(out, 3, e.shard), put_integer_if(out, 4, e.offset), put_integer_if(out, 5, e.size);
  if (e.crc != 0) put_varint(out, 6u << 3 | 5u), put_fixed(out, e.crc);
  for (const auto& slice : e.slices) {
    std::vector<std::byte> message;
    for (const auto& axis : slice) {
      std::vector<std::byte> extent;
      if (axis.length >= 0) {
        put_integer_if(extent, 1, axis.start);
        put_varint(extent, 2u << 3), put_varint(extent, static_cast<std::uint64_t>(axis.length));  // in a oneof
      }
      put_message(message, 1, extent);
    }
    put_message(out, 7, message);
  }
  return out;
}

GRADUS_BODY std::string bundle_slice_key(std::string_view name, const bundle_slice& slice) {
  std::string key;
  ordered_code::put_number(key, 0);
  ordered_code::put_string(key, name);
  ordered_code::put_number(key, slice.size());
  for (const auto& axis : slice) ordered_code::put_signed(key, axis.start), ordered_code::put_signed(key, axis.length);
  return key;
}

GRADUS_BODY std::string each_field(std::span<const std::byte> message, const bundle_field& field) {
  varint_source in(message);
  while (!in.done()) {
    const std::uint32_t key = in.varint32();
    std::uint64_t integer = 0;
    std::span<const std::byte> bytes;
    switch (key & 7) {
    case 0: integer = in.varint(); break;
    case 1: integer = in.fixed<std::uint64_t>(); break;
    case 2: bytes = in.take(in.varint()); break;
    case 5: integer = in.fixed<std::uint32_t>(); break;
    default: return text("a field of wire type ", key & 7);
    }
    if (in.bad() || key < 8) return "a message that is malformed";
    if (auto problem = field(key >> 3, key & 7, integer, bytes); !problem.empty()) return problem;
  }
  return in.bad() ? "a message that is malformed" : std::string();
}

GRADUS_BODY bool as_int32(std::uint64_t bits, std::int64_t& n) {
  n = static_cast<std::int64_t>(bits);
  return n >= std::numeric_limits<std::int32_t>::min() && n <= std::numeric_limits<std::int32_t>::max();
}

GRADUS_BODY std::string read_bundle_header(std::span<const std::byte> message, int& shards, status& kind) {
  std::int64_t count = 0, endianness = 0, min_consumer = 0;
  bool bad_consumer = false;
  kind = status::data_loss;
  auto problem =
      each_field(message, [&](std::uint32_t n, unsigned wire, std::uint64_t v, std::span<const std::byte> m) {
        if (n == 1 && wire == 0 && !as_int32(v, count)) return text("an impossible number of shards");
        if (n == 2 && wire == 0 && !as_int32(v, endianness)) return text("an impossible byte order");
        if (n != 3 || wire != 2) return std::string();
        return each_field(m, [&](std::uint32_t k, unsigned w, std::uint64_t u, std::span<const std::byte> packed) {
          if (k == 2 && w == 0 && !as_int32(u, min_consumer)) return text("an impossible version");
          if (k == 3 && w == 0) bad_consumer = bad_consumer || u == bundle_version;
          if (k == 3 && w == 2)
            for (varint_source in(packed); !in.done();) bad_consumer = (in.varint() == bundle_version) || bad_consumer;
          return std::string();
        });
      });
  if (!problem.empty()) return text("its header holds ", problem);
  if (count < 1 || count > most_bundle_shards) return text("its header counts ", count, " shards");
  shards = static_cast<int>(count);
  if (endianness != 0 && endianness != 1) return text("its header names the byte order ", endianness);
  kind = status::failed_precondition;
  if (endianness == 1) return "it was written on a big-endian machine, whose tensors this library does not read";
  if (min_consumer > bundle_version || bad_consumer)
    return text("it needs readers of format version ", min_consumer, bad_consumer ? " other than " : "; this is ",
                bundle_version);
  return {};
}

GRADUS_BODY std::string read_bundle_entry(std::span<const std::byte> message, bundle_entry& e, bundle_room* room) {
  constexpr std::size_t most_axes = 254, most_slices = 65536;  // TensorFlow's own limit; more than anyone needs
  std::int64_t type = 0;
  const auto is_full = [room] { return room != nullptr && !room->take(); };
  const auto extents_of = [](std::span<const std::byte> m, bundle_extent& x) {
    bool has_length = false;
    auto problem = each_field(m, [&](std::uint32_t n, unsigned wire, std::uint64_t v, std::span<const std::byte>) {
      if (n == 1 && wire == 0) x.start = static_cast<std::int64_t>(v);
      if (n == 2 && wire == 0) x.length = static_cast<std::int64_t>(v), has_length = true;
      return std::string();
    });
    if (problem.empty() && (x.start < 0 || (has_length ? x.length < 0 : x.start != 0))) problem = "an impossible slice";
    return problem;
  };
  auto problem =
      each_field(message, [&](std::uint32_t n, unsigned wire, std::uint64_t v, std::span<const std::byte> m) {
        if (n == 1 && wire == 0 && !as_int32(v, type)) return text("an impossible dtype");
        if (n == 3 && wire == 0 && !as_int32(v, e.shard)) return text("an impossible shard");
        if (n == 4 && wire == 0) e.offset = static_cast<std::int64_t>(v);
        if (n == 5 && wire == 0) e.size = static_cast<std::int64_t>(v);
        if (n == 6 && wire == 5) e.crc = static_cast<std::uint32_t>(v);
        if (n == 2 && wire == 2)
          return each_field(m, [&](std::uint32_t k, unsigned w, std::uint64_t u, std::span<const std::byte> dim) {
            if (k == 3 && w == 0 && u != 0) return text("a shape of unknown rank");
            if (k != 2 || w != 2) return std::string();
            if (e.dims.size() == most_axes) return text("a shape of more than ", most_axes, " extents");
            auto& size = e.dims.emplace_back(0);
            return each_field(dim, [&](std::uint32_t i, unsigned x, std::uint64_t s, std::span<const std::byte>) {
              if (i == 1 && x == 0) size = static_cast<std::int64_t>(s);
              return size < 0 ? text("an extent of ", size) : std::string();
            });
          });
        if (n != 7 || wire != 2) return std::string();
        if (e.slices.size() == most_slices || is_full()) return text("more than ", e.slices.size(), " slices");
        auto& slice = e.slices.emplace_back();
        return each_field(m, [&](std::uint32_t k, unsigned w, std::uint64_t, std::span<const std::byte> extent) {
          if (k != 1 || w != 2) return std::string();
          if (slice.size() == most_axes || is_full()) return text("a slice of more than ", slice.size(), " extents");
          return extents_of(extent, slice.emplace_back());
        });
      });
  e.type = static_cast<int>(type);
  if (!problem.empty()) return text("holds ", problem);
  if (e.type <= 0 || e.type >= most_bundle_type) return text("has the impossible dtype ", e.type);
  if (e.shard < 0 || e.offset < 0 || e.size < 0) return "has a shard, an offset or a size below 0";
  for (const auto& slice : e.slices)
    if (slice.size() != e.dims.size()) return "has a slice of another rank";
  return {};
}

GRADUS_BODY bool elements_of(const bundle_entry& e, std::uint64_t& n) {
  n = 1;
  bool empty = false;
  for (const std::int64_t d : e.dims) {
    empty = empty || d == 0;
    if (d != 0 && __builtin_mul_overflow(n, static_cast<std::uint64_t>(d), &n)) return false;
  }
  if (empty) n = 0;
  return true;
}

GRADUS_BODY std::uint32_t extend_by_length(std::uint32_t crc, std::uint64_t length) {
  const std::size_t bytes = length <= std::numeric_limits<std::uint32_t>::max() ? 4 : 8;
  return extend(crc, std::as_bytes(std::span(&length, 1)).first(bytes));
}

GRADUS_BODY std::vector<std::byte> bundle_string_head(std::span<const std::span<const std::byte>> strings,
                                                      std::uint32_t& entry_crc) {
  std::vector<std::byte> head;
  std::uint32_t crc = 0;
  for (const auto s : strings) put_varint(head, s.size()), crc = extend_by_length(crc, s.size());
  const std::uint32_t checksum = mask(crc);
  put_fixed(head, checksum);
  crc = extend(crc, std::as_bytes(std::span(&checksum, 1)));
  for (const auto s : strings) crc = extend(crc, s);
  entry_crc = mask(crc);
  return head;
}

GRADUS_BODY std::string read_bundle_strings(std::span<const std::byte> bytes, std::uint64_t n, std::uint32_t& entry_crc,
                                            std::vector<std::span<const std::byte>>* strings) {
  if (n > bytes.size()) return text(n, " strings cannot be in ", bytes.size(), " bytes");
  varint_source in(bytes), lengths(bytes);
  std::uint32_t crc = 0;
  std::uint64_t total = 0;
  for (std::uint64_t i = 0; i < n; ++i) {
    const std::uint64_t length = in.varint();
    crc = extend_by_length(crc, length);
    if (in.bad() || __builtin_add_overflow(total, length, &total)) return "the lengths of its strings are malformed";
  }
  const auto stored = in.take(4);
  if (in.bad()) return "the lengths of its strings are cut off";
  std::uint32_t checksum = 0;
  std::memcpy(&checksum, stored.data(), sizeof checksum);
  if (checksum != mask(crc)) return "the checksum of its strings' lengths does not fit";
  if (total != in.left()) return text("its strings claim ", total, " bytes, where ", in.left(), " are");
  crc = extend(crc, stored);
  const std::size_t rest = in.left();
  entry_crc = mask(extend(crc, bytes.last(rest)));
  for (std::uint64_t i = 0; strings != nullptr && i < n; ++i) strings->push_back(in.take(lengths.varint()));
  return {};
}

GRADUS_BODY std::string read_bundle_variants(std::span<const std::byte> bytes, std::uint64_t n,
                                             std::uint32_t& entry_crc) {
  if (n > bytes.size()) return text(n, " variants cannot be in ", bytes.size(), " bytes");
  varint_source in(bytes);
  std::uint32_t crc = 0, checksum = 0;
  for (std::uint64_t i = 0; i < n; ++i) {
    const std::uint64_t length = in.varint();
    crc = extend(crc, std::as_bytes(std::span(&length, 1)));
    crc = extend(crc, in.take(length));
    const auto stored = in.take(sizeof checksum);
    if (in.bad()) return "its variants are cut off";
    std::memcpy(&checksum, stored.data(), sizeof checksum);
    if (checksum != mask(crc)) return "the checksum of a variant does not fit";
    crc = extend(crc, stored);
  }
  if (in.left() != 0) return text("its variants end ", in.left(), " bytes before its end");
  entry_crc = mask(crc);
  return {};
}

}  // namespace gradus::detail
