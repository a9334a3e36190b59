// costs: 600
// Every dataset has every stage: what docs/input.md lists is called on each source and each stage, so that no member of
// one, private or not, hides a stage from its users.
#include <gradus/data.hpp>

#include <doctest/doctest.h>

#include <fstream>
#include <set>

using namespace gradus;

namespace {

struct any_value {
  void operator()(datum&) const {}
  void operator()(const datum&, datum&) const {}
};
struct any_answer {
  template <class... Args>
  std::int64_t operator()(const Args&...) const {
    return 1;
  }
};
struct any_made {
  template <class... Args>
  any_dataset operator()(const Args&...) const {
    return range_dataset(1);
  }
};
struct any_line {
  void operator()(std::string_view) const {}
};

std::set<std::string> called;  // the stages that the test calls

// Asserts that the call compiles where a program stands, outside of the class.
#define CALLED(name, ...)                                                   \
  static_assert(                                                            \
      requires(D d) { std::move(d).name(__VA_ARGS__); }, "hidden: " #name); \
  called.insert(#name)

template <class D>
void calls_each() {
  static_assert(dataset<D>);
  const components to = {{"value", int64, {}}};
  std::vector<std::byte> bytes;
  state_list list;
  datum e;
  std::span<const tensor_view> arrays;
  CALLED(repeat);
  CALLED(repeat, 2);
  CALLED(take, 1);
  CALLED(skip, 1);
  CALLED(shard, 2, 0);
  CALLED(prefetch, 2);
  CALLED(map, any_value{});
  CALLED(map, to, any_value{}, map_options{.parallel = 2});
  CALLED(filter, any_answer{});
  CALLED(padded_batch, 2);
  CALLED(bucket_by_sequence_length, any_answer{}, bucket_options{});
  CALLED(flat_map, to, any_made{});
  CALLED(interleave, to, any_made{}, interleave_options{});
  CALLED(window, 2);
  CALLED(group_by_window, to, any_answer{}, any_made{}, any_answer{});
  CALLED(enumerate);
  CALLED(unique);
  CALLED(cache);
  CALLED(cache, "file");
  CALLED(cache, "file", any_line{});
  CALLED(concatenate, std::declval<D>());
  CALLED(as_batches, 2);
  CALLED(apply, any_answer{});
  CALLED(on_external_state, external_state_policy::ignore);
  CALLED(on_external_state, external_state_policy::warn, any_line{});
  CALLED(cardinality);
  CALLED(external_state);
  CALLED(rewind);
  CALLED(next, e);
  CALLED(next, arrays);
  CALLED(remembers, list);
  CALLED(save, bytes);
  CALLED(load, bytes);
  CALLED(begin);
  CALLED(end);
  if constexpr (!batched_dataset<D>) {
    CALLED(shuffle, 4);
    CALLED(batch, 2);
    CALLED(next_batch, arrays, 2);
  }
}
#undef CALLED

template <class... Ds>
void calls_each_of() {
  (calls_each<Ds>(), ...);
}

// The stages that are templates of their source, over D.
template <class D>
void calls_each_over() {
  calls_each_of<D, repeated_dataset<D>, taken_dataset<D>, skipped_dataset<D>, shard_of<D>, prefetched_dataset<D>>();
}

}  // namespace

TEST_CASE("every stage of the page about input is there on every dataset") {
  calls_each_of<memory_dataset, idx_dataset, npy_dataset, csv_dataset, text_line_dataset, libsvm_dataset,
                criteo_dataset, tf_record_dataset, counter_dataset, random_dataset, generated_dataset, element_list,
                any_dataset, any_batches>();
  calls_each_over<range_dataset>();  // which can give any element at any time
  calls_each_over<batches<range_dataset>>();
  calls_each_of<shuffled_dataset<range_dataset>, shuffled_dataset<counter_dataset>,
                parsed_examples<tf_record_dataset>>();
  calls_each_of<mapped_dataset<false>, filtered_dataset<false>, zipped_dataset<false>, concatenated_dataset<false>,
                cached_dataset<false>>();
  calls_each_of<mapped_dataset<true>, filtered_dataset<true>, zipped_dataset<true>, concatenated_dataset<true>,
                cached_dataset<true>>();
  calls_each_of<enumerated_dataset, windowed_dataset, unique_elements, padded_batches, bucketed_batches,
                interleaved_dataset, grouped_dataset, elements_as_batches, chosen_elements>();

  // The rows of the page's table that name stages: those before the functions that make a dataset.
  std::ifstream page(GRADUS_SOURCE_DIR "/docs/input.md");
  std::set<std::string> listed;
  for (std::string line; std::getline(page, line) && !line.starts_with("| `zip_datasets(");) {
    if (!line.starts_with("| `")) continue;
    const std::string cell = line.substr(0, line.find(" | ", 2));
    for (std::size_t at = 0; (at = cell.find('`', at)) != std::string::npos; at = cell.find('`', at + 1) + 1)
      listed.insert(cell.substr(at + 1, cell.find('(', at) - at - 1));
  }
  CHECK(listed.size() >= 22);
  for (const auto& name : listed) {
    CAPTURE(name);
    CHECK(called.count(name) == 1);
  }
}
