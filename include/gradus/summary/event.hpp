// TensorBoard's files hold events, one per record. The bytes are those of TensorFlow 1.x: scalars in the simple_value
// form, fields in ascending number. docs/formats/events.md walks through them.
//
// Each kind of event of a training run has a function that writes it, which appends to a vector and allocates only if
// it has to grow. Reading gives an `event` of any kind; a kind without a type in this library is kept as bytes.
#pragma once
#include "../base/build.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../base/error.hpp"
#include "../store/reader_limits.hpp"

namespace gradus::inline GRADUS_BUILD {

class wire_reader;  // store/wire.hpp
class wire_writer;

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

// The event of a session. Viewers drop all points at or after a `start` that is not the first (see writer.hpp).
enum class session_log_status : std::int32_t { unspecified = 0, start = 1, stop = 2, checkpoint = 3 };

// A scalar to be written into an event.
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
void event_head(wire_writer& w, double wall_time, std::int64_t step);
void session_log_fields(wire_writer& w, session_log_status status, std::string_view path, std::string_view msg);
// Writes fields in ascending number: a tensor comes after node_name.
void summary_fields(wire_writer& summary, std::span<const summary_value> values);
}  // namespace detail

// Writes the first event of a file. Without it viewers fall back to an older rule for restarts.
void encode_version(std::vector<std::byte>& out, double wall_time);

// Writes scalars of one step in one event. Zeros are written (a point of value 0 is a point), and so are NaN and
// infinities.
void encode_scalars(std::vector<std::byte>& out, double wall_time, std::int64_t step,
                    std::span<const scalar_value> values);

// Writes values of any kind (summary/values.hpp makes them) of one step, in one event.
void encode_summary(std::vector<std::byte>& out, double wall_time, std::int64_t step,
                    std::span<const summary_value> values);

void encode_session_log(std::vector<std::byte>& out, double wall_time, std::int64_t step, session_log_status status,
                        std::string_view checkpoint_path = {}, std::string_view msg = {});

// Writes a serialized GraphDef (summary/graph_def.hpp makes one).
void encode_graph(std::vector<std::byte>& out, double wall_time, std::int64_t step,
                  std::span<const std::byte> graph_def);

// Writes a serialized RunMetadata (summary/run_metadata.hpp makes one), under a name that the viewer lists.
void encode_tagged_run_metadata(std::vector<std::byte>& out, double wall_time, std::int64_t step, std::string_view tag,
                                std::span<const std::byte> run_metadata);

// Encodes any event, as `decode_event` returns it.
void encode_event(std::vector<std::byte>& out, const event& e);

namespace detail {
// Appends bytes of a message field that occurs again: protobuf merges such messages, which is the same as joining their
// bytes.
void join(std::vector<std::byte>& to, std::span<const std::byte> more);

summary_value decode_value(wire_reader r);
}  // namespace detail

// Reads one event. Unknown fields are skipped. Raises data_loss for malformed bytes, resource_exhausted for more values
// than the limits allow.
event decode_event(std::span<const std::byte> payload, const reader_limits& limits = {});

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "event.ipp"
#endif
