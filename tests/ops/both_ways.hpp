// A model's predictions as bytes, compiled and interpreted.
#pragma once
#include <gradus/cpu/device.hpp>
#include <gradus/run/machine.hpp>
#include <gradus/run/model.hpp>

#include <doctest/doctest.h>

#include <cstring>
#include <string_view>
#include <vector>

namespace ops_test {

using fed = std::vector<std::pair<std::string_view, std::vector<std::uint8_t>>>;  // placeholders of bools
using results = std::vector<std::vector<std::byte>>;

inline results run_ready(const gradus::runnable& r, std::int64_t batch_size, const fed& feeds) {
  gradus::step_machine m;
  m.connect(
      r, [](int) -> std::byte* { return nullptr; }, [](int) -> std::byte* { return nullptr; });
  m.bind(batch_size);
  for (int i = 0; i < r.graph.view.size; ++i)
    for (const auto& [name, bytes] : feeds) {
      if (r.at(i).op != &gradus::placeholder_card || r.name_of(i) != name) continue;
      const gradus::tensor_view v = m.view(i);
      REQUIRE(v.size() == bytes.size());
      if (v.type == gradus::float32)
        for (std::size_t k = 0; k < bytes.size(); ++k) v.mutable_as<float>()[k] = static_cast<float>(bytes[k]);
      else
        std::memcpy(v.mutable_data(), bytes.data(), bytes.size());
    }
  m.run([](const gradus::bound_call&) { FAIL("nothing here is the session's"); });
  results all;
  for (int o = 0; o < r.graph.output_count; ++o) {
    const gradus::tensor_view v = m.view(r.graph.outputs[o].node);
    all.emplace_back(v.bytes().begin(), v.bytes().end());
  }
  return all;
}
// The predictions of the model, which are the same bytes both ways. It has no variables.
template <auto Build>
results both_ways(std::int64_t batch_size, const fed& feeds) {
  using namespace gradus;
  const results compiled = run_ready(
      compiled_model<Build, cpu<fast>, gating::none, false, true>{}.template get<mode::predict>(), batch_size, feeds);
  const interpreted_model<cpu<fast>, ops<>, gating::none, false, true> model(Build);
  CHECK(run_ready(model.template get<mode::predict>(), batch_size, feeds) == compiled);
  return compiled;
}
template <class T>
T number_at(const results& all, std::size_t output, std::size_t element) {
  T x;
  std::memcpy(&x, all[output].data() + element * sizeof(T), sizeof(T));
  return x;
}

}  // namespace ops_test
