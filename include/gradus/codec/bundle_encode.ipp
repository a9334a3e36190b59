// The bodies of bundle_encode.hpp.
#pragma once
#include "../base/body.hpp"
#include "../base/sort.hpp"
#include "bundle_encode.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY encoded bundle_encoder::run(const snapshot& original) {
  if (settings_.shards < 1 || settings_.shards > most_bundle_shards)
    raise(status::invalid_argument,
          text("a tensor bundle has 1 to ", most_bundle_shards, " shards, not ", settings_.shards));
  check_savable(original);
  snapshot content = with_opaque_hidden(original, &takes);
  if (settings_.names) settings_.names->to_tensorflow(content, out_.owned);
  parts_ = with_slots(settings_.parts, content);
  if (content.about.contains("delta")) keep_apart(content);
  metadata about = content.about;
  for (const auto& r : content.records) add(r, about);
  add_notes(content, about);
  for (const auto& [full, slices] : slices_) check(full, slices);
  lay_out();
  return std::move(out_);
}

GRADUS_BODY void bundle_encoder::keep_apart(const snapshot& content) {
  std::map<std::string, std::vector<const slice_of*>> there;
  for (const auto& r : content.records)
    if (const auto part = parts_.find(r.name); part != parts_.end())
      there[part->second.full_name].push_back(&part->second);
  // Parts that make no sense stay, and are refused as in any checkpoint.
  std::erase_if(there, [](const auto& whole) {
    const auto& slices = whole.second;
    return !std::all_of(slices.begin(), slices.end(), [&](const slice_of* s) {
      return s->full == slices.front()->full && problem_of(*s).empty();
    }) || problem_of_tiling(slices).empty();
  });
  std::erase_if(parts_, [&](const auto& part) { return there.contains(part.second.full_name); });
}

GRADUS_BODY void bundle_encoder::refuse(const std::string& why) {
  raise(status::invalid_argument, text("this state cannot be saved: ", why));
}

GRADUS_BODY bool bundle_encoder::takes(const record& r) {
  const int type = bundle_type_of(r.opaque->type);
  bundle_entry e;
  e.dims = r.opaque->shape;
  std::uint64_t n = 0;
  std::uint32_t crc = 0;
  return type != 0 && elements_of(e, n) && (type != bundle_variant || variants_in(r, crc));
}

GRADUS_BODY bool bundle_encoder::variants_in(const record& r, std::uint32_t& crc) {
  bundle_entry e;
  e.dims = r.opaque->shape;
  std::uint64_t n = 0;
  return elements_of(e, n) && read_bundle_variants(r.bytes, n, crc).empty();
}

GRADUS_BODY void bundle_encoder::add(const record& r, metadata& about) {
  bundle_item item;
  item.key = item.place = r.name;
  if (r.name.front() == '\0')
    refuse("a name begins with a zero byte, as only those of slices do in a tensor bundle; choose another");
  if (r.name == bundle_notes::name)
    refuse(text("the name \"", r.name, "\" is taken in a tensor bundle; choose another"));
  const auto part = parts_.find(r.name);
  if (part != parts_.end()) {
    add_part(r, part->second, item);
  } else {
    item.entry.dims.assign(r.dims.dims, r.dims.dims + r.dims.rank);
  }
  item.entry.type = static_cast<int>(r.type);
  item.entry.crc = mask(crc32c(r.bytes));
  if (r.opaque) {
    item.entry.type = bundle_type_of(r.opaque->type), item.entry.dims = r.opaque->shape;
    if (item.entry.type == bundle_variant) variants_in(r, item.entry.crc);
  }
  item.body = r.bytes;
  if (r.blob) add_strings(r, about, item);
  items_.push_back(std::move(item));
}

GRADUS_BODY void bundle_encoder::add_part(const record& r, const slice_of& slice, bundle_item& item) {
  if (auto problem = problem_of(slice); !problem.empty()) refuse(text("the part \"", r.name, "\": ", problem));
  item.entry.dims.assign(slice.length.dims, slice.length.dims + slice.length.rank);
  item.key = item.place = slice.full_name;
  slices_[slice.full_name].push_back({&slice, &r});
  if (is_whole(slice)) return;  // an ordinary tensor
  bundle_slice key;
  for (int i = 0; i < slice.full.rank; ++i)
    key.push_back(slice.length[i] == slice.full[i] ? bundle_extent{} : bundle_extent{slice.start[i], slice.length[i]});
  item.key = bundle_slice_key(slice.full_name, key);
  auto& whole = wholes_[slice.full_name];
  whole.type = static_cast<int>(r.type);
  whole.dims.assign(slice.full.dims, slice.full.dims + slice.full.rank);
  whole.slices.push_back(std::move(key));
}

GRADUS_BODY void bundle_encoder::add_strings(const record& r, metadata& about, bundle_item& item) {
  item.entry.type = bundle_strings;
  const std::string note = std::string(bundle_notes::strings_key) + r.name;
  if (const auto found = about.find(note); found != about.end()) {
    bundle_entry strings;
    std::uint64_t n = 0;
    if (read_extents(found->second, strings.dims) && elements_of(strings, n) &&
        read_bundle_strings(r.bytes, n, item.entry.crc).empty()) {
      item.entry.dims = std::move(strings.dims);
      about.erase(found);
      return;
    }
  }
  item.entry.dims.clear();
  item.head = out_.own(bundle_string_head(std::span(&r.bytes, 1), item.entry.crc));
}

GRADUS_BODY bool bundle_encoder::read_extents(std::string_view s, std::vector<std::int64_t>& dims) {  // "[2, 3]"
  if (!s.starts_with('[') || !s.ends_with(']')) return false;
  const char *at = s.data() + 1, *const end = s.data() + s.size() - 1;
  while (at != end) {
    std::int64_t d = 0;
    const auto read = std::from_chars(at, end, d);
    if (read.ec != std::errc() || d < 0) return false;
    dims.push_back(d);
    at = read.ptr;
    if (end - at > 2 && at[0] == ',' && at[1] == ' ') at += 2;
  }
  return true;
}

GRADUS_BODY void bundle_encoder::add_notes(const snapshot& content, const metadata& about) {
  std::int64_t known = 0;
  const std::string_view counter = settings_.names ? std::string_view(settings_.names->global_step) : "global_step";
  for (const auto& r : content.records)
    if (r.name == counter) known = step_of(r).value_or(0);
  if (about.empty() && content.step == known) return;
  const auto notes = bundle_notes::write(content.step == known ? nullptr : &content.step, about);
  const auto bytes = std::as_bytes(std::span(notes));
  const auto body = std::span<const std::byte>(out_.own({bytes.begin(), bytes.end()}));
  bundle_item item{std::string(bundle_notes::name), std::string(bundle_notes::name), {}, {}, body};
  item.entry.type = bundle_strings;
  item.head = out_.own(bundle_string_head(std::span(&body, 1), item.entry.crc));
  items_.push_back(std::move(item));
}

GRADUS_BODY void bundle_encoder::check(const std::string& full, const std::vector<part_record>& parts) {
  std::vector<const slice_of*> slices;
  for (const auto& [slice, part] : parts) {
    if (slice->full != parts.front().slice->full || part->type != parts.front().part->type || part->blob ||
        part->dims != slice->length)
      refuse(text("\"", part->name, "\" is ", name_of(part->type), to_text(part->dims), ", which is not the part of \"",
                  full, "\" that it was said to be"));
    slices.push_back(slice);
  }
  if (auto problem = problem_of_tiling(slices); !problem.empty()) refuse(text("\"", full, "\": ", problem));
}

GRADUS_BODY void bundle_encoder::lay_out() {
  detail::sort_stably(items_, [](const auto& a, const auto& b) { return a.place < b.place; });
  const auto bytes_in = [](const bundle_item& i) { return i.head.size() + i.body.size(); };
  std::uint64_t total = 0, before = 0;
  for (const auto& i : items_) total += bytes_in(i);
  for (int s = 0; s < settings_.shards; ++s) out_.files.push_back({bundle_data_suffix(s, settings_.shards), {}});
  std::vector<std::int64_t> ends(static_cast<std::size_t>(settings_.shards));
  std::map<std::string, std::vector<std::byte>> index;
  index[""] = bundle_header_bytes(settings_.shards);
  const auto enter = [&index](const std::string& key, const bundle_entry& e) {
    if (!index.emplace(key, bytes_of(e)).second) refuse(text("\"", key, "\" stands in it twice"));
  };
  for (auto& i : items_) {
    // The shard is the one in which the middle of the item's bytes falls if all bytes are divided evenly.
    const double middle = static_cast<double>(before) + static_cast<double>(bytes_in(i)) / 2;
    const auto shard = static_cast<std::size_t>(middle / static_cast<double>(total + 1) * settings_.shards);
    before += bytes_in(i);
    i.entry.shard = static_cast<std::int64_t>(shard);
    i.entry.offset = ends[shard];
    i.entry.size = static_cast<std::int64_t>(bytes_in(i));
    ends[shard] += i.entry.size;
    for (const auto piece : {i.head, i.body})
      if (!piece.empty()) out_.files[shard].pieces.push_back(piece);
    enter(i.key, i.entry);
  }
  for (const auto& [key, whole] : wholes_) enter(key, whole);
  table_writer table;
  for (const auto& [key, value] : index) table.add(key, value);
  out_.files.push_back({".index", {out_.own(table.finish())}});
}

}  // namespace gradus::detail
