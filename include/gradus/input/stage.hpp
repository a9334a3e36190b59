// What a dataset is, and what all of them can do.
//
// A dataset is a value that yields elements: a row of components, each with a name, a dtype and extents. It writes
// them into memory that the caller has; it allocates nothing while it runs. Stages wrap a dataset in a dataset, so a
// pipeline is one type that the compiler sees through:
//
//   auto input = idx("data/mnist/train").shuffle(60000).repeat().batch(128);
//
// To write your own, derive from composable<yours> and provide
//   element_spec()           the components, the same for all elements; lives as long as the dataset
//   pull(out, first, n)      write the next n elements into rows first, first+1, ... of the arrays `out`, return how
//                            many: fewer than n only at the end. An empty `out` passes over them without writing
//   rewind()                 begin the next iteration
//   define(text)             append which dataset this is, with what decides the order of elements
//   write(position) const    append where it stands
//   read(position)           stand there; take nothing unless position.apply()
// and, if any element can be had at any time, so that shuffle need not hold copies:
//   size()                   how many elements
//   element(i, out, row)     write element i into row `row`
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../base/dtype.hpp"
#include "../base/error.hpp"
#include "../base/shape.hpp"
#include "../base/state.hpp"
#include "../tensor/tensor.hpp"
#include "position.hpp"

namespace gradus {

// One part of an element: name "image", float32, [784]. A batch of n has extents [n, 784].
struct component {
  std::string name;
  dtype type = dtype::none;
  extents dims;
  bool operator==(const component&) const = default;
};
using components = std::vector<component>;

inline std::size_t size_bytes(const component& c) { return static_cast<std::size_t>(count(c.dims)) * size_of(c.type); }
inline std::string to_text(const components& list) {
  std::string out;
  for (const auto& c : list) out += text(out.empty() ? "" : ", ", c.name, " ", name_of(c.type), " ", to_text(c.dims));
  return out;
}

template <class D>
concept dataset =
    std::movable<D> && requires(D& d, const D& c, std::span<const tensor_view> out, std::int64_t n,
                                std::string& definition, position_writer& writer, position_reader& reader) {
      { c.element_spec() } -> std::same_as<const components&>;
      { d.pull(out, n, n) } -> std::same_as<std::int64_t>;
      d.rewind();
      c.define(definition);
      c.write(writer);
      d.read(reader);
    };

// A dataset whose elements were put together: pull yields one batch a call, of at most batch_size() elements, and
// returns how many it holds; 0 is the end.
template <class D>
concept batched_dataset = dataset<D> && requires(const D& d) {
  { d.batch_size() } -> std::same_as<std::int64_t>;
};

// A dataset that can give any element at any time.
template <class D>
concept indexed_dataset = dataset<D> && !batched_dataset<D> && requires(const D& d, std::span<const tensor_view> out) {
  { d.size() } -> std::same_as<std::int64_t>;
  d.element(std::int64_t{}, out, std::int64_t{});
};

template <dataset Source>
class shuffled;
template <dataset Source>
class repeated;
template <dataset Source>
class taken;
template <dataset Source>
class skipped;
template <dataset Source>
class batches;
template <dataset Source>
class prefetched;

// What every dataset can do. The stages named here live in the headers of their names; dataset.hpp brings them all.
template <class Self>
class composable : public blob {
public:
  // Elements in random order from a window of `buffer` elements (shuffle.hpp).
  auto shuffle(std::int64_t buffer, std::uint64_t seed = 0, bool reshuffle_each_iteration = true) const& {
    return shuffled<Self>(self(), buffer, seed, reshuffle_each_iteration);
  }
  auto shuffle(std::int64_t buffer, std::uint64_t seed = 0, bool reshuffle_each_iteration = true) && {
    return shuffled<Self>(std::move(self()), buffer, seed, reshuffle_each_iteration);
  }
  // n times over, or for ever (repeat.hpp).
  auto repeat(std::int64_t n = -1) const& { return repeated<Self>(self(), n); }
  auto repeat(std::int64_t n = -1) && { return repeated<Self>(std::move(self()), n); }
  // The first n elements (of batches: batches), -1 for all (repeat.hpp).
  auto take(std::int64_t n) const& { return taken<Self>(self(), n); }
  auto take(std::int64_t n) && { return taken<Self>(std::move(self()), n); }
  // All but the first n elements (of batches: batches) (repeat.hpp).
  auto skip(std::int64_t n) const& { return skipped<Self>(self(), n); }
  auto skip(std::int64_t n) && { return skipped<Self>(std::move(self()), n); }
  // n elements at a time, which is what a trainer consumes (batch.hpp).
  auto batch(std::int64_t n, bool drop_remainder = false) const& { return batches<Self>(self(), n, drop_remainder); }
  auto batch(std::int64_t n, bool drop_remainder = false) && {
    return batches<Self>(std::move(self()), n, drop_remainder);
  }
  // A thread that reads up to n elements (of batches: batches) ahead (prefetch.hpp).
  auto prefetch(std::int64_t n) && { return prefetched<Self>(std::move(self()), n); }
  auto prefetch(std::int64_t n) const& { return prefetched<Self>(self(), n); }

  // Writes what comes next into `out`, one array for each component of element_spec().
  //   a dataset: one element, arrays of the component's extents; returns false at the end.
  //   a batched dataset: up to batch_size() elements, arrays with room for so many rows; returns how many, 0 at the
  //   end.
  // Error: invalid_argument if an array does not fit its component.
  auto next(std::span<const tensor_view> out) {
    if constexpr (batched_dataset<Self>) {
      check(out, self().batch_size());
      return self().pull(out, 0, self().batch_size());
    } else {
      check(out, one_element);
      return self().pull(out, 0, 1) == 1;
    }
  }
  // Writes up to n elements into arrays with room for n rows; returns how many, fewer than n only at the end.
  std::int64_t next_batch(std::span<const tensor_view> out, std::int64_t n) {
    static_assert(!batched_dataset<Self>, "gradus: this dataset has its batch already; call next(out)");
    if (n < 0) raise(status::invalid_argument, text("cannot read ", n, " elements"));
    check(out, n);
    return self().pull(out, 0, n);
  }

  // The position, as one entry: where the next element comes from, epochs and random draws included.
  void remembers(state_list& list, std::string_view name = "input") { list.dynamic(name, *this); }

  void save(std::vector<std::byte>& out) const override {
    std::string definition;
    self().define(definition);
    position_writer to(out);
    to.number(static_cast<std::int64_t>(definition.size()));
    to.bytes(std::as_bytes(std::span(definition)));
    self().write(to);
  }
  // Errors: data_loss if the position is damaged, or one in another pipeline; then this one stays where it is.
  void load(std::span<const std::byte> in) override {
    std::string definition;
    self().define(definition);
    for (const bool apply : {false, true}) {
      position_reader from(in, apply);
      const auto length = from.number(0, std::numeric_limits<std::int64_t>::max(), "the length of its definition");
      const auto bytes = from.bytes(static_cast<std::uint64_t>(length), "its definition");
      const std::string_view found(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      if (found != definition)
        raise(status::data_loss, text("the saved position is one in the input \"", found, "\", but this input is \"",
                                      definition, "\"; build the same input, or start without the saved position"));
      self().read(from);
      if (from.left() != 0)
        raise(status::data_loss,
              text("the saved input position is damaged: expected its end, found ", from.left(), " bytes more"));
    }
  }

protected:
  composable() = default;
  ~composable() = default;

private:
  static constexpr std::int64_t one_element = -1;

  Self& self() { return static_cast<Self&>(*this); }
  const Self& self() const { return static_cast<const Self&>(*this); }

  void check(std::span<const tensor_view> out, std::int64_t rows) const {
    const components& spec = self().element_spec();
    if (out.size() != spec.size())
      raise(status::invalid_argument, text("expected an array for each of the ", spec.size(), " components (",
                                           to_text(spec), "), found ", out.size()));
    for (std::size_t i = 0; i < spec.size(); ++i) {
      const int lead = rows == one_element ? 0 : 1;
      bool fits = out[i].type == spec[i].type && out[i].dims.rank == spec[i].dims.rank + lead;
      for (int k = 0; fits && k < spec[i].dims.rank; ++k) fits = out[i].dims[k + lead] == spec[i].dims[k];
      if (fits && lead == 1) fits = out[i].dims[0] >= rows;
      if (fits) continue;
      raise(status::invalid_argument,
            text("the component \"", spec[i].name, "\" is ", name_of(spec[i].type), " ", to_text(spec[i].dims),
                 lead == 1 ? text(", and ", rows, " rows of it are to be written") : std::string(),
                 "; the array given for it is ", name_of(out[i].type), " ", to_text(out[i].dims)));
    }
  }
};

namespace detail {
// Row `row` of an array whose rows hold what `c` says.
inline std::byte* row_of(const tensor_view& array, const component& c, std::int64_t row) {
  return array.mutable_data() + static_cast<std::size_t>(row) * size_bytes(c);
}
// How many of what take, skip and repeat count a pull that returned `pulled` stands for.
template <dataset D>
std::int64_t counted(std::int64_t pulled) {
  return batched_dataset<D> ? (pulled > 0 ? 1 : 0) : pulled;
}
}  // namespace detail

}  // namespace gradus
