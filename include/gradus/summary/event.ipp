// The bodies of event.hpp.
#pragma once
#include "../base/body.hpp"
#include "../store/wire.hpp"
#include "event.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY void event_head(wire_writer& w, double wall_time, std::int64_t step) {
  w.float64_if(1, wall_time);
  w.integer_if(2, step);
}

GRADUS_BODY void session_log_fields(wire_writer& w, session_log_status status, std::string_view path,
                                    std::string_view msg) {
  w.integer_if(1, static_cast<std::int64_t>(status));
  w.bytes_if(2, path);
  w.bytes_if(3, msg);
}

GRADUS_BODY void summary_fields(wire_writer& summary, std::span<const summary_value> values) {
  for (const auto& v : values)
    summary.message(1, [&](wire_writer& value) {
      value.bytes_if(1, v.tag);
      const auto number = static_cast<std::uint32_t>(v.kind);
      if (v.kind == value_kind::simple_value)
        value.float32(number, v.simple_value);
      else if (v.kind != value_kind::none && v.kind != value_kind::tensor)
        value.bytes(number, v.bytes);
      value.bytes_if(7, v.node_name);
      if (v.kind == value_kind::tensor) value.bytes(number, v.bytes);
      value.bytes_if(9, v.metadata);
    });
}

}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY void encode_version(std::vector<std::byte>& out, double wall_time) {
  wire_writer w(out);
  detail::event_head(w, wall_time, 0);
  w.bytes(static_cast<std::uint32_t>(event_kind::file_version), event_file_version);
}

GRADUS_BODY void encode_scalars(std::vector<std::byte>& out, double wall_time, std::int64_t step,
                                std::span<const scalar_value> values) {
  wire_writer w(out);
  detail::event_head(w, wall_time, step);
  w.message(static_cast<std::uint32_t>(event_kind::summary), [&](wire_writer& summary) {
    for (const auto& v : values)
      summary.message(1, [&](wire_writer& value) {
        value.bytes_if(1, v.tag);
        value.float32(static_cast<std::uint32_t>(value_kind::simple_value), v.value);
      });
  });
}

GRADUS_BODY void encode_summary(std::vector<std::byte>& out, double wall_time, std::int64_t step,
                                std::span<const summary_value> values) {
  wire_writer w(out);
  detail::event_head(w, wall_time, step);
  w.message(static_cast<std::uint32_t>(event_kind::summary),
            [&](wire_writer& summary) { detail::summary_fields(summary, values); });
}

GRADUS_BODY void encode_session_log(std::vector<std::byte>& out, double wall_time, std::int64_t step,
                                    session_log_status status, std::string_view checkpoint_path, std::string_view msg) {
  wire_writer w(out);
  detail::event_head(w, wall_time, step);
  w.message(static_cast<std::uint32_t>(event_kind::session_log),
            [&](wire_writer& log) { detail::session_log_fields(log, status, checkpoint_path, msg); });
}

GRADUS_BODY void encode_graph(std::vector<std::byte>& out, double wall_time, std::int64_t step,
                              std::span<const std::byte> graph_def) {
  wire_writer w(out);
  detail::event_head(w, wall_time, step);
  w.bytes(static_cast<std::uint32_t>(event_kind::graph_def), graph_def);
}

GRADUS_BODY void encode_tagged_run_metadata(std::vector<std::byte>& out, double wall_time, std::int64_t step,
                                            std::string_view tag, std::span<const std::byte> run_metadata) {
  wire_writer w(out);
  detail::event_head(w, wall_time, step);
  w.message(static_cast<std::uint32_t>(event_kind::tagged_run_metadata), [&](wire_writer& tagged) {
    tagged.bytes_if(1, tag);
    tagged.bytes_if(2, run_metadata);
  });
}

GRADUS_BODY void encode_event(std::vector<std::byte>& out, const event& e) {
  wire_writer w(out);
  detail::event_head(w, e.wall_time, e.step);
  const auto member = static_cast<std::uint32_t>(e.what);
  switch (e.what) {
  case event_kind::none: break;
  case event_kind::file_version: w.bytes(member, e.file_version); break;
  case event_kind::graph_def:
  case event_kind::log_message:
  case event_kind::tagged_run_metadata:
  case event_kind::meta_graph_def: w.bytes(member, e.bytes); break;
  case event_kind::session_log:
    w.message(member, [&](wire_writer& log) {
      detail::session_log_fields(log, e.log.status, e.log.checkpoint_path, e.log.msg);
    });
    break;
  case event_kind::summary:
    w.message(member, [&](wire_writer& summary) {
      detail::summary_fields(summary, {e.values.data(), e.values.size()});
    });
    break;
  }
}

}  // namespace gradus

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY void join(std::vector<std::byte>& to, std::span<const std::byte> more) {
  to.insert(to.end(), more.begin(), more.end());
}

GRADUS_BODY summary_value decode_value(wire_reader r) {
  summary_value v;
  const auto member = [&](value_kind kind) {  // the last member of a oneof wins
    if (v.kind != kind) v.bytes.clear(), v.simple_value = 0;
    v.kind = kind;
  };
  while (r.next()) switch (r.key()) {
    case field(1, wire::length): v.tag = r.string(); break;
    case field(2, wire::fixed32): member(value_kind::simple_value), v.simple_value = r.float32(); break;
    case field(3, wire::length):
      member(value_kind::old_histogram);
      v.bytes.clear();  // a bytes field: the last one wins
      join(v.bytes, r.bytes());
      break;
    case field(4, wire::length):
    case field(5, wire::length):
    case field(6, wire::length):
    case field(8, wire::length):
      member(static_cast<value_kind>(r.number()));
      join(v.bytes, r.bytes());
      break;
    case field(7, wire::length): v.node_name = r.string(); break;
    case field(9, wire::length): join(v.metadata, r.bytes()); break;
    default: break;
    }
  return v;
}

}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY event decode_event(std::span<const std::byte> payload, const reader_limits& limits) {
  event e;
  const auto member = [&](event_kind kind) {
    if (e.what != kind) e.file_version.clear(), e.values.clear(), e.log = {}, e.bytes.clear();
    e.what = kind;
  };
  for (wire_reader r(payload); r.next();) switch (r.key()) {
    case field(1, wire::fixed64): e.wall_time = r.float64(); break;
    case field(2, wire::varint): e.step = r.integer(); break;
    case field(3, wire::length): member(event_kind::file_version), e.file_version = r.string(); break;
    case field(4, wire::length):
    case field(9, wire::length):
      member(static_cast<event_kind>(r.number()));
      e.bytes.clear();
      detail::join(e.bytes, r.bytes());
      break;
    case field(6, wire::length):
    case field(8, wire::length):
      member(static_cast<event_kind>(r.number()));
      detail::join(e.bytes, r.bytes());
      break;
    case field(5, wire::length):
      member(event_kind::summary);
      for (wire_reader summary = r.message(); summary.next();)
        if (summary.key() == field(1, wire::length)) {
          if (e.values.size() == limits.entries)
            raise(status::resource_exhausted, detail::too_many_entries("values", limits));
          e.values.push_back(detail::decode_value(summary.message()));
        }
      break;
    case field(7, wire::length):
      member(event_kind::session_log);
      for (wire_reader log = r.message(); log.next();) switch (log.key()) {
        case field(1, wire::varint): e.log.status = static_cast<session_log_status>(log.integer()); break;
        case field(2, wire::length): e.log.checkpoint_path = log.string(); break;
        case field(3, wire::length): e.log.msg = log.string(); break;
        default: break;
        }
      break;
    default: break;
    }
  return e;
}

}  // namespace gradus
