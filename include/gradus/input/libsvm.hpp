// libsvm's (svmlight's) format has a line `<label> [qid:<n>] <index>:<value> ... [# comment]` for each record.
//
//   libsvm("a8a", {.features = 123})                        "features" float32 [123], "label" float32
//   libsvm("a8a", {.features = 123, .ragged = true})        "indices" int64 [any], "values" float32 [any], "label"
//
// Indices in files count from 1 by default; in elements they always count from 0. A feature that a record does not
// mention is 0. docs/formats/libsvm.md has the details.
#pragma once
#include "dataset.hpp"
#include "record_files.hpp"
#include "text_number.hpp"

namespace gradus::inline GRADUS_BUILD {

struct libsvm_options {
  std::int64_t features = 0;   // the number of features; may be 0 (not known) if ragged
  bool ragged = false;         // indices and values as they stand, instead of all features
  bool zero_based = false;     // the file's first feature is 0
  dtype label_type = float32;  // or float64, int32, int64
  bool multilabel = false;     // "label" is [any_extent]: a list with commas, which may be empty
  bool qid = false;            // a component "qid", int64, which every record must have; false: a qid is passed over
  compression_type compression = compression_type::automatic;
  bool ignore_errors = false;  // pass over bad records and damaged files; skipped() counts them
  reader_limits limits = {};
};

class libsvm_dataset final : public composable<libsvm_dataset> {
public:
  // Raises invalid_argument for options that are not valid.
  libsvm_dataset(file_list files, const libsvm_options& how, const any_file_system& fs = {});

  const components& element_spec() const { return spec_; }
  std::int64_t pull(std::span<const tensor_view> out, std::int64_t first, std::int64_t n);
  bool pull(datum& out);
  // Returns the number of records and damaged files that ignore_errors has passed over.
  std::int64_t skipped() const { return files_.skipped(); }
  void rewind() { files_.rewind(); }
  void define(std::string& to) const;
  void write(position_writer& to) const { files_.write(to); }
  void read(position_reader& from) { files_.read(from); }

private:
  using found_record = detail::found_record;

  bool next_record(datum* out);

  // Returns false if the record is bad; files_.problem then has the reason.
  bool parse(datum* out);

  bool label(std::string_view given, datum* out);
  template <class Number>
  bool label_as(std::string_view given, datum* out, std::vector<Number>& list) {
    list.clear();
    for (bool more = !given.empty(); more;) {
      const auto comma = how_.multilabel ? given.find(',') : given.npos;
      std::string_view one = given.substr(0, comma);
      more = comma != given.npos;
      if (more) given.remove_prefix(comma + 1);
      if (one.size() > 1 && one[0] == '+' && one[1] != '-') one.remove_prefix(1);
      Number n = 0;
      if (!detail::is_number(one, n))
        return wrong("expected a label of ", name_of(how_.label_type), ", found \"", one.substr(0, 50), '"');
      list.push_back(n);
    }
    if (how_.multilabel)
      put<Number>(*out, label_, list);
    else
      std::memcpy(rows_[label_], list.data(), sizeof(Number));
    return true;
  }
  template <class Number>
  static void put(datum& out, std::size_t k, std::span<const Number> list) {
    const auto to = out.resize(k, {static_cast<std::int64_t>(list.size())});
    if (!list.empty()) std::memcpy(to.mutable_data(), list.data(), list.size() * sizeof(Number));
  }

  void blanks();
  std::string_view word();
  template <class... Pieces>
  bool wrong(const Pieces&... pieces) {
    files_.problem = text(pieces...);
    return false;
  }

  detail::record_files files_;
  libsvm_options how_;
  components spec_;
  std::size_t label_ = 0;
  // The state of the record that is being read.
  std::string_view rest_;
  std::vector<std::byte*> rows_;
  std::vector<std::int64_t> indices_, longs_;  // indices and values have room for the longest record so far
  std::vector<std::int32_t> ints_;
  std::vector<float> values_, floats_;
  std::vector<double> doubles_;
  datum scratch_;
};

// Reading raises the errors of opening a file, data_loss for a bad record or a damaged file (with the file, record,
// line and byte), and resource_exhausted for a line longer than the limit; the next call goes on behind it.
libsvm_dataset libsvm(file_list files, const libsvm_options& how, const any_file_system& fs = {});

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "libsvm.ipp"
#endif
