// The bodies of outputs.hpp.
#pragma once
#include "../base/body.hpp"
#include "outputs.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY void require_images(std::string_view tag) {
  if (detail::show_images == nullptr)
    raise(status::failed_precondition, text("the summary \"", tag,
                                            "\" is of images; include <gradus/summary/image.hpp> in the program, "
                                            "which brings what makes PNG of them, and compile with -DGRADUS_STB "
                                            "(the CMake target gradus::gradus does where it finds stb)"));
}

GRADUS_RARE_BODY bool check_summaries(const output* outputs, int count, const char* names) {
  const auto name_at = [names](int offset) { return offset < 0 ? std::string_view() : names + offset; };
  bool more = false;
  for (int i = 0; i < count; ++i) {
    const output& o = outputs[i];
    if (!o.is_summary()) continue;
    const auto tag = name_at(o.name);
    for (int k = i + 1; k < count; ++k) {
      const output& other = outputs[k];
      const bool rate = o.kind == output::audio && k == i + 1;  // the clips' second output
      if (other.is_summary() && !rate && name_at(other.name) == tag)
        raise(status::invalid_argument,
              text("Duplicate tag ", tag, " found in summary inputs; give one of them another name"));
    }
    if (o.kind == output::histogram) {
      bool is_scalar = tag == "loss" || tag == "learning_rate" || tag == "gradient_norm" || tag == "global_step/sec";
      for (int k = 0; k < count; ++k)
        is_scalar = is_scalar || (outputs[k].kind == output::metric && name_at(outputs[k].name) == tag);
      if (is_scalar)
        raise(status::invalid_argument, text("Duplicate tag ", tag,
                                             " found in summary inputs: a run writes a scalar of this name; give the "
                                             "histogram another one"));
    }
    if (o.kind == output::image) require_images(tag);
    if (o.kind == output::audio) ++i;
    more = more || o.kind != output::summary;
  }
  return more;
}

}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

GRADUS_RARE_BODY summary_values summarize_output(int kind, std::string_view tag, const const_tensor_view& v,
                                                 const const_tensor_view& rate) {
  if (kind == output::histogram) switch (v.type) {
    case dtype::float32: return histogram_summary(tag, v.as<float>());
    case dtype::float64: return histogram_summary(tag, v.as<double>());
    case dtype::int32: return histogram_summary(tag, v.as<std::int32_t>());
    case dtype::int64: return histogram_summary(tag, v.as<std::int64_t>());
    case dtype::uint8: return histogram_summary(tag, v.as<std::uint8_t>());
    case dtype::boolean: return histogram_summary(tag, v.as<bool>());
    case dtype::float16: return histogram_summary(tag, v.as<half>());
    case dtype::bfloat16: return histogram_summary(tag, v.as<bfloat>());
    default: break;
    }
  if (kind == output::image) {
    detail::require_images(tag);
    if (v.type == dtype::float32 || v.type == dtype::float64 || v.type == dtype::uint8)
      return detail::show_images(tag, v);
  }
  if (kind == output::audio && v.type == dtype::float32) {
    const auto extent = [&](int i) { return i < v.dims.rank ? static_cast<std::int64_t>(v.dims[i]) : 1; };
    return audio_summary(tag, v.as<float>(), {extent(0), extent(1), extent(2)}, rate.as<float>()[0]);
  }
  raise(status::invalid_argument,
        text("the summary \"", tag, "\" cannot show ", name_of(v.type), "; cast it to float32 in the model"));
}

}  // namespace gradus
