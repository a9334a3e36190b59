// The bodies of session.hpp.
#pragma once
#include "../base/body.hpp"
#include "session.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY void accept_feed(std::string_view name, const shape& dims, dtype type, std::int64_t batch_size,
                             const const_tensor_view& data, std::byte* to) {
  if (data.type != type)
    raise(status::invalid_argument,
          text("feed \"", name, "\": expected ", name_of(type), ", got ", name_of(data.type)));
  const extents wanted = resolve(dims, batch_size);
  const bool flat = data.dims.rank <= 1 && static_cast<std::int64_t>(data.size()) == count(wanted);
  if (!(data.dims == wanted) && !flat)
    raise(status::invalid_argument,
          text("feed \"", name, "\": expected ", to_text(dims), ", got ", to_text(data.dims)));
  if (to != nullptr && data.size_bytes() != 0) std::memcpy(to, data.data, data.size_bytes());
}

GRADUS_BODY std::int64_t batch_of(std::string_view name, const shape& dims, const const_tensor_view& data) {
  if (!is_batched(dims)) return -1;
  const std::int64_t per_example = -count(dims), n = static_cast<std::int64_t>(data.size());
  if (per_example == 0) return data.dims.rank != 0 ? data.dims[0] : 0;
  if (n % per_example != 0)
    raise(status::invalid_argument,
          text("feed \"", name, "\": expected ", to_text(dims), ", got ", to_text(data.dims)));
  return n / per_example;
}

}  // namespace gradus::detail
