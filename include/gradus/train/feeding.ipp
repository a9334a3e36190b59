// The bodies of feeding.hpp.
#pragma once
#include <algorithm>

#include "../base/body.hpp"
#include "feeding.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY void add_placeholder(std::vector<placeholder_info>& list, const placeholder_info& p) { list.push_back(p); }

// Returns a warning that lists the pairs if two components could be exchanged without an error, otherwise "".
GRADUS_BODY std::string doubt_of_order(std::span<const placeholder_info> wanted, const components& parts) {
  std::string pairs;
  bool ambiguous = false;
  const std::size_t n = std::min(wanted.size(), parts.size());
  for (std::size_t k = 0; k < n; ++k) {
    if (parts[k].name.empty()) return {};
    pairs += text(k == 0 ? "\"" : ", \"", wanted[k].name, "\" from \"", parts[k].name, '"');
    for (std::size_t i = 0; i < k; ++i)
      ambiguous = ambiguous || (parts[i].type == parts[k].type && count(parts[i].dims) == count(parts[k].dims));
  }
  if (!ambiguous) return {};
  return text("no component of the data has the name of a placeholder, so they are fed in their order: ", pairs,
              "; give the components the placeholders' names if this is not meant");
}

// Whether the component has the extents of the placeholder's example, but in another order ({3, 32, 32} for
// {32, 32, 3}). Other extents of the same product are joined or cut ({28, 28} and {784}), which changes no order.
GRADUS_BODY bool is_transposed(const shape& placeholder, const extents& component) {
  std::vector<std::int64_t> a, b;  // the extents that are not 1
  for (int i = 0; i < placeholder.rank; ++i)
    if (const int e = placeholder.dims[i]; e != 1 && e != batch) a.push_back(e < 0 ? -e : e);
  for (int i = 0; i < component.rank; ++i)
    if (component[i] != 1) b.push_back(component[i]);
  return a != b && a.size() == b.size() && std::is_permutation(a.begin(), a.end(), b.begin());
}
GRADUS_BODY feed_plan match_feeds(std::span<const placeholder_info> wanted, const components& parts,
                                  std::int64_t batch_size) {
  bool by_name = false;
  for (const auto& p : wanted)
    for (const auto& c : parts) by_name = by_name || c.name == p.name;
  feed_plan plan;
  plan.targets.resize(parts.size());
  for (std::size_t k = 0; k < wanted.size(); ++k) {
    const auto& p = wanted[k];
    std::size_t at = parts.size();
    if (by_name) {
      for (std::size_t i = 0; i < parts.size(); ++i)
        if (parts[i].name == p.name) at = i;
    } else if (k < parts.size())
      at = k;
    if (at == parts.size()) {
      if (!p.used) continue;
      raise(status::invalid_argument, text("placeholder \"", p.name, "\" is not fed: the dataset has ", to_text(parts),
                                           "; give one of these its name"));
    }
    const auto& c = parts[at];
    const bool same = c.type == p.type && is_batched(p.dims) && -count(p.dims) == count(c.dims);
    if (same && before_batch(p.dims) != 1)  // the examples come one after another
      raise(status::invalid_argument, text("placeholder \"", p.name, "\" is ", to_text(p.dims),
                                           ", and a dataset's batch is the first extent; make "
                                           "it the first, and transpose the placeholder"));
    if (!same || is_transposed(p.dims, c.dims))
      raise(status::invalid_argument,
            text("placeholder \"", p.name, "\" is ", name_of(p.type), " ", to_text(p.dims), ", but the dataset's \"",
                 c.name, "\" is ", name_of(c.type), " ", to_text(c.dims), " per example; make one as the other"));
    plan.targets[at].node = p.node;
  }
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (plan.targets[i].node < 0)
      plan.targets[i].unused.resize(size_bytes(parts[i]) * static_cast<std::size_t>(batch_size));
  plan.views.resize(parts.size());
  if (!by_name) plan.doubt = doubt_of_order(wanted, parts);
  return plan;
}

GRADUS_BODY void check_passing(std::int64_t batches, saved_input how) {
  if (batches <= 0 || how != saved_input::if_it_fits) return;
  raise(status::failed_precondition,
        text("restore_input is if_it_fits, and this task of a cluster has contributed ", batches,
             " batches: it has no checkpoint of its own, so it cannot know whether its input is the one that they came "
             "from. Give every task saved_input::ignored, which reads another input from its beginning, or "
             "saved_input::required, which goes on in the same input"));
}

GRADUS_BODY void point_to_feeds(feed_plan& plan, const components& parts, std::int64_t batch_size, step_machine& m) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    extents dims{batch_size};
    for (int k = 0; k < parts[i].dims.rank; ++k) dims.push(parts[i].dims[k]);
    feed_target& target = plan.targets[i];
    plan.views[i] = tensor_view(parts[i].type, dims, target.node >= 0 ? m.address(target.node) : target.unused.data());
  }
}

// Tensors move down in memory, and the batch moves with them.
GRADUS_BODY void shorten_batch(feed_plan& plan, const components& parts, std::int64_t n, step_machine& m) {
  m.bind(n);
  for (int slot = 0; slot < m.what().program.slot_count; ++slot)
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const int node = plan.targets[i].node;
      if (node >= 0 && m.what().program.places[node].index == slot)
        std::memmove(m.address(node), plan.views[i].data, static_cast<std::size_t>(n) * size_bytes(parts[i]));
    }
}

GRADUS_RARE const placeholder_info& placeholder_of(std::span<const placeholder_info> wanted, const feed& f) {
  if (f.g != nullptr) raise(status::invalid_argument, "feed a step by the names of placeholders, not by tensors");
  for (const auto& p : wanted)
    if (p.name == f.name) return p;
  std::string names;
  for (const auto& p : wanted) names += text(names.empty() ? "" : ", ", '"', p.name, '"');
  raise(status::not_found, text("feed \"", f.name, "\": the model has no placeholder of this name; it has ", names));
}

GRADUS_RARE_BODY std::int64_t check_feeds(std::span<const placeholder_info> wanted, std::span<const feed> feeds) {
  std::int64_t examples = -1;
  for (std::size_t i = 0; i < feeds.size(); ++i) {
    const placeholder_info& p = placeholder_of(wanted, feeds[i]);
    for (std::size_t k = 0; k < i; ++k)
      if (feeds[k].name == p.name)
        raise(status::invalid_argument, text("feed \"", p.name, "\" is given twice; give it once"));
    const std::int64_t n = batch_of(p.name, p.dims, feeds[i].data);
    if (n >= 0 && examples >= 0 && n != examples)
      raise(status::invalid_argument,
            text("feed \"", p.name, "\" holds ", n, " examples, another feed ", examples, "; feed as many of each"));
    if (n >= 0) examples = n;
  }
  if (examples == 0)
    raise(status::invalid_argument,
          text("the feeds hold no examples: \"", feeds[0].name, "\" is empty; feed one or more"));
  const std::int64_t batch_size = examples < 0 ? 1 : examples;
  for (const auto& p : wanted) {
    const feed* fed = nullptr;
    for (const feed& f : feeds)
      if (f.name == p.name) fed = &f;
    if (fed != nullptr)
      accept_feed(p.name, p.dims, p.type, batch_size, fed->data, nullptr);
    else if (p.used)
      raise(status::invalid_argument,
            text("placeholder \"", p.name, "\" is needed and was not fed: give {\"", p.name, "\", data}"));
  }
  return batch_size;
}

GRADUS_RARE_BODY void copy_feeds(std::span<const placeholder_info> wanted, std::span<const feed> feeds,
                                 std::int64_t batch_size, step_machine& m) {
  for (const feed& f : feeds) {
    const placeholder_info& p = placeholder_of(wanted, f);
    accept_feed(p.name, p.dims, p.type, batch_size, f.data, m.address(p.node));
  }
}

}  // namespace gradus::detail
