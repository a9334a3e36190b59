// The bodies of spec.hpp.
#pragma once
#include "../../base/body.hpp"
#include "spec.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY std::string_view name_of(queue_kind kind) {
  switch (kind) {
  case queue_kind::fifo: return "fifo_queue";
  case queue_kind::random_shuffle: return "random_shuffle_queue";
  case queue_kind::padding_fifo: return "padding_fifo_queue";
  case queue_kind::priority: return "priority_queue";
  }
  return "queue";
}

GRADUS_BODY queue_spec make_queue_spec(queue_kind kind, std::int64_t capacity, std::vector<dtype> dtypes,
                                       queue_options options) {
  queue_spec spec{kind, capacity, std::move(dtypes), std::move(options.shapes), std::move(options.names)};
  spec.shared_name = std::move(options.shared_name);
  spec.name = std::move(options.name);
  spec.seed = options.seed, spec.seed2 = options.seed2;
  return spec;
}

GRADUS_BODY std::string queue_spec::shown_name() const {
  return !shared_name.empty() ? shared_name : !name.empty() ? name : std::string(name_of(kind));
}

GRADUS_BODY bool queue_spec::has_fixed_size() const {
  return has_shapes() &&
         std::all_of(shapes.begin(), shapes.end(), [](const extents& e) { return gradus::has_fixed_size(e); });
}

GRADUS_BODY components queue_spec::parts() const {
  components out;
  for (std::size_t k = 0; k < dtypes.size(); ++k)
    out.push_back({names.empty() ? text("component_", k) : names[k], dtypes[k], has_shapes() ? shapes[k] : extents{}});
  return out;
}

GRADUS_BODY void queue_spec::check() const {
  const auto refuse = [&](const auto&... why) {
    raise(status::invalid_argument, text(name_of(kind), " \"", shown_name(), "\": ", why...));
  };
  if (capacity == 0) refuse("expected a capacity of at least 1, or below 0 for no bound; found 0");
  if (dtypes.empty()) refuse("an element has at least one component; give dtypes");
  for (std::size_t k = 0; k < dtypes.size(); ++k)
    if (dtypes[k] == dtype::none) refuse("component ", k, " has no dtype; give one, such as float32");
  if (kind == queue_kind::padding_fifo && !has_shapes())
    refuse("it pads extents that it knows to be variable; give the shape of each component, with any_extent there");
  if (has_shapes() && shapes.size() != dtypes.size())
    refuse("expected one shape for each of the ", dtypes.size(), " components, found ", shapes.size());
  for (const extents& e : shapes)
    for (int i = 0; i < e.rank; ++i)
      if (e[i] < any_extent || (e[i] == any_extent && kind != queue_kind::padding_fifo))
        refuse("all extents must be known, found ", to_text(e),
               "; leave shapes out, or take a padding_fifo_queue, which has any_extent");
  if (!names.empty() && names.size() != dtypes.size())
    refuse("expected one name for each of the ", dtypes.size(), " components, found ", names.size());
  for (std::size_t k = 0; k < names.size(); ++k)
    for (std::size_t other = 0; other < k; ++other)
      if (names[k] == names[other]) refuse("two components are called \"", names[k], "\"; rename one of them");
  if (kind == queue_kind::priority && (dtypes[0] != int64 || (has_shapes() && shapes[0].rank != 0)))
    refuse("component 0 is its key, an int64 scalar");
  if (kind != queue_kind::random_shuffle && (seed != 0 || seed2 != 0 || min_after_dequeue != 0))
    refuse("only a random_shuffle_queue has seeds; leave them out");
  if (min_after_dequeue < 0 || (capacity >= 0 && min_after_dequeue >= capacity))
    refuse("expected 0 <= min_after_dequeue < capacity, found min_after_dequeue ", min_after_dequeue, " and capacity ",
           capacity);
}

GRADUS_BODY std::int64_t queue_spec::check_element(std::span<const const_tensor_view> element, bool many) const {
  const auto refuse = [&](const auto&... why) {
    raise(status::invalid_argument, text("queue \"", shown_name(), "\": ", why...));
  };
  if (element.size() != dtypes.size())
    refuse("expected ", dtypes.size(), " components of an element, got ", element.size());
  const auto called = [&](std::size_t k) {
    return names.empty() ? text("component ", k) : text("component ", k, " (\"", names[k], "\")");
  };
  for (std::size_t k = 0; k < element.size(); ++k) {
    const const_tensor_view& part = element[k];
    if (part.type != dtypes[k])
      refuse(called(k), " has the wrong type: expected ", name_of(dtypes[k]), ", got ", name_of(part.type));
    if (many && part.dims.rank == 0) refuse(called(k), " is a scalar; enqueue_many takes rows of elements");
    if (many && part.dims[0] != element[0].dims[0])
      refuse(called(k), " has ", part.dims[0], " rows and component 0 has ", element[0].dims[0],
             "; enqueue_many takes the same number of each");
    const bool is_key = kind == queue_kind::priority && k == 0;
    if (!has_shapes() && !is_key) continue;
    const extents wanted = is_key ? extents{} : shapes[k];
    bool fits = part.dims.rank == wanted.rank + (many ? 1 : 0);
    for (int i = 0; fits && i < wanted.rank; ++i)
      fits = wanted[i] == any_extent || wanted[i] == part.dims[i + (many ? 1 : 0)];
    if (!fits)
      refuse(called(k), " has the wrong shape: expected ",
             to_text(many ? detail::with_lead(part.dims[0], wanted) : wanted), ", got ", to_text(part.dims));
  }
  return many ? element[0].dims[0] : 1;
}

GRADUS_BODY void check_same_queue(const queue_spec& existing, const queue_spec& wanted) {
  const auto refuse = [&](std::string_view what, const auto& has, const auto& wants) {
    raise(status::invalid_argument,
          text("the shared queue \"", existing.shown_name(), "\" has ", what, " ", has, " but was requested with ",
               what, " ", wants, "; make both alike, or give one of them another shared_name"));
  };
  if (existing.kind != wanted.kind) refuse("kind", name_of(existing.kind), name_of(wanted.kind));
  const auto bounded = [](std::int64_t capacity) { return std::max<std::int64_t>(capacity, -1); };
  if (bounded(existing.capacity) != bounded(wanted.capacity)) refuse("capacity", existing.capacity, wanted.capacity);
  const auto types = [](const queue_spec& s) {
    return detail::in_brackets(s.dtypes, [](dtype t) { return name_of(t); });
  };
  if (existing.dtypes != wanted.dtypes) refuse("component types", types(existing), types(wanted));
  const auto shapes = [](const queue_spec& s) {
    return detail::in_brackets(s.shapes, [](const extents& e) { return to_text(e); });
  };
  if (existing.shapes != wanted.shapes) refuse("component shapes", shapes(existing), shapes(wanted));
  if (existing.min_after_dequeue != wanted.min_after_dequeue)
    refuse("min_after_dequeue", existing.min_after_dequeue, wanted.min_after_dequeue);
  const bool any_seed = wanted.seed == 0 && wanted.seed2 == 0;
  if (!any_seed && (existing.seed != wanted.seed || existing.seed2 != wanted.seed2))
    refuse("seeds", text(existing.seed, " and ", existing.seed2), text(wanted.seed, " and ", wanted.seed2));
}

}  // namespace gradus
