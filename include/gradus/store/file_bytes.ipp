// The bodies of file_bytes.hpp.
#pragma once
#include "../base/body.hpp"
#include "file_bytes.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY file_problem opened_bytes::open(const std::string& path, std::uint64_t limit) {
  forget();
  any_file_system::handle h{};
  std::uint64_t size = 0;
  if (const int e = uninterrupted([&] { return fs_.open_read(path, h, size); }); e != 0) return {e, "open", path};
  fs_.close(h);
  if (size > limit) return {EFBIG, "read", path};
  if (fs_.maps() && size >= worth_mapping && fs_.map(path, mapped_) == 0) {
    if (mapped_.size() <= limit) return {};
    forget();
    return {EFBIG, "read", path};
  }
  auto p = try_read(fs_, path, limit, read_);
  if (p) read_.clear();
  return p;
}

GRADUS_BODY void opened_bytes::forget() {
  if (!mapped_.empty()) fs_.unmap(mapped_);
  mapped_ = {};
  read_.clear();
}

}  // namespace gradus::detail
