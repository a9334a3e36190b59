// The bodies of as_batches.hpp.
#pragma once
#include "../base/body.hpp"
#include "as_batches.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY elements_as_batches::elements_as_batches(any_dataset source, std::int64_t n)
    : source_(std::move(source)), size_(n) {
  if (n < 1) raise(status::invalid_argument, text("as_batches(", n, "): expected batches of at least one element"));
  for (component c : source_.element_spec()) {
    if (c.dims.rank == 0)
      raise(status::invalid_argument, text("as_batches: \"", c.name, "\" is a scalar and has no rows"));
    c.dims = detail::without_lead(c.dims);
    spec_.push_back(std::move(c));
  }
}

GRADUS_BODY bool elements_as_batches::pull_unit(datum& out) {
  if (!source_.pull(out)) return false;
  detail::check_unit(out, spec_, true, "as_batches");
  if (out.about(0).dims[0] > size_)
    raise(status::invalid_argument, text("as_batches(", size_, "): found a batch of ", out.about(0).dims[0]));
  return true;
}

}  // namespace gradus
