// libsvm's (svmlight's) format: a line `<label> [qid:<n>] <index>:<value> ... [# comment]` for each record.
//
//   libsvm("a8a", {.features = 123})                        "features" float32 [123], "label" float32
//   libsvm("a8a", {.features = 123, .ragged = true})        "indices" int64 [any], "values" float32 [any], "label"
//
// Indices in files count from 1 unless told; in elements they always count from 0. What a record does not mention is 0.
// docs/formats/libsvm.md has the details.
#pragma once
#include "dataset.hpp"
#include "record_files.hpp"
#include "text_number.hpp"

namespace gradus {

struct libsvm_options {
  std::int64_t features = 0;   // how many; a ragged reader need not know (0)
  bool ragged = false;         // indices and values as they stand, instead of all features
  bool zero_based = false;     // the file's first feature is 0
  dtype label_type = float32;  // or float64, int32, int64
  bool multilabel = false;     // "label" is [any_extent]: a list with commas, which may be empty
  bool qid = false;            // a component "qid", int64, which every record must have; else it is passed over
  compression_type compression = compression_type::automatic;
  bool ignore_errors = false;  // pass over bad records and damaged files; skipped() counts them
  reader_limits limits = {};
};

class libsvm_dataset final : public composable<libsvm_dataset> {
public:
  // Error: invalid_argument for options that cannot be.
  template <file_system F = posix>
  libsvm_dataset(file_list files, const libsvm_options& how, const F& fs = {})
      : files_("libsvm", std::move(files), {how.compression, how.ignore_errors, how.limits}, fs), how_(how) {
    const bool known =
        how.label_type == float32 || how.label_type == float64 || how.label_type == int32 || how.label_type == int64;
    if (!known)
      raise(status::invalid_argument,
            text("libsvm: expected labels of float32, float64, int32 or int64, not ", name_of(how.label_type)));
    if (how.features < 0 || (how.features == 0 && !how.ragged))
      raise(status::invalid_argument,
            "libsvm: expected the number of features (.features = n), or .ragged = true, which does not need it");
    if (how.ragged)
      spec_ = {{"indices", int64, {any_extent}}, {"values", float32, {any_extent}}};
    else
      spec_ = {{"features", float32, {how.features}}};
    label_ = spec_.size();
    spec_.push_back({"label", how.label_type, how.multilabel ? extents{any_extent} : extents{}});
    if (how.qid) spec_.push_back({"qid", int64, {}});
    rows_.resize(spec_.size());
  }

  const components& element_spec() const { return spec_; }
  std::int64_t pull(std::span<const tensor_view> out, std::int64_t first, std::int64_t n) {
    if (!out.empty() && (how_.ragged || how_.multilabel))
      raise(status::failed_precondition,
            "these elements differ in size; read them with next(datum&), or make them equal with padded_batch");
    std::int64_t done = 0;
    if (out.empty()) {
      while (done < n && pull(scratch_)) ++done;
      return done;
    }
    for (; done < n; ++done) {
      for (std::size_t k = 0; k < spec_.size(); ++k) rows_[k] = detail::row_of(out[k], spec_[k], first + done);
      if (!next_record(nullptr)) break;
    }
    return done;
  }
  bool pull(datum& out) {
    out.conform(spec_);
    for (std::size_t k = 0; k < spec_.size(); ++k) rows_[k] = out[k].mutable_data();
    return next_record(&out);
  }
  // Records and damaged files that ignore_errors has passed over.
  std::int64_t skipped() const { return files_.skipped(); }
  void rewind() { files_.rewind(); }
  void define(std::string& to) const {
    to += text("libsvm(", files_.definition(), "; ", to_text(spec_), how_.zero_based ? "; from 0)" : ")");
  }
  void write(position_writer& to) const { files_.write(to); }
  void read(position_reader& from) { files_.read(from); }

private:
  using found_record = detail::found_record;

  bool next_record(datum* out) {
    return files_.next([&](std::string_view bytes, bool last) {
      found_record found;
      std::string_view line;
      if (!detail::line_in(bytes, last, line, found)) {
        found.what = found_record::kind::partial;
        return found;
      }
      if (const auto comment = line.find('#'); comment != line.npos) line = line.substr(0, comment);
      rest_ = line;
      blanks();
      if (rest_.empty()) {
        found.what = found_record::kind::passed;
      } else {
        files_.problem.clear();
        if (!parse(out)) found.what = found_record::kind::bad;
      }
      return found;
    });
  }

  // False, and files_.problem says why.
  bool parse(datum* out) {
    indices_.clear(), values_.clear();
    if (!how_.ragged) std::memset(rows_[0], 0, static_cast<std::size_t>(how_.features) * sizeof(float));
    // A list of labels may be empty; then the line begins with its first feature.
    const std::string_view first = word();
    const bool no_label = how_.multilabel && first.find(':') != first.npos;
    if (!label(no_label ? std::string_view() : first, out)) return false;
    if (no_label)
      rest_ = std::string_view(first.data(), static_cast<std::size_t>(rest_.data() + rest_.size() - first.data()));
    blanks();
    std::int64_t query = 0;
    const bool has_query = rest_.starts_with("qid:");
    if (has_query) {
      const std::string_view q = word();
      if (!detail::is_number(q.substr(4), query)) return wrong("expected qid:<number>, found \"", q.substr(0, 50), '"');
      blanks();
    }
    if (how_.qid) {
      if (!has_query) return wrong("expected qid:<number> behind the label, found none");
      std::memcpy(rows_[label_ + 1], &query, sizeof query);
    }
    auto* const features = reinterpret_cast<float*>(rows_[0]);
    for (std::int64_t before = -1; !rest_.empty(); blanks()) {
      const char *const from = rest_.data(), *const end = from + rest_.size();
      std::int64_t index = 0;
      float value = 0;
      const char* at = detail::number_at(from, end, index);
      const bool named = at != nullptr && at != end && *at == ':';
      at = named ? detail::number_at(at + 1, end, value) : nullptr;
      if (at == nullptr || (at != end && *at != ' ' && *at != '\t')) {
        const std::string_view w = word();
        const auto colon = w.find(':');
        if (!named || !detail::is_number(w.substr(colon + 1), value))
          return wrong("expected <index>:<value>, found \"", w.substr(0, 50), '"');
      } else {
        rest_.remove_prefix(static_cast<std::size_t>(at - from));
      }
      const std::int64_t base = how_.zero_based ? 0 : 1;
      if (index < base)
        return wrong("expected indices from ", base, " on, found ", index, base == 1 ? "; is it zero_based?" : "");
      index -= base;
      if (how_.features != 0 && index >= how_.features)
        return wrong("expected an index of at most ", how_.features - 1 + base, " (", how_.features,
                     " features), found ", index + base);
      if (index <= before) return wrong("expected ascending indices, found ", index + base, " after ", before + base);
      before = index;
      if (how_.ragged)
        indices_.push_back(index), values_.push_back(value);
      else
        features[index] = value;
    }
    if (how_.ragged) {
      put(*out, 0, indices_);
      put(*out, 1, values_);
    }
    return true;
  }

  bool label(std::string_view given, datum* out) {
    switch (how_.label_type) {
    case float32: return label_as(given, out, floats_);
    case float64: return label_as(given, out, doubles_);
    case int32: return label_as(given, out, ints_);
    default: return label_as(given, out, longs_);
    }
  }
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
      put(*out, label_, list);
    else
      std::memcpy(rows_[label_], list.data(), sizeof(Number));
    return true;
  }
  template <class Number>
  static void put(datum& out, std::size_t k, const std::vector<Number>& list) {
    const auto to = out.resize(k, {static_cast<std::int64_t>(list.size())});
    if (!list.empty()) std::memcpy(to.mutable_data(), list.data(), list.size() * sizeof(Number));
  }

  void blanks() {
    std::size_t n = 0;
    while (n < rest_.size() && (rest_[n] == ' ' || rest_[n] == '\t')) ++n;
    rest_.remove_prefix(n);
  }
  std::string_view word() {
    const auto end = std::min(rest_.find_first_of(" \t"), rest_.size());
    const auto w = rest_.substr(0, end);
    rest_.remove_prefix(end);
    return w;
  }
  template <class... Pieces>
  bool wrong(const Pieces&... pieces) {
    files_.problem = text(pieces...);
    return false;
  }

  detail::record_files files_;
  libsvm_options how_;
  components spec_;
  std::size_t label_ = 0;
  // Of the record that is being read.
  std::string_view rest_;
  std::vector<std::byte*> rows_;
  std::vector<std::int64_t> indices_, longs_;
  std::vector<std::int32_t> ints_;
  std::vector<float> values_, floats_;
  std::vector<double> doubles_;
  datum scratch_;
};

// Errors while reading: those of opening a file; data_loss for a bad record or a damaged file, naming file, record,
// line and byte, resource_exhausted for a line above the limit: the next call goes on behind it.
template <file_system F = posix>
libsvm_dataset libsvm(file_list files, const libsvm_options& how, const F& fs = {}) {
  return libsvm_dataset(std::move(files), how, fs);
}

}  // namespace gradus
