// A flash image is the flash of a board as a file: this header reads the bytes of store/flash.hpp, as a debugger reads
// them out, as the records of a checkpoint, and writes a checkpoint as the image that a board's flash_store opens.
//
//   const auto image = write_flash_image(content, {.sector_bytes = 4096, .sectors = 8});    program it where the store
//   is const decoded read = read_flash_image(image);                                           the newest whole record
//
// An image is no codec: a checkpoint that lies in a directory is one of these formats, and this is how it travels. It
// has no metadata; its step is the tensor "global_step". gradus-checkpoint converts (docs/checkpoint_tool.md); the
// bytes are those of docs/formats/flash.md. Tensors keep their bits, names, types, extents and order.
#pragma once
#include "../store/flash.hpp"
#include "codec.hpp"

namespace gradus::inline GRADUS_BUILD {

// The part of the flash that the store has. As few sectors as hold two records, if none are given.
struct flash_geometry {
  std::uint32_t sector_bytes = 4096;
  std::uint32_t sectors = 0;
};

// Returns the whole part as bytes: one record in its first sectors, the rest erased (ones). Raises invalid_argument for
// blobs, opaque tensors, extents or sizes of 4 GiB and more, and a sector that is no multiple of 32; resource_exhausted
// for too few sectors.
std::vector<std::byte> write_flash_image(const snapshot& content, const flash_geometry& geometry = {});

// The newest whole record, whatever its model: older and damaged ones are passed over, as the board would. The image
// has to be the store's whole part, since records go on at its beginning. A problem, as of a codec: data_loss if
// nothing is whole, not_found if nothing was saved, failed_precondition for a record that is newer or none of this
// library's.
decoded read_flash_image(std::span<const std::byte> image, const reader_limits& limits = {});

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "flash_image.ipp"
#endif
