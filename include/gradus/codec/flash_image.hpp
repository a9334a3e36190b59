// A flash image is the flash of a board as a file. This header reads the bytes of store/flash.hpp, as a debugger reads
// them out, as the records of a checkpoint, and writes a checkpoint as the image that a board's flash_store opens.
//
//   // the bytes to program where the store is
//   const auto image = write_flash_image(content, {.sector_bytes = 4096, .sectors = 8});
//   // the newest whole record
//   const decoded read = read_flash_image(image);
//
// An image is not a codec: checkpoints in a directory have one of the formats of the codecs, and an image is the form
// in which a checkpoint is moved to or from a board. It has no metadata; its step is the tensor "global_step".
// gradus-checkpoint converts images (docs/checkpoint_tool.md); the bytes are those of docs/formats/flash.md. Tensors
// keep their bits, names, types, extents and order.
#pragma once
#include "../store/flash.hpp"
#include "codec.hpp"

namespace gradus::inline GRADUS_BUILD {

// The part of the flash that the store uses. If `sectors` is 0, there are as many as two records need.
struct flash_geometry {
  std::uint32_t sector_bytes = 4096;
  std::uint32_t sectors = 0;
};

// Returns the whole part as bytes: one record in its first sectors, the rest erased (ones). Raises invalid_argument for
// blobs (but the one of frozen weights), opaque tensors, extents of 2^32 and more, names of 2^16 bytes and more, an
// image of 2 GiB and more, and a sector that is no multiple of 32; resource_exhausted for too few sectors.
std::vector<std::byte> write_flash_image(const snapshot& content, const flash_geometry& geometry = {});

// Returns the newest whole record, whatever its model: older and damaged ones are ignored, as the board ignores them.
// The image has to be the store's whole part, since records continue at its beginning. A problem is reported as a codec
// reports it: data_loss if no record is whole, not_found if nothing was saved, failed_precondition for a record that is
// of a newer format or not of this library. The texts are those of the status that a board's open returns for these
// bytes; only what erasures that were cut have left may be empty there and foreign here, since an image without a whole
// header does not say where its sectors begin.
decoded read_flash_image(std::span<const std::byte> image, const reader_limits& limits = {});

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "flash_image.ipp"
#endif
