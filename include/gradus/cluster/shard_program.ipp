// The bodies of shard_program.hpp.
#pragma once
#include "../base/body.hpp"
#include "shard_program.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY std::vector<std::byte> to_bytes(const shard_settings& s) {
  std::vector<std::byte> made;
  bytes_out out(made);
  put_plain(out, s);
  return made;
}

GRADUS_BODY shard_settings shard_settings_from(bytes_in& in) {
  constexpr double most = 0x1p44;
  kept_texts texts;
  shard_settings s = take_plain<shard_settings>(in, texts);
  double bytes = 0;
  for (const store_variable& v : s.variables) {
    double n = static_cast<double>(size_of(v.type));
    for (int i = 0; i < v.dims.rank; ++i) {
      if (v.dims[i] < 0) in.refuse(text("the variable \"", v.name, "\" has the shape ", to_text(v.dims)));
      n *= static_cast<double>(v.dims[i]);
    }
    bytes += n;
  }
  if (!(bytes < most))
    raise(status::resource_exhausted,
          text("a parameter server cannot hold variables of ", bytes, " bytes; no machine has as many"));
  return s;
}

GRADUS_BODY shard_maker::function shard_maker::find(std::string_view name) {
  function found = nullptr;
  for (const shard_maker* m = first(); m != nullptr; m = m->next_) {
    if (m->name_ != name || m->make_ == found) continue;
    if (found != nullptr) return nullptr;
    found = m->make_;
  }
  return found;
}

}  // namespace gradus::detail
