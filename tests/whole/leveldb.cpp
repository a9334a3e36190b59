// needs: leveldb
// LevelDB's own reader opens our tables, ours opens those of LevelDB's builder, and both builders write the same bytes.
#include <doctest/doctest.h>
#include <leveldb/env.h>
#include <leveldb/iterator.h>
#include <leveldb/options.h>
#include <leveldb/table.h>
#include <leveldb/table_builder.h>

#include <map>
#include <memory>

#include "gradus/base/random.hpp"
#include "gradus/codec/tensor_bundle.hpp"

using namespace gradus;

namespace {
using content = std::map<std::string, std::string>;

// Files in memory, as LevelDB wants them.
struct memory_source final : leveldb::RandomAccessFile {
  explicit memory_source(std::string_view b) : bytes(b) {}
  leveldb::Status Read(std::uint64_t offset, std::size_t n, leveldb::Slice* result, char*) const override {
    const auto part = bytes.substr(std::min<std::size_t>(offset, bytes.size()), n);
    *result = leveldb::Slice(part.data(), part.size());
    return leveldb::Status::OK();
  }
  std::string_view bytes;
};
struct memory_sink final : leveldb::WritableFile {
  leveldb::Status Append(const leveldb::Slice& s) override {
    bytes.append(s.data(), s.size());
    return leveldb::Status::OK();
  }
  leveldb::Status Close() override { return leveldb::Status::OK(); }
  leveldb::Status Flush() override { return leveldb::Status::OK(); }
  leveldb::Status Sync() override { return leveldb::Status::OK(); }
  std::string bytes;
};

content read_by_leveldb(std::string_view table) {
  leveldb::Options options;
  options.paranoid_checks = true;
  memory_source file(table);
  leveldb::Table* opened = nullptr;
  REQUIRE(leveldb::Table::Open(options, &file, table.size(), &opened).ok());
  const std::unique_ptr<leveldb::Table> keep(opened);
  leveldb::ReadOptions read;
  read.verify_checksums = true;
  const std::unique_ptr<leveldb::Iterator> at(keep->NewIterator(read));
  content out;
  for (at->SeekToFirst(); at->Valid(); at->Next()) out.emplace(at->key().ToString(), at->value().ToString());
  CHECK(at->status().ok());
  for (const auto& [key, value] : out) {  // by the index
    at->Seek(key);
    REQUIRE(at->Valid());
    CHECK(at->value().ToString() == value);
  }
  return out;
}
std::string made_by_leveldb(const content& entries, std::size_t block, leveldb::CompressionType compression) {
  leveldb::Options options;
  options.compression = compression;
  options.block_size = block;
  memory_sink file;
  leveldb::TableBuilder builder(options, &file);
  for (const auto& [key, value] : entries) builder.Add(key, value);
  REQUIRE(builder.Finish().ok());
  return file.bytes;
}
}  // namespace

TEST_CASE("leveldb: tables, both ways") {
  random_stream random{7};
  for (int round = 0; round < 60; ++round) {
    content entries{{"", "header"}};
    for (std::uint32_t n = random.below(300); n != 0; --n) {
      std::string key = random.below(2) == 0 ? "" : text("layer_", random.below(20), "/");
      for (std::uint32_t k = random.below(12); k != 0; --k) key += "ab/\xff\xfe\0_0"[random.below(8)];
      entries[key] = std::string(random.below(60), 'v');
    }
    const std::size_t block = round % 2 == 0 ? 262144 : 700;
    table_writer writer({block, 16});
    for (const auto& [key, value] : entries) writer.add(key, std::as_bytes(std::span(value)));
    const auto ours = writer.finish();
    CHECK(read_by_leveldb(detail::as_chars(ours)) == entries);
    CHECK(made_by_leveldb(entries, block, leveldb::kNoCompression) == detail::as_chars(ours));
    const auto packed = made_by_leveldb(entries, block, leveldb::kSnappyCompression);
    content read;
    sorted_table table;
    CHECK(table.open(std::as_bytes(std::span(packed))) == "");
    CHECK(table.each([&](std::string_view key, std::span<const std::byte> value) {
      read.emplace(key, detail::as_chars(value));
      return std::string();
    }) == "");
    CHECK(read == entries);
  }
}

TEST_CASE("leveldb: the index of a checkpoint") {
  const std::vector<float> values(10);
  snapshot s;
  s.about = {{"library", "gradus"}};
  for (int i = 0; i < 3000; ++i)
    s.records.push_back({text("layer_", i, "/kernel"), float32, {10}, std::as_bytes(std::span(values)), false});
  const auto e = tensor_bundle{.shards = 3}.encode(s);
  const auto index = read_by_leveldb(detail::as_chars(e.files.back().pieces.front()));
  CHECK(index.size() == 3002);  // with the header and our notes
  CHECK(index.count("layer_2999/kernel") == 1);
}
