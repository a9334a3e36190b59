// The bodies of canned_input.hpp.
#pragma once
#include <algorithm>
#include <cstring>
#include <optional>

#include "../../base/body.hpp"
#include "../../input/map.hpp"
#include "canned_input.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY label_reader::label_reader(const component& label, const any_head& head)
    : part_(label), vocabulary_(head.label_vocabulary()), classes_(head.label_classes()) {
  const bool is_text = label.type == dtype::uint8 && label.dims.rank == 1 && label.dims[0] != 1;
  if (vocabulary_.empty()) {
    if (is_text && label.dims[0] == any_extent)
      raise(status::invalid_argument, text("the label \"", label.name, "\" is a text, uint8 ", to_text(label.dims),
                                           "; give the label_vocabulary, or labels that are numbers"));
    return;
  }
  if (label.type != dtype::uint8 || label.dims.rank != 1)
    raise(status::invalid_argument,
          text("the label \"", label.name, "\": Labels dtype should be string if there is a vocabulary. Instead got ",
               name_of(label.type), ' ', to_text(label.dims), "; a text is uint8 [bytes]"));
  part_ = {label.name, dtype::int64, {}};
}

GRADUS_BODY void label_reader::check(double label, std::int64_t row) const {
  if (!(label >= 0 && label <= classes_ - 1))
    raise(status::invalid_argument, text("the label \"", part_.name, "\" of example ", row, " of the batch is ", label,
                                         ", expected [0, ", classes_ - 1, "]: there are ", classes_, " classes"));
}

GRADUS_BODY void label_reader::read(const const_tensor_view& from, tensor_view to) const {
  if (!vocabulary_.empty()) {
    const auto bytes = static_cast<std::size_t>(from.dims[from.dims.rank - 1]);
    const char* at = reinterpret_cast<const char*>(from.data);
    std::int64_t row = 0;
    for (std::int64_t& id : to.mutable_as<std::int64_t>()) {
      std::size_t n = bytes;
      while (n > 0 && at[n - 1] == '\0') --n;
      const std::string_view word(at, n);
      const auto found = std::find(vocabulary_.begin(), vocabulary_.end(), word);
      if (found == vocabulary_.end())
        raise(status::invalid_argument,
              text("the label \"", part_.name, "\" of example ", row, " of the batch is \"", word,
                   "\", which the label_vocabulary of ", vocabulary_.size(), " texts does not have (it begins with \"",
                   vocabulary_.front(), "\"); correct the data, or add the text to label_vocabulary"));
      id = found - vocabulary_.begin();
      at += bytes, ++row;
    }
    return;
  }
  if (classes_ > 0) {
    const auto check_all = [&](auto list) {
      const auto each = list.empty() ? 1 : static_cast<std::int64_t>(list.size()) / from.dims[0];
      for (std::size_t i = 0; i < list.size(); ++i)
        check(static_cast<double>(list[i]), static_cast<std::int64_t>(i) / each);
    };
    switch (from.type) {
    case dtype::float32: check_all(from.as<float>()); break;
    case dtype::float64: check_all(from.as<double>()); break;
    case dtype::int32: check_all(from.as<std::int32_t>()); break;
    case dtype::int64: check_all(from.as<std::int64_t>()); break;
    case dtype::uint8: check_all(from.as<std::uint8_t>()); break;
    default: break;
    }
  }
  if (from.size_bytes() != 0) std::memcpy(to.mutable_data(), from.data, from.size_bytes());
}

// Returns whether a numeric column gives these weights: a component of their name with the numbers of the data.
GRADUS_BODY bool gives_weights(const feature_layout_settings* layout, const std::string& weights) {
  bool found = false;
  const auto look_at = [&](const numeric_column* c) {
    if (c == nullptr || c->name() != weights) return;
    if (!c->same_as(numeric_column(weights, {.shape = c->dims()})))
      raise(status::invalid_argument,
            text("the weight_column \"", weights,
                 "\" is also a numeric_column with a normalizer_fn or a default_value; let a map copy the feature "
                 "under another name, and make the copy the weight_column"));
    found = true;
  };
  if (layout == nullptr) return false;
  for (const dense_column& c : layout->input_layer) look_at(c.numeric());
  for (const linear_column& c : layout->linear_model)
    if (c.dense() != nullptr) look_at(c.dense()->numeric());
  return found;
}

// The function that the stage calls for each batch.
struct canned_stage {
  std::optional<feature_layout> layout;
  components kept;  // besides labels
  std::vector<label_reader> labels;
  components parts;

  void operator()(const datum& from, datum& to) const {
    if (from.size() == 0 || from.about(0).dims.rank == 0)
      raise(status::invalid_argument,
            "a canned estimator: expected batches from the input_fn; end its data with "
            ".batch(n) or .padded_batch(n)");
    const std::int64_t rows = from.about(0).dims[0];
    if (layout) {
      (*layout)(from, to);
    } else {
      to.clear();
      to.add(rows_component, dtype::float32, {rows});
      std::fill(to.values<float>(rows_component).begin(), to.values<float>(rows_component).end(), 0.0f);
      for (const component& c : kept) {
        const tensor_view v = to.add(c.name, c.type, with_lead(rows, c.dims));
        if (v.size_bytes() != 0) std::memcpy(v.mutable_data(), from[c.name].data, v.size_bytes());
      }
    }
    for (const label_reader& l : labels) {
      const const_tensor_view v = from[l.part().name];
      const extents dims = l.part().type == v.type ? v.dims : extents{rows};
      l.read(v, to.add(l.part().name, l.part().type, dims));
    }
  }
};

}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY estimator_input canned_input(estimator_input in, gradus::mode m, const feature_layout_settings* layout,
                                         const any_head& head, const canned_input_options& o) {
  const components& spec = in.batches.element_spec();
  const auto find = [&](std::string_view name) {
    return std::find_if(spec.begin(), spec.end(), [&](const component& c) { return c.name == name; });
  };
  detail::canned_stage stage;
  if (const std::string w = head.weight_column(); !w.empty())
    if (const auto c = find(w); c != spec.end() && !detail::gives_weights(layout, w)) stage.kept.push_back(*c);
  if (layout != nullptr) {
    feature_layout_settings s = *layout;
    s.keep = stage.kept;
    stage.layout.emplace(std::move(s));
    stage.parts = stage.layout->parts();
  } else {
    stage.parts.push_back({std::string(detail::rows_component), dtype::float32, {}});
    stage.parts.insert(stage.parts.end(), stage.kept.begin(), stage.kept.end());
  }
  if (m == gradus::mode::predict) in.labels.clear();
  for (const std::string& name : in.labels) {
    const auto c = find(name);
    if (c == spec.end())
      raise(status::not_found, text("input_fn: there is no label \"", name, "\"; a batch has ", to_text(spec)));
    stage.labels.emplace_back(*c, head);
    for (const component& part : stage.parts)
      if (part.name == name)
        raise(status::invalid_argument, text("the label \"", name,
                                             "\" is also what the columns make of a feature of "
                                             "this name; a label cannot be a feature"));
    stage.parts.push_back(stage.labels.back().part());
  }
  std::vector<std::string> labels = std::move(in.labels);
  const components parts = stage.parts;
  return {any_batches(std::move(in.batches).map(parts, std::move(stage), {.parallel = o.parallel})), std::move(labels)};
}

}  // namespace gradus
