// The bodies of evaluation_result.hpp.
#pragma once
#include <algorithm>
#include <optional>

#include "../base/body.hpp"
#include "../store/file.hpp"
#include "../store/wire.hpp"
#include "../summary/reader.hpp"
#include "../summary/values.hpp"
#include "evaluation_result.hpp"
#include "named_tensors.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY const owned_tensor& evaluation_result::tensor(std::string_view name) const {
  const auto found = all_.find(name);
  if (found != all_.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [n, v] : all_) names.push_back(n);
  raise(status::not_found, text("the evaluation has no \"", name, "\"; there are: ", detail::listed(names)));
}
GRADUS_BODY void evaluation_result::set_global_step(std::int64_t step) {
  step_ = step;
  set("global_step", const_tensor_view(std::span<const std::int64_t>(&step, 1), {}));
}

namespace detail {

GRADUS_BODY summary_value tensor_summary(std::string_view tag, const const_tensor_view& v) {
  summary_value out;
  out.tag = tag, out.node_name = tag, out.kind = value_kind::tensor;
  wire_writer w(out.bytes);
  tensor_head(w, static_cast<std::int64_t>(v.type), std::span(v.dims.dims, static_cast<std::size_t>(v.dims.rank)));
  w.bytes(4, std::span<const std::byte>(v.data, v.size_bytes()));
  return out;
}

// Returns nothing for a tensor of texts, and for one in another form than that of tensor_summary.
GRADUS_BODY std::optional<owned_tensor> tensor_of(std::span<const std::byte> message) {
  dtype type = dtype::none;
  extents dims;
  std::span<const std::byte> content;
  for (wire_reader r(message); r.next();)
    if (r.key() == field(1, wire::varint)) {
      const std::int64_t number = r.integer();
      if (number > 0 && number < 1000) type = static_cast<dtype>(number);
    } else if (r.key() == field(4, wire::length)) {
      content = r.bytes();
    } else if (r.key() == field(2, wire::length)) {
      for (wire_reader shape = r.message(); shape.next();) {
        if (shape.key() != field(2, wire::length)) continue;
        std::int64_t size = 0;
        for (wire_reader dim = shape.message(); dim.next();)
          if (dim.key() == field(1, wire::varint)) size = dim.integer();
        if (dims.rank == max_rank) return std::nullopt;
        dims.push(size);
      }
    }
  std::uint64_t bytes = size_of(type);
  if (bytes == 0) return std::nullopt;
  for (int i = 0; i < dims.rank; ++i)
    if (dims[i] < 0 || __builtin_mul_overflow(bytes, static_cast<std::uint64_t>(dims[i]), &bytes)) return std::nullopt;
  if (bytes != content.size()) return std::nullopt;
  return owned_tensor(const_tensor_view(type, dims, content.data()));
}

GRADUS_BODY std::vector<summary_value> summaries_of(const evaluation_result& r) {
  std::vector<summary_value> all;
  for (const auto& [name, v] : r)
    if (v.size() != 1)
      all.push_back(tensor_summary(name, v));
    else if (name != "global_step")
      all.push_back(scalar_summary(name, static_cast<float>(v.number())).front());
  return all;
}

GRADUS_BODY std::map<std::int64_t, evaluation_result> evaluations_in(const std::string& eval_dir,
                                                                     const reader_limits& limits) {
  std::map<std::int64_t, evaluation_result> all;
  const any_file_system files;
  std::vector<std::string> names;
  const int listed = uninterrupted([&] { return files.list(eval_dir, names); });
  if (listed == ENOENT) return all;
  if (listed != 0) raise(file_problem{.error = listed, .operation = "list", .path = eval_dir});
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    if (name.find(".tfevents.") == std::string::npos) continue;
    any_summary_iterator events(join_path(eval_dir, name), files, limits);
    for (event e; events.next(e);)
      for (const summary_value& v : e.values) {
        if (v.kind == value_kind::simple_value)
          all[e.step].set(v.tag, const_tensor_view(std::span<const float>(&v.simple_value, 1), {}));
        else if (v.kind == value_kind::tensor)
          if (const auto t = tensor_of(v.bytes)) all[e.step].set(v.tag, *t);
      }
  }
  for (auto& [step, r] : all) r.set_global_step(step);
  return all;
}

}  // namespace detail

}  // namespace gradus
