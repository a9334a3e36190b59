// The runs below a log directory, read by TensorBoard's rules (docs/formats/events.md): every directory that holds an
// event file is a run; its files are read in the order of their names, each up to its end or its first damage; a START
// that is not the run's first drops the points at or after its step.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <gradus/store/wire.hpp>
#include <gradus/summary/reader.hpp>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "../checkpoint/limits.hpp"

namespace events {

struct point {
  std::int64_t step;
  double wall_time;
  double value;  // of a scalar
};
// Points at or after a step are dropped, those that came before it. Each point and each drop has a number in the order
// of the files, so that one pass at the end does them all, however many there are.
struct drop {
  std::uint64_t order;
  std::int64_t step;
};
struct series {
  std::string kind;  // scalars, histograms, images, audio, or the plugin that the metadata names
  std::vector<point> points;
  std::vector<std::uint64_t> orders = {};  // of the points, while they are read
  std::vector<drop> drops = {};
};
struct run {
  std::string name;  // its directory's, below the one given; "." for that itself
  std::vector<std::string> files;
  std::map<std::string, series> tags;
  std::vector<std::string> notes;   // files whose last record is not whole: killed, or still being written
  std::vector<std::string> damage;  // what could not be read
};

inline bool is_event_file(std::string_view name) {
  return name.find("tfevents") != std::string_view::npos && !name.ends_with(".profile-empty");
}

// A scalar in a tensor, as TensorFlow 2 and PyTorch's newer writers have it.
inline double tensor_scalar(std::span<const std::byte> tensor) {
  using gradus::field, gradus::wire;
  double value = std::nan("");
  std::vector<float> floats;
  std::vector<double> doubles;
  for (gradus::wire_reader r(tensor); r.next();) switch (r.key()) {
    case field(4, wire::length): {
      const auto b = r.bytes();
      float f = 0;
      double d = 0;
      if (b.size() == sizeof f) std::memcpy(&f, b.data(), sizeof f), value = f;
      if (b.size() == sizeof d) std::memcpy(&d, b.data(), sizeof d), value = d;
      break;
    }
    case field(5, wire::length):
    case field(5, wire::fixed32): r.repeated(floats); break;
    case field(6, wire::length):
    case field(6, wire::fixed64): r.repeated(doubles); break;
    default: break;
    }
  if (!floats.empty()) value = floats.back();
  if (!doubles.empty()) value = doubles.back();
  return value;
}

inline std::string plugin_of(std::span<const std::byte> metadata) {
  for (gradus::wire_reader r(metadata); r.next();)
    if (r.key() == gradus::field(1, gradus::wire::length))
      for (gradus::wire_reader data = r.message(); data.next();)
        if (data.key() == gradus::field(1, gradus::wire::length)) return std::string(data.string());
  return {};
}

inline std::string kind_of(const gradus::summary_value& v) {
  using gradus::value_kind;
  switch (v.kind) {
  case value_kind::simple_value: return "scalars";
  case value_kind::histogram: return "histograms";
  case value_kind::image: return "images";
  case value_kind::audio: return "audio";
  default: break;
  }
  const std::string plugin = plugin_of(v.metadata);
  return plugin.empty() ? "other" : plugin;
}

// What is left of a series; `all` are the drops of the whole run.
inline void apply_drops(series& s, const std::vector<drop>& all) {
  std::int64_t least = INT64_MAX;  // of the drops behind the point
  bool any = false;
  std::size_t own = s.drops.size(), every = all.size(), kept = s.points.size();
  for (std::size_t i = s.points.size(); i-- > 0;) {
    for (; own > 0 && s.drops[own - 1].order > s.orders[i]; any = true) least = std::min(least, s.drops[--own].step);
    for (; every > 0 && all[every - 1].order > s.orders[i]; any = true) least = std::min(least, all[--every].step);
    if (!any || s.points[i].step < least) s.points[--kept] = s.points[i];
  }
  s.points.erase(s.points.begin(), s.points.begin() + static_cast<std::ptrdiff_t>(kept));
  s.orders = {}, s.drops = {};
}

inline void read_files(run& r) {
  bool versioned = false, started = false;
  std::int64_t last = 0;
  std::uint64_t order = 0;
  std::vector<drop> drops;
  for (const auto& path : r.files) try {
      gradus::summary_iterator in(path, gradus::posix{}, tool::limits);
      for (const auto& e : in) {
        versioned = versioned || e.what == gradus::event_kind::file_version;
        if (versioned && e.what == gradus::event_kind::session_log &&
            e.log.status == gradus::session_log_status::start) {
          if (started) drops.push_back({++order, e.step});
          started = true;
        }
        for (const auto& v : e.values) {
          if (r.tags.size() >= tool::limits.entries && !r.tags.contains(v.tag))
            gradus::raise(gradus::status::resource_exhausted,
                          gradus::text('"', path, "\": ", gradus::detail::too_many_entries("tags", tool::limits)));
          auto& s = r.tags[v.tag];
          if (s.kind.empty()) s.kind = kind_of(v);
          if (!versioned && e.step < last) s.drops.push_back({++order, e.step});
          const bool in_tensor = s.kind == "scalars" && v.kind == gradus::value_kind::tensor;
          s.points.push_back({e.step, e.wall_time, in_tensor ? tensor_scalar(v.bytes) : v.simple_value});
          s.orders.push_back(++order);
        }
        if (!e.values.empty()) last = e.step;
      }
      if (in.truncated()) r.notes.push_back(gradus::text("\"", path, "\" ends inside a record"));
    } catch (const gradus::error& e) {
      r.damage.push_back(e.what());
    }
  for (auto& [tag, s] : r.tags) apply_drops(s, drops);
}

// All runs below a directory, or the one file given; sorted by name. Raises not_found where there is none.
inline std::vector<run> read_runs(const std::string& path) {
  namespace fs = std::filesystem;
  std::map<std::string, run> found;
  if (fs::is_regular_file(path)) {
    found["."].files.push_back(path);
  } else if (fs::is_directory(path)) {
    for (const auto& entry : fs::recursive_directory_iterator(path, fs::directory_options::skip_permission_denied))
      if (is_event_file(entry.path().filename().string()) && entry.is_regular_file()) {
        const auto name = entry.path().parent_path().lexically_relative(fs::path(path)).generic_string();
        found[name.empty() ? "." : name].files.push_back(entry.path().string());
      }
  }
  if (found.empty())
    gradus::raise(gradus::status::not_found, gradus::text("no event file (events.out.tfevents...) at or below \"", path,
                                                          "\"; give the directory that a trainer writes to"));
  std::vector<run> runs;
  for (auto& [name, r] : found) {
    r.name = name;
    std::sort(r.files.begin(), r.files.end());
    read_files(r);
    runs.push_back(std::move(r));
  }
  return runs;
}

}  // namespace events
