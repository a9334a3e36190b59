// This header reads a tensor bundle of this library, of TensorFlow or of another writer: everything is checked before
// anything is returned. The records are views into the data files; only tensors that are there in pieces are copied
// together.
#pragma once
#include "../base/build.hpp"

#include <set>

#include "bundle_encode.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

class bundle_decoder {
public:
  bundle_decoder(const bundle_settings& settings, checkpoint_files& files) : settings_(settings), files_(files) {}

  decoded run();

private:
  struct item {
    std::string key;
    bundle_entry entry;
  };

  bool refuse(std::string why, status kind = status::data_loss);
  bool refuse_tensor(const item& i, const std::string& why);
  // Returns a key for messages: the keys of slices are no text.
  static std::string shown(std::string_view key);
  void warn(const std::string& what) { out_.warning += text(out_.warning.empty() ? "" : "; ", what); }

  bool read_index();

  bool open_shards();

  // Checks that every entry has the bytes that its type and extents need, that they lie inside its file, and that no
  // two entries share bytes.
  bool check_places();

  std::span<const std::byte> bytes_at(const bundle_entry& e) const;
  bool refuse_data(const item& i, const std::string& why);
  // Returns a record without its bytes; an opaque one if this library has no such type or rank.
  record record_of(const item& i);

  // Checks the checksums of all entries with bytes, and makes records of all but slices.
  bool take_tensors();
  bool take_strings(const item& i, std::span<const std::byte> bytes);

  // Puts together the tensors that are stored in slices.
  bool take_wholes();

  bool finish();

  const bundle_settings& settings_;
  checkpoint_files& files_;
  decoded out_;
  int shards_ = 0;
  std::vector<item> items_;
  std::vector<std::span<const std::byte>> data_;
  std::map<std::string_view, const item*> slices_;  // by key
  std::optional<std::int64_t> step_;
  metadata strings_;
};

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "bundle_decode.ipp"
#endif
