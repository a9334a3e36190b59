// tensor_bundle reads and writes TensorFlow's checkpoints (V2): it writes TensorFlow's bytes, and reads with every
// check that their format allows.
//
//   <prefix>.data-00000-of-00001     the tensors one after another, in the order of their names; one file a shard
//   <prefix>.index                   a sorted table (store/sorted_table.hpp): name -> type, shape, place, checksum
//
// Data for which TensorFlow has no place (this library's metadata, and a step that is not that of `global_step`) are in
// one more string tensor, "_gradus", which TensorFlow does not read; a blob is a string scalar.
// docs/formats/tensor_bundle.md has the bytes.
//
//   tensor_bundle{.shards = 4}
//   tensor_bundle{.names = tensorflow_names{"Adam"}}       optimizers' names and types as in TensorFlow, both ways
//                                                          (bundle_names.hpp)
//   tensor_bundle{.parts = partition_variable(...)}        parts are written as slices of one tensor; a tensor that is
//                                                          read, however it was cut, is cut like this (partition.hpp)
#pragma once
#include "bundle_decode.hpp"
#include "bundle_encode.hpp"

namespace gradus::inline GRADUS_BUILD {

// The name, type and slice under which a record is stored in a bundle.
struct stored_tensor {
  std::string name;
  dtype type = dtype::none;
  std::string slice = {};  // for a part, in the form of TensorFlow's Saver: "10 2 0,5:0,2"
  std::optional<slice_of> part = {};
};

struct tensor_bundle {
  using policy_for = kind::codec;
  static constexpr std::string_view name = "tensor_bundle";
  static constexpr std::string_view extension = "", proof = ".index";
  static constexpr bool checks_itself = false, checks_tensors = true;

  int shards = 1;                              // data files
  std::optional<tensorflow_names> names = {};  // TensorFlow's names for the state of optimizers
  partition_map parts = {};                    // records that are parts of larger tensors, with their slots

  // Raises invalid_argument for data that could not be read back: names that the format itself uses, parts that do not
  // cover their tensor.
  encoded encode(const snapshot& content) const;
  decoded decode(checkpoint_files& files) const;
  // Returns how `encode` stores each of these records, in their order: for a .meta file beside the bundle.
  std::vector<stored_tensor> stored(snapshot content) const;
};
static_assert(codec<tensor_bundle>);

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "tensor_bundle.ipp"
#endif
