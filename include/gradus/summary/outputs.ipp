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

}  // namespace gradus::detail
