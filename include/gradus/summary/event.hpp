// Events: what TensorBoard's files hold, one per record. The bytes are those of TensorFlow 1.x: scalars in the
// simple_value form, fields in ascending number. docs/formats/events.md walks through them.
//
// Writing what a training run writes has a function each, which appends to a vector and allocates only if it has to
// grow. Reading gives an `event`, whatever it holds; what this library has no type for is kept as bytes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../store/reader_limits.hpp"
#include "../store/wire.hpp"

namespace gradus {

// Protobuf's numbers of Event.what's members; `none` if an event has none.
enum class event_kind : std::uint8_t {
  none = 0,
  file_version = 3,         // the first event of a file
  graph_def = 4,            // `bytes` is a serialized GraphDef
  summary = 5,              // `values`
  log_message = 6,          // `bytes` is a serialized LogMessage; deprecated
  session_log = 7,          // `log`
  tagged_run_metadata = 8,  // `bytes` is a serialized TaggedRunMetadata
  meta_graph_def = 9        // `bytes` is a serialized MetaGraphDef
};

// Protobuf's numbers of Summary.Value.value's members.
enum class value_kind : std::uint8_t {
  none = 0,
  simple_value = 2,
  old_histogram = 3,
  image = 4,
  histogram = 5,
  audio = 6,
  tensor = 8
};

// What happened to a session. Viewers drop all points at or after a `start` that is not the first (see writer.hpp).
enum class session_log_status : std::int32_t { unspecified = 0, start = 1, stop = 2, checkpoint = 3 };

// A scalar on its way into an event.
struct scalar_value {
  std::string_view tag;
  float value = 0;
};

struct summary_value {
  std::string tag;
  std::string node_name;  // very old files
  value_kind kind = value_kind::none;
  float simple_value = 0;           // of simple_value
  std::vector<std::byte> bytes;     // of every other kind: the serialized message
  std::vector<std::byte> metadata;  // serialized SummaryMetadata; empty if absent

  bool operator==(const summary_value&) const = default;
};

struct session_log {
  session_log_status status = session_log_status::unspecified;
  std::string checkpoint_path;
  std::string msg;

  bool operator==(const session_log&) const = default;
};

struct event {
  double wall_time = 0;  // seconds since the epoch
  std::int64_t step = 0;
  event_kind what = event_kind::none;
  std::string file_version;
  std::vector<summary_value> values;
  session_log log;
  std::vector<std::byte> bytes;

  bool operator==(const event&) const = default;
};

inline constexpr std::string_view event_file_version = "brain.Event:2";

namespace detail {
inline void event_head(wire_writer& w, double wall_time, std::int64_t step) {
  w.float64_if(1, wall_time);
  w.integer_if(2, step);
}
inline void session_log_fields(wire_writer& w, session_log_status status, std::string_view path, std::string_view msg) {
  w.integer_if(1, static_cast<std::int64_t>(status));
  w.bytes_if(2, path);
  w.bytes_if(3, msg);
}
// Fields in ascending number: a tensor stands behind node_name.
inline void summary_fields(wire_writer& summary, std::span<const summary_value> values) {
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
}  // namespace detail

// The first event of a file. Without it viewers fall back to an older rule for restarts.
inline void encode_version(std::vector<std::byte>& out, double wall_time) {
  wire_writer w(out);
  detail::event_head(w, wall_time, 0);
  w.bytes(static_cast<std::uint32_t>(event_kind::file_version), event_file_version);
}

// Scalars of one step in one event. Zeros are written (a point of value 0 is a point), NaN and infinities too.
inline void encode_scalars(std::vector<std::byte>& out, double wall_time, std::int64_t step,
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

// Values of any kind (summary/values.hpp makes them) of one step, in one event.
inline void encode_summary(std::vector<std::byte>& out, double wall_time, std::int64_t step,
                           std::span<const summary_value> values) {
  wire_writer w(out);
  detail::event_head(w, wall_time, step);
  w.message(static_cast<std::uint32_t>(event_kind::summary),
            [&](wire_writer& summary) { detail::summary_fields(summary, values); });
}

inline void encode_session_log(std::vector<std::byte>& out, double wall_time, std::int64_t step,
                               session_log_status status, std::string_view checkpoint_path = {},
                               std::string_view msg = {}) {
  wire_writer w(out);
  detail::event_head(w, wall_time, step);
  w.message(static_cast<std::uint32_t>(event_kind::session_log),
            [&](wire_writer& log) { detail::session_log_fields(log, status, checkpoint_path, msg); });
}

// A serialized GraphDef (summary/graph_def.hpp makes one).
inline void encode_graph(std::vector<std::byte>& out, double wall_time, std::int64_t step,
                         std::span<const std::byte> graph_def) {
  wire_writer w(out);
  detail::event_head(w, wall_time, step);
  w.bytes(static_cast<std::uint32_t>(event_kind::graph_def), graph_def);
}

// A serialized RunMetadata (summary/run_metadata.hpp makes one), under a name that the viewer lists.
inline void encode_tagged_run_metadata(std::vector<std::byte>& out, double wall_time, std::int64_t step,
                                       std::string_view tag, std::span<const std::byte> run_metadata) {
  wire_writer w(out);
  detail::event_head(w, wall_time, step);
  w.message(static_cast<std::uint32_t>(event_kind::tagged_run_metadata), [&](wire_writer& tagged) {
    tagged.bytes_if(1, tag);
    tagged.bytes_if(2, run_metadata);
  });
}

// Any event, as `decode_event` gives it.
inline void encode_event(std::vector<std::byte>& out, const event& e) {
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
    w.message(member, [&](wire_writer& summary) { detail::summary_fields(summary, e.values); });
    break;
  }
}

namespace detail {
// A message seen twice is one message: protobuf merges them, and joining the bytes is how.
inline void join(std::vector<std::byte>& to, std::span<const std::byte> more) {
  to.insert(to.end(), more.begin(), more.end());
}

inline summary_value decode_value(wire_reader r) {
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
}  // namespace detail

// Reads one event. Unknown fields are skipped; malformed bytes are status::data_loss, more values than the limits allow
// status::resource_exhausted.
inline event decode_event(std::span<const std::byte> payload, const reader_limits& limits = {}) {
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
