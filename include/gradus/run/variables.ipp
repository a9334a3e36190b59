// The bodies of variables.hpp.
#pragma once
#include <cstring>

#include "../base/body.hpp"
#include "variables.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY int variable_arena::declare(const variable_info& v) {
  if (v.init.kind == initializer::from_value)
    raise(status::unimplemented, text("variable \"", v.name,
                                      "\" starts from a value of the graph, which only a session "
                                      "computes; give it an initializer, or run the graph in a session"));
  const int at = find(v.name);
  if (at < 0) {
    const std::size_t n = infos_.size();
    infos_.resize(n + 1);
    infos_[n] = v;
    infos_[n].bytes = v.size() * size_of(v.type);
    return static_cast<int>(n);
  }
  const variable_info& known = infos_[static_cast<std::size_t>(at)];
  if (known.type != v.type || !(known.dims == v.dims))
    raise(status::invalid_argument,
          text("variable \"", v.name, "\" is ", name_of(known.type), " ", to_text(known.dims),
               " in one graph of the model and ", name_of(v.type), " ", to_text(v.dims), " in another"));
  return at;
}

GRADUS_BODY void variable_arena::allocate(std::size_t mirrors) {
  allocate(mirrors, [this](std::size_t, std::size_t i) { return infos_[i].bytes; });
}

GRADUS_BODY void variable_arena::count_steps(std::int64_t global_step) {
  if (steps_ < 0) return;
  const auto i = static_cast<std::size_t>(steps_);
  const variable_info& v = info(i);
  if (v.trainable || v.local || v.dims.rank != 0) return;
  const auto put = [&](auto number) { std::memcpy(value(i), &number, sizeof number); };
  if (v.type == int64) put(global_step);
  if (v.type == int32) put(static_cast<std::int32_t>(global_step));
  if (v.type == float64) put(static_cast<double>(global_step));
  if (v.type == float32) put(static_cast<float>(global_step));
}
GRADUS_BODY bool variable_arena::initialized() const {
  for (const variable_info& v : infos_)
    if (!v.local && v.name != "global_step" && !v.initialized) return false;
  return true;
}

GRADUS_BODY void variable_arena::zero_part(std::size_t i, int part, int parts) {
  const auto zero = [&](std::byte* from, std::size_t bytes) {
    const line_range lines = lines_of_part(bytes, part, parts);
    std::memset(from + lines.first * alignment, 0, (lines.last - lines.first) * alignment);
  };
  zero(value(i), infos_[i].bytes);
  if (!infos_[i].trainable) return;
  zero(gradient(i), infos_[i].bytes);
  for (std::size_t k = 0; k < mirror_bytes_.size() / infos_.size(); ++k)
    zero(mirror(k, i), mirror_bytes_[k * infos_.size() + i]);
}

GRADUS_BODY void variable_arena::release_mirrors() {
#if defined(MADV_DONTNEED)
  constexpr std::size_t page = 1 << 16;  // a multiple of a page everywhere
  const auto begin = reinterpret_cast<std::uintptr_t>(memory_.data());
  const std::size_t from = (begin + bytes_ - mirror_bytes() + page - 1) / page * page - begin;
  const std::size_t to = (begin + bytes_) / page * page - begin;
  if (bytes_ >= aligned_buffer::large_from && from < to) ::madvise(memory_.data() + from, to - from, MADV_DONTNEED);
#endif
}

GRADUS_BODY int variable_arena::find(std::string_view name) const {
  for (std::size_t i = 0; i < infos_.size(); ++i)
    if (infos_[i].name == name) return static_cast<int>(i);
  return -1;
}

GRADUS_BODY tensor_view variable_arena::named(std::string_view name) {
  if (const int i = find(name); i >= 0) return view(static_cast<std::size_t>(i));
  std::string known;
  for (const variable_info& v : infos_) known += text(known.empty() ? "" : ", ", v.name);
  raise(status::not_found, text("the model has no variable \"", name, "\"; it has ", known));
}

GRADUS_BODY tensor_view variable_arena::mirror_view(std::size_t k, std::size_t i) {
  return {infos_[i].type, resolve(infos_[i].dims, 1), mirror(k, i)};
}

}  // namespace gradus
