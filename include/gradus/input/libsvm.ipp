// The bodies of libsvm.hpp.
#pragma once
#include "../base/body.hpp"
#include "libsvm.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY std::int64_t libsvm_dataset::pull(std::span<const tensor_view> out, std::int64_t first, std::int64_t n) {
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

GRADUS_BODY bool libsvm_dataset::pull(datum& out) {
  out.conform(spec_);
  for (std::size_t k = 0; k < spec_.size(); ++k) rows_[k] = out[k].mutable_data();
  return next_record(&out);
}

GRADUS_BODY void libsvm_dataset::define(std::string& to) const {
  to += text("libsvm(", files_.definition(), "; ", to_text(spec_), how_.zero_based ? "; from 0)" : ")");
}

GRADUS_BODY bool libsvm_dataset::next_record(datum* out) {
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

GRADUS_BODY bool libsvm_dataset::parse(datum* out) {
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
  if (how_.ragged) {
    const std::size_t room = rest_.size() / 4 + 1;  // "1:2 " is the shortest
    if (indices_.size() < room) indices_.resize(room), values_.resize(room);
  }
  const std::int64_t base = how_.zero_based ? 0 : 1,
                     most = how_.features != 0 ? how_.features - 1 : std::numeric_limits<std::int64_t>::max();
  const char *from = rest_.data(), *const end = from + rest_.size();
  std::size_t n = 0;
  for (std::int64_t before = -1; from != end; ++n) {
    std::int64_t index = 0;
    float value = 0;
    // Where the next feature begins is found first, by itself: a processor parses several features at once if none
    // waits for the numbers before it.
    const char* next = nullptr;
    if (detail::eight_chars::here && end - from >= 16) next = from + detail::eight_chars::blank_in_16(from);
    const char* at = detail::number_at(from, end, index);
    const bool named = at != nullptr && at != end && *at == ':';
    at = named ? detail::number_at(at + 1, end, value) : nullptr;
    if (at == nullptr || (at != end && *at != ' ' && *at != '\t')) {
      rest_ = std::string_view(from, static_cast<std::size_t>(end - from));
      const std::string_view w = word();
      const auto colon = w.find(':');
      if (!named || !detail::is_number(w.substr(colon + 1), value))
        return wrong("expected <index>:<value>, found \"", w.substr(0, 50), '"');
      at = rest_.data();
    }
    if (at == next && at != end) {
      asm("" : "+r"(next));  // no other way to this place is to be waited for
      at = next + 1;
    }
    for (from = at; from != end && (*from == ' ' || *from == '\t');) ++from;
    if (index < base)
      return wrong("expected indices from ", base, " on, found ", index, base == 1 ? "; is it zero_based?" : "");
    index -= base;
    if (index > most)
      return wrong("expected an index of at most ", most + base, " (", how_.features, " features), found ",
                   index + base);
    if (index <= before) return wrong("expected ascending indices, found ", index + base, " after ", before + base);
    before = index;
    if (how_.ragged)
      indices_[n] = index, values_[n] = value;
    else
      features[index] = value;
  }
  if (how_.ragged) {
    put<std::int64_t>(*out, 0, {indices_.data(), n});
    put<float>(*out, 1, {values_.data(), n});
  }
  return true;
}

GRADUS_BODY bool libsvm_dataset::label(std::string_view given, datum* out) {
  switch (how_.label_type) {
  case float32: return label_as(given, out, floats_);
  case float64: return label_as(given, out, doubles_);
  case int32: return label_as(given, out, ints_);
  default: return label_as(given, out, longs_);
  }
}

GRADUS_BODY void libsvm_dataset::blanks() {
  std::size_t n = 0;
  while (n < rest_.size() && (rest_[n] == ' ' || rest_[n] == '\t')) ++n;
  rest_.remove_prefix(n);
}

GRADUS_BODY std::string_view libsvm_dataset::word() {
  const auto end = std::min(rest_.find_first_of(" \t"), rest_.size());
  const auto w = rest_.substr(0, end);
  rest_.remove_prefix(end);
  return w;
}

GRADUS_BODY libsvm_dataset::libsvm_dataset(file_list files, const libsvm_options& how, const any_file_system& fs)
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

GRADUS_BODY libsvm_dataset libsvm(file_list files, const libsvm_options& how, const any_file_system& fs) {
  return libsvm_dataset(std::move(files), how, fs);
}

}  // namespace gradus
