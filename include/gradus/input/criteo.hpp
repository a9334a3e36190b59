// Criteo's click logs: lines of a label, 13 integers and 26 categories of 8 hexadecimal digits, between tabs, any of
// them empty.
//
//   criteo("train.txt", {.log_transform = true, .hash_buckets = 100000})
//
//   "label"       int32               absent with .labels = false (the test files)
//   "integers"    float32 [13]        a missing one is .missing; log_transform: log(1 + max(x, 0))
//   "categories"  int64 [26]          the digits as a number, below 2^32; a missing one is -1; hash_buckets: modulo
//
// docs/formats/criteo.md has the details.
#pragma once
#include <cmath>

#include "dataset.hpp"
#include "record_files.hpp"
#include "text_number.hpp"

namespace gradus {

struct criteo_options {
  bool labels = true;             // 40 fields; false: 39
  float missing = 0;              // what an integer is that is not there; not transformed
  bool log_transform = false;     // log(1 + max(x, 0)) of those that are
  std::int64_t hash_buckets = 0;  // categories modulo this; 0: as they are
  compression_type compression = compression_type::automatic;
  bool ignore_errors = false;  // pass over bad records and damaged files; skipped() counts them
  reader_limits limits = {};
};

class criteo_dataset final : public composable<criteo_dataset> {
public:
  static constexpr std::int64_t integers = 13, categories = 26;

  // Error: invalid_argument for a negative number of buckets.
  template <file_system F = posix>
  explicit criteo_dataset(file_list files, const criteo_options& how = {}, const F& fs = {})
      : files_("criteo", std::move(files), {how.compression, how.ignore_errors, how.limits}, fs), how_(how) {
    if (how.hash_buckets < 0)
      raise(status::invalid_argument, text("criteo: expected a number of buckets from 0 on, found ", how.hash_buckets));
    if (how.labels) spec_.push_back({"label", int32, {}});
    spec_.push_back({"integers", float32, {integers}});
    spec_.push_back({"categories", int64, {categories}});
  }

  const components& element_spec() const { return spec_; }
  std::int64_t pull(std::span<const tensor_view> out, std::int64_t first, std::int64_t n) {
    std::int64_t done = 0;
    for (; done < n; ++done) {
      row to{&no_label_, nowhere_integers_, nowhere_categories_};
      if (!out.empty()) {
        const std::size_t k = how_.labels ? 1 : 0;
        if (how_.labels) to.label = reinterpret_cast<std::int32_t*>(detail::row_of(out[0], spec_[0], first + done));
        to.integer = reinterpret_cast<float*>(detail::row_of(out[k], spec_[k], first + done));
        to.category = reinterpret_cast<std::int64_t*>(detail::row_of(out[k + 1], spec_[k + 1], first + done));
      }
      if (!next_record(to)) break;
    }
    return done;
  }
  // Records and damaged files that ignore_errors has passed over.
  std::int64_t skipped() const { return files_.skipped(); }
  void rewind() { files_.rewind(); }
  void define(std::string& to) const {
    to += text("criteo(", files_.definition(), how_.labels ? "" : "; no labels", how_.log_transform ? "; log" : "",
               "; ", how_.hash_buckets, " buckets)");
  }
  void write(position_writer& to) const { files_.write(to); }
  void read(position_reader& from) { files_.read(from); }

private:
  using found_record = detail::found_record;
  struct row {
    std::int32_t* label;
    float* integer;
    std::int64_t* category;
  };

  bool next_record(const row& to) {
    return files_.next([&](std::string_view bytes, bool last) {
      found_record found;
      std::string_view line;
      if (!detail::line_in(bytes, last, line, found))
        found.what = found_record::kind::partial;
      else if (!parse(line, to))
        found.what = found_record::kind::bad;
      return found;
    });
  }

  // False, and files_.problem says why.
  bool parse(std::string_view line, const row& to) {
    const std::int64_t expected = integers + categories + (how_.labels ? 1 : 0);
    const char *at = line.data(), *const end = at + line.size();
    std::int64_t number = 0;  // of the field
    bool more = true;
    const auto few = [&] { return wrong("expected ", expected, " fields between tabs, found ", number); };
    const auto past_tab = [&] {
      ++number;
      more = at != end;
      at += more;
    };
    if (how_.labels) {
      std::int32_t label = 0;
      const char* const past = detail::number_at(at, end, label);
      if (past == nullptr || (past != end && *past != '\t') || label < 0 || label > 1)
        return wrong("expected a label of 0 or 1, found \"", field(at, end), '"');
      *to.label = label;
      at = past, past_tab();
    }
    for (std::int64_t i = 0; i < integers; ++i) {
      if (!more) return few();
      float x = how_.missing;
      if (at != end && *at != '\t') {
        std::int64_t n = 0;
        const char* const past = detail::number_at(at, end, n);
        if (past == nullptr || (past != end && *past != '\t'))
          return wrong("field ", number, ": expected an integer, found \"", field(at, end), '"');
        at = past;
        x = how_.log_transform ? std::log1p(static_cast<float>(std::max<std::int64_t>(n, 0))) : static_cast<float>(n);
      }
      to.integer[i] = x;
      past_tab();
    }
    for (std::int64_t i = 0; i < categories; ++i) {
      if (!more) return few();
      std::int64_t x = -1;
      if (at != end && *at != '\t') {
        const char* const from = at;
        std::uint32_t n = 0;
        for (; at != end && *at != '\t' && at - from < 9; ++at) {
          const int digit = hex_digit(*at);
          if (digit < 0) break;
          n = n << 4 | static_cast<std::uint32_t>(digit);
        }
        if (at - from != 8 || (at != end && *at != '\t'))
          return wrong("field ", number, ": expected 8 hexadecimal digits, found \"", field(from, end), '"');
        x = how_.hash_buckets > 0 ? n % how_.hash_buckets : std::int64_t{n};
      }
      to.category[i] = x;
      past_tab();
    }
    return !more || wrong("expected ", expected, " fields between tabs, found more");
  }
  static int hex_digit(char c) {
    if (detail::is_digit(c)) return c - '0';
    const char lower = static_cast<char>(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
  }
  static std::string_view field(const char* from, const char* end) {
    const std::string_view rest(from, static_cast<std::size_t>(end - from));
    return rest.substr(0, std::min<std::size_t>(rest.find('\t'), 50));
  }
  template <class... Pieces>
  bool wrong(const Pieces&... pieces) {
    files_.problem = text(pieces...);
    return false;
  }

  detail::record_files files_;
  criteo_options how_;
  components spec_;
  // Where records go that are passed over.
  std::int32_t no_label_ = 0;
  float nowhere_integers_[integers] = {};
  std::int64_t nowhere_categories_[categories] = {};
};

// Errors while reading: those of opening a file; data_loss for a bad record or a damaged file, naming file, record,
// line and byte, resource_exhausted for a line above the limit: the next call goes on behind it.
template <file_system F = posix>
criteo_dataset criteo(file_list files, const criteo_options& how = {}, const F& fs = {}) {
  return criteo_dataset(std::move(files), how, fs);
}

}  // namespace gradus
