// `sharded` writes a checkpoint of any codec in several files, so that they can be written and read side by side, and
// none grows beyond the limit of a file system.
//
//   sharded<safetensors>{.shards = 4}     model-150-00000-of-00004.safetensors ... model-150.shards (and its manifest)
//
// Each shard is a whole checkpoint of that codec with a part of the tensors, in their order, cut so that the shards
// have about the same number of bytes. `<stem>.shards` holds their number; the checkpoint's path is that file.
// (tensor_bundle has shards of its own.)
#pragma once
#include "../base/build.hpp"

#include <charconv>

#include "codec.hpp"

namespace gradus::inline GRADUS_BUILD {

template <codec Codec>
struct sharded {
  using policy_for = kind::codec;
  static constexpr std::string_view name = "sharded";
  static constexpr std::string_view extension = ".shards", proof = extension;
  static constexpr bool checks_itself = false, checks_tensors = gradus::checks_tensors<Codec>;
  static constexpr std::uint32_t most = 99999;

  std::uint32_t shards = 2;
  Codec each = {};

  encoded encode(const snapshot& content) const {
    if (shards == 0 || shards > most)
      raise(status::invalid_argument, text("sharded::shards is ", shards, "; give a number from 1 to ", most));
    detail::check_savable(content);
    std::uint64_t total = 0;
    for (const auto& r : content.records) total += r.bytes.size();
    encoded out;
    std::uint64_t before = 0;
    auto next = content.records.begin();
    for (std::uint32_t i = 0; i < shards; ++i) {
      snapshot part{content.step, content.about, {}};
      part.about["codec"] = Codec::name;
      part.about["shard"] = text(i, " of ", shards);
      // The shard ends with its share of all bytes; the last one takes what is left.
      const auto end = total / shards * (i + 1);
      while (next != content.records.end() && (i + 1 == shards || before < end || total == 0)) {
        before += next->bytes.size();
        part.records.push_back(*next++);
      }
      auto shard = each.encode(part);
      for (auto& bytes : shard.owned) out.owned.push_back(std::move(bytes));  // a moved vector keeps its bytes in place
      for (auto& file : shard.files)
        out.files.push_back({shard_prefix(i, shards) + file.suffix, std::move(file.pieces)});
    }
    const auto said = text(head, shards, " of ", std::string_view(Codec::name), '\n');
    const auto* p = reinterpret_cast<const std::byte*>(said.data());
    const auto index = out.own({p, p + said.size()});
    out.files.push_back({std::string(extension), {index}});
    return out;
  }

  decoded decode(checkpoint_files& files) const {
    std::span<const std::byte> index;
    if (const auto p = files.open(extension, index)) return detail::unopened(p);
    decoded out;
    const std::string_view said(reinterpret_cast<const char*>(index.data()), std::min<std::size_t>(index.size(), 64));
    std::uint32_t count = 0;
    const auto tail = text(" of ", std::string_view(Codec::name), '\n');
    const auto* end = said.data() + said.size();
    const auto* stop = said.starts_with(head) ? std::from_chars(said.data() + head.size(), end, count).ptr : end;
    if (count == 0 || count > most || std::string_view(stop, static_cast<std::size_t>(end - stop)) != tail) {
      out.problem = text("its file \"", extension, "\" does not say \"", head, "<number>",
                         tail.substr(0, tail.size() - 1), "\"; name the codec that wrote it");
      return out;
    }
    for (std::uint32_t i = 0; i < count; ++i) {
      behind shard(files, shard_prefix(i, count));
      shard.limits = files.limits, shard.threads = files.threads;
      auto part = each.decode(shard);
      const auto refuse = [&](std::string why) {
        decoded no;
        no.kind = part.kind;
        no.problem = text("shard ", i, " of ", count, ": ", why);
        return no;
      };
      if (!part.ok()) return refuse(part.problem);
      if (const auto s = part.content.about.find("shard");
          s == part.content.about.end() || s->second != text(i, " of ", count))
        return refuse("it was not written as this shard");
      part.content.about.erase("shard");
      if (i == 0) {
        out.content.step = part.content.step;
        out.content.about = std::move(part.content.about);
      } else if (part.content.step != out.content.step || part.content.about != out.content.about) {
        return refuse("it belongs to another checkpoint than the shards before it");
      }
      out.warning += part.warning;
      out.lost.insert(out.lost.end(), part.lost.begin(), part.lost.end());
      for (auto& bytes : part.owned) out.owned.push_back(std::move(bytes));
      if (out.content.records.size() + part.content.records.size() > files.limits.entries) {
        decoded no;
        no.kind = status::resource_exhausted,
        no.problem = detail::too_many_entries("tensors in its shards", files.limits);
        return no;
      }
      for (auto& r : part.content.records) out.content.records.push_back(std::move(r));
    }
    out.content.about["codec"] = name;
    if (const auto twice = detail::duplicate_name(out.content.records); !twice.empty()) {
      decoded no;
      no.problem = text("\"", twice, "\" stands in two shards");
      return no;
    }
    return out;
  }

private:
  static constexpr std::string_view head = "gradus shards ";

  // The files of one shard: those whose suffix begins with the prefix.
  class behind final : public checkpoint_files {
  public:
    behind(checkpoint_files& all, std::string prefix) : all_(all), prefix_(std::move(prefix)) {}
    file_problem open(std::string_view suffix, std::span<const std::byte>& bytes) override {
      return all_.open(prefix_ + std::string(suffix), bytes);
    }

  private:
    checkpoint_files& all_;
    std::string prefix_;
  };

  static std::string shard_prefix(std::uint32_t i, std::uint32_t count) {
    const auto five = [](std::uint32_t n) {
      auto digits = text(n);
      return digits.insert(0, 5 - std::min<std::size_t>(5, digits.size()), '0');
    };
    return text('-', five(i), "-of-", five(count));
  }
};

}  // namespace gradus
