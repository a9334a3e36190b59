// The bodies of partition.hpp.
#pragma once
#include "../base/body.hpp"
#include "partition.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY partition_map partition_variable(std::string_view name, const extents& dims, const cut_along& cut) {
  const std::int64_t extent = detail::extent_to_cut(dims, cut.axis);
  if (cut.parts < 1 || cut.parts > std::max<std::int64_t>(1, extent))
    raise(status::invalid_argument, text("\"", name, "\" has ", extent, " rows along axis ", cut.axis,
                                         ", which do not make ", cut.parts, " parts"));
  partition_map parts;
  slice_of slice{std::string(name), dims, {}, dims};
  slice.start.rank = dims.rank;
  for (std::int64_t i = 0; i < cut.parts; ++i) {
    slice.length.dims[cut.axis] = extent / cut.parts + (i < extent % cut.parts);
    parts.emplace(text(name, "/part_", i), slice);
    slice.start.dims[cut.axis] += slice.length[cut.axis];
  }
  return parts;
}

GRADUS_BODY partition_map with_slots(const partition_map& parts, const snapshot& content) {
  std::multimap<std::string_view, const partition_map::value_type*> by_full_name;
  for (const auto& p : parts) by_full_name.emplace(p.second.full_name, &p);
  partition_map all = parts;
  const auto add = [&all](const partition_map::value_type& p, std::string_view slot) {
    slice_of s = p.second;
    s.full_name += slot;
    all.emplace(p.first + std::string(slot), std::move(s));
  };
  for (const auto& r : content.records) {
    const auto at = r.name.rfind('/');
    if (parts.empty() || at == std::string::npos) continue;
    const auto variable = r.name.substr(0, at), slot = r.name.substr(at);
    if (const auto part = parts.find(variable); part != parts.end()) {
      if (r.dims == part->second.length) add(*part, slot);
    } else {
      const auto [first, last] = by_full_name.equal_range(variable);
      for (auto p = first; p != last; ++p)
        if (r.dims == p->second->second.full && parts.count(r.name) == 0) add(*p->second, slot);
    }
  }
  return all;
}

}  // namespace gradus

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY std::string problem_of(const slice_of& s) {
  if (s.full.rank != s.start.rank || s.full.rank != s.length.rank) return "its ranks differ";
  for (int i = 0; i < s.full.rank; ++i)
    if (s.start[i] < 0 || s.length[i] < 0 || s.start[i] > s.full[i] || s.length[i] > s.full[i] - s.start[i])
      return text("rows ", s.start[i], " to ", s.start[i], " + ", s.length[i], " of axis ", i, " are outside of ",
                  to_text(s.full));
  return {};
}

GRADUS_BODY std::string problem_of_tiling(std::vector<const slice_of*> parts) {
  const auto overlap = [](const slice_of& a, const slice_of& b) {
    for (int i = 0; i < a.full.rank; ++i)
      if (a.start[i] + a.length[i] <= b.start[i] || b.start[i] + b.length[i] <= a.start[i]) return false;
    return true;
  };
  constexpr std::size_t most = 4096;  // parts along several axes are compared with one another, hence the limit
  int cut_axes = 0, axis = 0;
  for (int i = 0; i < parts.front()->full.rank; ++i) {
    bool cut = false;
    for (const auto* p : parts) cut = cut || p->length[i] != p->full[i];
    if (cut) axis = i, ++cut_axes;
  }
  const std::string outside = "its parts do not cover it", twice = "its parts overlap";
  if (count(parts.front()->full) == 0) return {};
  if (cut_axes == 0) return parts.size() == 1 ? std::string() : twice;
  if (cut_axes == 1) {
    std::sort(parts.begin(), parts.end(), [axis](auto* a, auto* b) {
      return std::pair(a->start[axis], a->length[axis]) < std::pair(b->start[axis], b->length[axis]);
    });
    std::int64_t end = 0;
    for (const auto* p : parts) {
      if (p->start[axis] != end) return p->start[axis] < end ? twice : outside;
      end += p->length[axis];
    }
    return end == parts.front()->full[axis] ? std::string() : outside;
  }
  if (parts.size() > most)
    return text("it has ", parts.size(), " parts along several axes; at most ", most, " are read");
  std::int64_t covered = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    covered += count(parts[i]->length);
    for (std::size_t j = 0; j < i; ++j)
      if (overlap(*parts[i], *parts[j])) return twice;
  }
  return covered == count(parts.front()->full) ? std::string() : outside;
}

GRADUS_BODY std::string assemble(const std::vector<part_record>& parts, record& whole,
                                 std::deque<std::vector<std::byte>>& owned, std::span<const std::byte> file) {
  std::vector<const slice_of*> slices;
  std::uint64_t bytes = 0;
  const auto& first = *parts.front().slice;
  for (const auto& [slice, part] : parts) {
    if (slice->full != first.full || part->type != parts.front().part->type)
      return "its parts have different types or extents";
    if (auto problem = problem_of(*slice); !problem.empty()) return problem;
    if (part->dims != slice->length)
      return text("its part \"", part->name, "\" has the extents ", to_text(part->dims), ", expected ",
                  to_text(slice->length));
    if (auto problem = problem_of(*part); !problem.empty()) return problem;
    slices.push_back(slice);
  }
  if (!bytes_of(parts.front().part->type, first.full, bytes)) return "its extents are impossible";
  if (auto problem = problem_of_tiling(slices); !problem.empty()) return problem;
  whole = {first.full_name, parts.front().part->type, first.full, {}, false};

  const std::size_t width = size_of(whole.type);
  // Where in the file the tensor would begin, computed from each part.
  std::optional<std::ptrdiff_t> begin;
  bool in_place = !file.empty() && bytes != 0;
  for (const auto& [slice, part] : parts) {
    std::size_t runs = 0;
    std::ptrdiff_t offset = 0;
    each_run(*slice, width, [&](std::size_t to, std::size_t, std::size_t) {
      if (runs++ == 0) offset = static_cast<std::ptrdiff_t>(to);
    });
    if (runs == 0) continue;
    if (!in_place || runs > 1) in_place = false;
    if (!in_place) break;
    const std::ptrdiff_t at = part->bytes.data() - file.data() - offset;
    in_place = at == begin.value_or(at);
    begin = at;
  }
  if (in_place) {
    whole.bytes = file.subspan(static_cast<std::size_t>(*begin), static_cast<std::size_t>(bytes));
    return {};
  }
  auto& out = owned.emplace_back(static_cast<std::size_t>(bytes));
  for (const auto& [slice, part] : parts)
    each_run(*slice, width, [&, p = part->bytes.data()](std::size_t to, std::size_t from, std::size_t n) {
      std::memcpy(out.data() + to, p + from, n);
    });
  whole.bytes = out;
  return {};
}

}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY std::string join_parts(snapshot& content, const partition_map& parts,
                                   std::deque<std::vector<std::byte>>& owned) {
  std::map<std::string, std::vector<detail::part_record>> wholes;
  for (const auto& r : content.records)
    if (const auto found = parts.find(r.name); found != parts.end())
      wholes[found->second.full_name].push_back({&found->second, &r});
  std::map<std::string, record> made;
  for (const auto& [name, pieces] : wholes)
    if (const auto problem = detail::assemble(pieces, made[name], owned); !problem.empty())
      return text("\"", name, "\" cannot be put together: ", problem);
  std::vector<record> records;
  for (const auto& r : content.records) {
    const auto found = parts.find(r.name);
    if (found == parts.end()) {
      records.push_back(r);
    } else if (const auto whole = made.find(found->second.full_name); whole != made.end()) {
      records.push_back(std::move(whole->second));
      made.erase(whole);
    }
  }
  content.records = std::move(records);
  return {};
}

GRADUS_BODY std::string cut_parts(snapshot& content, const partition_map& parts,
                                  std::deque<std::vector<std::byte>>& owned) {
  std::map<std::string_view, const record*> there;
  for (const auto& r : content.records) there.emplace(r.name, &r);
  std::vector<record> made;
  std::map<std::string_view, bool> used;
  for (const auto& [name, slice] : parts) {
    const auto whole = there.find(slice.full_name);
    if (whole == there.end() || there.count(name) != 0) continue;
    const record& r = *whole->second;
    if (auto problem = detail::problem_of(slice); !problem.empty())
      return text("\"", name, "\" is no part of \"", r.name, "\": ", problem);
    if (r.blob || r.dims != slice.full)
      return text("\"", r.name, "\" has the extents ", to_text(r.dims), " in the file, its part \"", name, "\" is of ",
                  to_text(slice.full));
    record part{name, r.type, slice.length, {}, false};
    const std::size_t width = size_of(r.type), bytes = static_cast<std::size_t>(count(slice.length)) * width;
    std::vector<std::byte> copied;
    detail::each_run(slice, width, [&](std::size_t from, std::size_t to, std::size_t n) {
      if (n == bytes) {
        part.bytes = r.bytes.subspan(from, n);
      } else {
        copied.resize(bytes);
        std::memcpy(copied.data() + to, r.bytes.data() + from, n);
      }
    });
    if (!copied.empty()) part.bytes = owned.emplace_back(std::move(copied));
    made.push_back(std::move(part));
    used[slice.full_name] = true;
  }
  std::erase_if(content.records, [&](const record& r) { return used.count(r.name) != 0; });
  for (auto& r : made) content.records.push_back(std::move(r));
  return {};
}

GRADUS_BODY void put_partition(metadata& about, const partition_map& parts) {
  for (const auto& [name, s] : parts) {
    std::string line, ranges;
    for (int i = 0; i < s.full.rank; ++i) {
      line += text(s.full[i], " ");
      ranges += i != 0 ? ":" : "";
      ranges += s.length[i] == s.full[i] ? std::string("-") : text(s.start[i], ",", s.length[i]);
    }
    about["slice " + name] = line + ranges + " " + s.full_name;
  }
}

GRADUS_BODY std::optional<partition_map> partition_in(const metadata& about) {
  partition_map parts;
  for (const auto& [key, line] : about) {
    if (!key.starts_with("slice ")) continue;
    slice_of s;
    const char *at = line.data(), *const end = at + line.size();
    const auto number = [&](std::int64_t& n, char after) {
      const auto read = std::from_chars(at, end, n);
      if (read.ec != std::errc() || read.ptr == end || *read.ptr != after) return false;
      at = read.ptr + 1;
      return true;
    };
    // A number that is followed by a blank is an extent; then comes one range for each extent.
    for (std::int64_t n = 0; s.full.rank < max_rank && number(n, ' ');) s.full.push(n);
    for (int i = 0; i < s.full.rank; ++i) {
      const char after = i + 1 < s.full.rank ? ':' : ' ';
      std::int64_t start = 0, length = s.full[i];
      if (end - at >= 2 && at[0] == '-' && at[1] == after)
        at += 2;
      else if (!number(start, ',') || !number(length, after))
        return {};
      s.start.push(start), s.length.push(length);
    }
    s.full_name.assign(at, end);
    if (s.full.rank == 0 || s.full_name.empty() || !detail::problem_of(s).empty()) return {};
    parts.emplace(key.substr(6), std::move(s));
  }
  return parts;
}

}  // namespace gradus
