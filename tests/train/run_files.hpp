// What a training run left behind, looked at from outside: the records of its checkpoints, and the curves that
// TensorBoard would show.
#pragma once
#include <gradus/codec/flat.hpp>
#include <gradus/codec/state_file.hpp>
#include <gradus/summary/reader.hpp>
#include <gradus/summary/writer.hpp>

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace run_files {

// --- checkpoints: record by record, so that a difference has a name ---

struct content {
  std::int64_t step = -1;
  std::map<std::string, std::vector<std::byte>> records;  // by "name dtype extents"
};

template <class FileSystem>
content read_checkpoint(const FileSystem& fs, const std::string& path) {
  const auto bytes = gradus::read_file(fs, path);
  const auto file = gradus::decode_bytes(gradus::flat_binary{}, bytes);
  if (!file.ok()) gradus::raise(file.kind, gradus::text(path, ": ", file.problem));
  content out;
  out.step = file.content.step;
  for (const auto& r : file.content.records)
    out.records[gradus::text(r.name, ' ', gradus::name_of(r.type), ' ', gradus::to_text(r.dims))] = {r.bytes.begin(),
                                                                                                     r.bytes.end()};
  return out;
}
template <class FileSystem>
content newest_checkpoint(const FileSystem& fs, const std::string& directory) {
  const auto state = gradus::read_state_file(fs, directory);
  return state ? read_checkpoint(fs, gradus::join_path(directory, state->newest)) : content{};
}

// The names of what differs, or nothing.
inline std::string difference(const content& a, const content& b) {
  std::string out;
  if (a.step != b.step) out += gradus::text("step ", a.step, " and ", b.step, "; ");
  for (const auto& [name, bytes] : a.records) {
    const auto other = b.records.find(name);
    if (other == b.records.end())
      out += gradus::text(name, " is in one only; ");
    else if (other->second != bytes)
      out += gradus::text(name, " differs; ");
  }
  for (const auto& entry : b.records)
    if (a.records.count(entry.first) == 0) out += gradus::text(entry.first, " is in the other only; ");
  return out;
}

// --- TensorBoard's rules of reading: the files of a directory in the order of their names, each up to its end or its
// torn last record; a START that is not the directory's first drops every point at or after its step, of all tags.

struct point {
  std::int64_t step;
  float value;
  bool operator==(const point&) const = default;
};
using curves = std::map<std::string, std::vector<point>>;

template <class FileSystem>
curves read_curves(const FileSystem& fs, const std::string& directory) {
  std::vector<std::string> names;
  if (const int e = fs.list(directory, names); e != 0) gradus::raise({e, "list", directory});
  std::sort(names.begin(), names.end());
  curves out;
  bool started = false;
  for (const auto& name : names) {
    if (name.find("tfevents") == std::string::npos) continue;
    gradus::summary_iterator in(gradus::join_path(directory, name), fs);
    for (gradus::event e; in.next(e);) {
      if (e.what == gradus::event_kind::session_log && e.log.status == gradus::session_log_status::start) {
        if (started)
          for (auto& [tag, points] : out) std::erase_if(points, [&](const point& p) { return p.step >= e.step; });
        started = true;
      }
      for (const auto& v : e.values) out[v.tag].push_back({e.step, v.simple_value});
    }
  }
  return out;
}
inline std::vector<std::int64_t> steps_of(const curves& all, const std::string& tag) {
  std::vector<std::int64_t> out;
  if (const auto found = all.find(tag); found != all.end())
    for (const auto& p : found->second) out.push_back(p.step);
  return out;
}
// Bit for bit, so that NaN would not hide.
inline bool same_points(const std::vector<point>& a, const std::vector<point>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const point& p, const point& q) {
    return p.step == q.step && std::memcmp(&p.value, &q.value, sizeof p.value) == 0;
  });
}

}  // namespace run_files
