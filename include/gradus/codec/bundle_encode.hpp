// This header lays a snapshot out as a tensor bundle: data files in the order of the tensors' names, then the index.
// The codec is tensor_bundle.hpp; the bytes are those of TensorFlow's BundleWriter.
#pragma once
#include "../store/sorted_table.hpp"
#include "bundle_entry.hpp"
#include "bundle_names.hpp"
#include "bundle_notes.hpp"
#include "partition.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {

// These are the settings of tensor_bundle.
struct bundle_settings {
  int shards = 1;
  std::optional<tensorflow_names> names = {};
  partition_map parts = {};
};

// One piece of data that is to be put into a bundle.
struct bundle_item {
  std::string place;  // items are laid out in this order: the name of the tensor, or of the one that it is a part of
  std::string key;
  bundle_entry entry;
  std::span<const std::byte> head, body;  // the head is that of string tensors
};

class bundle_encoder {
public:
  explicit bundle_encoder(const bundle_settings& settings) : settings_(settings) {}

  encoded run(const snapshot& original);

private:
  [[noreturn]] static void refuse(const std::string& why);

  // Returns true if TensorFlow has a type for this opaque tensor, and can count its elements.
  static bool takes(const record& r);
  static bool variants_in(const record& r, std::uint32_t& crc);

  // A delta (checkpoint/delta.hpp) may hold some parts of a variable whole, and of others only rows. Where the parts
  // that it holds whole do not cover the variable, they are stored under their own names.
  void keep_apart(const snapshot& content);

  void add(const record& r, metadata& about);
  void add_part(const record& r, const slice_of& slice, bundle_item& item);
  // Adds a blob as a string scalar, unless the metadata note that it is the bytes of a string tensor that was read.
  void add_strings(const record& r, metadata& about, bundle_item& item);
  static bool read_extents(std::string_view s, std::vector<std::int64_t>& dims);
  void add_notes(const snapshot& content, const metadata& about);
  static void check(const std::string& full, const std::vector<part_record>& parts);

  // Puts every item into a shard and every shard into a file, then writes the index.
  void lay_out();

  const bundle_settings& settings_;
  partition_map parts_;
  encoded out_;
  std::vector<bundle_item> items_;
  std::map<std::string, bundle_entry> wholes_;              // tensors that have slices
  std::map<std::string, std::vector<part_record>> slices_;  // all parts, by full name
};

}  // namespace detail
}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "bundle_encode.ipp"
#endif
