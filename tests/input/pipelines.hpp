// What the tests of this room share: views over plain vectors, a counted source, and a dataset whose type is hidden.
#pragma once
#include <gradus/input/dataset.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../message.hpp"

namespace pipelines {

using namespace gradus;

inline std::vector<std::byte> position_of(auto& d) {
  state_list list;
  d.remembers(list);
  REQUIRE(list.entries().size() == 1);
  REQUIRE(list.entries()[0].name == "input");
  REQUIRE(list.entries()[0].dynamic != nullptr);
  std::vector<std::byte> out;
  list.entries()[0].dynamic->save(out);
  return out;
}
inline void restore(auto& d, std::span<const std::byte> from) {
  state_list list;
  d.remembers(list);
  list.entries()[0].dynamic->load(from);
}

// 0, 1, 2, ... in one int32 component "i". It counts what it is asked, and raises at an element if told so.
// Not indexed, so that what stands on it must hold copies.
class counted final : public composable<counted> {
public:
  explicit counted(std::int64_t size, std::int64_t bad = -1) : size_(size), bad_(bad) {}
  const components& element_spec() const { return spec_; }
  std::int64_t pull(std::span<const tensor_view> out, std::int64_t first, std::int64_t n) {
    std::int64_t done = 0;
    for (; done < n && next_ < size_; ++done) {
      if (next_ == bad_) raise(status::unavailable, "element 5 is not to be had");
      if (!out.empty()) reinterpret_cast<std::int32_t*>(out[0].mutable_data())[first + done] = int(next_);
      ++next_;
    }
    return done;
  }
  void rewind() { next_ = 0; }
  void define(std::string& to) const { to += "counted"; }
  void write(position_writer& to) const { to.number(next_); }
  void read(position_reader& from) {
    const auto next = from.number(0, size_, "the next element");
    if (from.apply()) next_ = next;
  }

private:
  components spec_ = {{"i", int32, {}}};
  std::int64_t size_, bad_, next_ = 0;
};

inline memory_dataset numbers(const std::vector<std::int32_t>& values) { return from_spans("i", values); }
inline std::vector<std::int32_t> iota(int n) {
  std::vector<std::int32_t> v;
  for (int i = 0; i < n; ++i) v.push_back(i);
  return v;
}

// Elements of a dataset with one int32 scalar, at most `most`.
inline std::vector<std::int32_t> drain(auto& d, std::size_t most = 100000) {
  std::vector<std::int32_t> all;
  std::int32_t value = 0;
  const tensor_view view(std::span<std::int32_t>(&value, 1), {});
  while (all.size() < most && d.next({&view, 1})) all.push_back(value);
  return all;
}
// The batches of such a dataset.
inline std::vector<std::vector<std::int32_t>> drain_batches(auto& d, std::size_t most = 100000) {
  std::vector<std::vector<std::int32_t>> all;
  std::vector<std::int32_t> values(static_cast<std::size_t>(d.batch_size()));
  const tensor_view view{std::span<std::int32_t>(values)};
  while (all.size() < most) {
    const auto n = d.next({&view, 1});
    if (n == 0) break;
    all.emplace_back(values.begin(), values.begin() + n);
  }
  return all;
}

// A dataset of any type, so that pipelines can be put together at random while a test runs.
template <bool Batched>
class hidden final : public composable<hidden<Batched>> {
  struct face {
    virtual ~face() = default;
    virtual const components& element_spec() const = 0;
    virtual std::int64_t batch_size() const = 0;
    virtual std::int64_t pull(std::span<const tensor_view>, std::int64_t, std::int64_t) = 0;
    virtual void rewind() = 0;
    virtual void define(std::string&) const = 0;
    virtual void write(position_writer&) const = 0;
    virtual void read(position_reader&) = 0;
  };
  template <class D>
  struct body final : face {
    D d;
    explicit body(D&& from) : d(std::move(from)) {}
    const components& element_spec() const override { return d.element_spec(); }
    std::int64_t batch_size() const override {
      if constexpr (batched_dataset<D>)
        return d.batch_size();
      else
        return 0;
    }
    std::int64_t pull(std::span<const tensor_view> out, std::int64_t first, std::int64_t n) override {
      return d.pull(out, first, n);
    }
    void rewind() override { d.rewind(); }
    void define(std::string& to) const override { d.define(to); }
    void write(position_writer& to) const override { d.write(to); }
    void read(position_reader& from) override { d.read(from); }
  };

public:
  template <class D>
  static hidden hide(D d) {
    static_assert(batched_dataset<D> == Batched);
    hidden h;
    h.face_ = std::make_unique<body<D>>(std::move(d));
    return h;
  }
  const components& element_spec() const { return face_->element_spec(); }
  std::int64_t batch_size() const
    requires Batched
  {
    return face_->batch_size();
  }
  std::int64_t pull(std::span<const tensor_view> out, std::int64_t first, std::int64_t n) {
    return face_->pull(out, first, n);
  }
  void rewind() { face_->rewind(); }
  void define(std::string& to) const { face_->define(to); }
  void write(position_writer& to) const { face_->write(to); }
  void read(position_reader& from) { face_->read(from); }

private:
  std::unique_ptr<face> face_;
};

}  // namespace pipelines
