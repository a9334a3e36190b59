#include "gradus/codec/bundle_decode.hpp"
#include "gradus/store/crc32c.hpp"

#include "bundle_files.hpp"
#include "gradus/store/parallel.hpp"

using namespace bundle_test;
using detail::bundle_entry;
using detail::bundle_extent;

namespace {
const std::string data_suffix = ".data-00000-of-00001";

// A bundle by hand: anything may be in it, all checksums fit. 40 bytes of data, the numbers 0, 1, ...
struct forgery {
  std::map<std::string, file_bytes> index{{"", hex("08 01 1a 02 08 01")}};
  file_bytes data;

  forgery() {
    for (int i = 0; i < 40; ++i) data.push_back(static_cast<std::byte>(i));
  }
  // A tensor at a place of the data.
  bundle_entry at(std::int64_t offset, std::int64_t size, int type, std::vector<std::int64_t> dims) const {
    bundle_entry e;
    e.type = type, e.dims = std::move(dims), e.offset = offset, e.size = size;
    e.crc = mask(crc32c(std::span(data).subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(size))));
    return e;
  }
  forgery& with(const std::string& key, const bundle_entry& e) {
    index[key] = detail::bytes_of(e);
    return *this;
  }
  forgery& with(const std::string& key, std::string_view digits) {
    index[key] = hex(digits);
    return *this;
  }
  bundle_files files() const {
    table_writer table;
    for (const auto& [key, value] : index) table.add(key, value);
    bundle_files f;
    f.all[".index"] = table.finish();
    f.all[data_suffix] = data;
    return f;
  }
  decoded read() const {
    auto f = files();
    const detail::bundle_settings settings;
    auto d = detail::bundle_decoder(settings, f).run();
    if (!d.ok()) CHECK(d.content.records.empty());
    if (d.ok()) {
      CHECK(d.owned.size() <= 2);
      for (const auto& r : d.content.records) CHECK(detail::problem_of(r).empty());
    }
    if (d.ok()) d.content = {};  // its bytes end here
    return d;
  }
  std::string problem() const { return read().problem; }
};
// The golden entry of float[2] at 0, then changed.
bundle_entry good(const forgery& f) { return f.at(0, 8, 1, {2}); }
template <class Change>
std::string changed(Change&& change) {
  forgery f;
  auto e = good(f);
  change(e);
  return f.with("w", e).problem();
}
bool says(const std::string& problem, std::string_view what) {
  if (problem.find(what) != std::string::npos) return true;
  MESSAGE(problem);
  return false;
}
// A tensor [4, 2] of floats in slices, whose bytes lie one after another from 0 on.
forgery sliced(const std::vector<detail::bundle_slice>& slices, std::vector<std::int64_t> dims = {4, 2}) {
  forgery f;
  bundle_entry whole;
  whole.type = 1, whole.dims = dims, whole.slices = slices;
  std::int64_t at = 0;
  for (const auto& slice : slices) {
    std::vector<std::int64_t> extents;
    std::int64_t bytes = 4;
    for (std::size_t i = 0; i < slice.size(); ++i) {
      extents.push_back(slice[i].length < 0 ? dims[i] : slice[i].length);
      bytes *= extents.back();
    }
    if (at + bytes > 40) bytes = 0;
    f.with(detail::bundle_slice_key("w", slice), f.at(at, bytes, 1, extents));
    at += bytes;
  }
  return f.with("w", whole);
}
constexpr std::int64_t huge = std::numeric_limits<std::int64_t>::max();
}  // namespace

TEST_CASE("bundle_decode: headers") {
  const auto header = [](std::string_view digits) { return forgery().with("", digits).read(); };
  CHECK(header("08 01 1a 02 08 01").ok());
  CHECK(header("08 01").ok());
  CHECK(header("08 01 10 00 1a 04 08 07 10 01 2a 03 61 62 63").ok());  // a later producer, an unknown field
  for (const char* shards : {"", "08 00", "08 ffffffffffffffffff01", "08 a08d06", "08 8080808008", "1a 02 08 01"})
    CHECK_MESSAGE(says(header(shards).problem, "shards"), shards);
  CHECK(says(header("08 01 10 02").problem, "byte order 2"));
  CHECK(says(header("08 01 10 ffffffffffff7f").problem, "an impossible byte order"));
  for (const char* broken :
       {"08", "08 80", "07", "0b", "08 01 1a 05 08 01", "08 01 1a 02 08 80", "00 01", "0c 01", "08 01 ff"})
    CHECK_MESSAGE(says(header(broken).problem, "its header holds"), broken);
  const auto refused_well = [&](std::string_view digits, std::string_view what) {
    const auto d = header(digits);
    return d.kind == status::failed_precondition && says(d.problem, what);
  };
  CHECK(refused_well("08 01 10 01", "big-endian"));
  CHECK(refused_well("08 01 1a 04 08 02 10 02", "format version 2"));
  CHECK(refused_well("08 01 1a 02 18 01", "other than 1"));
  CHECK(refused_well("08 01 1a 04 1a 02 05 01", "other than 1"));
  forgery f;
  f.index.erase("");
  CHECK(says(f.problem(), "it has no header"));
  CHECK(says(f.with("w", good(f)).problem(), "its first entry is not its header"));
}

TEST_CASE("bundle_decode: entries whose fields are forged") {
  REQUIRE(changed([](bundle_entry&) {}).empty());
  CHECK(says(changed([](auto& e) { e.crc ^= 1; }),
             "\"w\" in its .data-00000-of-00001 at 0: its checksum does not fit its 8 bytes"));
  CHECK(says(changed([](auto& e) { e.crc = 0; }), "its checksum"));
  CHECK(says(changed([](auto& e) { e.offset = 1; }), "its checksum"));
  for (const std::int64_t offset : {std::int64_t{33}, std::int64_t{40}, std::int64_t{41}, huge, huge - 7})
    CHECK(says(changed([=](auto& e) { e.offset = offset; }), "bytes from"));
  CHECK(says(changed([](auto& e) { e.offset = -1; }), "below 0"));
  for (const std::int64_t size : {std::int64_t{0}, std::int64_t{7}, std::int64_t{9}, huge, std::int64_t{1} << 32})
    CHECK(says(changed([=](auto& e) { e.size = size; }), "do not take"));
  CHECK(says(changed([](auto& e) { e.size = -8; }), "below 0"));
  CHECK(says(changed([](auto& e) { e.shard = 1; }), "in shard 1 of 1"));
  CHECK(says(changed([](auto& e) { e.shard = -1; }), "below 0"));
  CHECK(says(changed([](auto& e) { e.shard = std::int64_t{1} << 32; }), "an impossible shard"));
  for (const int type : {0, 101, -1, 1000000})
    CHECK(says(changed([=](auto& e) { e.type = type; }), "impossible dtype"));
  for (const int type : {20, 26, 31, 99})  // of a newer TensorFlow: carried
    CHECK(changed([=](auto& e) { e.type = type; }).empty());
  CHECK(says(changed([](auto& e) { e.type = 2; }), "do not take"));
  CHECK(says(changed([](auto& e) { e.dims = {3}; }), "do not take"));
  CHECK(says(changed([](auto& e) { e.dims = {}; }), "do not take"));
  CHECK(says(changed([](auto& e) { e.dims = {-2}; }), "an extent of -2"));
  CHECK(says(changed([](auto& e) { e.dims = {huge, huge}; }), "impossible extents"));
  CHECK(says(changed([](auto& e) { e.dims = {huge, 4, 0}; }), "impossible extents"));
  CHECK(says(changed([](auto& e) { e.dims = {huge}; }), "do not take"));                         // * 4 wraps
  CHECK(says(changed([](auto& e) { e.dims = {(std::int64_t{1} << 62) + 2}; }), "do not take"));  // * 4 wraps to 8
  CHECK(says(changed([](auto& e) { e.dims.assign(255, 1); }), "more than 254"));
  CHECK(changed([](auto& e) { e.type = 10, e.dims = {8}; }).empty());  // a bool of other bytes is opaque
  CHECK(says(changed([](auto& e) { e.slices = {{{0, 1}}}; }), "bytes of its own"));

  const auto raw = [](std::string_view digits) { return forgery().with("w", digits).problem(); };
  CHECK(says(raw(""), "impossible dtype 0"));
  for (const char* broken :
       {"08", "0a 05 01", "12 7f", "12 02 12 7f", "12 04 12 02 08 80", "35 01 02 03", "08 01 0b", "08 01 0c", "00 00",
        "09 01", "3a 01 0a", "ff ff ff ff ff ff ff ff ff ff 01", "12 ff ff ff ff ff ff ff ff ff 01"})
    CHECK_MESSAGE(says(raw(broken), "\"w\" holds"), broken);
  CHECK(says(raw("08 01 12 02 18 01"), "unknown rank"));
  CHECK(says(raw("08 81 80 80 80 10 12 00"), "an impossible dtype"));  // 2^32 + 1
  CHECK(says(raw("08 01 12 0d 12 0b 08 ff ff ff ff ff ff ff ff ff 01"), "an extent of -1"));
  CHECK(says(raw("08 01 12 00 3a 02 0a 00"), "slice of another rank"));
  CHECK(says(raw("08 01 12 04 12 02 08 02 3a 04 0a 02 08 05"), "an impossible slice"));
  CHECK(says(raw("08 01 12 04 12 02 08 02 3a 0d 0a 0b 10 ff ff ff ff ff ff ff ff ff 01"), "an impossible slice"));
}

TEST_CASE("bundle_decode: tensors may not share bytes") {
  forgery f;
  f.with("a", f.at(0, 8, 1, {2})).with("b", f.at(8, 8, 1, {2})).with("none", f.at(4, 0, 1, {0}));
  CHECK(f.read().ok());
  CHECK(says(forgery(f).with("c", f.at(4, 8, 1, {2})).problem(), "shares bytes with"));
  CHECK(says(forgery(f).with("c", f.at(0, 8, 1, {2})).problem(), "shares bytes with"));
  CHECK(says(forgery(f).with("c", f.at(15, 1, 4, {1})).problem(), "shares bytes with"));
}

TEST_CASE("bundle_decode: strings") {
  const auto strings = [](std::string_view digits, std::vector<std::int64_t> dims, bool seal = true) {
    forgery f;
    f.data = hex(digits);
    auto e = f.at(0, static_cast<std::int64_t>(f.data.size()), 7, dims);
    std::uint64_t n = 0;
    std::uint32_t crc = 0;
    if (seal && detail::elements_of(e, n) && detail::read_bundle_strings(f.data, n, crc).empty()) e.crc = crc;
    return f.with("s", e).problem();
  };
  CHECK(strings("02 00 78 27 0b 34 68 69", {2}) == "");
  CHECK(strings("02 00 78 27 0b 34 68 69", {1, 2, 1}) == "");
  CHECK(says(strings("02 00 78 27 0b 34 68 69", {2}, false), "its checksum does not fit its 8 bytes"));
  CHECK(says(strings("02 00 78 27 0b 35 68 69", {2}), "the checksum of its strings' lengths"));
  CHECK(says(strings("02 01 78 27 0b 34 68 69", {2}), "the checksum of its strings' lengths"));
  CHECK(says(strings("02 00 78 27 0b 34 68", {2}), "claim 2 bytes, where 1 are"));
  CHECK(says(strings("02 00 78 27 0b 34 68 69 6a", {2}), "claim 2 bytes, where 3 are"));
  CHECK(says(strings("80 80 01 02 00 00", {2}), "cut off"));
  CHECK(says(strings("02 00 78 27", {2}), "do not take"));
  CHECK(says(strings("02 00 78 27 0b 34 68 69", {1000}), "do not take"));
  CHECK(says(strings("02 00 78 27 0b 34 68 69", {huge}), "do not take"));
  CHECK(says(strings("80 80 80 80 80 80", {2}), "malformed"));
  CHECK(says(strings("ff ff ff ff ff ff ff ff ff 01 ff ff ff ff ff ff ff ff ff 01 00 00 00 00", {2}), "malformed"));
  CHECK(says(strings("", {}), "do not take"));
  // Our notes.
  const auto notes = [](std::string_view text) {
    forgery f;
    bundle_entry e = f.at(0, 0, 7, {});
    const auto body = bytes(text);
    f.data = detail::bundle_string_head(std::span(&body, 1), e.crc);
    f.data.insert(f.data.end(), body.begin(), body.end());
    e.size = static_cast<std::int64_t>(f.data.size());
    return f.with("_gradus", e).read();
  };
  CHECK(notes(std::string_view("step 7\nkey=value\n")).ok());
  for (const std::string_view bad :
       {"step 7", "step\n", "step x\n", "step 7\nstep 8\n", "a=1\na=2\n", "a=\\x\n", "a=\\\n", "\n"})
    CHECK_MESSAGE(says(notes(bad).problem, "never written by this library"), bad);
}

TEST_CASE("bundle_decode: slices") {
  const bundle_extent all;
  CHECK(sliced({{{0, 2}, all}, {{2, 2}, all}}).problem() == "");
  CHECK(sliced({{{2, 2}, all}, {{0, 1}, all}, {{1, 1}, all}}).problem() == "");
  CHECK(sliced({{all, {1, 1}}, {all, {0, 1}}}).problem() == "");
  CHECK(sliced({{{0, 2}, {0, 1}}, {{2, 2}, {0, 1}}, {{0, 3}, {1, 1}}, {{3, 1}, {1, 1}}}).problem() == "");
  CHECK(sliced({{{0, 4}, {0, 2}}}).problem() == "");
  const auto refused = [](const std::vector<detail::bundle_slice>& slices, std::string_view what,
                          std::vector<std::int64_t> dims = {4, 2}) {
    return says(sliced(slices, dims).problem(), what);
  };
  CHECK(refused({{{0, 2}, all}}, "do not cover"));
  CHECK(refused({{{0, 2}, all}, {{3, 1}, all}}, "do not cover"));
  CHECK(refused({{{1, 1}, all}, {{2, 2}, all}}, "do not cover"));
  CHECK(refused({{{0, 2}, all}, {{1, 2}, all}}, "overlap"));
  CHECK(refused({{{0, 2}, {0, 1}}, {{1, 2}, {0, 1}}, {{0, 4}, {1, 1}}}, "overlap"));
  CHECK(refused({{{0, 2}, {0, 1}}, {{2, 2}, {0, 1}}, {{0, 3}, {1, 1}}}, "do not cover"));
  CHECK(refused({{{0, 5}, all}}, "outside"));
  CHECK(refused({{{4, 1}, all}, {{0, 4}, {0, 2}}}, "outside"));
  CHECK(refused({{{huge, 1}, all}}, "outside"));
  CHECK(refused({{all, all}}, "do not take", {huge / 8, 2}));  // a slice that needs more than there is
  forgery f = sliced({{{0, 2}, all}, {{2, 2}, all}});
  const std::string first = detail::bundle_slice_key("w", {{0, 2}, all});
  const auto with_first = [&](const bundle_entry& e) { return forgery(f).with(first, e).problem(); };
  CHECK(says(with_first(f.at(0, 8, 1, {1, 2})), "has the extents [1, 2], expected [2, 2]"));
  CHECK(says(with_first(f.at(0, 16, 1, {4})), "another dtype or rank"));
  CHECK(says(with_first(f.at(0, 16, 3, {2, 2})), "another dtype or rank"));
  auto broken = f.at(0, 16, 1, {2, 2});
  broken.crc ^= 1;
  CHECK(says(with_first(broken), "\"a slice of w\" in its .data-00000-of-00001 at 0: its checksum"));
  broken.crc = 0, broken.size = broken.offset = 0, broken.slices = {{all, all}};
  CHECK(says(with_first(broken), "is a slice that has slices"));
  auto strings = f.at(32, 5, 7, {});
  CHECK(says(with_first(strings), "is a slice of strings"));
  auto missing = f;
  missing.index.erase(first);
  CHECK(says(missing.problem(), "\"w\" in its .index has a slice that is not there"));
  auto orphan = f;
  orphan.index.erase("w");
  CHECK(says(orphan.problem(), "slices of tensors that it does not hold"));
  CHECK(says(forgery(f).with(std::string("\0garbage", 8), f.at(32, 4, 1, {1})).problem(),
             "slices of tensors that it does not hold"));
}

TEST_CASE("bundle_decode: a slice that is listed twice is refused, also of a tensor without elements") {
  const bundle_extent all;
  for (const std::int64_t rows : {4, 0}) {
    forgery f = sliced({{all, all}}, {rows, 2});
    CHECK(f.problem() == "");
    bundle_entry whole;
    whole.type = 1, whole.dims = {rows, 2}, whole.slices = {{all, all}, {all, all}};
    CHECK(says(f.with("w", whole).problem(), "\"w\" in its .index has a slice twice"));
  }
}

TEST_CASE("bundle_decode: slices and their extents count as entries, of one tensor and of all") {
  const auto read = [](const forgery& f, std::uint64_t entries) {
    auto files = f.files();
    files.limits.entries = entries;
    const detail::bundle_settings settings;
    auto d = detail::bundle_decoder(settings, files).run();
    d.content = {};  // its bytes end here
    return d;
  };
  const bundle_extent all;
  forgery f = sliced({{{0, 2}, all}, {{2, 2}, all}});
  CHECK(read(f, 6).ok());
  CHECK(read(f, 5).kind == status::resource_exhausted);
  CHECK(says(read(f, 5).problem, "it has more than 5 slices of tensors and extents in them, the limit; raise "));
  bundle_entry other;
  other.type = 1, other.dims = {4, 2}, other.slices = {{all, all}};
  f.with(detail::bundle_slice_key("v", other.slices[0]), f.at(32, 0, 1, {0, 2})).with("v", other);
  CHECK(says(read(f, 8).problem, "more than 8 slices"));
  CHECK(read(f, 9).kind == status::data_loss);  // of that slice's extents
  // An entry of half a megabyte whose slices would take many times that.
  other.dims = {1, 1, 1, 1}, other.slices.assign(65536, detail::bundle_slice(4));
  const auto d = read(forgery().with("v", other), reader_limits{}.entries);
  CHECK(d.kind == status::resource_exhausted);
  CHECK(says(d.problem, "raise reader_limits::entries"));
}

TEST_CASE("bundle_decode: a large tensor is checked by several threads, with the same result") {
  forgery f;
  f.data.resize(detail::worth_parts + 4097);
  for (std::size_t i = 0; i < f.data.size(); i += 1000) f.data[i] = static_cast<std::byte>(i % 251);
  const auto size = static_cast<std::int64_t>(f.data.size());
  f.with("w", f.at(0, size, 4, {size}));
  auto files = f.files();
  const detail::bundle_settings settings;
  for (const int threads : {1, 4}) {
    files.threads = threads;
    CHECK(detail::bundle_decoder(settings, files).run().ok());
    auto damaged = files;
    damaged.all[data_suffix][f.data.size() / 2] ^= std::byte{1};
    CHECK(says(detail::bundle_decoder(settings, damaged).run().problem,
               text("its checksum does not fit its ", size, " bytes")));
  }
}

// As TensorFlow's WriteVariantTensor has it: of each variant its length, its bytes, and a masked checksum of the
// lengths (as u64), bytes and checksums so far.
std::vector<std::byte> variants(std::initializer_list<std::string_view> all, std::uint32_t& entry_crc) {
  std::vector<std::byte> out;
  std::uint32_t crc = 0;
  for (const auto one : all) {
    const std::uint64_t length = one.size();
    out.push_back(static_cast<std::byte>(length));
    for (const char c : one) out.push_back(static_cast<std::byte>(c));
    crc = extend(extend(crc, std::as_bytes(std::span(&length, 1))), std::as_bytes(std::span(one.data(), one.size())));
    const std::uint32_t checksum = mask(crc);
    const auto stored = std::as_bytes(std::span(&checksum, 1));
    out.insert(out.end(), stored.begin(), stored.end());
    crc = extend(crc, stored);
  }
  entry_crc = mask(crc);
  return out;
}

TEST_CASE("bundle_decode: what TensorFlow has and we lack is carried") {
  forgery f;
  auto of_variants = f.at(24, 4, 21, {2});
  const auto held = variants({"ab", ""}, of_variants.crc);
  f.data.resize(64);
  std::copy(held.begin(), held.end(), f.data.begin() + 24);
  of_variants.size = static_cast<std::int64_t>(held.size());
  f.with("a", f.at(0, 8, 8, {1})).with("b", f.at(8, 4, 5, {2})).with("c", f.at(16, 1, 4, {1, 1, 1, 1, 1, 1, 1}));
  f.with("d", of_variants).with("e", f.at(17, 3, 99, {5}));
  auto files = f.files();
  const detail::bundle_settings settings;
  const auto d = detail::bundle_decoder(settings, files).run();
  REQUIRE_MESSAGE(d.ok(), d.problem);
  CHECK(d.warning.empty());
  CHECK(d.lost.empty());
  std::string kinds;
  for (const auto& r : d.content.records) kinds += text(r.name, ' ', detail::kind_of(r), ' ', r.bytes.size(), "; ");
  CHECK(kinds ==
        "a complex64[1] (opaque) 8; b int16[2] 4; c uint8[1, 1, 1, 1, 1, 1, 1] (opaque) 1; d variant[2] (opaque) 12; "
        "e DT_99[5] (opaque) 3; ");
  for (std::size_t bit = 0; bit < 8 * held.size(); ++bit) {
    auto flipped = files;
    flipped.all[data_suffix][24 + bit / 8] ^= std::byte{1} << (bit % 8);
    CHECK(detail::bundle_decoder(settings, flipped).run().kind == status::data_loss);
    CHECK(!detail::bundle_decoder(settings, flipped).run().ok());
  }
}

TEST_CASE("bundle_decode: an opaque tensor in slices is put together where there is an axis left, else it is lost") {
  for (const bool axis_left : {true, false}) {
    const std::vector<std::int64_t> dims =
        axis_left ? std::vector<std::int64_t>{2, 2} : std::vector<std::int64_t>{2, 2, 1, 1, 1, 1};
    forgery f;
    bundle_entry whole;
    whole.type = 8, whole.dims = dims;
    for (const std::int64_t column : {0, 1}) {
      detail::bundle_slice slice(dims.size());
      slice[1] = {column, 1};
      auto part = dims;
      part[1] = 1;
      f.with(detail::bundle_slice_key("w", slice), f.at(16 * column, 16, 8, part));
      whole.slices.push_back(slice);
    }
    f.with("w", whole);
    auto files = f.files();
    const detail::bundle_settings settings;
    const auto d = detail::bundle_decoder(settings, files).run();
    REQUIRE_MESSAGE(d.ok(), d.problem);
    if (!axis_left) {
      CHECK(d.lost == std::vector<std::string>{"w"});
      CHECK(says(d.warning, "complex64[2, 2, 1, 1, 1, 1] in slices"));
      continue;
    }
    const auto& w = d.content.records.at(0);
    CHECK(*w.opaque == opaque_kind{"complex64", {2, 2}});
    REQUIRE(w.bytes.size() == 32);
    const auto& data = files.all[data_suffix];
    for (const std::size_t row : {0u, 1u})  // the columns lie one behind the other in the file
      for (const std::size_t column : {0u, 1u})
        CHECK(std::equal(w.bytes.begin() + static_cast<std::ptrdiff_t>(16 * row + 8 * column),
                         w.bytes.begin() + static_cast<std::ptrdiff_t>(16 * row + 8 * column + 8),
                         data.begin() + static_cast<std::ptrdiff_t>(16 * column + 8 * row)));
  }
}

TEST_CASE("bundle_decode: files that are not there") {
  forgery f;
  f.with("w", good(f));
  const detail::bundle_settings settings;
  auto files = f.files();
  files.all.erase(data_suffix);
  auto d = detail::bundle_decoder(settings, files).run();
  CHECK(d.kind == status::data_loss);
  CHECK(says(d.problem, "model.data-00000-of-00001"));
  files = f.files();
  files.all[data_suffix].resize(7);
  d = detail::bundle_decoder(settings, files).run();
  CHECK(says(d.problem, "\"w\" in its .index claims 8 bytes from 0 on, but .data-00000-of-00001 has 7"));
  files.all.erase(".index");
  d = detail::bundle_decoder(settings, files).run();
  CHECK(d.kind == status::not_found);
  files.all[""] = {};
  d = detail::bundle_decoder(settings, files).run();
  CHECK(d.kind == status::failed_precondition);
  CHECK(says(d.problem, "(V1)"));
}

TEST_CASE("bundle_decode: every flipped bit of the index and of tensors, every truncation") {
  forgery f;
  f.data.resize(32);
  f.with("a", f.at(0, 16, 1, {2, 2})).with("b", f.at(16, 16, 9, {2}));
  const auto whole = f.files();
  const detail::bundle_settings settings;
  auto files = whole;
  std::size_t found = 0, bits = 0;
  for (auto& [suffix, file] : files.all)
    for (std::size_t bit = 0; bit < 8 * file.size(); ++bit, ++bits) {
      file[bit / 8] ^= std::byte{1} << (bit % 8);
      found += !detail::bundle_decoder(settings, files).run().ok();
      file[bit / 8] ^= std::byte{1} << (bit % 8);
    }
  CHECK(found == bits);
  for (const auto& [suffix, file] : whole.all)
    for (std::size_t n = 0; n < file.size(); ++n) {
      files = whole;
      files.all[suffix].resize(n);
      CHECK(!detail::bundle_decoder(settings, files).run().ok());
    }
}

TEST_CASE("bundle_decode: a step of any type") {
  const auto step = [](int type, auto value) {
    forgery f;
    detail::put_fixed(f.data = {}, value);
    f.with("global_step", f.at(0, static_cast<std::int64_t>(sizeof value), type, {}));
    auto files = f.files();
    const detail::bundle_settings settings;
    const auto d = detail::bundle_decoder(settings, files).run();
    CHECK_MESSAGE(d.ok(), d.problem);
    return d.content.step;
  };
  CHECK(step(9, std::int64_t{46900}) == 46900);
  CHECK(step(3, std::int32_t{2010}) == 2010);
  CHECK(step(1, 3000.0f) == 3000);
  CHECK(step(1, 0.5f) == 0);
  CHECK(step(1, std::numeric_limits<float>::quiet_NaN()) == 0);
  CHECK(step(1, 1e30f) == 0);
}
