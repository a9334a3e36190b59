// A table whose rows (or columns) belong to the tokens of a vocabulary, taken over into a model with another
// vocabulary. Each token keeps its numbers, wherever it stands now.
//
//   auto lines = match_vocabularies(info, fs);                       // the old line of each new token, or -1
//   remap_matrix(old, {.rows = &lines, .row_oov = 2}, first, rows, out);
//
// As tf.estimator.VocabInfo and tf.contrib.framework.load_and_remap_matrix_initializer (TensorFlow 1.15). Otherwise:
// old_vocab_size counts on both axes, variables of rank 1 are taken as one column, and a table that does not have
// exactly the vocabulary's rows (or columns) is refused, where TensorFlow cuts it.
#pragma once
#include <algorithm>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "../base/shape.hpp"
#include "../store/file.hpp"
#include "../store/text_lines.hpp"

namespace gradus {

// Fills `out`, which has the elements of this shape, row-major. No function: zeros.
using fill_function = std::function<void(const extents& dims, std::span<float> out)>;

// How the vocabulary of one variable changed. Vocabularies are text files, one token per line.
struct vocab_info {
  std::string new_vocab = {};
  std::int64_t new_vocab_size = 0;   // lines of new_vocab that are used
  std::int64_t num_oov_buckets = 0;  // rows (columns) of this model behind those of the vocabulary
  std::string old_vocab = {};
  std::int64_t old_vocab_size = -1;  // lines of old_vocab that were used; -1: all
  // What a token has that the old vocabulary did not hold, and what the OOV buckets have; asked as remap_matrix says.
  fill_function backup_initializer = {};
  int axis = 0;  // 0: a token is a row (embeddings; biases, of rank 1), 1: a column (the kernel of a softmax)
};

// For each of the first new_vocab_size tokens its line in the old vocabulary (from 0), or -1. Raises
//   invalid_argument     settings that make no sense; a file with fewer lines than are asked for
//   failed_precondition  a line stands in the old vocabulary twice
//   resource_exhausted   a file larger than file_bytes, a line longer than record_bytes
//   unimplemented        a token of the old vocabulary stands in the new one twice
//   and what reading a file raises (not_found, permission_denied, ...)
template <file_system F>
std::vector<std::int64_t> match_vocabularies(const vocab_info& info, const F& fs, const reader_limits& limits = {}) {
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

// A matrix of float32, row-major, as it lies in a file: not necessarily aligned.
struct matrix_values {
  std::int64_t rows = 0, columns = 0;
  std::span<const std::byte> bytes;
};

// What becomes of the rows and columns of a matrix. Without a list (nullptr) they stay what they are.
struct matrix_remapping {
  const std::vector<std::int64_t>* rows = nullptr;     // the old row of each new one, or -1
  const std::vector<std::int64_t>* columns = nullptr;  // likewise
  std::int64_t row_oov = 0, column_oov = 0;            // fresh ones behind them; old ones are never taken over
  fill_function backup_initializer = {};

  // The rows and columns of the old matrix that have a place in the new one, without the OOV ones.
  std::int64_t known_rows(const matrix_values& old) const {
    return rows != nullptr ? static_cast<std::int64_t>(rows->size()) : old.rows;
  }
  std::int64_t known_columns(const matrix_values& old) const {
    return columns != nullptr ? static_cast<std::int64_t>(columns->size()) : old.columns;
  }
};

// Is every old row and column that is asked for there? Raises invalid_argument.
inline void check_remapping(const matrix_values& old, const matrix_remapping& to,
                            std::string_view name = "the matrix") {
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

// Rows first ... first + rows - 1 of the new matrix, into `out`: rows * (known columns + column_oov) numbers. The
// initializer is asked in this order, each time for one block, and never for an empty one:
//
//   [missing cells, 1]           what no old row and column has, in row-major order; a cell is present only if both are
//   [OOV rows here, columns]     the OOV rows, without OOV columns
//   [rows, column_oov]           the OOV columns of all rows
//
// or only [rows, all columns] for a part that begins behind the first OOV row. So initializers that depend on the
// shape see these shapes and not the variable's; parts ask each for itself. Raises invalid_argument, before `out` is
// touched.
inline void remap_matrix(const matrix_values& old, const matrix_remapping& to, std::int64_t first, std::int64_t rows,
                         std::span<float> out) {
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

}  // namespace gradus
