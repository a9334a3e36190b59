// The bodies of text_line.hpp.
#pragma once
#include "../base/body.hpp"
#include "text_line.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY bool text_line_dataset::pull_unit(datum& out) {
  return files_.next([&](std::string_view bytes, bool last) {
    detail::found_record found;
    std::string_view line;
    if (!detail::line_in(bytes, last, line, found)) {
      found.what = detail::found_record::kind::partial;
      return found;
    }
    out.clear();
    const tensor_view to = out.add(spec_[0].name, uint8, {static_cast<std::int64_t>(line.size())});
    if (!line.empty()) std::memcpy(to.mutable_data(), line.data(), line.size());
    return found;
  });
}

GRADUS_BODY text_line_dataset::text_line_dataset(file_list files, const text_line_options& how,
                                                 const any_file_system& fs)
    : files_("text_line", std::move(files), {how.compression, how.ignore_errors, how.limits}, fs) {}

GRADUS_BODY text_line_dataset text_line(file_list files, const text_line_options& how, const any_file_system& fs) {
  return text_line_dataset(std::move(files), how, fs);
}

}  // namespace gradus
