// The bodies of read_graph_def.hpp.
#pragma once
#include "../base/body.hpp"
#include "../store/wire.hpp"
#include "read_graph_def.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// Reads one file, and limits the number of its nodes, and the bytes of constants that are larger in memory than in the
// file.
class graph_reader {
public:
  graph_reader(std::span<const std::byte> file, const reader_limits& limits)
      : limits_(limits), compressed_(file.size()), bytes_left_(limits.inflated_from(file.size())) {}

  graph_def graph(wire_reader r);
  meta_graph meta(wire_reader r);
  tensor_def tensor(wire_reader r);
  shape_def shape(wire_reader r);
  feature_def feature(wire_reader r);
  void count(std::string_view what);

private:
  reader_limits limits_;
  std::uint64_t compressed_, bytes_left_, entries_ = 0;

  graph_def_node node(wire_reader r);
  bool attribute(wire_reader r, attr_value& out);
  attr_value list(wire_reader r);
  void pack(tensor_def& t, std::uint64_t elements, std::span<const std::byte> given);
  collection_def collection(wire_reader r);
  signature_def signature(wire_reader r);
  tensor_info info(wire_reader r);
  saver_def saver(wire_reader r);
};

// Reads the fields key = 1 and value = 2 of a map's entry.
template <class Take>
void read_entry(wire_reader r, const Take& take) {
  std::string key;
  std::span<const std::byte> value;
  while (r.next()) {
    if (r.key() == field(1, wire::length))
      key = r.string();
    else if (r.key() == field(2, wire::length))
      value = r.bytes();
  }
  take(std::move(key), value);
}

GRADUS_BODY dtype dtype_of_number(std::int64_t n) { return n > 0 && n < 1000 ? static_cast<dtype>(n) : dtype::none; }

GRADUS_BODY void graph_reader::count(std::string_view what) {
  if (++entries_ > limits_.entries) raise(status::resource_exhausted, too_many_entries(what, limits_));
}

GRADUS_BODY shape_def graph_reader::shape(wire_reader r) {
  shape_def s;
  while (r.next()) {
    if (r.key() == field(2, wire::length)) {
      std::int64_t size = 0;
      for (wire_reader d = r.message(); d.next();)
        if (d.key() == field(1, wire::varint)) size = d.integer();
      s.dims.push_back(size);
      if (s.dims.size() > 254)
        raise(status::data_loss, "a shape of a graph has more than 254 extents, TensorFlow's most");
    } else if (r.key() == field(3, wire::varint)) {
      s.unknown_rank = r.boolean();
    }
  }
  return s;
}

// Makes all elements of a constant from those that its typed field has: the last one is repeated for the rest.
GRADUS_BODY void graph_reader::pack(tensor_def& t, std::uint64_t elements, std::span<const std::byte> given) {
  const std::size_t width = size_of(t.type);
  std::uint64_t whole = 0;
  if (__builtin_mul_overflow(elements, static_cast<std::uint64_t>(width), &whole) || whole > bytes_left_)
    raise(status::resource_exhausted, inflated_too_far(compressed_, limits_));
  bytes_left_ -= whole;
  if (given.size() > whole)
    raise(status::data_loss, text("a constant of ", elements, " elements lists ", given.size() / width));
  t.content.assign(given.begin(), given.end());
  if (given.empty()) {
    t.content.resize(static_cast<std::size_t>(whole));
    return;
  }
  const std::vector<std::byte> last(given.end() - static_cast<std::ptrdiff_t>(width), given.end());
  t.content.reserve(static_cast<std::size_t>(whole));
  while (t.content.size() < whole) t.content.insert(t.content.end(), last.begin(), last.end());
}

GRADUS_BODY tensor_def graph_reader::tensor(wire_reader r) {
  tensor_def t;
  std::span<const std::byte> content, octets;  // octets: elements of the float8 types
  bool has_content = false;
  std::vector<float> reals;
  std::vector<double> doubles;
  std::vector<std::int64_t> integers;
  while (r.next()) switch (r.key()) {
    case field(1, wire::varint): t.type = dtype_of_number(r.integer()); break;
    case field(2, wire::length): t.dims = shape(r.message()).dims; break;
    case field(4, wire::length): content = r.bytes(), has_content = !content.empty(); break;
    case field(5, wire::length):
    case field(5, wire::fixed32): r.repeated(reals); break;
    case field(6, wire::length):
    case field(6, wire::fixed64): r.repeated(doubles); break;
    case field(8, wire::length): t.strings.emplace_back(r.string()); break;
    case field(7, wire::length):
    case field(7, wire::varint):
    case field(10, wire::length):
    case field(10, wire::varint):
    case field(11, wire::length):
    case field(11, wire::varint):
    case field(13, wire::length):
    case field(13, wire::varint):
    case field(16, wire::length):
    case field(16, wire::varint):
    case field(17, wire::length):
    case field(17, wire::varint): r.repeated(integers); break;
    case field(18, wire::length): octets = r.bytes(); break;
    default: break;
    }
  std::uint64_t elements = 1;
  for (const std::int64_t d : t.dims)
    if (d < 0 || __builtin_mul_overflow(elements, static_cast<std::uint64_t>(d), &elements))
      raise(status::data_loss,
            text("a constant of a graph has an extent ", d, "; its extents are known and not so large"));
  if (t.type == string_in_graphs) {
    if (t.strings.size() < elements) {
      const std::string last = t.strings.empty() ? std::string() : t.strings.back();
      if (elements > bytes_left_ / (sizeof(std::string) + last.size()))
        raise(status::resource_exhausted, inflated_too_far(compressed_, limits_));
      bytes_left_ -= elements * (sizeof(std::string) + last.size());
      t.strings.resize(static_cast<std::size_t>(elements), last);
    }
    if (t.strings.size() > elements)
      raise(status::data_loss, text("a constant of ", elements, " strings lists ", t.strings.size()));
    return t;
  }
  const std::size_t width = size_of(t.type);
  if (width == 0)
    raise(status::unimplemented, text("a constant of the graph is of TensorFlow's dtype ", static_cast<int>(t.type),
                                      ", which no tensor of this library has"));
  if (has_content) {
    std::uint64_t whole = 0;
    if (__builtin_mul_overflow(elements, static_cast<std::uint64_t>(width), &whole) || whole != content.size())
      raise(status::data_loss, text("a constant of ", elements, " ", name_of(t.type), " takes ", width,
                                    " bytes each, its content has ", content.size()));
    t.content.assign(content.begin(), content.end());
    return t;
  }
  std::vector<std::byte> given;
  const auto put = [&given]<class T>(T v) {
    const auto* p = reinterpret_cast<const std::byte*>(&v);
    given.insert(given.end(), p, p + sizeof v);
  };
  if (t.type == float32)
    for (const float v : reals) put(v);
  else if (t.type == float64)
    for (const double v : doubles) put(v);
  else if (t.type == float8_e4m3 || t.type == float8_e5m2)
    given.assign(octets.begin(), octets.end());
  else
    for (const std::int64_t v : integers) {
      const auto* p = reinterpret_cast<const std::byte*>(&v);
      given.insert(given.end(), p, p + width);  // little-endian: the low bytes
    }
  pack(t, elements, given);
  return t;
}

GRADUS_BODY attr_value graph_reader::list(wire_reader r) {
  std::vector<std::string> strings;
  std::vector<std::int64_t> integers, types;
  std::vector<float> reals;
  std::vector<shape_def> shapes;
  while (r.next()) switch (r.key()) {
    case field(2, wire::length): strings.emplace_back(r.string()); break;
    case field(3, wire::length):
    case field(3, wire::varint):
    case field(5, wire::length):
    case field(5, wire::varint): r.repeated(integers); break;
    case field(4, wire::length):
    case field(4, wire::fixed32): r.repeated(reals); break;
    case field(6, wire::length):
    case field(6, wire::varint): r.repeated(types); break;
    case field(7, wire::length): shapes.push_back(shape(r.message())); break;
    default: break;
    }
  if (!strings.empty()) return strings;
  if (!reals.empty()) return reals;
  if (!shapes.empty()) return shapes;
  if (types.empty()) return integers;
  std::vector<dtype> out;
  for (const std::int64_t n : types) out.push_back(dtype_of_number(n));
  return out;
}

GRADUS_BODY bool graph_reader::attribute(wire_reader r, attr_value& out) {
  bool known = false;
  while (r.next()) {
    bool here = true;
    switch (r.key()) {
    case field(1, wire::length): out = list(r.message()); break;
    case field(2, wire::length): out = std::string(r.string()); break;
    case field(3, wire::varint): out = r.integer(); break;
    case field(4, wire::fixed32): out = r.float32(); break;
    case field(5, wire::varint): out = r.boolean(); break;
    case field(6, wire::varint): out = dtype_of_number(r.integer()); break;
    case field(7, wire::length): out = shape(r.message()); break;
    case field(8, wire::length): out = tensor(r.message()); break;
    default: here = false;
    }
    known = known || here;
  }
  return known;
}

GRADUS_BODY graph_def_node graph_reader::node(wire_reader r) {
  count("a graph (its nodes, their inputs and attributes)");
  graph_def_node n;
  while (r.next()) switch (r.key()) {
    case field(1, wire::length): n.name = r.string(); break;
    case field(2, wire::length): n.op = r.string(); break;
    case field(3, wire::length): n.inputs.emplace_back(r.string()); break;
    case field(4, wire::length): n.device = r.string(); break;
    case field(5, wire::length):
      read_entry(r.message(), [&](std::string key, std::span<const std::byte> value) {
        attr_value v;
        if (attribute(wire_reader(value), v)) n.attrs.push_back({std::move(key), std::move(v)});
      });
      break;
    default: break;
    }
  return n;
}

GRADUS_BODY graph_def graph_reader::graph(wire_reader r) {
  graph_def g;
  g.producer = g.min_consumer = 0;
  while (r.next()) {
    if (r.key() == field(1, wire::length)) g.nodes.push_back(node(r.message()));
    if (r.key() != field(4, wire::length)) continue;
    for (wire_reader v = r.message(); v.next();) {
      if (v.key() == field(1, wire::varint)) g.producer = static_cast<int>(v.integer());
      if (v.key() == field(2, wire::varint)) g.min_consumer = static_cast<int>(v.integer());
    }
  }
  return g;
}

GRADUS_BODY collection_def graph_reader::collection(wire_reader r) {
  collection_def c;
  while (r.next()) {
    if (r.type() != wire::length) continue;
    const std::uint32_t kind = r.number();
    for (wire_reader v = r.message(); v.next();) {
      if (v.number() != 1) continue;
      count("a graph's collections");
      if (kind == 1 && v.type() == wire::length) {
        c.nodes.emplace_back(v.string());
      } else if (kind == 2 && v.type() == wire::length) {
        const auto b = v.bytes();
        c.messages.emplace_back(b.begin(), b.end());
      } else if (kind == 3 && (v.type() == wire::length || v.type() == wire::varint)) {
        v.repeated(c.integers);
      } else if (kind == 4 && (v.type() == wire::length || v.type() == wire::fixed32)) {
        v.repeated(c.reals);
      }
    }
  }
  return c;
}

GRADUS_BODY tensor_info graph_reader::info(wire_reader r) {
  tensor_info t;
  while (r.next()) switch (r.key()) {
    case field(1, wire::length): t.tensor = r.string(); break;
    case field(2, wire::varint): t.type = dtype_of_number(r.integer()); break;
    case field(3, wire::length): t.shape = shape(r.message()); break;
    default: break;
    }
  return t;
}

GRADUS_BODY signature_def graph_reader::signature(wire_reader r) {
  signature_def s;
  s.method.clear();
  while (r.next()) {
    if (r.key() == field(3, wire::length)) s.method = r.string();
    if (r.key() != field(1, wire::length) && r.key() != field(2, wire::length)) continue;
    auto& to = r.number() == 1 ? s.inputs : s.outputs;
    count("a graph's signatures");
    read_entry(r.message(), [&](std::string key, std::span<const std::byte> value) {
      to[std::move(key)] = info(wire_reader(value));
    });
  }
  return s;
}

GRADUS_BODY saver_def graph_reader::saver(wire_reader r) {
  saver_def s{"", "", "", 0, false, 0, 0};
  while (r.next()) switch (r.key()) {
    case field(1, wire::length): s.filename_tensor = r.string(); break;
    case field(2, wire::length): s.save_tensor = r.string(); break;
    case field(3, wire::length): s.restore_op = r.string(); break;
    case field(4, wire::varint): s.max_to_keep = static_cast<int>(r.integer()); break;
    case field(5, wire::varint): s.sharded = r.boolean(); break;
    case field(6, wire::fixed32): s.keep_checkpoint_every_n_hours = r.float32(); break;
    case field(7, wire::varint): s.version = static_cast<int>(r.integer()); break;
    default: break;
    }
  return s;
}

GRADUS_BODY meta_graph graph_reader::meta(wire_reader r) {
  meta_graph m;
  m.saver.reset();
  while (r.next()) switch (r.key()) {
    case field(1, wire::length):
      for (wire_reader i = r.message(); i.next();) {
        if (i.key() == field(4, wire::length)) m.tags.emplace_back(i.string());
        if (i.key() == field(5, wire::length)) m.tensorflow_version = i.string();
      }
      break;
    case field(2, wire::length): m.graph = graph(r.message()); break;
    case field(3, wire::length): m.saver = saver(r.message()); break;
    case field(4, wire::length):
      read_entry(r.message(), [&](std::string key, std::span<const std::byte> value) {
        count("a graph's collections");
        m.collections[std::move(key)] = collection(wire_reader(value));
      });
      break;
    case field(5, wire::length):
      read_entry(r.message(), [&](std::string key, std::span<const std::byte> value) {
        count("a graph's signatures");
        m.signatures[std::move(key)] = signature(wire_reader(value));
      });
      break;
    case field(6, wire::length): {
      count("a graph's assets");
      asset_def& a = m.assets.emplace_back();
      for (wire_reader f = r.message(); f.next();) {
        if (f.key() == field(1, wire::length)) a.tensor = info(f.message()).tensor;
        if (f.key() == field(2, wire::length)) a.filename = f.string();
      }
      break;
    }
    default: break;
    }
  return m;
}

GRADUS_BODY feature_def graph_reader::feature(wire_reader r) {
  feature_def d;
  while (r.next()) {
    if (r.key() != field(1, wire::length) && r.key() != field(2, wire::length)) continue;
    d.any_length = r.number() == 2;
    for (wire_reader f = r.message(); f.next();) {
      if (f.key() == field(1, wire::varint)) d.type = dtype_of_number(f.integer());
      if (!d.any_length && f.key() == field(2, wire::length)) d.dims = shape(f.message()).dims;
      if (!d.any_length && f.key() == field(3, wire::length)) d.default_value = tensor(f.message());
    }
  }
  return d;
}

}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY graph_def decode_graph_def(std::span<const std::byte> bytes, const reader_limits& limits) {
  return detail::graph_reader(bytes, limits).graph(wire_reader(bytes));
}

GRADUS_BODY meta_graph decode_meta_graph(std::span<const std::byte> bytes, const reader_limits& limits) {
  return detail::graph_reader(bytes, limits).meta(wire_reader(bytes));
}

GRADUS_BODY std::vector<meta_graph> decode_saved_model(std::span<const std::byte> bytes, const reader_limits& limits) {
  detail::graph_reader reader(bytes, limits);
  std::vector<meta_graph> out;
  std::int64_t version = 0;
  for (wire_reader r(bytes); r.next();) {
    if (r.key() == field(1, wire::varint)) version = r.integer();
    if (r.key() == field(2, wire::length)) out.push_back(reader.meta(r.message()));
  }
  if (version != 1)
    raise(status::failed_precondition,
          text("a SavedModel of schema version ", version, "; this library reads version 1"));
  return out;
}

GRADUS_BODY variable_def decode_variable_def(std::span<const std::byte> bytes) {
  const auto node = [](std::string_view tensor) {
    return std::string(tensor.ends_with(":0") ? tensor.substr(0, tensor.size() - 2) : tensor);
  };
  variable_def v;
  v.trainable = false;
  for (wire_reader r(bytes); r.next();) switch (r.key()) {
    case field(1, wire::length): v.name = node(r.string()); break;
    case field(2, wire::length): v.initializer = node(r.string()); break;
    case field(3, wire::length): v.snapshot = node(r.string()); break;
    case field(6, wire::length): v.initial_value = node(r.string()); break;
    case field(7, wire::varint): v.trainable = r.boolean(); break;
    case field(4, wire::length): {
      variable_def::slice s;
      for (wire_reader p = r.message(); p.next();) switch (p.key()) {
        case field(1, wire::length): s.full_name = p.string(); break;
        case field(2, wire::length):
        case field(2, wire::varint): p.repeated(s.full_shape); break;
        case field(3, wire::length):
        case field(3, wire::varint): p.repeated(s.offset); break;
        case field(4, wire::length):
        case field(4, wire::varint): p.repeated(s.shape); break;
        default: break;
        }
      v.part = std::move(s);
      break;
    }
    default: break;
    }
  return v;
}

GRADUS_BODY std::vector<feature_def> decode_feature_defs(std::span<const std::byte> bytes,
                                                         const reader_limits& limits) {
  detail::graph_reader reader(bytes, limits);
  std::vector<feature_def> out;
  for (wire_reader r(bytes); r.next();)
    if (r.key() == field(1, wire::length))
      detail::read_entry(r.message(), [&](std::string key, std::span<const std::byte> value) {
        reader.count("a feature spec");
        out.push_back(reader.feature(wire_reader(value)));
        out.back().name = std::move(key);
      });
  return out;
}

}  // namespace gradus
