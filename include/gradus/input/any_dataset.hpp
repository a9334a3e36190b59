// `any_dataset` is a type-erased dataset: stages with many sources hold it, and functions that make datasets return it.
//
//   any_dataset d = idx("data/mnist/train").take(100);     elements
//   any_batches b = idx("data/mnist/train").batch(32);     batches
//
// Any dataset converts implicitly to an any_dataset. A batch of a batched dataset then becomes one element that has one
// extent more, in front (any_extent, since the last batch may be short), as in TensorFlow. Each call goes through a
// pointer, and making an any_dataset costs one allocation. It can be copied if the dataset in it can be copied (one
// with prefetch's thread cannot).
#pragma once
#include "../base/build.hpp"

#include <concepts>
#include <memory>
#include <type_traits>

#include "stage.hpp"

namespace gradus::inline GRADUS_BUILD {

template <bool Batched>
class any_units final : public composable<any_units<Batched>> {
public:
  template <class D>
    requires(!std::same_as<std::remove_cvref_t<D>, any_units> &&
             std::is_base_of_v<composable<std::remove_cvref_t<D>>, std::remove_cvref_t<D>>)
  any_units(D&& d) {
    using held = std::remove_cvref_t<D>;
    static_assert(dataset<held>, "gradus: a dataset has what stage.hpp lists");
    static_assert(!Batched || batched_dataset<held>, "gradus: expected a batched dataset here; end it with .batch(n)");
    if constexpr (std::is_base_of_v<composable<held>, held>) this->take_rule_of(d);
    body_ = std::make_unique<body<held>>(std::forward<D>(d));
  }
  any_units(any_units&&) = default;
  any_units& operator=(any_units&&) = default;
  // Raises failed_precondition if the dataset in it cannot be copied.
  any_units(const any_units& o) : composable<any_units>(o), body_(o.body_->copy()) {}
  any_units& operator=(const any_units& o) {
    any_units copy(o);
    return *this = std::move(copy);
  }

  const components& element_spec() const { return body_->element_spec(); }
  std::int64_t batch_size() const
    requires Batched
  {
    return body_->batch_size();
  }
  std::int64_t pull(std::span<const tensor_view> out, std::int64_t first, std::int64_t n) {
    return body_->pull(out, first, n);
  }
  bool pull(datum& out) { return body_->pull(out); }
  void rewind() { body_->rewind(); }
  void define(std::string& to) const { body_->define(to); }
  void write(position_writer& to) const { body_->write(to); }
  void read(position_reader& from) { body_->read(from); }
  std::int64_t cardinality() const { return body_->cardinality(); }
  std::string external_state() const { return body_->external_state(); }

private:
  struct face {
    virtual ~face() = default;
    virtual std::unique_ptr<face> copy() const = 0;
    virtual const components& element_spec() const = 0;
    virtual std::int64_t batch_size() const = 0;
    virtual std::int64_t pull(std::span<const tensor_view>, std::int64_t, std::int64_t) = 0;
    virtual bool pull(datum&) = 0;
    virtual void rewind() = 0;
    virtual void define(std::string&) const = 0;
    virtual void write(position_writer&) const = 0;
    virtual void read(position_reader&) = 0;
    virtual std::int64_t cardinality() const = 0;
    virtual std::string external_state() const = 0;
  };

  template <class D>
  struct body final : face {
    static constexpr bool stacks = batched_dataset<D> && !Batched;  // batches that are elements here

    explicit body(D&& from) : d(std::move(from)) { begin(); }
    explicit body(const D& from) : d(from) { begin(); }
    void begin() {
      if constexpr (stacks) stacked = detail::with_lead(any_extent, d.element_spec());
    }
    std::unique_ptr<face> copy() const override {
      if constexpr (std::copyable<D>)
        return std::make_unique<body>(d);
      else
        raise(status::failed_precondition,
              "this dataset cannot be copied: it has a thread (prefetch) or a source that cannot be copied; move it");
    }
    const components& element_spec() const override {
      if constexpr (stacks)
        return stacked;
      else
        return d.element_spec();
    }
    std::int64_t batch_size() const override {
      if constexpr (batched_dataset<D>)
        return d.batch_size();
      else
        return 0;
    }
    std::int64_t pull(std::span<const tensor_view> out, std::int64_t first, std::int64_t n) override {
      if constexpr (!stacks) return d.pull(out, first, n);
      if (!out.empty())
        raise(status::failed_precondition, "batches as elements differ in size; read them with next(datum&)");
      std::int64_t done = 0;
      while (done < n && d.pull({}, 0, 1) > 0) ++done;
      return done;
    }
    bool pull(datum& out) override { return detail::read_unit(d, out); }
    void rewind() override { d.rewind(); }
    void define(std::string& to) const override {
      d.define(to);
      if constexpr (stacks) to += ".stacked";
    }
    void write(position_writer& to) const override { d.write(to); }
    void read(position_reader& from) override { d.read(from); }
    std::int64_t cardinality() const override { return d.cardinality(); }
    std::string external_state() const override { return d.external_state(); }

    D d;
    components stacked;
  };

  std::unique_ptr<face> body_;
};

}  // namespace gradus
