// The bodies of warm_start_source.hpp.
#pragma once
#include "../base/body.hpp"
#include "../checkpoint/match.hpp"
#include "../codec/detect.hpp"
#include "../codec/open.hpp"
#include "../codec/safetensors.hpp"
#include "../codec/state_file.hpp"
#include "../codec/tensor_bundle.hpp"
#include "warm_start_source.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
// Detection does not know a codec of the program's own, which is recognized by the names of its files. Returns the path
// of its checkpoint; nothing for a codec of this library, and for files of another codec.
GRADUS_BODY std::optional<std::string> path_of_own(const std::string& path, const any_codec& own) {
  if (find_known_codec(own.name) != nullptr) return std::nullopt;
  const any_file_system fs;
  std::string at = path;
  if (head_of(fs, path, 0).error == EISDIR)
    at = latest_checkpoint(fs, path);
  else if (!at.ends_with(own.extension))
    at += own.extension;
  const auto stem = stem_of(at, own.extension);
  if (!stem || stem->empty()) return std::nullopt;
  const file_head head = head_of(fs, *stem + std::string(own.proof), frame::header_bytes);
  const bool is_of_another = head.begin.starts_with(frame::magic) && codec_in_frame(head.begin) != own.name;
  return head.error != 0 || is_of_another ? std::nullopt : std::optional(at);
}

GRADUS_BODY found_checkpoint find_checkpoint(const std::string& path, const any_codec& own) {
  if (auto variables = variables_of_export(path, any_file_system()))
    return {*std::move(variables), any_codec(tensor_bundle{})};
  if (auto mine = path_of_own(path, own)) return {*std::move(mine), own};
  const detected_checkpoint found = detect_checkpoint(path, any_file_system());
  if (found.codec == own.name && found.each == own.each) return {found.path, own};
  return with_codec<flat_binary, safetensors, tensor_bundle>(found, [](auto c, const std::string& p) {
    return found_checkpoint{p, any_codec(c)};
  });
}
}  // namespace detail

GRADUS_BODY std::pair<warm_start_settings, any_codec> estimator_warm_start::source() const {
  warm_start_settings s = settings();
  if (s.ckpt_to_initialize_from.empty())
    raise(status::invalid_argument, "warm_start_from: ckpt_to_initialize_from must not be empty; give a path");
  if (codec_) return {std::move(s), *codec_};
  detail::found_checkpoint found = detail::find_checkpoint(s.ckpt_to_initialize_from, own_);
  s.ckpt_to_initialize_from = std::move(found.path);
  return {std::move(s), std::move(found.codec)};
}

}  // namespace gradus
