// This header reads a store's state from a list (cluster/update_store.hpp).
#pragma once
#include "../base/build.hpp"

#include <span>
#include <string>
#include <vector>

#include "../base/state.hpp"
#include "protocol/bytes.hpp"
#include "wire.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// Returns for each entry the bytes that the parts have for it; a span without data if they have none. A part may also
// have the name own_state_name(entry's name). Parts that belong to no entry are skipped; a part that is listed twice
// has to have the same bytes. Raises data_loss for another element type or size than the entry's.
std::vector<std::span<const std::byte>> find_stored(std::span<const state_entry> entries,
                                                    std::span<const wire_slice> parts);
// Raises data_loss if one of two entries was found, and the other was not.
void refuse_half(std::span<const state_entry> entries, std::span<const std::span<const std::byte>> found, std::size_t a,
                 std::size_t b);

void save_stored(bytes_out out, std::span<const wire_slice> state);
// Reads saved state; the result refers to the reader's bytes. Raises data_loss if it does not have the names of
// `state`, in order.
std::vector<wire_slice> load_stored(bytes_in& in, std::span<const wire_slice> state);

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "store_state.ipp"
#endif
