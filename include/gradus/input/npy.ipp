// The bodies of npy.hpp.
#pragma once
#include "../base/body.hpp"
#include "npy.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY std::int64_t npy_dataset::pull(std::span<const tensor_view> out, std::int64_t first, std::int64_t n) {
  return rows_.pull(out, first, n);
}

GRADUS_BODY void npy_dataset::opened::read_members(const reader_limits& limits) {
  if (!members.empty()) return;
  status kind = status::data_loss;
  if (const auto why = read_zip(bytes, members, limits, &kind); !why.empty())
    raise(kind, text("\"", path, "\" is no archive of arrays: ", why));
  for (std::size_t i = 0; i < members.size(); ++i) places.emplace(members[i].name, i);
}

GRADUS_BODY std::span<const std::byte> npy_dataset::member(opened& file, const npy_part& part, const npy_options& how,
                                                           held& h) {
  file.read_members(how.limits);
  const std::string name = part.member + ".npy";
  const auto at = file.places.find(name);
  const zip_member* const m = at == file.places.end() ? nullptr : &file.members[at->second];
  if (m == nullptr) {
    std::string names;
    for (const auto& z : file.members) names += text(names.empty() ? "" : ", ", z.name.substr(0, 50));
    refuse(status::not_found, part, "no such member; there are ", names.substr(0, 500));
  }
  std::span<const std::byte> bytes = m->bytes;
  if (m->deflated) {
    if (m->size > file.left)
      refuse(status::resource_exhausted, part, "it becomes ", m->size, " bytes, and ", file.left,
             " are left: ", detail::inflated_too_far(file.bytes.size(), how.limits),
             ", or save it with numpy.savez, uncompressed");
    auto& out = h.inflated.emplace_back();
    if (const auto why = inflate_raw(m->bytes, m->size, out); !why.empty()) refuse(status::data_loss, part, why);
    file.left -= m->size, bytes = out;
  }
  if (how.checksums && zip_crc32(bytes) != m->crc)
    refuse(status::data_loss, part, "its checksum does not fit its bytes; the file is damaged, get it again");
  return bytes;
}

GRADUS_BODY const_tensor_view npy_dataset::array(std::span<const std::byte> file, const npy_part& part,
                                                 const reader_limits& limits, held& h) {
  detail::npy_array a;
  status kind{};
  if (const auto why = detail::parse_npy(file, a, kind); !why.empty()) refuse(kind, part, why);
  bool swapped = false;
  const dtype type = detail::npy_dtype(a.type, swapped);
  if (type == dtype::none)
    refuse(status::failed_precondition, part, "its dtype is '", a.type.substr(0, 20),
           "'; expected float16, float32, float64, bool, or whole numbers of 8 to 64 bits: save a.astype(...) of one "
           "of these");
  if (a.shape.size() > max_rank)
    refuse(status::failed_precondition, part, "it has a rank above ", max_rank,
           ", the highest that is known; save a.reshape(...) of fewer axes");
  // The extents in a file may be false, also beside one that is 0.
  std::uint64_t bytes = size_of(type);
  bool overflow = false, empty = false;
  for (int i = 0; i < a.dims.rank; ++i) {
    empty = empty || a.dims[i] == 0;
    const auto extent = static_cast<std::uint64_t>(std::max<std::int64_t>(a.dims[i], 1));
    overflow = __builtin_mul_overflow(bytes, extent, &bytes) || overflow;
  }
  if (overflow || bytes > std::uint64_t{1} << 62 || (!empty && bytes > a.bytes.size()))
    refuse(status::data_loss, part, "its extents ", to_text(a.dims), " need more bytes of values than the ",
           a.bytes.size(), " from byte ", file.size() - a.bytes.size(), " on; it is truncated or its extents lie");
  if (a.dims.rank > 0 && a.dims[0] != 0 && empty && !limits.empty_rows)
    refuse(status::resource_exhausted, part, detail::empty_rows(static_cast<std::uint64_t>(a.dims[0])));
  if (a.dims.rank > 0 && !empty && bytes / static_cast<std::uint64_t>(a.dims[0]) > limits.record_bytes)
    refuse(status::resource_exhausted, part,
           detail::record_too_long("a row", bytes / static_cast<std::uint64_t>(a.dims[0]), limits));
  if (type == boolean)
    for (std::size_t i = 0; i < (empty ? 0 : static_cast<std::size_t>(bytes)); ++i)
      if (std::to_integer<unsigned>(a.bytes[i]) > 1)
        refuse(status::data_loss, part, "a bool is 0 or 1; found ", std::to_integer<unsigned>(a.bytes[i]), " at byte ",
               file.size() - a.bytes.size() + i);
  if (empty) return {type, a.dims, a.bytes.data()};
  a.bytes = a.bytes.first(static_cast<std::size_t>(bytes));
  return {type, a.dims, detail::npy_elements(a, size_of(type), swapped, h.inflated).data()};
}

GRADUS_BODY npy_dataset::npy_dataset(std::span<const npy_part> parts, const npy_options& how, const any_file_system& fs)
    : held_(open(parts, how, fs)), rows_(held_->arrays) {}

GRADUS_BODY std::vector<npy_part> npy_dataset::members_of(const std::string& path, const any_file_system& fs,
                                                          const reader_limits& limits) {
  std::vector<npy_part> out;
  opened file;
  file.open(path, fs, limits);
  file.read_members(limits);
  for (const auto& m : file.members)
    if (m.name.ends_with(".npy")) {
      const std::string name = m.name.substr(0, m.name.size() - 4);
      out.push_back({name, path, name});
    }
  return out;
}

GRADUS_BODY void npy_dataset::opened::open(const std::string& p, const any_file_system& fs,
                                           const reader_limits& limits) {
  auto file = std::make_shared<detail::opened_bytes>(fs);
  if (const auto problem = file->open(p)) raise(problem);
  path = p, bytes = file->bytes(), owner = std::move(file);
  left = limits.inflated_from(bytes.size());
}

GRADUS_BODY std::shared_ptr<const npy_dataset::held> npy_dataset::open(std::span<const npy_part> parts,
                                                                       const npy_options& how,
                                                                       const any_file_system& fs) {
  auto h = std::make_shared<held>();
  for (const auto& part : parts) {
    auto file = std::find_if(h->files.begin(), h->files.end(), [&](const opened& f) { return f.path == part.path; });
    if (file == h->files.end()) {
      h->files.emplace_back().open(part.path, fs, how.limits);
      file = h->files.end() - 1;
    }
    std::span<const std::byte> bytes = file->bytes;
    if (!part.member.empty()) bytes = member(*file, part, how, *h);
    h->arrays.push_back({part.name, array(bytes, part, how.limits, *h)});
  }
  return h;
}

GRADUS_BODY npy_dataset npy(const std::string& path, std::string name, const npy_options& how,
                            const any_file_system& fs) {
  if (name.empty()) {
    name = file_name_of(path);
    name = name.substr(0, name.rfind('.') == 0 ? name.size() : name.rfind('.'));
  }
  const npy_part part{std::move(name), path};
  return npy_dataset({&part, 1}, how, fs);
}

GRADUS_BODY npy_dataset npy(std::initializer_list<npy_part> parts, const npy_options& how, const any_file_system& fs) {
  return npy_dataset(std::span(parts.begin(), parts.size()), how, fs);
}

GRADUS_BODY npy_dataset npz_arrays(const std::string& path, const std::vector<std::string>& names,
                                   const npy_options& how, const any_file_system& fs) {
  std::vector<npy_part> parts;
  for (const auto& name : names) parts.push_back({name, path, name});
  if (parts.empty()) parts = npy_dataset::members_of(path, fs, how.limits);
  return npy_dataset(parts, how, fs);
}

}  // namespace gradus
