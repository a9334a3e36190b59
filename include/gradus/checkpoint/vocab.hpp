// This header carries a table whose rows (or columns) belong to the tokens of a vocabulary over into a model with
// another vocabulary. Each token keeps its values, wherever it is in the new vocabulary.
//
//   auto lines = match_vocabularies(info, fs);                       // the old line of each new token, or -1
//   remap_matrix(old, {.rows = &lines, .row_oov = 2}, first, rows, out);
//
// As tf.estimator.VocabInfo and tf.contrib.framework.load_and_remap_matrix_initializer (TensorFlow 1.15). It differs
// from TensorFlow: here old_vocab_size has an effect on both axes, variables of rank 1 are treated as one column, and a
// table that does not have exactly the vocabulary's rows (or columns) is refused, where TensorFlow cuts it.
#pragma once
#include "../base/build.hpp"

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

namespace gradus::inline GRADUS_BUILD {

// Fills `out`, which has the elements of this shape, row-major. An empty function stands for zeros.
using fill_function = std::function<void(const extents& dims, std::span<float> out)>;

// The change of one variable's vocabulary. Vocabularies are text files, one token per line.
struct vocab_info {
  std::string new_vocab = {};
  std::int64_t new_vocab_size = 0;   // lines of new_vocab that are used
  std::int64_t num_oov_buckets = 0;  // rows (columns) of this model after those of the vocabulary
  std::string old_vocab = {};
  std::int64_t old_vocab_size = -1;  // lines of old_vocab that were used; -1: all
  // The values of tokens that the old vocabulary did not hold, and of the OOV buckets; see remap_matrix for how it is
  // called.
  fill_function backup_initializer = {};
  int axis = 0;  // 0: a token is a row (embeddings; biases, of rank 1), 1: a column (the kernel of a softmax)
};

// Returns for each of the first new_vocab_size tokens its line in the old vocabulary (from 0), or -1. Raises
//   invalid_argument     settings that make no sense; a file with fewer lines than the settings need
//   failed_precondition  a line is in the old vocabulary twice
//   resource_exhausted   a file larger than file_bytes, a line longer than record_bytes
//   unimplemented        a token of the old vocabulary is in the new one twice
// and the errors of reading a file (not_found, permission_denied, ...).
std::vector<std::int64_t> match_vocabularies(const vocab_info& info, const any_file_system& fs,
                                             const reader_limits& limits = {});

// A matrix of float32, row-major, as it is in a file: not necessarily aligned.
struct matrix_values {
  std::int64_t rows = 0, columns = 0;
  std::span<const std::byte> bytes;
};

// The mapping of the rows and columns of a matrix. Without a list (nullptr) they keep their places.
struct matrix_remapping {
  const std::vector<std::int64_t>* rows = nullptr;     // the old row of each new one, or -1
  const std::vector<std::int64_t>* columns = nullptr;  // likewise
  std::int64_t row_oov = 0, column_oov = 0;            // new ones after those; they are never taken from the old matrix
  fill_function backup_initializer = {};

  // Returns the numbers of rows and columns of the old matrix that have a place in the new one, without the OOV ones.
  std::int64_t known_rows(const matrix_values& old) const;
  std::int64_t known_columns(const matrix_values& old) const;
};

// Checks that every requested old row and column exists. Raises invalid_argument.
void check_remapping(const matrix_values& old, const matrix_remapping& to, std::string_view name = "the matrix");

// Writes rows first ... first + rows - 1 of the new matrix into `out`: rows * (known columns + column_oov) values. The
// initializer is called in this order, each time for one block, and never for an empty one:
//
//   [missing cells, 1]           cells without an old value, in row-major order: those whose row or column is new
//   [OOV rows here, columns]     the OOV rows, without OOV columns
//   [rows, column_oov]           the OOV columns of all rows
//
// or only once, with [rows, all columns], for a part that begins after the first OOV row. So an initializer that
// depends on the shape sees these shapes and not the variable's, and it is called for each part separately. Raises
// invalid_argument before anything is written into `out`.
void remap_matrix(const matrix_values& old, const matrix_remapping& to, std::int64_t first, std::int64_t rows,
                  std::span<float> out);

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "vocab.ipp"
#endif
