// text_line gives the lines of text files, one element each.
//
//   text_line({"a.txt", "b.txt.gz"})        component "line", uint8 [any_extent]
//
// A line ends in \n or \r\n, the last one also at the end of its file. Empty lines are lines. tf.data's TextLineDataset
// drops every \r of a line; here only the one in front of \n goes.
#pragma once
#include "dataset.hpp"
#include "record_files.hpp"
#include "unit_stage.hpp"

namespace gradus::inline GRADUS_BUILD {

struct text_line_options {
  compression_type compression = compression_type::automatic;
  bool ignore_errors = false;  // pass over lines that are too long, and damaged files; skipped() counts
  reader_limits limits = {};
};

class text_line_dataset final : public detail::unit_stage<text_line_dataset, false> {
public:
  // Error: invalid_argument for no file. Files are opened when their turn comes.
  explicit text_line_dataset(file_list files, const text_line_options& how = {}, const any_file_system& fs = {});

  const components& element_spec() const { return spec_; }
  bool pull_unit(datum& out);
  // Lines and damaged files that ignore_errors has passed over.
  std::int64_t skipped() const { return files_.skipped(); }
  void rewind() { files_.rewind(); }
  void define(std::string& to) const { to += text("text_line(", files_.definition(), ")"); }
  void write(position_writer& to) const { files_.write(to); }
  void read(position_reader& from) { files_.read(from); }

private:
  components spec_ = {{"line", uint8, {any_extent}}};
  detail::record_files files_;
};

// Errors while reading: not_found and the like; data_loss where compressed data are damaged; resource_exhausted for a
// line above the limit, after which the next line comes.
text_line_dataset text_line(file_list files, const text_line_options& how = {}, const any_file_system& fs = {});

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "text_line.ipp"
#endif
