#include "gradus/train/warm_start_columns.hpp"

#include <doctest/doctest.h>

#include "../message.hpp"
#include "gradus/checkpoint/saver.hpp"
#include "gradus/testing/faulty_files.hpp"

using namespace gradus;
using testing::faulty_files;

namespace {
using reals = std::vector<float>;

// Variables as a trainer has them, and checkpoints of others.
struct two_tables {
  reals words = reals(6, -1), towns = reals(4, -1);
  state_list list;
  two_tables(std::string words_name, std::string towns_name) {
    list.tensor(words_name, {3, 2}, std::span<float>(words));
    list.tensor(towns_name, {2, 2}, std::span<float>(towns));
  }
};
const auto word = categorical_column_with_identity("word", 3);
const auto town = categorical_column_with_identity("town", 2);
bool everything(std::string_view) { return true; }
}  // namespace

TEST_CASE("tables with a checkpoint get its rows, the others keep their own") {
  const faulty_files fs;
  two_tables before("emb", "other");
  before.words = {1, 2, 3, 4, 5, 6};
  saver<flat_binary, faulty_files>({}, {}, fs).save(before.list, "old/model", 7);

  const feature_layout layout(
      {.input_layer = {
           embedding_column(word, 2, {.ckpt_to_load_from = "old", .tensor_name_in_ckpt = "emb", .trainable = false}),
           embedding_column(town, 2)}});
  two_tables here("input_layer/word_embedding/embedding_weights", "input_layer/town_embedding/embedding_weights");
  const warm_start_columns policy{layout};
  const auto done = policy.apply(
      here.list, [](std::string_view) { return false; }, fs);
  CHECK(here.words == before.words);
  CHECK(here.towns == reals(4, -1));
  CHECK(done.count == 1);
  CHECK(done.source == "old/model-7.ckpt");
}

TEST_CASE("shared tables are loaded once, of several checkpoints each gives its own") {
  const faulty_files fs;
  two_tables before("a", "b");
  before.words = {1, 2, 3, 4, 5, 6}, before.towns = {7, 8, 9, 10};
  saver<flat_binary, faulty_files>({}, {}, fs).save(before.list, "old/model", 7);
  saver<flat_binary, faulty_files>({}, {}, fs).save(before.list, "new/model", 8);
  auto columns = shared_embedding_columns({word, categorical_column_with_identity("second", 3)}, 2,
                                          {.ckpt_to_load_from = "old", .tensor_name_in_ckpt = "a"}, "both");
  const feature_layout layout(
      {.input_layer = {columns[0], columns[1],
                       embedding_column(town, 2, {.ckpt_to_load_from = "new", .tensor_name_in_ckpt = "b"})}});
  two_tables here("deep/both/embedding_weights", "deep/town_embedding/embedding_weights");
  const auto done = warm_start_columns{layout, flat_binary{}, "deep"}.apply(here.list, everything, fs);
  CHECK(here.words == before.words);
  CHECK(here.towns == before.towns);
  CHECK(done.count == 2);
  CHECK(done.source == "old/model-7.ckpt, new/model-8.ckpt");
}

TEST_CASE("what does not fit is refused") {
  const faulty_files fs;
  CHECK(message_of(status::invalid_argument, [] {
          warm_start_columns{feature_layout({.input_layer = {embedding_column(word, 2)}})};
        }) == "warm_start_columns: no embedding_column of the layout's input_layer has a ckpt_to_load_from");
  two_tables before("emb", "other");
  saver<flat_binary, faulty_files>({}, {}, fs).save(before.list, "old/model", 7);
  const warm_start_columns policy{feature_layout(
      {.input_layer = {embedding_column(word, 2, {.ckpt_to_load_from = "old", .tensor_name_in_ckpt = "other"})}})};
  two_tables here("input_layer/word_embedding/embedding_weights", "x");
  const auto said = message_of(status::invalid_argument, [&] { policy.apply(here.list, everything, fs); });
  INFO(said);
  CHECK(said.find("[3, 2]") != std::string::npos);
  CHECK(here.words == reals(6, -1));
  two_tables elsewhere("x", "y");
  CHECK(message_of(status::not_found, [&] {
          policy.apply(elsewhere.list, everything, fs);
        }).find("\"input_layer/word_embedding/embedding_weights\", which is not here") != std::string::npos);
}
