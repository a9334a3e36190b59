// The bodies of criteo.hpp.
#pragma once
#include "../base/body.hpp"
#include "criteo.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY std::int64_t criteo_dataset::pull(std::span<const tensor_view> out, std::int64_t first, std::int64_t n) {
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

GRADUS_BODY void criteo_dataset::define(std::string& to) const {
  to += text("criteo(", files_.definition(), how_.labels ? "" : "; no labels", how_.log_transform ? "; log" : "", "; ",
             how_.hash_buckets, " buckets)");
}

GRADUS_BODY bool criteo_dataset::next_record(const row& to) {
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

GRADUS_BODY bool criteo_dataset::parse(std::string_view line, const row& to) {
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
  const std::int64_t buckets = how_.hash_buckets;
  for (std::int64_t i = 0; i < categories; ++i) {
    if (!more) return few();
    std::int64_t x = -1;
    if (at != end && *at != '\t') {
      std::uint32_t n = 0;
      int all = -1;  // below 0 if one is no digit
      if (end - at >= 8) {
        all = 0;
        for (int k = 0; k < 8; ++k) {
          const int digit = hex_digit(at[k]);
          all |= digit, n = n << 4 | static_cast<std::uint32_t>(digit & 15);
        }
      }
      if (all < 0 || (end - at > 8 && at[8] != '\t'))
        return wrong("field ", number, ": expected 8 hexadecimal digits, found \"", field(at, end), '"');
      at += 8;
      // A division of 32 bits takes less time.
      x = buckets == 0 ? std::int64_t{n} : buckets <= UINT32_MAX ? n % static_cast<std::uint32_t>(buckets) : n;
    }
    to.category[i] = x;
    past_tab();
  }
  return !more || wrong("expected ", expected, " fields between tabs, found more");
}

GRADUS_BODY int criteo_dataset::hex_digit(char c) {
  static constexpr auto digits = [] {
    std::array<std::int8_t, 256> all{};
    for (auto& d : all) d = -1;
    for (int i = 0; i < 16; ++i)
      for (const char* names : {"0123456789abcdef", "0123456789ABCDEF"})
        all[static_cast<unsigned char>(names[i])] = static_cast<std::int8_t>(i);
    return all;
  }();
  return digits[static_cast<unsigned char>(c)];
}

GRADUS_BODY std::string_view criteo_dataset::field(const char* from, const char* end) {
  const std::string_view rest(from, static_cast<std::size_t>(end - from));
  return rest.substr(0, std::min<std::size_t>(rest.find('\t'), 50));
}

GRADUS_BODY criteo_dataset::criteo_dataset(file_list files, const criteo_options& how, const any_file_system& fs)
    : files_("criteo", std::move(files), {how.compression, how.ignore_errors, how.limits}, fs), how_(how) {
  if (how.hash_buckets < 0)
    raise(status::invalid_argument, text("criteo: expected a number of buckets from 0 on, found ", how.hash_buckets));
  if (how.labels) spec_.push_back({"label", int32, {}});
  spec_.push_back({"integers", float32, {integers}});
  spec_.push_back({"categories", int64, {categories}});
}

GRADUS_BODY criteo_dataset criteo(file_list files, const criteo_options& how, const any_file_system& fs) {
  return criteo_dataset(std::move(files), how, fs);
}

}  // namespace gradus
