// cereal_json: the frame of this library's checkpoints (frame.hpp) around a manifest in the form of cereal's JSON
// archive, which people can read, and any program with cereal, from byte 64 on:
//
//   layout (1), step, metadata (a map), tensors: a list of { name, dtype, blob, extents, bytes, crc32c }
//
// It is equal, byte for byte, to what cereal's archive writes without indentation. cereal uses RapidJSON, which is
// recursive for each bracket, takes the first of two equal keys and cuts names at a zero byte. So that it never parses
// a file from outside, JSON is written and read by store/json.hpp here, and cereal itself is not needed.
#pragma once
#include "../store/json.hpp"
#include "frame.hpp"

namespace gradus::inline GRADUS_BUILD {

struct cereal_json {
  using policy_for = kind::codec;
  static constexpr std::string_view name = "cereal_json";
  static constexpr std::string_view extension = ".ckpt", proof = extension;
  static constexpr bool checks_itself = true;

  // Also raises invalid_argument for names and metadata that JSON cannot hold, or that cereal would change: text that
  // is no UTF-8, or holds a zero byte.
  encoded encode(const snapshot& content) const {
    const auto check = [](std::string_view what, std::string_view s) {
      if (!is_utf8(s) || s.find('\0') != std::string_view::npos)
        raise(status::invalid_argument, text("this state cannot be saved as cereal_json: ", what, " \"", s,
                                             "\" is no text in UTF-8 without zero bytes"));
    };
    for (const auto& [key, value] : content.about) check("the metadata", key), check("the metadata", value);
    for (const auto& r : content.records) check("the name", r.name);
    return detail::frame_encode(name, extension, content, &write);
  }

  decoded decode(checkpoint_files& files) const {
    std::span<const std::byte> file;
    if (const auto p = files.open(extension, file)) return detail::unopened(p);
    decoded out;
    std::span<const std::byte> body;
    std::uint64_t tensors = 0;
    if (!detail::frame_open(name, file, body, tensors, out)) return out;
    detail::manifest m;
    m.limits = files.limits;
    if (out.problem = read(body, m); m.full()) out.kind = status::resource_exhausted;
    if (out.ok()) detail::frame_bind(file, body.size(), tensors, std::move(m), out, files.threads);
    return out;
  }

private:
  static constexpr std::uint64_t layout = 1;

  // Offsets are not written: they follow from the order, and the length of their text would shift the places that they
  // give.
  static void write(detail::byte_sink& out, const detail::manifest& m) {
    const auto quoted = [](std::string_view s) {
      std::string q;
      append_json_string(q, s);
      return q;
    };
    const char* comma = "\n";
    const auto list = [&comma](bool empty) { return comma = "\n", empty ? "]" : "\n]"; };
    out.raw(text("{\n\"layout\": ", layout, ",\n\"step\": ", m.step, ",\n\"metadata\": ["));
    for (const auto& [key, value] : m.about) {
      out.raw(text(comma, "{\n\"key\": ", quoted(key), ",\n\"value\": ", quoted(value), "\n}"));
      comma = ",\n";
    }
    out.raw(text(list(m.about.empty()), ",\n\"tensors\": ["));
    for (std::size_t i = 0; i < m.records.size(); ++i) {
      const auto& r = m.records[i];
      out.raw(text(comma, "{\n\"name\": ", quoted(r.name), ",\n\"dtype\": \"", name_of(r.type),
                   "\",\n\"blob\": ", r.blob, ",\n\"extents\": ["));
      for (int axis = 0; axis < r.dims.rank; ++axis) out.raw(text(axis == 0 ? "\n" : ",\n", r.dims[axis]));
      out.raw(text(r.dims.rank == 0 ? "]" : "\n]", ",\n\"bytes\": ", m.places[i].bytes,
                   ",\n\"crc32c\": ", m.places[i].crc, "\n}"));
      comma = ",\n";
    }
    out.raw(text(list(m.records.empty()), "\n}"));
  }

  // Reads the fields of an object, each once, in any order.
  class fields {
  public:
    explicit fields(json_reader& in) : in_(in) { in_.begin_object(); }
    bool next() {
      if (!in_.next_key(key)) return false;
      ++count_;
      return true;
    }
    // A key occurs in an object only once, so that counting the keys is enough.
    std::string problem(std::string_view what, int expected, bool stranger) const {
      if (!in_.ok()) return text("its manifest is refused: ", in_.problem());
      if (stranger) return text("its manifest is refused: ", what, " has the unknown field \"", key, '"');
      if (count_ != expected) return text("its manifest is refused: ", what, " lacks a field");
      return {};
    }

    std::string key;

  private:
    json_reader& in_;
    int count_ = 0;
  };

  static std::string read(std::span<const std::byte> body, detail::manifest& m) {
    json_reader in({reinterpret_cast<const char*>(body.data()), body.size()}, 4, detail::frame::header_bytes);
    std::uint64_t found = 0, at = detail::frame::header_bytes + body.size();
    fields top(in);
    while (top.next()) {
      std::string why;
      if (top.key == "layout") {
        if (in.natural(found) && found != layout) return text("its manifest has layout ", found, ", expected ", layout);
      } else if (top.key == "step") {
        in.integer(m.step);
      } else if (top.key == "metadata") {
        in.begin_array();
        while (why.empty() && in.next_element()) why = read_pair(in, m);
      } else if (top.key == "tensors") {
        in.begin_array();
        while (why.empty() && in.next_element()) why = read_tensor(in, m, at);
      } else {
        return top.problem("it", 4, true);
      }
      if (!why.empty()) return why;
    }
    if (auto why = top.problem("it", 4, false); !why.empty()) return why;
    return in.finish() ? "" : top.problem("it", 4, false);
  }

  static std::string read_pair(json_reader& in, detail::manifest& m) {
    std::string key, value;
    fields pair(in);
    while (pair.next()) {
      if (pair.key != "key" && pair.key != "value") return pair.problem("a pair", 2, true);
      in.string(pair.key == "key" ? key : value);
    }
    if (auto why = pair.problem("a pair", 2, false); !why.empty()) return why;
    if (!m.about.emplace(std::move(key), std::move(value)).second) return "a metadata key stands in it twice";
    return m.full() ? m.too_full() : "";
  }

  static std::string read_tensor(json_reader& in, detail::manifest& m, std::uint64_t& at) {
    record r;
    std::string type;
    std::uint64_t bytes = 0, crc = 0, n = 0;
    fields tensor(in);
    while (tensor.next()) {
      if (tensor.key == "name")
        in.string(r.name);
      else if (tensor.key == "dtype")
        in.string(type);
      else if (tensor.key == "blob")
        in.truth(r.blob);
      else if (tensor.key == "bytes")
        in.natural(bytes);
      else if (tensor.key == "crc32c")
        in.natural(crc);
      else if (tensor.key != "extents")
        return tensor.problem("a tensor", 6, true);
      else
        for (in.begin_array(); in.next_element() && in.natural(n);) {
          if (r.dims.rank == max_rank)
            return text("a tensor has a rank above ", max_rank, ", the highest that is known");
          r.dims.push(static_cast<std::int64_t>(n));
        }
    }
    if (auto why = tensor.problem("a tensor", 6, false); !why.empty()) return why;
    for (int t = 0; t < 256 && r.type == dtype::none; ++t)
      if (name_of(static_cast<dtype>(t)) == type) r.type = static_cast<dtype>(t);
    at = detail::align_up(at);
    if (crc > 0xFFFFFFFF || __builtin_add_overflow(at, bytes, &n))
      return text("\"", r.name, "\" claims ", bytes, " bytes with the checksum ", crc);
    m.places.push_back({at, bytes, static_cast<std::uint32_t>(crc)});
    m.records.push_back(std::move(r));
    at = n;
    return m.full() ? m.too_full() : "";
  }
};
static_assert(codec<cereal_json>);

}  // namespace gradus
