#include <gradus/input/bucket.hpp>

#include <gradus/input/dataset.hpp>
#include <gradus/input/elements.hpp>
#include <gradus/input/map.hpp>

#include "data.hpp"

using namespace data_tests;

namespace {
// Elements of lengths 1, 5, 2, 9, 3, 1, 4.
any_dataset sequences() {
  datum lengths({{"n", int64, {7}}});
  const ints n = {1, 5, 2, 9, 3, 1, 4};
  std::copy(n.begin(), n.end(), lengths.values<std::int64_t>(0).begin());
  return from_tensor_slices(lengths).map(vectors, [](const datum& e, datum& to) {
    to.resize(0, {value_of(e)});
    to.set<std::int64_t>(0, value_of(e));
  });
}
std::int64_t length_of(const datum& e) { return e[0].dims[0]; }
const bucket_options two = {.bucket_boundaries = {3, 5}, .bucket_batch_sizes = {2, 2, 2}};
}  // namespace

TEST_CASE("batches of about one length") {
  auto d = sequences().bucket_by_sequence_length(length_of, two);
  CHECK(d.batch_size() == 2);
  // Below 3: 1 2, then 1. From 3 to 4: 3 4. From 5 on: 5 9. Full ones first, then what is left.
  CHECK(lists_of(d) ==
        std::vector<ints>{
            {1, 0, 2, 2}, {5, 5, 5, 5, 5, 0, 0, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9, 9}, {3, 3, 3, 0, 4, 4, 4, 4}, {1}});
  auto dropping = two;
  dropping.drop_remainder = true;
  CHECK(lists_of(sequences().bucket_by_sequence_length(length_of, dropping)).size() == 3);
  resumes([] { return sequences().repeat(2).bucket_by_sequence_length(length_of, two); });
}

TEST_CASE("padded to the boundary, or not at all") {
  auto how = two;
  how.pad_to_bucket_boundary = true, how.padding_values = {-1};
  CHECK(message_of(status::invalid_argument, [&] {
          lists_of(sequences().bucket_by_sequence_length(length_of, how));
        }).find("length 5 is beyond the last boundary, 5") != std::string::npos);
  how.bucket_boundaries = {3, 5, 11}, how.bucket_batch_sizes = {2, 2, 2, 1};
  const auto lists = lists_of(sequences().bucket_by_sequence_length(length_of, how));
  CHECK(lists[0] == ints{1, -1, 2, 2});
  CHECK(lists[1].size() == 20);
  CHECK(lists[3] == ints{1, -1});
  how = two;
  how.no_padding = true;
  CHECK(message_of(status::invalid_argument, [&] {
          lists_of(sequences().bucket_by_sequence_length(length_of, how));
        }).find("no_padding") != std::string::npos);
}

TEST_CASE("what cannot be") {
  const auto refused = [](const bucket_options& how) {
    return message_of(status::invalid_argument, [&] { sequences().bucket_by_sequence_length(length_of, how); });
  };
  CHECK(refused({.bucket_boundaries = {3}, .bucket_batch_sizes = {2}}).find("+ 1") != std::string::npos);
  CHECK(refused({.bucket_boundaries = {3, 3}, .bucket_batch_sizes = {2, 2, 2}}).find("rise") != std::string::npos);
  CHECK(refused({.bucket_boundaries = {3}, .bucket_batch_sizes = {2, 0}}).find("size of 0") != std::string::npos);
}
