// What the tests of readers share: files in memory, gzipped ones, elements as text.
#pragma once
#include <gradus/testing/faulty_files.hpp>

#include <zlib.h>

#include "data.hpp"

namespace reader_tests {

using namespace data_tests;

// A disk in memory, which cannot seek; and the same bytes as a real file can be had from temp_dir.
using disk = testing::faulty_files;

inline disk disk_with(const std::vector<std::pair<std::string, std::string>>& files) {
  disk d;
  for (const auto& [name, content] : files) publish(d, name, content);
  return d;
}

inline std::string gzipped_text(std::string in) {
  z_stream z = {};
  REQUIRE(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(deflateBound(&z, static_cast<uLong>(in.size())) + 32, '\0');
  z.next_in = reinterpret_cast<Bytef*>(in.data()), z.avail_in = static_cast<uInt>(in.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data()), z.avail_out = static_cast<uInt>(out.size());
  REQUIRE(deflate(&z, Z_FINISH) == Z_STREAM_END);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

// A component's values: text in quotes, numbers with commas.
inline std::string shown(const_tensor_view v) {
  if (v.type == uint8) return text('\'', std::string_view(reinterpret_cast<const char*>(v.data), v.size_bytes()), '\'');
  std::string out;
  const auto list = [&](auto zero) {
    for (const auto x : v.as<decltype(zero)>()) out += text(out.empty() ? "" : ",", x);
  };
  switch (v.type) {
  case float32: list(float{}); break;
  case float64: list(double{}); break;
  case int32: list(std::int32_t{}); break;
  default: list(std::int64_t{});
  }
  return v.dims.rank == 0 ? out : text('[', out, ']');
}
inline std::string shown(const datum& e) {
  std::string out;
  for (std::size_t k = 0; k < e.size(); ++k) out += (k == 0 ? "" : " ") + shown(e[k]);
  return out;
}
// All elements, errors where they come, in a row.
template <class Dataset>
std::vector<std::string> stream_of(Dataset& d, std::size_t most = 1000) {
  std::vector<std::string> out;
  for (datum e; out.size() < most;) try {
      if (!d.next(e)) break;
      out.push_back(shown(e));
    } catch (const error& problem) {
      out.push_back(text("error: ", problem.what()));
    }
  return out;
}

using strings = std::vector<std::string>;

}  // namespace reader_tests
