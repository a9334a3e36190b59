// This header recognizes files of models that are no checkpoints of this library, by their first bytes or by their
// names, and returns the remedy.
#pragma once
#include "../base/build.hpp"

#include <string>
#include <string_view>

#include "../base/error.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// Returns the name of a ZIP archive's first member, as far as the archive's first bytes contain it.
std::string_view first_member_of_zip(std::string_view begin);

// Returns true if a file may be ONNX, which has no magic number. It begins with its ir_version and the name of the
// program that made it: fields 1 and 2.
bool looks_like_onnx(std::string_view begin);

inline constexpr std::string_view first_tensorflow_format =
    "a checkpoint of TensorFlow's first format (V1), which this library does not read; in TensorFlow, restore it and "
    "save it with tf.train.Saver(write_version=tf.train.SaverDef.V2)";

// Returns true for "model.ckpt-7-00000-of-00002" or "model.ckpt-7-?????-of-00002", the names of the shards of
// TensorFlow's first format.
bool is_v1_shard(std::string_view name);

// Returns the kind of a file with this beginning and end, and the remedy; empty: an unknown kind. It must not be called
// for a file that begins as one of this library's formats or as safetensors, whose first bytes are a number.
std::string advice_for(std::string_view path, std::string_view begin, std::string_view end);

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "others.ipp"
#endif
