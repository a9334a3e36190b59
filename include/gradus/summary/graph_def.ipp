// The bodies of graph_def.hpp.
#pragma once
#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>

#include "../base/body.hpp"
#include "../store/wire.hpp"
#include "graph_def.hpp"

namespace gradus::detail {

GRADUS_BODY std::string shortest_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  const std::string_view s(buffer, static_cast<std::size_t>(end - buffer));  // [-]d[.ddd]e[+-]dd
  const auto e = s.find('e');
  int exponent = 0;
  std::from_chars(buffer + e + (s[e + 1] == '+' ? 2 : 1), end, exponent);
  if (exponent < -4 || exponent >= 16) return std::string(s);

  std::string digits;
  for (char c : s.substr(0, e))
    if (c != '-' && c != '.') digits += c;
  std::string out = std::signbit(value) ? "-" : "";
  if (exponent < 0) return out + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  const auto whole = static_cast<std::size_t>(exponent) + 1;
  if (digits.size() <= whole) return out + digits + std::string(whole - digits.size(), '0') + ".0";
  return out + digits.substr(0, whole) + "." + digits.substr(whole);
}

// One verb per kind of field. This sink writes protobuf bytes and ignores the names...
struct wire_sink {
  wire_writer& w;

  void string(std::uint32_t number, std::string_view, std::string_view v) { w.bytes(number, v); }
  void integer(std::uint32_t number, std::string_view, std::int64_t v) { w.integer(number, v); }
  void real(std::uint32_t number, std::string_view, float v) { w.float32(number, v); }
  void boolean(std::uint32_t number, std::string_view, bool v) { w.boolean(number, v); }
  void type(std::uint32_t number, std::string_view, dtype v) { w.integer(number, static_cast<std::int64_t>(v)); }
  void integers(std::uint32_t number, std::string_view, std::span<const std::int64_t> v) { w.packed(number, v); }
  void booleans(std::uint32_t number, std::string_view, std::span<const std::int64_t> v) { w.packed(number, v); }
  void types(std::uint32_t number, std::string_view, std::span<const dtype> v);
  void reals(std::uint32_t number, std::string_view, std::span<const float> v) { w.packed(number, v); }
  void reals(std::uint32_t number, std::string_view, std::span<const double> v) { w.packed(number, v); }
  template <class Body>
  void message(std::uint32_t number, std::string_view, Body&& body) {
    w.message(number, [&](wire_writer& inner) {
      wire_sink sink{inner};
      body(sink);
    });
  }
};

// ...and this one writes text and ignores the numbers.
struct text_sink {
  std::string& out;
  std::size_t indent = 0;

  void line(std::string_view name, std::string_view value);
  void string(std::uint32_t, std::string_view name, std::string_view v);
  void integer(std::uint32_t, std::string_view name, std::int64_t v) { line(name, text(v)); }
  void real(std::uint32_t, std::string_view name, double v) { line(name, shortest_text(v)); }
  void boolean(std::uint32_t, std::string_view name, bool v) { line(name, v ? "true" : "false"); }
  void type(std::uint32_t, std::string_view name, dtype v) { line(name, data_type_name(v)); }
  void integers(std::uint32_t n, std::string_view name, std::span<const std::int64_t> v);
  void booleans(std::uint32_t n, std::string_view name, std::span<const std::int64_t> v);
  void types(std::uint32_t n, std::string_view name, std::span<const dtype> v);
  template <class Number>
  void reals(std::uint32_t n, std::string_view name, std::span<const Number> v) {
    for (auto x : v) real(n, name, static_cast<double>(x));
  }
  template <class Body>
  void message(std::uint32_t, std::string_view name, Body&& body) {
    out.append(indent, ' ').append(name) += " {\n";
    text_sink inner{out, indent + 2};
    body(inner);
    out.append(indent, ' ') += "}\n";
  }
};

template <class Sink>
void write_shape(Sink& sink, std::span<const std::int64_t> dims, bool unknown_rank) {
  for (auto d : dims)
    sink.message(2, "dim", [&](auto& dim) {
      if (d != 0) dim.integer(1, "size", d);
    });
  if (unknown_rank) sink.boolean(3, "unknown_rank", true);
}

// One element goes into the typed field, more into tensor_content, as TensorFlow's make_tensor_proto does.
template <class Sink>
void write_tensor(Sink& sink, const tensor_def& t) {
  const std::size_t width = size_of(t.type);
  std::size_t elements = 1;
  for (auto d : t.dims) {
    if (d < 0 || __builtin_mul_overflow(elements, static_cast<std::size_t>(d), &elements))
      raise(status::invalid_argument, text("a constant has known extents, this one has an extent ", d));
  }
  if (t.type == string_in_graphs) {
    if (t.strings.size() != elements)
      raise(status::invalid_argument,
            text("a constant of ", elements, " strings holds ", t.strings.size(), "; give one for each element"));
    sink.type(1, "dtype", t.type);
    sink.message(2, "tensor_shape", [&](auto& s) { write_shape(s, t.dims, false); });
    for (const std::string& each : t.strings) sink.string(8, "string_val", each);
    return;
  }
  std::size_t expected = 0;
  if (width == 0 || __builtin_mul_overflow(elements, width, &expected) || t.content.size() != expected)
    raise(status::invalid_argument, text("a constant of ", elements, " ", name_of(t.type), " takes ", elements, " x ",
                                         width, " bytes, its content has ", t.content.size()));
  sink.type(1, "dtype", t.type);
  sink.message(2, "tensor_shape", [&](auto& s) { write_shape(s, t.dims, false); });
  if (elements > 1)
    return sink.string(4, "tensor_content", {reinterpret_cast<const char*>(t.content.data()), t.content.size()});
  if (elements == 0) return;
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < width; ++i) bits |= std::to_integer<std::uint64_t>(t.content[i]) << (8 * i);
  const auto one = [](const auto& v) { return std::span<const std::remove_cvref_t<decltype(v)>>(&v, 1); };
  const float f = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  const double d = std::bit_cast<double>(bits);
  const auto i32 = std::int64_t{static_cast<std::int32_t>(static_cast<std::uint32_t>(bits))};
  const auto i64 = static_cast<std::int64_t>(bits);
  switch (t.type) {
  case dtype::float32: return sink.reals(5, "float_val", one(f));
  case dtype::float64: return sink.reals(6, "double_val", one(d));
  case dtype::int32: return sink.integers(7, "int_val", one(i32));
  case dtype::uint8: return sink.integers(7, "int_val", one(i64));
  case dtype::int64: return sink.integers(10, "int64_val", one(i64));
  case dtype::boolean: return sink.booleans(11, "bool_val", one(i64));
  case dtype::bfloat16:
  case dtype::float16: return sink.integers(13, "half_val", one(i64));
  default: break;  // no graph holds another type
  }
}

// Members of a oneof: written even when zero.
template <class Sink>
struct attr_writer {
  Sink& sink;

  void operator()(const std::string& v) { sink.string(2, "s", v); }
  void operator()(std::int64_t v) { sink.integer(3, "i", v); }
  void operator()(float v) { sink.real(4, "f", v); }
  void operator()(bool v) { sink.boolean(5, "b", v); }
  void operator()(dtype v) { sink.type(6, "type", v); }
  void operator()(const shape_def& v) {
    sink.message(7, "shape", [&](auto& s) { write_shape(s, v.dims, v.unknown_rank); });
  }
  void operator()(const tensor_def& v) {
    sink.message(8, "tensor", [&](auto& s) { write_tensor(s, v); });
  }
  template <class Body>
  void list(Body&& body) {
    sink.message(1, "list", body);
  }
  void operator()(const std::vector<std::string>& v) {
    list([&](auto& s) {
      for (const auto& x : v) s.string(2, "s", x);
    });
  }
  void operator()(const std::vector<std::int64_t>& v) {
    list([&](auto& s) { s.integers(3, "i", v); });
  }
  void operator()(const std::vector<float>& v) {
    list([&](auto& s) { s.reals(4, "f", std::span<const float>(v)); });
  }
  void operator()(const std::vector<dtype>& v) {
    list([&](auto& s) { s.types(6, "type", v); });
  }
  void operator()(const std::vector<shape_def>& v) {
    list([&](auto& s) {
      for (const auto& x : v) s.message(7, "shape", [&](auto& inner) { write_shape(inner, x.dims, x.unknown_rank); });
    });
  }
};

template <class Sink>
void write_node(Sink& sink, const graph_def_node& node) {
  if (!node.name.empty()) sink.string(1, "name", node.name);
  if (!node.op.empty()) sink.string(2, "op", node.op);
  bool control = false;
  for (const auto& input : node.inputs) {
    const bool is_control = input.starts_with('^');
    if (control && !is_control)
      raise(status::invalid_argument, text("node \"", node.name, "\": data input \"", input,
                                           "\" comes after a control input; put control inputs last"));
    control = is_control;
    sink.string(3, "input", input);
  }
  if (!node.device.empty()) sink.string(4, "device", node.device);

  std::vector<const graph_def_attr*> sorted;
  for (const auto& a : node.attrs) sorted.push_back(&a);
  std::sort(sorted.begin(), sorted.end(), [](auto* a, auto* b) { return a->key < b->key; });
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (i != 0 && sorted[i]->key == sorted[i - 1]->key)
      raise(status::invalid_argument,
            text("node \"", node.name, "\" has the attribute \"", sorted[i]->key, "\" twice; keep one"));
    sink.message(5, "attr", [&](auto& entry) {
      entry.string(1, "key", sorted[i]->key);
      entry.message(2, "value", [&](auto& value) {
        std::visit(attr_writer<std::remove_cvref_t<decltype(value)>>{value}, sorted[i]->value);
      });
    });
  }
}

template <class Sink>
void write_graph_def(Sink& sink, const graph_def& g) {
  for (const auto& node : g.nodes) sink.message(1, "node", [&](auto& s) { write_node(s, node); });
  sink.message(4, "versions", [&](auto& s) {
    if (g.producer != 0) s.integer(1, "producer", g.producer);
    if (g.min_consumer != 0) s.integer(2, "min_consumer", g.min_consumer);
  });
}

GRADUS_BODY void wire_sink::types(std::uint32_t number, std::string_view, std::span<const dtype> v) {
  std::vector<std::int64_t> numbers;
  for (dtype t : v) numbers.push_back(static_cast<std::int64_t>(t));
  w.packed(number, numbers);
}

GRADUS_BODY void text_sink::line(std::string_view name, std::string_view value) {
  out.append(indent, ' ').append(name).append(": ").append(value) += '\n';
}

GRADUS_BODY void text_sink::string(std::uint32_t, std::string_view name, std::string_view v) {
  std::string quoted = "\"";
  for (char c : v) switch (c) {
    case '\n': quoted += "\\n"; break;
    case '\r': quoted += "\\r"; break;
    case '\t': quoted += "\\t"; break;
    case '"': quoted += "\\\""; break;
    case '\'': quoted += "\\'"; break;
    case '\\': quoted += "\\\\"; break;
    default:
      if (const auto byte = static_cast<unsigned char>(c); byte >= 0x20 && byte < 0x7F) {
        quoted += c;
      } else {
        quoted += '\\';
        for (int shift : {6, 3, 0}) quoted += static_cast<char>('0' + ((byte >> shift) & 7));
      }
    }
  line(name, quoted + "\"");
}

GRADUS_BODY void text_sink::integers(std::uint32_t n, std::string_view name, std::span<const std::int64_t> v) {
  for (auto x : v) integer(n, name, x);
}

GRADUS_BODY void text_sink::booleans(std::uint32_t n, std::string_view name, std::span<const std::int64_t> v) {
  for (auto x : v) boolean(n, name, x != 0);
}

GRADUS_BODY void text_sink::types(std::uint32_t n, std::string_view name, std::span<const dtype> v) {
  for (auto x : v) type(n, name, x);
}

}  // namespace gradus::detail

namespace gradus {

GRADUS_BODY void encode_graph_def(std::vector<std::byte>& out, const graph_def& g) {
  wire_writer w(out);
  detail::wire_sink sink{w};
  detail::write_graph_def(sink, g);
}

GRADUS_BODY std::string to_pbtxt(const graph_def& g) {
  std::string out;
  detail::text_sink sink{out};
  detail::write_graph_def(sink, g);
  return out;
}

}  // namespace gradus
