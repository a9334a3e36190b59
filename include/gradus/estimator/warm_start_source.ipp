// The bodies of warm_start_source.hpp.
#pragma once
#include "../base/body.hpp"
#include "../checkpoint/match.hpp"
#include "../codec/detect.hpp"
#include "../codec/safetensors.hpp"
#include "../codec/state_file.hpp"
#include "../codec/tensor_bundle.hpp"
#include "warm_start_source.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
GRADUS_BODY found_checkpoint find_checkpoint(const std::string& path) {
  if (auto variables = variables_of_export(path, any_file_system()))
    return {*std::move(variables), any_codec(tensor_bundle{})};
  return with_codec<flat_binary, safetensors, tensor_bundle>(path, any_file_system(), [](auto c, const std::string& p) {
    return found_checkpoint{p, any_codec(c)};
  });
}
}  // namespace detail

GRADUS_BODY std::pair<warm_start_settings, any_codec> estimator_warm_start::source() const {
  warm_start_settings s = settings();
  if (s.ckpt_to_initialize_from.empty())
    raise(status::invalid_argument, "warm_start_from: ckpt_to_initialize_from must not be empty; give a path");
  if (codec_) return {std::move(s), *codec_};
  detail::found_checkpoint found = detail::find_checkpoint(s.ckpt_to_initialize_from);
  s.ckpt_to_initialize_from = std::move(found.path);
  return {std::move(s), std::move(found.codec)};
}

}  // namespace gradus
