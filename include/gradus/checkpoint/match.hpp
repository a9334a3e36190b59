// This header compares a snapshot with the live state. One error names every entry that does not fit; nothing is
// written into the live state unless all of it fits.
#pragma once
#include "../base/build.hpp"

#include <cstring>
#include <limits>

#include "../base/state.hpp"
#include "../codec/codec.hpp"

namespace gradus::inline GRADUS_BUILD {

// These options of a restore decide which snapshots fit.
struct restore_options {
  std::string model = {};     // the model's fingerprint; metadata with another one does not fit; empty: any
  bool ignore_extra = false;  // restore what the list has, ignore the rest of the file (TensorFlow always does)
  bool fallback = false;      // if the checkpoint is damaged, take the newest intact one beside it
  int threads = 1;            // threads that check and copy large tensors
  // For a directory with checkpoints but no state file: restore the newest intact one. Otherwise that is an error.
  bool restore_newest = false;
  // In that case, and where a fallback looks beyond the state file, only names `<prefix>-<step>` count as checkpoints;
  // empty: all names.
  std::string prefix = {};
  saved_input restore_input = saved_input::required;
  // A checkpoint of this step or a later one need not hold the position of this input: no further step is to be trained
  // with the input.
  std::int64_t input_until = std::numeric_limits<std::int64_t>::max();
  std::string_view may_be_extra = {};  // the name of a tensor that the file may have and the list not
};

namespace detail {

struct mismatch {
  status kind = status::invalid_argument;
  std::string problem;  // empty: it fits
};

std::string kind_of(const state_entry& e);

// Returns the mismatch, of kind not_found if anything in the list is missing in the file, else invalid_argument. A file
// that lacks a blob that may be lacking (may_lack) is taken to be of another program: it need not have the tensors that
// may be lacking either, and if it does not name this library as its writer, its further tensors are no mismatch.
mismatch compare(const state_list& list, const snapshot& content, const restore_options& options);

// Copies a snapshot that fits. A blob may still refuse its bytes (it raises): then the blobs before it get back what
// they held, and no tensor has been changed. Returns a warning that says which saved position was ignored, and why.
std::string copy_into(const state_list& list, const snapshot& content, const restore_options& options = {});

}  // namespace detail
}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "match.ipp"
#endif
