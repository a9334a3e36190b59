// text_line gives the lines of text files; each line is one element.
//
//   text_line({"a.txt", "b.txt.gz"})        component "line", uint8 [any_extent]
//
// A line ends with \n or \r\n; the last line may also end with its file. An empty line is a line. tf.data's
// TextLineDataset drops every \r of a line; text_line drops only the one in front of \n.
#pragma once
#include "dataset.hpp"
#include "record_files.hpp"
#include "unit_stage.hpp"

namespace gradus::inline GRADUS_BUILD {

struct text_line_options {
  compression_type compression = compression_type::automatic;
  bool ignore_errors = false;  // pass over lines that are too long, and damaged files; skipped() counts them
  reader_limits limits = {};
};

class text_line_dataset final : public detail::unit_stage<text_line_dataset, false> {
public:
  // Raises invalid_argument if there is no file. Each file is opened when its turn comes.
  explicit text_line_dataset(file_list files, const text_line_options& how = {}, const any_file_system& fs = {});

  const components& element_spec() const { return spec_; }
  bool pull_unit(datum& out);
  // Returns the number of lines and damaged files that ignore_errors has passed over.
  std::int64_t skipped() const { return files_.skipped(); }
  void rewind() { files_.rewind(); }
  void define(std::string& to) const { to += text("text_line(", files_.definition(), ")"); }
  void write(position_writer& to) const { files_.write(to); }
  void read(position_reader& from) { files_.read(from); }

private:
  components spec_ = {{"line", uint8, {any_extent}}};
  detail::record_files files_;
};

// Reading raises the errors of opening a file (not_found, ...), data_loss where compressed data are damaged, and
// resource_exhausted for a line longer than the limit; the next call then goes on with the next line.
text_line_dataset text_line(file_list files, const text_line_options& how = {}, const any_file_system& fs = {});

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "text_line.ipp"
#endif
