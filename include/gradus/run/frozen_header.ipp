// The bodies of frozen_header.hpp.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>

#include "../base/body.hpp"
#include "../ops/frozen.hpp"
#include "c_header.ipp"
#include "frozen_header.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {

class frozen_writer {
public:
  frozen_writer(const state_list& values, const frozen_header_options& options) : values_(values), o_(options) {}

  std::string text() {
    if (o_.name.empty() || c_identifier(o_.name) != o_.name)
      raise(status::invalid_argument,
            gradus::text("\"", o_.name, "\" is no name for a namespace: it needs letters, digits and _"));
    if (is_keyword(o_.name))
      raise(status::invalid_argument, gradus::text("\"", o_.name, "\" is a word of C++, and no name for a namespace"));
    const auto layers = o_.layers.empty() ? all_layers() : o_.layers;
    if (o_.layers.empty()) check_no_batch_norm();
    if (layers.empty())
      raise(status::not_found,
            "the list holds no variable \"<layer>/kernel\" or \"<layer>/depthwise_kernel\", so there is nothing to "
            "write; give the list of what a stepper of the model remembers");
    std::string out = "// Layers in 8 bits, written by gradus::frozen_header; do not edit.\n#pragma once\n";
    out += "#include <gradus/cpu/frozen.hpp>\n\nnamespace " + o_.name + " {\n";
    for (const auto& layer : layers) out += constant(layer);
    return out + "}  // namespace " + o_.name + "\n";
  }

private:
  const state_list& values_;
  const frozen_header_options& o_;
  std::vector<std::string> names_;  // of constants, so far

  static constexpr std::string_view kernel = "/kernel", depthwise_kernel = "/depthwise_kernel";

  static bool is_keyword(std::string_view name) {
    for (const std::string_view word :
         {"alignas",     "alignof",   "and",        "and_eq",    "asm",      "auto",         "bitand",
          "bitor",       "bool",      "break",      "case",      "catch",    "char",         "char8_t",
          "char16_t",    "char32_t",  "class",      "compl",     "concept",  "const",        "consteval",
          "constexpr",   "constinit", "const_cast", "continue",  "co_await", "co_return",    "co_yield",
          "decltype",    "default",   "delete",     "do",        "double",   "dynamic_cast", "else",
          "enum",        "explicit",  "export",     "extern",    "false",    "float",        "for",
          "friend",      "goto",      "if",         "inline",    "int",      "long",         "mutable",
          "namespace",   "new",       "noexcept",   "not",       "not_eq",   "nullptr",      "operator",
          "or",          "or_eq",     "private",    "protected", "public",   "register",     "reinterpret_cast",
          "requires",    "return",    "short",      "signed",    "sizeof",   "static",       "static_assert",
          "static_cast", "struct",    "switch",     "template",  "this",     "thread_local", "throw",
          "true",        "try",       "typedef",    "typeid",    "typename", "union",        "unsigned",
          "using",       "virtual",   "void",       "volatile",  "wchar_t",  "while",        "xor",
          "xor_eq"})
      if (word == name) return true;
    return false;
  }
  std::string names_of(const std::vector<frozen_header_layer>& layers) const {
    std::string names;
    for (const auto& layer : layers) names += (names.empty() ? "" : ", ") + layer.name;
    return names.empty() ? "none" : names;
  }
  // Raises invalid_argument if a layer's batch_norm would be left out silently.
  void check_no_batch_norm() const {
    for (const state_entry& e : values_.entries())
      if (std::string_view(e.name).ends_with("/moving_mean"))
        raise(
            status::invalid_argument,
            gradus::text("the list holds \"", e.name,
                         "\", so a layer is followed by a batch_norm; give .layers, each with its batch_norm's scope: ",
                         names_of(all_layers())));
  }
  std::vector<frozen_header_layer> all_layers() const {
    std::vector<frozen_header_layer> all;
    for (const state_entry& e : values_.entries())
      for (const std::string_view end : {kernel, depthwise_kernel})
        if (e.name.size() > end.size() && std::string_view(e.name).ends_with(end) &&
            (e.dims.rank == 2 || e.dims.rank == 4))
          all.push_back({e.name.substr(0, e.name.size() - end.size())});
    return all;
  }
  // Returns the numbers of a variable, which must have `expected` of them unless that is 0.
  std::vector<float> numbers_of(const std::string& name, std::size_t expected = 0) const {
    const state_entry* e = values_.find(name);
    if (e == nullptr)
      raise(status::not_found,
            gradus::text("the list holds no variable \"", name, "\", which a batch_norm has; give the scope of one"));
    std::vector<float> numbers(e->bytes.size() / sizeof(float));
    if (e->type != float32 || (expected != 0 && numbers.size() != expected))
      raise(status::failed_precondition,
            gradus::text("the variable \"", name, "\" is ", name_of(e->type), to_text(e->dims), "; expected float32",
                         expected != 0 ? gradus::text(" [", expected, "]") : ""));
    if (!numbers.empty()) std::memcpy(numbers.data(), e->bytes.data(), e->bytes.size());
    return numbers;
  }
  bool has(const std::string& name) const { return values_.find(name) != nullptr; }

  std::string constant(const frozen_header_layer& layer) {
    const std::string name = c_identifier(layer.name) + (is_keyword(layer.name) ? "_" : "");
    if (std::find(names_.begin(), names_.end(), name) != names_.end())
      raise(status::invalid_argument, gradus::text("two layers would have the constant \"", name, "\""));
    names_.push_back(name);
    const bool depthwise = has(layer.name + std::string(depthwise_kernel));
    if (!depthwise && !has(layer.name + std::string(kernel)))
      raise(status::not_found, gradus::text("the list holds no layer \"", layer.name, "\", which is a variable \"",
                                            layer.name, "/kernel\" or \"", layer.name,
                                            "/depthwise_kernel\"; its layers are ", names_of(all_layers())));
    const std::string variable = layer.name + std::string(depthwise ? depthwise_kernel : kernel);
    std::vector<float> weights = numbers_of(variable);
    const extents& dims = values_.find(variable)->dims;
    if ((dims.rank != 4 && (depthwise || dims.rank != 2)) || weights.empty())
      raise(status::failed_precondition,
            gradus::text("the variable \"", variable, "\" is float32", to_text(dims), "; expected ",
                         depthwise ? "" : "[in, units] or ", "four extents, each above 0"));
    const auto channels = static_cast<std::size_t>(depthwise ? dims[2] * dims[3] : dims[dims.rank - 1]);
    std::vector<float> bias(channels, 0.0f);
    if (has(layer.name + "/bias")) bias = numbers_of(layer.name + "/bias", channels);
    if (!layer.batch_norm.empty()) fold(layer, weights, bias);
    return written(name, depthwise ? "depthwise_conv2d" : dims.rank == 2 ? "dense" : "conv2d", dims, weights, bias);
  }
  // Folds y = (x + bias - mean) * factor + beta into weights and a bias.
  void fold(const frozen_header_layer& layer, std::vector<float>& weights, std::vector<float>& bias) const {
    const std::size_t channels = bias.size();
    const auto of = [&](const char* which) { return numbers_of(layer.batch_norm + which, channels); };
    const auto mean = of("/moving_mean"), variance = of("/moving_variance");
    const auto gamma = has(layer.batch_norm + "/gamma") ? of("/gamma") : std::vector<float>(channels, 1.0f);
    const auto beta = has(layer.batch_norm + "/beta") ? of("/beta") : std::vector<float>(channels, 0.0f);
    std::vector<double> factor(channels);
    for (std::size_t c = 0; c < channels; ++c) factor[c] = gamma[c] / std::sqrt(variance[c] + layer.epsilon);
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(weights[i] * factor[i % channels]);
    for (std::size_t c = 0; c < channels; ++c)
      bias[c] = static_cast<float>((static_cast<double>(bias[c]) - mean[c]) * factor[c] + beta[c]);
  }
  std::string written(const std::string& name, std::string_view layer, const extents& dims,
                      const std::vector<float>& weights, const std::vector<float>& bias) const {
    std::vector<std::int8_t> codes(weights.size());
    std::vector<float> scales(bias.size());
    quantize_channels(weights, bias, codes.data(), scales.data(), scales.size());
    std::string out = "inline constexpr gradus::frozen_" + std::string(layer) + "_weights<";
    for (int i = 0; i < dims.rank; ++i) out += (i == 0 ? "" : ", ") + gradus::text(dims[i]);
    out += "> " + name + "{\n    .codes = {";
    list(out, codes, 24, [](std::int8_t code) { return gradus::text(static_cast<int>(code)); });
    out += ",\n    .scales = {", list(out, scales, 8, c_literal);
    out += ",\n    .bias = {", list(out, bias, 8, c_literal);
    return out + "};\n";
  }
  template <class T, class F>
  static void list(std::string& out, const std::vector<T>& numbers, std::size_t line, F text) {
    for (std::size_t i = 0; i < numbers.size(); ++i)
      out += (i == 0 ? "" : ",") + std::string(i % line == 0 ? "\n        " : " ") + text(numbers[i]);
    out += "}";
  }
};

}  // namespace detail

GRADUS_BODY std::string frozen_header(const state_list& values, const frozen_header_options& options) {
  return detail::frozen_writer(values, options).text();
}

}  // namespace gradus
