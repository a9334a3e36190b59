// The bodies of meta_graph.hpp.
#pragma once
#include "../base/body.hpp"
#include "../base/deferred.hpp"
#include "graph_def.ipp"
#include "meta_graph.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY void write_string_if(field_sink& sink, std::uint32_t number, std::string_view name,
                                 std::string_view value) {
  if (!value.empty()) sink.string(number, name, value);
}

GRADUS_BODY void write_variable(field_sink& sink, const variable_def& v) {
  const auto or_else = [&v](const std::string& given, std::string_view suffix) {
    return given.empty() ? text(v.name, suffix) : given;
  };
  sink.string(1, "variable_name", v.name + ":0");
  sink.string(2, "initializer_name", or_else(v.initializer, "/Assign"));
  sink.string(3, "snapshot_name", or_else(v.snapshot, "/read:0"));
  if (v.part)
    sink.message(4, "save_slice_info_def", [&](field_sink& s) {
      write_string_if(s, 1, "full_name", v.part->full_name);
      s.integers(2, "full_shape", v.part->full_shape);
      s.integers(3, "var_offset", v.part->offset);
      s.integers(4, "var_shape", v.part->shape);
    });
  write_string_if(sink, 6, "initial_value_name", v.initial_value);
  if (v.trainable) sink.boolean(7, "trainable", true);
}

GRADUS_BODY void write_saver(field_sink& sink, const saver_def& s) {
  write_string_if(sink, 1, "filename_tensor_name", s.filename_tensor);
  write_string_if(sink, 2, "save_tensor_name", s.save_tensor);
  write_string_if(sink, 3, "restore_op_name", s.restore_op);
  if (s.max_to_keep != 0) sink.integer(4, "max_to_keep", s.max_to_keep);
  if (s.sharded) sink.boolean(5, "sharded", true);
  if (s.keep_checkpoint_every_n_hours != 0)
    sink.real(6, "keep_checkpoint_every_n_hours", s.keep_checkpoint_every_n_hours);
  if (s.version == 0) return;
  sink.choice(7, "version", s.version, s.version == 2 ? "V2" : "V1");
}

GRADUS_BODY void write_collection(field_sink& sink, const std::string& name, const collection_def& c) {
  const int kinds = !c.nodes.empty() + !c.messages.empty() + !c.integers.empty() + !c.reals.empty();
  if (kinds > 1)
    raise(status::invalid_argument, text("the collection \"", name, "\" holds values of ", kinds,
                                         " kinds; put them into collections of their own"));
  if (!c.messages.empty())
    return sink.message(2, "bytes_list", [&](field_sink& s) {
      for (const auto& m : c.messages) s.string(1, "value", {reinterpret_cast<const char*>(m.data()), m.size()});
    });
  if (!c.integers.empty())
    return sink.message(3, "int64_list", [&](field_sink& s) { s.integers(1, "value", c.integers); });
  if (!c.reals.empty())
    return sink.message(4, "float_list",
                        [&](field_sink& s) { s.reals(1, "value", const_span(c.reals.data(), c.reals.size())); });
  sink.message(1, "node_list", [&](field_sink& s) {
    for (const auto& n : c.nodes) s.string(1, "value", n);
  });
}

GRADUS_BODY void write_tensor_infos(field_sink& sink, std::uint32_t number, std::string_view field,
                                    const std::map<std::string, tensor_info>& infos) {
  for (const auto& [name, info] : infos)
    sink.message(number, field, [&](field_sink& entry) {
      entry.string(1, "key", name);
      entry.message(2, "value", [&](field_sink& value) {
        value.string(1, "name", info.tensor);
        value.type(2, "dtype", info.type);
        value.message(3, "tensor_shape",
                      [&](field_sink& s) { write_shape(s, info.shape.dims, info.shape.unknown_rank); });
      });
    });
}

GRADUS_BODY void write_meta_graph(field_sink& sink, const meta_graph& m) {
  sink.message(1, "meta_info_def", [&](field_sink& s) {
    for (const auto& tag : m.tags) s.string(4, "tags", tag);
    write_string_if(s, 5, "tensorflow_version", m.tensorflow_version);
  });
  sink.message(2, "graph_def", [&](field_sink& s) { write_graph_def(s, m.graph); });
  if (m.saver) sink.message(3, "saver_def", [&](field_sink& s) { write_saver(s, *m.saver); });
  for (const auto& [name, c] : m.collections)
    sink.message(4, "collection_def", [&](field_sink& entry) {
      entry.string(1, "key", name);
      entry.message(2, "value", [&](field_sink& value) { write_collection(value, name, c); });
    });
  for (const auto& [name, signature] : m.signatures)
    sink.message(5, "signature_def", [&](field_sink& entry) {
      entry.string(1, "key", name);
      entry.message(2, "value", [&](field_sink& value) {
        write_tensor_infos(value, 1, "inputs", signature.inputs);
        write_tensor_infos(value, 2, "outputs", signature.outputs);
        write_string_if(value, 3, "method_name", signature.method);
      });
    });
  for (const asset_def& asset : m.assets)
    sink.message(6, "asset_file_def", [&](field_sink& a) {
      a.message(1, "tensor_info", [&](field_sink& t) { write_string_if(t, 1, "name", asset.tensor); });
      write_string_if(a, 2, "filename", asset.filename);
    });
}

}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY std::vector<std::byte> encode_variable_def(const variable_def& v) {
  std::vector<std::byte> out;
  wire_writer w(out);
  detail::wire_sink sink(w);
  detail::write_variable(sink, v);
  return out;
}

GRADUS_BODY void add_variable(meta_graph& m, const variable_def& v) {
  const auto message = encode_variable_def(v);
  m.collections["variables"].messages.push_back(message);
  if (v.trainable) m.collections["trainable_variables"].messages.push_back(message);
}

GRADUS_BODY void encode_meta_graph(std::vector<std::byte>& out, const meta_graph& m) {
  wire_writer w(out);
  detail::wire_sink sink(w);
  detail::write_meta_graph(sink, m);
}

GRADUS_BODY std::string to_pbtxt(const meta_graph& m) {
  std::string out;
  detail::text_sink sink(out);
  detail::write_meta_graph(sink, m);
  return out;
}

GRADUS_BODY void encode_saved_model(std::vector<std::byte>& out, std::span<const meta_graph> graphs) {
  wire_writer w(out);
  detail::wire_sink sink(w);
  sink.integer(1, "saved_model_schema_version", 1);
  for (const meta_graph& m : graphs)
    sink.message(2, "meta_graphs", [&](detail::field_sink& s) { detail::write_meta_graph(s, m); });
}

}  // namespace gradus
