// This header matches a snapshot with the live state. One error names every entry that does not fit; nothing is written
// into live state unless all of it fits.
#pragma once
#include <cstring>
#include <limits>

#include "../base/state.hpp"
#include "../codec/codec.hpp"
#include "../store/parallel.hpp"

namespace gradus::inline GRADUS_BUILD {

// These options say which snapshots a restore takes.
struct restore_options {
  std::string model = {};     // the fingerprint to find in the metadata; empty: any
  bool ignore_extra = false;  // take what is listed here, leave the rest of the file (TensorFlow always does)
  bool fallback = false;      // if the checkpoint is damaged, take the newest intact one beside it
  int threads = 1;            // that check and copy large tensors
  // Where checkpoints lie in a directory without a state file: take the newest intact one. Otherwise that is an error.
  bool restore_newest = false;
  std::string prefix = {};  // there, only names that begin so count as checkpoints
  saved_input restore_input = saved_input::required;
  // A checkpoint of this step or a later one need not hold the position of this input: no step is to be made with it.
  std::int64_t input_until = std::numeric_limits<std::int64_t>::max();
};

namespace detail {

struct mismatch {
  status kind = status::invalid_argument;
  std::string problem;  // empty: it fits
};

std::string kind_of(const state_entry& e);

// status::not_found if anything listed here is missing in the file, else invalid_argument. A file without a blob that
// it may lack is of another program: it need not have the tensors that it may lack either, and if it does not name this
// library as its writer, its further tensors are no mismatch.
mismatch compare(const state_list& list, const snapshot& content, const restore_options& options);

// Copies a snapshot that fits. A blob may still refuse (it raises): then the blobs before it get back what they held,
// and no tensor has been touched. Returns a warning: which saved position was passed over, and why.
std::string copy_into(const state_list& list, const snapshot& content, const restore_options& options = {});

}  // namespace detail
}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "match.ipp"
#endif
