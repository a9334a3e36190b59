// The bodies of csv.hpp.
#pragma once
#include "../base/body.hpp"
#include "csv.hpp"

namespace gradus::inline GRADUS_BUILD::detail {
inline constexpr std::string_view mend_columns =
                                      "; give the columns as many fields, or name those of the file in select_cols",
                                  maybe_a_header = "; if this record is a header, give {.header = true}";
}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY std::int64_t csv_dataset::pull(std::span<const tensor_view> out, std::int64_t first, std::int64_t n) {
  if (!out.empty() && text_columns_)
    raise(status::failed_precondition,
          "text differs in size; read it with next(datum&), or make elements equal with padded_batch");
  if (out.empty()) scratch_.conform(spec_);
  std::int64_t done = 0;
  for (; done < n; ++done) {
    for (std::size_t k = 0; k < spec_.size(); ++k)
      rows_[k] = out.empty() ? scratch_[k].mutable_data() : detail::row_of(out[k], spec_[k], first + done);
    if (!next_record(out.empty() ? &scratch_ : nullptr)) break;
  }
  return done;
}

GRADUS_BODY bool csv_dataset::pull(datum& out) {
  out.conform(spec_);
  for (std::size_t k = 0; k < spec_.size(); ++k) rows_[k] = out[k].mutable_data();
  return next_record(&out);
}

GRADUS_BODY void csv_dataset::rewind() {
  files_.rewind();
  header_seen_ = -1;
}

GRADUS_BODY void csv_dataset::define(std::string& to) const {
  to += text("csv(", files_.definition(), "; ", to_text(spec_), "; delimiter ", int{how_.field_delim});
  if (how_.header) to += ", header";
  if (!how_.use_quote_delim) to += ", no quotes";
  if (how_.comment != '\0') to += text(", comment ", int{how_.comment});
  for (const auto c : how_.select_cols) to += text(c == how_.select_cols[0] ? ", fields " : " ", c);
  to += ')';
}

GRADUS_BODY void csv_dataset::read(position_reader& from) {
  files_.read(from);
  if (from.apply()) header_seen_ = files_.inside_file() ? files_.file_number() : -1;
}

GRADUS_BODY bool csv_dataset::next_record(datum* out) {
  return files_.next([&](std::string_view bytes, bool last) { return parse(bytes, last, out); });
}

GRADUS_BODY csv_dataset::found_record csv_dataset::parse(std::string_view bytes, bool last, datum* out) {
  cursor c{bytes.data(), bytes.data() + bytes.size(), last};
  if (how_.comment != '\0' && bytes[0] == how_.comment) {
    while (c.at != c.end && *c.at != '\n' && *c.at != '\r') ++c.at;
    end_field(c);
    return result(c, bytes, kind::passed);
  }
  bad_ = false;
  if (how_.header && files_.at_first_record() && header_seen_ != files_.file_number()) {
    while (c.state == cursor::inside) field(c, dtype::none);
    bad_ = false;
    if (c.state != cursor::too_short) header_seen_ = files_.file_number();
    return result(c, bytes, kind::passed);
  }
  std::int64_t fields = 0;  // the fields read so far, without those that are passed over
  for (const run& r : runs_) {
    std::int64_t i = 0;
    switch (r.type) {
    case float32: i = numbers<float>(c, r); break;
    case float64: i = numbers<double>(c, r); break;
    case int32: i = numbers<std::int32_t>(c, r); break;
    case int64: i = numbers<std::int64_t>(c, r); break;
    default: break;
    }
    for (; i < r.count && c.state == cursor::inside; ++i) {
      const std::string_view f = field(c, r.type);
      if (r.type != dtype::none && c.state != cursor::too_short) keep(f, r, i, fields + i, out);
    }
    if (r.type != dtype::none) fields += i;
    if (c.state != cursor::inside) break;
  }
  if (c.state == cursor::inside && how_.select_cols.empty()) {
    field(c, dtype::none);
    wrong("Expect ", fields_, " fields but have more in record", detail::mend_columns);
  }
  while (c.state == cursor::inside) field(c, dtype::none);
  if (c.state != cursor::too_short && fields < fields_)
    wrong("Expect ", fields_, " fields but have ", fields, " in record", detail::mend_columns);
  return result(c, bytes, bad_ ? kind::bad : kind::whole);
}

GRADUS_BODY csv_dataset::found_record csv_dataset::result(const cursor& c, std::string_view bytes, kind what) {
  if (c.state == cursor::too_short) return {kind::partial, 0, 0};
  return {what, static_cast<std::size_t>(c.at - bytes.data()), c.lines};
}

GRADUS_BODY std::string_view csv_dataset::field(cursor& c, dtype type) {
  if (how_.use_quote_delim && c.at != c.end && *c.at == '"') return quoted_field(c, type);
  const char* const from = c.at;
  bool quote = false;
  for (; c.at != c.end; ++c.at) {
    if (*c.at == how_.field_delim || *c.at == '\n' || *c.at == '\r') break;
    quote = quote || *c.at == '"';
  }
  const std::string_view f(from, static_cast<std::size_t>(c.at - from));
  end_field(c);
  if (quote && how_.use_quote_delim && c.state != cursor::too_short) wrong("Unquoted fields cannot have quotes inside");
  return f;
}

GRADUS_BODY std::string_view csv_dataset::quoted_field(cursor& c, dtype type) {
  quoted_.clear();
  bool stray = false;
  for (const char* from = ++c.at;; ++c.at) {
    while (c.at != c.end && *c.at != '"') c.lines += *c.at++ == '\n';
    if (c.at == c.end) {
      c.state = c.last ? cursor::record_ended : cursor::too_short;
      if (c.last) wrong("Reached end of file without closing quoted field in record");
      return {};
    }
    const char* const quote = c.at++;
    const bool ends = c.at == c.end || *c.at == how_.field_delim || *c.at == '\n' || *c.at == '\r';
    if (ends) {
      const std::string_view rest(from, static_cast<std::size_t>(quote - from));
      end_field(c);
      if (stray && c.state != cursor::too_short) wrong("Quote inside a string has to be escaped by another quote");
      if (quoted_.empty()) return rest;
      return quoted_ += rest;
    }
    stray = stray || *c.at != '"';
    if (*c.at != '"') c.lines += *c.at == '\n';
    if (type != dtype::none) quoted_.append(from, c.at);  // a quote that stands for itself
    from = c.at + 1;
  }
}

GRADUS_BODY void csv_dataset::end_field(cursor& c) const {
  if (c.at == c.end) {
    c.state = c.last ? cursor::record_ended : cursor::too_short;
  } else if (*c.at == how_.field_delim) {
    ++c.at;
  } else if (*c.at == '\n' || c.at + 1 != c.end || c.last) {
    c.at += *c.at == '\r' && c.at + 1 != c.end && c.at[1] == '\n' ? 2 : 1;
    c.state = cursor::record_ended;
  } else {
    c.state = cursor::too_short;  // \n may follow \r
  }
}

GRADUS_BODY void csv_dataset::keep(std::string_view f, const run& r, std::int64_t i, std::int64_t number, datum* out) {
  const bool missing = f.empty() || f == how_.na_value;
  const auto& fallback = columns_[r.column].fallback.value();
  if (missing && !fallback)
    return wrong("Field ", number, " is required but missing in record!; give the column \"", columns_[r.column].name,
                 "\" a default");
  if (r.type == uint8) {
    const std::string_view kept = missing ? std::string_view(*fallback) : f;
    if (bad_) return;
    const auto to = out->resize(r.column, {static_cast<std::int64_t>(kept.size())});
    if (!kept.empty()) std::memcpy(to.mutable_data(), kept.data(), kept.size());
    return;
  }
  const auto convert = [&]<class Number>(Number n, std::string_view called) {
    if (missing)
      std::memcpy(&n, &r.fallback, sizeof n);
    else if (!detail::is_number(f, n))
      return wrong("Field ", number, " in record is not a valid ", called, ": ", f.substr(0, 100),
                   "; it is of the column \"", columns_[r.column].name, "\"",
                   files_.at_first_record() && !how_.header ? detail::maybe_a_header : std::string_view());
    std::memcpy(rows_[r.column] + static_cast<std::size_t>(r.at + i) * sizeof n, &n, sizeof n);
  };
  switch (r.type) {
  case float32: return convert(float{}, "float");
  case float64: return convert(double{}, "double");
  case int32: return convert(std::int32_t{}, "int32");
  default: return convert(std::int64_t{}, "int64");
  }
}

GRADUS_BODY void csv_dataset::plan() {
  const auto refuse = [](const auto&... why) { raise(status::invalid_argument, text("csv: ", why...)); };
  if (columns_.empty()) refuse("expected at least one column");
  if (how_.field_delim == '"' || how_.field_delim == '\n' || how_.field_delim == '\r')
    refuse("a quote, \\n or \\r cannot be the delimiter");
  for (std::size_t k = 0; k < columns_.size(); ++k) {
    const csv_column& c = columns_[k];
    const bool is_text = c.type == uint8 && c.dims == extents{any_extent};
    const bool is_number = (c.type == float32 || c.type == float64 || c.type == int32 || c.type == int64) &&
                           has_fixed_size(c.dims) && count(c.dims) > 0;
    if (!is_text && !is_number)
      refuse("the column \"", c.name, "\" is ", name_of(c.type), " ", to_text(c.dims),
             "; expected float32, float64, int32 or int64 with extents above 0, or uint8 [any_extent] for text");
    for (const auto& other : spec_)
      if (other.name == c.name) refuse("two columns are called \"", c.name, "\"; rename one of them");
    run r{c.type, is_text ? 1 : count(c.dims), k, 0, 0};
    if (const auto& value = c.fallback.value(); value && !is_text && !default_bits(*value, c.type, r.fallback))
      refuse("the default \"", *value, "\" of \"", c.name, "\" is no ", name_of(c.type));
    spec_.push_back({c.name, c.type, c.dims});
    text_columns_ = text_columns_ || is_text;
    fields_ += r.count;
    runs_.push_back(r);
  }
  rows_.resize(spec_.size());
  double number = 0;
  quick_ = std::string_view("+-.()_").find(how_.field_delim) == std::string_view::npos &&
           std::isalnum(static_cast<unsigned char>(how_.field_delim)) == 0 && !detail::is_number(how_.na_value, number);
  if (!how_.select_cols.empty()) select();
}

GRADUS_BODY void csv_dataset::select() {
  const auto& cols = how_.select_cols;
  for (std::size_t i = 0; i < cols.size(); ++i)
    if (cols[i] < 0 || (i > 0 && cols[i] <= cols[i - 1]))
      raise(status::invalid_argument, "csv: select_cols: expected increasing numbers of fields, from 0 on");
  if (static_cast<std::int64_t>(cols.size()) != fields_)
    raise(status::invalid_argument, text("csv: select_cols selects ", cols.size(), " fields, the columns take ",
                                         fields_, "; expected the same number"));
  std::vector<run> cut;
  std::size_t next = 0;
  std::int64_t here = 0;
  for (const run& r : runs_)
    for (std::int64_t i = 0; i < r.count; ++i, ++next, ++here) {
      if (cols[next] != here) cut.push_back({dtype::none, cols[next] - here, 0, 0, 0});
      const bool goes_on = cols[next] == here && i > 0;
      here = cols[next];
      if (goes_on)
        ++cut.back().count;
      else
        cut.push_back({r.type, 1, r.column, i, r.fallback});
    }
  runs_ = std::move(cut);
}

GRADUS_BODY bool csv_dataset::default_bits(std::string_view value, dtype type, std::uint64_t& bits) {
  const auto as = [&](auto n) {
    if (!detail::is_number(value, n)) return false;
    std::memcpy(&bits, &n, sizeof n);
    return true;
  };
  return type == float32   ? as(float{})
         : type == float64 ? as(double{})
         : type == int32   ? as(std::int32_t{})
                           : as(std::int64_t{});
}

GRADUS_BODY csv_dataset::csv_dataset(const csv_dataset&) = default;
GRADUS_BODY csv_dataset::csv_dataset(csv_dataset&&) noexcept = default;
GRADUS_BODY csv_dataset& csv_dataset::operator=(const csv_dataset&) = default;
GRADUS_BODY csv_dataset& csv_dataset::operator=(csv_dataset&&) noexcept = default;
GRADUS_BODY csv_dataset::~csv_dataset() = default;

GRADUS_BODY csv_dataset::csv_dataset(file_list files, std::vector<csv_column> columns, const csv_options& how,
                                     const any_file_system& fs)
    : files_("csv", std::move(files), {how.compression, how.ignore_errors, how.limits}, fs),
      how_(how),
      columns_(std::move(columns)) {
  plan();
}

GRADUS_BODY csv_dataset csv(file_list files, std::vector<csv_column> columns, const csv_options& how,
                            const any_file_system& fs) {
  return csv_dataset(std::move(files), std::move(columns), how, fs);
}

}  // namespace gradus
