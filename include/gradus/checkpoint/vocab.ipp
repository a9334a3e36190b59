// The bodies of vocab.hpp.
#pragma once
#include "../base/body.hpp"
#include "vocab.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY std::int64_t matrix_remapping::known_rows(const matrix_values& old) const {
  return rows != nullptr ? static_cast<std::int64_t>(rows->size()) : old.rows;
}

GRADUS_BODY std::int64_t matrix_remapping::known_columns(const matrix_values& old) const {
  return columns != nullptr ? static_cast<std::int64_t>(columns->size()) : old.columns;
}

GRADUS_BODY void check_remapping(const matrix_values& old, const matrix_remapping& to, std::string_view name) {
  const auto check = [name](const std::vector<std::int64_t>* list, std::int64_t there, const char* what) {
    if (list == nullptr) return;
    const auto most = std::max_element(list->begin(), list->end());
    if (most != list->end() && *most >= there)
      raise(status::invalid_argument,
            text("the old vocabulary has a token in line ", *most + 1, ", but ", name, " had ", there, ' ', what,
                 "; set old_vocab_size to the lines that were used, or give the vocabulary it was trained with"));
  };
  check(to.rows, old.rows, "rows");
  check(to.columns, old.columns, "columns");
}

GRADUS_BODY void remap_matrix(const matrix_values& old, const matrix_remapping& to, std::int64_t first,
                              std::int64_t rows, std::span<float> out) {
  const std::int64_t known_rows = to.known_rows(old), columns = to.known_columns(old), width = columns + to.column_oov;
  check_remapping(old, to);
  if (first < 0 || rows < 0 || first + rows > known_rows + to.row_oov)
    raise(status::invalid_argument, text("rows ", first, " to ", first + rows, " are asked for, but there are ",
                                         known_rows, " and ", to.row_oov, " OOV rows; check the partition"));
  if (static_cast<std::int64_t>(out.size()) != rows * width ||
      static_cast<std::int64_t>(old.bytes.size() / sizeof(float)) != old.rows * old.columns)
    raise(status::invalid_argument,
          text("remap_matrix: ", rows, " rows of ", width, " take another number of elements than ", out.size(),
               ", or the old matrix is not what it says"));
  const auto fill = [&to](const extents& dims, std::span<float> values) {
    if (!to.backup_initializer)
      std::fill(values.begin(), values.end(), 0.0f);
    else if (!values.empty())
      to.backup_initializer(dims, values);
  };
  if (first > known_rows) return fill({rows, width}, out);

  const std::int64_t loaded = std::min(rows, known_rows - first), fresh = rows - loaded;
  const auto old_row = [&](std::int64_t i) {
    return to.rows != nullptr ? (*to.rows)[static_cast<std::size_t>(first + i)] : first + i;
  };
  const auto old_column = [&](std::int64_t j) {
    return to.columns != nullptr ? (*to.columns)[static_cast<std::size_t>(j)] : j;
  };
  std::int64_t present_rows = 0, present_columns = 0;
  for (std::int64_t i = 0; i < loaded; ++i) present_rows += old_row(i) >= 0 ? 1 : 0;
  for (std::int64_t j = 0; j < columns; ++j) present_columns += old_column(j) >= 0 ? 1 : 0;

  const std::int64_t missing = loaded * columns - present_rows * present_columns;
  std::vector<float> block(static_cast<std::size_t>(missing));
  fill({missing, 1}, block);
  const auto cell = [&](std::int64_t i, std::int64_t j) -> float& {
    return out[static_cast<std::size_t>(i * width + j)];
  };
  const auto old_cell = [&](std::int64_t i, std::int64_t j) {
    return old.bytes.data() + static_cast<std::size_t>(i * old.columns + j) * sizeof(float);
  };
  std::size_t next = 0;
  for (std::int64_t i = 0; i < loaded; ++i) {
    const std::int64_t from = old_row(i);
    if (from >= 0 && to.columns == nullptr) {
      if (columns != 0) std::memcpy(&cell(i, 0), old_cell(from, 0), static_cast<std::size_t>(columns) * sizeof(float));
      continue;
    }
    for (std::int64_t j = 0; j < columns; ++j) {
      const std::int64_t at = from >= 0 ? old_column(j) : -1;
      if (at >= 0)
        std::memcpy(&cell(i, j), old_cell(from, at), sizeof(float));
      else
        cell(i, j) = block[next++];
    }
  }
  const auto put = [&](std::int64_t row, std::int64_t count, std::int64_t column, std::int64_t wide) {
    block.resize(static_cast<std::size_t>(count * wide));
    fill({count, wide}, block);
    for (std::int64_t i = 0; i < count; ++i)
      for (std::int64_t j = 0; j < wide; ++j) cell(row + i, column + j) = block[static_cast<std::size_t>(i * wide + j)];
  };
  put(loaded, fresh, 0, columns);
  put(0, rows, columns, to.column_oov);
}

GRADUS_BODY std::vector<std::int64_t> match_vocabularies(const vocab_info& info, const any_file_system& fs,
                                                         const reader_limits& limits) {
  const auto refuse = [](const auto&... pieces) { raise(status::invalid_argument, text("vocab_info: ", pieces...)); };
  if (info.new_vocab.empty() || info.old_vocab.empty())
    refuse(info.new_vocab.empty() ? "new_vocab" : "old_vocab", " is empty; give the path of a vocabulary file");
  if (info.axis != 0 && info.axis != 1) refuse("axis is ", info.axis, "; give 0 for rows or 1 for columns");
  if (info.new_vocab_size <= 0)
    refuse("new_vocab_size is ", info.new_vocab_size, "; give how many lines of \"", info.new_vocab, "\" are used");
  if (info.num_oov_buckets < 0) refuse("num_oov_buckets is ", info.num_oov_buckets, "; give 0 or more");
  if (info.old_vocab_size != -1 && info.old_vocab_size <= 0)
    refuse("old_vocab_size is ", info.old_vocab_size, "; give how many lines of \"", info.old_vocab,
           "\" were used, or -1 for all");
  const auto too_few = [&](const std::string& path, const text_lines& lines, const char* setting, std::int64_t wanted) {
    refuse('"', path, "\" has ", lines.taken(), " lines, but ", setting, " is ", wanted,
           "; give the file that the model uses, or its number of lines");
  };

  text_lines old_lines(read_file(fs, info.old_vocab, limits), info.old_vocab, limits);
  std::unordered_map<std::string_view, std::int64_t> old;
  std::string_view token;
  while ((info.old_vocab_size < 0 || old_lines.taken() < info.old_vocab_size) && old_lines.next(token))
    if (const auto [first, added] = old.emplace(token, old_lines.taken() - 1); !added)
      raise(status::failed_precondition,
            text("the vocabulary \"", info.old_vocab, "\" holds \"", token, "\" in lines ", first->second + 1, " and ",
                 old_lines.taken(), ", so that its row is not known; remove one of them"));
  if (old_lines.taken() < info.old_vocab_size)
    too_few(info.old_vocab, old_lines, "old_vocab_size", info.old_vocab_size);

  text_lines new_lines(read_file(fs, info.new_vocab, limits), info.new_vocab, limits);
  std::vector<std::int64_t> out;
  std::vector<bool> taken(old.size());
  while (new_lines.taken() < info.new_vocab_size && new_lines.next(token)) {
    const auto found = old.find(token);
    out.push_back(found == old.end() ? -1 : found->second);
    if (found == old.end()) continue;
    auto twice = taken[static_cast<std::size_t>(found->second)];
    if (twice)
      raise(status::unimplemented,
            text("the vocabulary \"", info.new_vocab, "\" holds \"", token, "\" twice (again in line ",
                 new_lines.taken(), "); two tokens cannot continue one old row: remove one of them"));
    twice = true;
  }
  if (new_lines.taken() < info.new_vocab_size)
    too_few(info.new_vocab, new_lines, "new_vocab_size", info.new_vocab_size);
  return out;
}

}  // namespace gradus
