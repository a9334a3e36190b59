// The bodies of graph_def.hpp.
#pragma once
#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>

#include "../base/body.hpp"
#include "../base/deferred.hpp"
#include "../base/sort.hpp"
#include "../store/wire.hpp"
#include "graph_def.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

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

// The interface of a writer of fields: one function for each kind of field, which takes the field's number and its
// name.
class field_sink {
public:
  // A function that writes the fields of a message inside a field.
  class body {
  public:
    template <class F>
    body(const F& f) : f_(&f), call_([](const void* g, field_sink& to) { (*static_cast<const F*>(g))(to); }) {}
    void operator()(field_sink& to) const { call_(f_, to); }

  private:
    const void* f_;
    void (*call_)(const void*, field_sink&);
  };

  virtual void string(std::uint32_t number, std::string_view name, std::string_view v) = 0;
  virtual void integer(std::uint32_t number, std::string_view name, std::int64_t v) = 0;
  virtual void real(std::uint32_t number, std::string_view name, float v) = 0;
  virtual void boolean(std::uint32_t number, std::string_view name, bool v) = 0;
  virtual void type(std::uint32_t number, std::string_view name, dtype v) = 0;
  virtual void choice(std::uint32_t number, std::string_view name, std::int64_t v, std::string_view called) = 0;
  virtual void integers(std::uint32_t number, std::string_view name, std::span<const std::int64_t> v) = 0;
  virtual void booleans(std::uint32_t number, std::string_view name, std::span<const std::int64_t> v) = 0;
  virtual void types(std::uint32_t number, std::string_view name, std::span<const dtype> v) = 0;
  virtual void reals(std::uint32_t number, std::string_view name, std::span<const float> v) = 0;
  virtual void reals(std::uint32_t number, std::string_view name, std::span<const double> v) = 0;
  virtual void message(std::uint32_t number, std::string_view name, const body& fields) = 0;

protected:
  ~field_sink() = default;
};

// Writes protobuf bytes and ignores the names.
class wire_sink final : public field_sink {
public:
  explicit wire_sink(wire_writer& to) : w(to) {}
  void string(std::uint32_t number, std::string_view, std::string_view v) override { w.bytes(number, v); }
  void integer(std::uint32_t number, std::string_view, std::int64_t v) override { w.integer(number, v); }
  void real(std::uint32_t number, std::string_view, float v) override { w.float32(number, v); }
  void boolean(std::uint32_t number, std::string_view, bool v) override { w.boolean(number, v); }
  void type(std::uint32_t number, std::string_view, dtype v) override {
    w.integer(number, static_cast<std::int64_t>(v));
  }
  void choice(std::uint32_t number, std::string_view, std::int64_t v, std::string_view) override {
    w.integer(number, v);
  }
  void integers(std::uint32_t number, std::string_view, std::span<const std::int64_t> v) override {
    w.packed(number, v);
  }
  void booleans(std::uint32_t number, std::string_view, std::span<const std::int64_t> v) override {
    w.packed(number, v);
  }
  void types(std::uint32_t number, std::string_view, std::span<const dtype> v) override {
    std::vector<std::int64_t> numbers;
    for (dtype t : v) numbers.push_back(static_cast<std::int64_t>(t));
    w.packed(number, const_span(numbers.data(), numbers.size()));
  }
  void reals(std::uint32_t number, std::string_view, std::span<const float> v) override { w.packed(number, v); }
  void reals(std::uint32_t number, std::string_view, std::span<const double> v) override { w.packed(number, v); }
  void message(std::uint32_t number, std::string_view, const body& fields) override {
    w.message(number, [&](wire_writer& inner) {
      wire_sink sink(inner);
      fields(sink);
    });
  }

private:
  wire_writer& w;
};

// Writes text and ignores the numbers.
class text_sink final : public field_sink {
public:
  explicit text_sink(std::string& to) : out(to) {}
  void string(std::uint32_t, std::string_view name, std::string_view v) override {
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
  void integer(std::uint32_t, std::string_view name, std::int64_t v) override { line(name, text(v)); }
  void real(std::uint32_t, std::string_view name, float v) override {
    line(name, shortest_text(static_cast<double>(v)));
  }
  void boolean(std::uint32_t, std::string_view name, bool v) override { line(name, v ? "true" : "false"); }
  void type(std::uint32_t, std::string_view name, dtype v) override { line(name, data_type_name(v)); }
  void choice(std::uint32_t, std::string_view name, std::int64_t, std::string_view called) override {
    line(name, called);
  }
  void integers(std::uint32_t, std::string_view name, std::span<const std::int64_t> v) override {
    for (auto x : v) line(name, text(x));
  }
  void booleans(std::uint32_t, std::string_view name, std::span<const std::int64_t> v) override {
    for (auto x : v) line(name, x != 0 ? "true" : "false");
  }
  void types(std::uint32_t, std::string_view name, std::span<const dtype> v) override {
    for (auto x : v) line(name, data_type_name(x));
  }
  void reals(std::uint32_t, std::string_view name, std::span<const float> v) override {
    for (auto x : v) line(name, shortest_text(static_cast<double>(x)));
  }
  void reals(std::uint32_t, std::string_view name, std::span<const double> v) override {
    for (auto x : v) line(name, shortest_text(x));
  }
  void message(std::uint32_t, std::string_view name, const body& fields) override {
    out.append(indent, ' ').append(name) += " {\n";
    indent += 2;
    fields(*this);
    indent -= 2;
    out.append(indent, ' ') += "}\n";
  }

private:
  std::string& out;
  std::size_t indent = 0;
  void line(std::string_view name, std::string_view value) {
    out.append(indent, ' ').append(name).append(": ").append(value) += '\n';
  }
};

GRADUS_BODY void write_shape(field_sink& sink, std::span<const std::int64_t> dims, bool unknown_rank) {
  for (auto d : dims)
    sink.message(2, "dim", [&](field_sink& dim) {
      if (d != 0) dim.integer(1, "size", d);
    });
  if (unknown_rank) sink.boolean(3, "unknown_rank", true);
}

// One element goes into the typed field, more into tensor_content, as TensorFlow's make_tensor_proto does. Types that
// no graph computes with always take tensor_content, which every reader understands.
GRADUS_BODY void write_tensor(field_sink& sink, const tensor_def& t) {
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
    sink.message(2, "tensor_shape", [&](field_sink& s) { write_shape(s, const_span(t.dims), false); });
    for (const std::string& each : t.strings) sink.string(8, "string_val", each);
    return;
  }
  std::size_t expected = 0;
  if (width == 0 || __builtin_mul_overflow(elements, width, &expected) || t.content.size() != expected)
    raise(status::invalid_argument, text("a constant of ", elements, " ", name_of(t.type), " takes ", elements, " x ",
                                         width, " bytes, its content has ", t.content.size()));
  sink.type(1, "dtype", t.type);
  sink.message(2, "tensor_shape", [&](field_sink& s) { write_shape(s, const_span(t.dims), false); });
  if (elements > 1 || (elements == 1 && is_for_files(t.type)))
    return sink.string(4, "tensor_content", {reinterpret_cast<const char*>(t.content.data()), t.content.size()});
  if (elements == 0) return;
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < width; ++i) bits |= std::to_integer<std::uint64_t>(t.content[i]) << (8 * i);
  const auto one = []<class T>(const T& v) { return std::span<const T>(&v, 1); };
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
  default: break;  // the types above are all others
  }
}

// Writes members of a oneof, which are written even when they are zero.
struct attr_writer {
  field_sink& sink;

  void operator()(const std::string& v) { sink.string(2, "s", v); }
  void operator()(std::int64_t v) { sink.integer(3, "i", v); }
  void operator()(float v) { sink.real(4, "f", v); }
  void operator()(bool v) { sink.boolean(5, "b", v); }
  void operator()(dtype v) { sink.type(6, "type", v); }
  void operator()(const shape_def& v) {
    sink.message(7, "shape", [&](field_sink& s) { write_shape(s, const_span(v.dims), v.unknown_rank); });
  }
  void operator()(const tensor_def& v) {
    sink.message(8, "tensor", [&](field_sink& s) { write_tensor(s, v); });
  }
  void list(const field_sink::body& values) { sink.message(1, "list", values); }
  void operator()(const std::vector<std::string>& v) {
    list([&](field_sink& s) {
      for (const auto& x : v) s.string(2, "s", x);
    });
  }
  void operator()(const std::vector<std::int64_t>& v) {
    list([&](field_sink& s) { s.integers(3, "i", const_span(v)); });
  }
  void operator()(const std::vector<float>& v) {
    list([&](field_sink& s) { s.reals(4, "f", std::span<const float>(v.data(), v.size())); });
  }
  void operator()(const std::vector<dtype>& v) {
    list([&](field_sink& s) { s.types(6, "type", {v.data(), v.size()}); });
  }
  void operator()(const std::vector<shape_def>& v) {
    list([&](field_sink& s) {
      for (const auto& x : v)
        s.message(7, "shape", [&](field_sink& inner) { write_shape(inner, const_span(x.dims), x.unknown_rank); });
    });
  }
};

GRADUS_BODY void write_node(field_sink& sink, const graph_def_node& node) {
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
  sort_stably(sorted, [](auto* a, auto* b) { return a->key < b->key; });
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (i != 0 && sorted[i]->key == sorted[i - 1]->key)
      raise(status::invalid_argument,
            text("node \"", node.name, "\" has the attribute \"", sorted[i]->key, "\" twice; keep one"));
    sink.message(5, "attr", [&](field_sink& entry) {
      entry.string(1, "key", sorted[i]->key);
      entry.message(2, "value", [&](field_sink& value) { sorted[i]->value.visit(attr_writer{value}); });
    });
  }
}

GRADUS_BODY void write_graph_def(field_sink& sink, const graph_def& g) {
  for (const auto& node : g.nodes) sink.message(1, "node", [&](field_sink& s) { write_node(s, node); });
  sink.message(4, "versions", [&](field_sink& s) {
    if (g.producer != 0) s.integer(1, "producer", g.producer);
    if (g.min_consumer != 0) s.integer(2, "min_consumer", g.min_consumer);
  });
}

}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY void encode_graph_def(std::vector<std::byte>& out, const graph_def& g) {
  wire_writer w(out);
  detail::wire_sink sink(w);
  detail::write_graph_def(sink, g);
}

GRADUS_BODY std::string to_pbtxt(const graph_def& g) {
  std::string out;
  detail::text_sink sink(out);
  detail::write_graph_def(sink, g);
  return out;
}

}  // namespace gradus
