// This header reads a store's state from a list (cluster/update_store.hpp).
#pragma once
#include <span>
#include <string>
#include <vector>

#include "../base/state.hpp"
#include "protocol/bytes.hpp"
#include "wire.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// Of each entry, the bytes that the parts have for it; without data where they have none. An entry may also be called
// own_state_name(its name). Parts that are no entry's are passed over; a part that is listed twice has to be the same.
// Error: data_loss for another element type or size than the entry's.
std::vector<std::span<const std::byte>> find_stored(std::span<const state_entry> entries,
                                                    std::span<const wire_slice> parts);
// Refuses (data_loss) where one of two entries was found, and the other was not.
void refuse_half(std::span<const state_entry> entries, std::span<const std::span<const std::byte>> found, std::size_t a,
                 std::size_t b);

void save_stored(bytes_out out, std::span<const wire_slice> state);
// Reads saved state, which lies in the reader's bytes. Error: data_loss if it does not have the names of `state`, in
// order.
std::vector<wire_slice> load_stored(bytes_in& in, std::span<const wire_slice> state);

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "store_state.ipp"
#endif
