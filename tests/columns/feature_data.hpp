// Batches of features for tests of columns.
#pragma once
#include <gradus/input/features.hpp>

#include <initializer_list>
#include <string>
#include <vector>

namespace columns_test {
using namespace gradus;

// Each example its own number of values.
inline feature ragged_texts(std::string name, const std::vector<std::vector<std::string>>& rows) {
  feature f{.name = std::move(name), .kind = feature_kind::text, .dims = {-1}, .splits = {0}};
  for (const auto& row : rows) {
    for (const auto& s : row) f.texts.push_back(s);
    f.splits.push_back(static_cast<std::int64_t>(f.texts.size()));
  }
  return f;
}
inline feature ragged_ints(std::string name, const std::vector<std::vector<std::int64_t>>& rows) {
  feature f{.name = std::move(name), .kind = feature_kind::int64, .dims = {-1}, .splits = {0}};
  for (const auto& row : rows) {
    f.ints.insert(f.ints.end(), row.begin(), row.end());
    f.splits.push_back(static_cast<std::int64_t>(f.ints.size()));
  }
  return f;
}
inline feature ragged_floats(std::string name, const std::vector<std::vector<float>>& rows) {
  feature f{.name = std::move(name), .dims = {-1}, .splits = {0}};
  for (const auto& row : rows) {
    f.floats.insert(f.floats.end(), row.begin(), row.end());
    f.splits.push_back(static_cast<std::int64_t>(f.floats.size()));
  }
  return f;
}
// As many for every example: `each`.
inline feature dense_texts(std::string name, std::int64_t each, std::initializer_list<std::string_view> all) {
  feature f{.name = std::move(name), .kind = feature_kind::text, .dims = {each}};
  for (const auto s : all) f.texts.push_back(s);
  return f;
}
inline feature dense_ints(std::string name, std::int64_t each, std::vector<std::int64_t> all) {
  return {.name = std::move(name), .kind = feature_kind::int64, .dims = {each}, .ints = std::move(all)};
}
inline feature dense_floats(std::string name, std::int64_t each, std::vector<float> all) {
  return {.name = std::move(name), .dims = {each}, .floats = std::move(all)};
}
inline features batch_of(std::int64_t rows, std::initializer_list<feature> list) {
  features out(rows);
  for (const auto& f : list) out.add(f);
  return out;
}
// The message of an invalid_argument.
inline std::string refusal_of(const auto& call) {
  try {
    call();
  } catch (const invalid_argument& e) {
    return e.what();
  } catch (const error& e) {
    return std::string("another kind of error: ") + e.what();
  }
  return "(nothing was refused)";
}
using id_list = std::vector<std::int64_t>;
}  // namespace columns_test
