// The bodies of bundle_decode.hpp.
#pragma once
#include "../base/body.hpp"
#include "../store/parallel.hpp"
#include "bundle_decode.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY decoded bundle_decoder::run() {
  if (read_index() && open_shards() && check_places() && take_tensors() && take_wholes() && finish())
    return std::move(out_);
  decoded refused;
  refused.kind = out_.kind, refused.problem = std::move(out_.problem);
  return refused;
}

GRADUS_BODY bool bundle_decoder::refuse(std::string why, status kind) {
  out_.kind = kind, out_.problem = std::move(why);
  return false;
}

GRADUS_BODY bool bundle_decoder::refuse_tensor(const item& i, const std::string& why) {
  return refuse(text("\"", shown(i.key), "\" in its .index ", why));
}

GRADUS_BODY std::string bundle_decoder::shown(std::string_view key) {
  if (!key.starts_with('\0')) return std::string(key);
  std::string_view rest = key.substr(1);
  std::string name;
  return ordered_code::take_string(rest, name) ? "a slice of " + name : "a slice";
}

GRADUS_BODY bool bundle_decoder::read_index() {
  std::span<const std::byte> file;
  if (const auto p = files_.open(".index", file)) {
    out_ = unopened(p);
    std::span<const std::byte> old;
    if (p.error == ENOENT && !files_.open("", old))
      return refuse(
          "it has no .index, only a file of its own name: a checkpoint of TensorFlow's first format (V1), "
          "which this library does not read; save it again with a Saver of write_version V2",
          status::failed_precondition);
    return false;
  }
  sorted_table table;
  if (auto problem = table.open(file); !problem.empty()) return refuse(text("its .index is damaged: ", problem));
  bool first = true;
  // Keys share bytes in the file but not in memory, so their total length is limited to more than any table of
  // TensorFlow's has.
  std::uint64_t key_bytes = 0;
  bundle_room room{files_.limits.entries};
  status kind = status::data_loss;
  auto problem = table.each([&](std::string_view key, std::span<const std::byte> value) -> std::string {
    if (std::exchange(first, false))
      return key.empty() ? read_bundle_header(value, shards_, kind) : "its first entry is not its header";
    key_bytes += key.size();
    if (key_bytes > file.size() + (std::size_t{8} << 20)) return "its names are too long to be any";
    item i{std::string(key), {}};
    const auto why = read_bundle_entry(value, i.entry, &room);
    if (room.exceeded) {
      kind = status::resource_exhausted;
      return too_many_entries("slices of tensors and extents in them", files_.limits);
    }
    if (!why.empty()) return text("\"", shown(key), "\" ", why);
    if (i.entry.slices.empty() && i.entry.shard >= shards_)
      return text("\"", shown(key), "\" is in shard ", i.entry.shard, " of ", shards_);
    if (items_.size() == files_.limits.entries) {
      kind = status::resource_exhausted;
      return too_many_entries("tensors", files_.limits);
    }
    items_.push_back(std::move(i));
    return {};
  });
  if (problem.empty() && first) problem = "it has no header";
  return problem.empty() || refuse(text("its .index cannot be used: ", problem), kind);
}

GRADUS_BODY bool bundle_decoder::open_shards() {
  for (std::int64_t s = 0; s < shards_; ++s) {
    auto& bytes = data_.emplace_back();
    if (const auto p = files_.open(bundle_data_suffix(s, shards_), bytes)) {
      out_ = unopened(p);
      if (p.error == ENOENT) out_.kind = status::data_loss;  // the index exists, so this is an incomplete checkpoint
      return false;
    }
  }
  return true;
}

GRADUS_BODY bool bundle_decoder::check_places() {
  std::vector<const item*> sorted;
  for (const auto& i : items_) {
    const auto& e = i.entry;
    std::uint64_t n = 0, bytes = 0;
    if (!elements_of(e, n)) return refuse_tensor(i, "has impossible extents");
    if (!e.slices.empty()) {
      if (i.key.front() == '\0') return refuse_tensor(i, "is a slice that has slices");
      if (e.size != 0 || e.offset != 0 || e.shard != 0 || e.crc != 0)
        return refuse_tensor(i, "has slices, and bytes of its own");
      if (e.type == bundle_strings || e.type == bundle_variant)
        return refuse_tensor(i, "has slices, which strings have not");
      continue;
    }
    const auto size = static_cast<std::uint64_t>(e.size);
    const auto in_file = data_[static_cast<std::size_t>(e.shard)].size();
    if (e.type == bundle_strings
            ? size < n || size - n < 4
            : bundle_width(e.type) != 0 && (__builtin_mul_overflow(n, bundle_width(e.type), &bytes) || size != bytes))
      return refuse_tensor(i,
                           text("claims ", size, " bytes, which ", n, " elements of dtype ", e.type, " do not take"));
    if (static_cast<std::uint64_t>(e.offset) > in_file || size > in_file - static_cast<std::uint64_t>(e.offset))
      return refuse_tensor(i, text("claims ", size, " bytes from ", e.offset, " on, but ",
                                   bundle_data_suffix(e.shard, shards_), " has ", in_file));
    if (size != 0) sorted.push_back(&i);
  }
  std::sort(sorted.begin(), sorted.end(), [](const item* a, const item* b) {
    return std::pair(a->entry.shard, a->entry.offset) < std::pair(b->entry.shard, b->entry.offset);
  });
  for (std::size_t k = 1; k < sorted.size(); ++k) {
    const auto &a = sorted[k - 1]->entry, &b = sorted[k]->entry;
    if (a.shard == b.shard && b.offset - a.offset < a.size)
      return refuse_tensor(*sorted[k], text("shares bytes with \"", shown(sorted[k - 1]->key), "\""));
  }
  return true;
}

GRADUS_BODY std::span<const std::byte> bundle_decoder::bytes_at(const bundle_entry& e) const {
  return data_[static_cast<std::size_t>(e.shard)].subspan(static_cast<std::size_t>(e.offset),
                                                          static_cast<std::size_t>(e.size));
}

GRADUS_BODY bool bundle_decoder::refuse_data(const item& i, const std::string& why) {
  return refuse(text("\"", shown(i.key), "\" in its ", bundle_data_suffix(i.entry.shard, shards_), " at ",
                     i.entry.offset, ": ", why));
}

GRADUS_BODY record bundle_decoder::record_of(const item& i) {
  const auto type = static_cast<dtype>(i.entry.type);
  if (size_of(type) == 0 || i.entry.dims.size() > static_cast<std::size_t>(max_rank))
    return opaque_record(i.key, bundle_type_name(i.entry.type), i.entry.dims, {});
  record r;
  r.name = i.key, r.type = type;
  for (const std::int64_t d : i.entry.dims) r.dims.push(d);
  return r;
}

GRADUS_BODY bool bundle_decoder::take_tensors() {
  for (const auto& i : items_) {
    const auto& e = i.entry;
    if (!e.slices.empty()) continue;
    const auto bytes = bytes_at(e);
    if (e.type == bundle_strings) {
      if (i.key.front() == '\0') return refuse_tensor(i, "is a slice of strings");
      if (!take_strings(i, bytes)) return false;
      continue;
    }
    std::uint32_t crc = 0;
    if (e.type == bundle_variant) {
      std::uint64_t n = 0;
      elements_of(e, n);
      if (auto problem = read_bundle_variants(bytes, n, crc); !problem.empty()) return refuse_data(i, problem);
    } else {
      crc = mask(crc32c(bytes, files_.threads));
    }
    if (crc != e.crc) return refuse_data(i, text("its checksum does not fit its ", bytes.size(), " bytes"));
    if (i.key.front() == '\0') {
      slices_.emplace(i.key, &i);
      continue;
    }
    record r = record_of(i);
    r.bytes = bytes;
    if (const std::string_view reason = reason_to_be_opaque(r); !reason.empty()) {
      warn_of_opaque(out_.warning, shown(i.key), reason);
      r = opaque_record(i.key, name_of(r.type), e.dims, bytes);
    }
    if (auto problem = problem_of(r); !problem.empty()) return refuse(problem);
    out_.content.records.push_back(std::move(r));
  }
  return true;
}

GRADUS_BODY bool bundle_decoder::take_strings(const item& i, std::span<const std::byte> bytes) {
  std::uint64_t n = 0;
  std::uint32_t crc = 0;
  elements_of(i.entry, n);
  if (auto problem = read_bundle_strings(bytes, n, crc); !problem.empty()) return refuse_data(i, problem);
  if (crc != i.entry.crc) return refuse_data(i, text("its checksum does not fit its ", bytes.size(), " bytes"));
  if (i.entry.dims.empty()) {  // one string: its length and a checksum come before it
    varint_source in(bytes);
    in.varint(), in.take(4);
    bytes = bytes.last(in.left());
    if (i.key == bundle_notes::name)
      return bundle_notes::read(as_chars(bytes), step_, out_.content.about) ||
             refuse_data(i, "its text was never written by this library");
  } else {
    std::string dims;
    for (const std::int64_t d : i.entry.dims) dims += text(dims.empty() ? "" : ", ", d);
    strings_.emplace(std::string(bundle_notes::strings_key) + i.key, "[" + dims + "]");
  }
  out_.content.records.push_back({i.key, uint8, {static_cast<std::int64_t>(bytes.size())}, bytes, true});
  return true;
}

GRADUS_BODY bool bundle_decoder::take_wholes() {
  std::set<const item*> used;
  for (const auto& i : items_) {
    if (i.entry.slices.empty()) continue;
    // An opaque tensor is put together as rows of bytes, where one more axis is possible.
    record whole = record_of(i);
    const auto opaque = whole.opaque;
    const std::size_t width = bundle_width(i.entry.type);
    const bool known = !opaque || (width != 0 && i.entry.dims.size() < static_cast<std::size_t>(max_rank));
    if (opaque && known) {
      whole.type = uint8;
      for (const std::int64_t d : i.entry.dims) whole.dims.push(d);
      whole.dims.push(static_cast<std::int64_t>(width));
    } else if (!known) {
      warn(text("\"", shown(i.key), "\" is ", opaque_text(*opaque), " in slices, which this library does not put ",
                "together: left out"));
      out_.lost.push_back(i.key);
    }
    std::deque<record> parts;
    std::deque<slice_of> places;
    std::vector<part_record> all;
    std::span<const std::byte> file;
    bool one_file = true;
    for (const auto& slice : i.entry.slices) {
      const auto found = slices_.find(bundle_slice_key(i.key, slice));
      if (found == slices_.end()) return refuse_tensor(i, "has a slice that is not there");
      const item& part = *found->second;
      if (!used.insert(&part).second) return refuse_tensor(i, "has a slice twice");
      if (part.entry.type != i.entry.type || part.entry.dims.size() != i.entry.dims.size())
        return refuse_tensor(i, "has a slice of another dtype or rank");
      if (!known) continue;
      auto& place = places.emplace_back();
      place.full_name = i.key, place.full = whole.dims;
      auto& r = parts.emplace_back();
      r.name = "a slice", r.type = whole.type, r.bytes = bytes_at(part.entry);
      for (std::size_t axis = 0; axis < slice.size(); ++axis) {
        place.start.push(slice[axis].start);
        place.length.push(slice[axis].length < 0 ? i.entry.dims[axis] : slice[axis].length);
        r.dims.push(part.entry.dims[axis]);
      }
      if (opaque)
        for (extents* e : {&place.start, &place.length, &r.dims}) e->push(e == &place.start ? 0 : whole.dims[e->rank]);
      all.push_back({&place, &r});
      const auto shard = data_[static_cast<std::size_t>(part.entry.shard)];
      one_file = one_file && (file.empty() || file.data() == shard.data());
      file = shard;
    }
    if (!known) continue;
    if (auto problem = assemble(all, whole, out_.owned, one_file ? file : std::span<const std::byte>{});
        !problem.empty())
      return refuse_tensor(i, text("cannot be put together: ", problem));
    if (opaque) whole = opaque_record(i.key, opaque->type, opaque->shape, whole.bytes);
    out_.content.records.push_back(std::move(whole));
  }
  return used.size() == slices_.size() || refuse("its .index holds slices of tensors that it does not hold");
}

GRADUS_BODY bool bundle_decoder::finish() {
  auto& content = out_.content;
  for (auto& [key, dims] : strings_) content.about.emplace(key, std::move(dims));
  std::sort(content.records.begin(), content.records.end(), [](auto& a, auto& b) { return a.name < b.name; });
  const std::string counter = settings_.names ? settings_.names->global_step : std::string("global_step");
  if (!step_)
    for (const auto& r : content.records)
      if (r.name == counter) step_ = step_of(r);
  content.step = step_.value_or(0);
  take_opaque_notes(content);
  if (settings_.names) settings_.names->from_tensorflow(content, out_.owned);
  const auto parts = with_slots(settings_.parts, content);
  if (auto problem = cut_parts(content, parts, out_.owned); !problem.empty())
    return refuse(problem, status::invalid_argument);
  if (const auto twice = duplicate_name(content.records); !twice.empty())
    return refuse(text("\"", twice, "\" stands in it twice, by TensorFlow's names and by ours"));
  return true;
}

}  // namespace gradus::detail
