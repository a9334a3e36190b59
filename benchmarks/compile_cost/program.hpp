// A program that trains a model with Adam, compiled: what the compile-cost models have in common.
#pragma once
#include <gradus/cpu/device.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/ops/loss.hpp>
#include <gradus/run/stepper.hpp>
#include <gradus/update/rules/adam.hpp>

template <auto Build>
int train() {
  using namespace gradus;
  using model = compiled_model<Build, cpu<fast>, gating::op, false, true>;
  const composed update{adam{.rate = 1e-3}};
  stepper<model, std::remove_const_t<decltype(update)>, cpu<fast>> s(model{}, update);
  s.allocate();
  s.initialize(1);
  s.template bound<mode::train>(4);
  for (int i = 0; i < 10; ++i) s.train_step();
  return *reinterpret_cast<const float*>(s.template output_of<mode::train>(output::loss).data) < 1e9f ? 0 : 1;
}
