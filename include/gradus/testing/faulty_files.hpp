// This file system in memory fails as a test plans it, and loses data that was not synced: it is for tests of code that
// must survive failures. Every operation is counted; the n-th can fail with any errno, write short, or be the last
// operation of the process. After a kill the files are as they were left; after a power failure they are in any of the
// states that POSIX allows, and after_power_failure visits these states:
//
//   - data of a file since its last sync: any prefix that ends at a multiple of 512 bytes, or all of it; or the full
//     length with zeros where a prefix, or one sector, did not arrive
//   - data that was written over what the disk had: the old bytes before a sector, behind it, in it, or everywhere
//   - names (created, renamed, removed, made) since their directory's last sync: any subset, applied in order
//
// The model is that of SQLite's crash tests and LevelDB's fault-injecting environment, but the states are enumerated
// where those sample.
#pragma once
#include "../base/build.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "../store/file.hpp"

namespace gradus::inline GRADUS_BUILD::testing {

// The operation at which the process "dies" throws this. Afterwards every operation fails and changes nothing, so that
// destructors cannot remove what a killed process would have left.
struct killed {};

class faulty_files {
public:
  using policy_for = kind::file_system;
  using handle = int;

  // This defines what happens at operation `at` (counted from 0; -1: nothing).
  struct fault {
    std::int64_t at = -1;
    int error = 0;             // the operation returns this errno and does nothing
    bool persistent = false;   // so does every later operation of the same kind
    bool kill = false;         // the process dies; a write has then written half of its bytes
    bool short_write = false;  // a write writes 1 byte
  };

  // Copies share the same disk.
  faulty_files() : disk_(std::make_shared<disk>()) {
    disk_->live["."] = disk_->durable["."] = 0;
    disk_->live["/"] = disk_->durable["/"] = 0;
  }

  void plan(const fault& f) const { disk_->planned = f, disk_->failing.clear(); }
  void short_writes(std::size_t most) const { disk_->most = most; }  // every write moves at most this many bytes
  std::int64_t operations() const { return disk_->count; }
  void count_from_zero() const { disk_->count = 0; }
  std::size_t open_handles() const { return disk_->handles.size(); }

  // --- for tests, to inspect and damage the disk; these calls are not counted ---
  bool holds(const std::string& path) const { return disk_->live.count(path) != 0; }
  std::vector<std::string> files() const {
    std::vector<std::string> out;
    for (const auto& [path, inode] : disk_->live)
      if (inode != 0) out.push_back(path);
    return out;
  }
  std::vector<std::byte>& bytes(const std::string& path) const { return data(disk_->live.at(path)).now; }

  // Returns the disk as another process finds it after this process was killed.
  faulty_files after_kill() const {
    faulty_files out;
    out.disk_->live = disk_->live, out.disk_->durable = disk_->durable, out.disk_->pending = disk_->pending;
    for (const auto& [inode, d] : disk_->inodes) out.disk_->inodes.emplace(inode, d);
    out.disk_->next_inode = disk_->next_inode;
    return out;
  }

  // Visits every disk that a power failure now may leave, each once, and returns their number. The last `most_names`
  // pending operations on names are combined freely; earlier ones are taken as done.
  std::size_t after_power_failure(const std::function<void(const faulty_files&)>& visit,
                                  std::size_t most_names = 10) const {
    const auto& pending = disk_->pending;
    const std::size_t free = std::min(pending.size(), most_names), fixed = pending.size() - free;
    std::set<std::map<std::string, std::vector<std::byte>>> seen;
    for (std::size_t chosen = 0; chosen < std::size_t{1} << free; ++chosen) {
      auto names = disk_->durable;
      for (std::size_t i = 0; i < pending.size(); ++i)
        if (i < fixed || (chosen >> (i - fixed) & 1) != 0) pending[i].apply(names);
      std::erase_if(names, [&names](const auto& entry) { return !reachable(entry.first, names); });
      std::map<std::string, std::vector<std::byte>> files;
      visit_data(names, names.begin(), files, seen, visit);
    }
    return seen.size();
  }

  // --- the file system ---
  int create(const std::string& path, int& h) const {
    const std::lock_guard lock(disk_->one_at_a_time);
    return open_for_writing("create", path, true, h);
  }
  int open_append(const std::string& path, int& h) const {
    const std::lock_guard lock(disk_->one_at_a_time);
    return open_for_writing("open", path, false, h);
  }
  int open_read(const std::string& path, int& h, std::uint64_t& size) const {
    const std::lock_guard lock(disk_->one_at_a_time);
    if (const int e = begin("open_read"); e != 0) return e;
    const auto found = disk_->live.find(path);
    if (found == disk_->live.end()) return ENOENT;
    if (found->second == 0) return EISDIR;
    size = data(found->second).now.size();
    return open(found->second, h);
  }
  int write(int h, std::span<const std::byte> from, std::size_t& moved) const {
    const std::lock_guard lock(disk_->one_at_a_time);
    moved = 0;
    std::size_t most = disk_->most;
    const bool dies = disk_->count == disk_->planned.at && disk_->planned.kill && !disk_->dead;
    if (disk_->count == disk_->planned.at && disk_->planned.short_write) most = 1;
    if (dies)
      most = from.size() / 2;
    else if (const int e = begin("write"); e != 0)
      return e;
    const auto opened = disk_->handles.find(h);
    if (opened == disk_->handles.end()) return EBADF;
    moved = std::min(most, from.size());
    inode_data& d = data(opened->second.inode);
    std::size_t& at = opened->second.at;
    if (opened->second.appends) at = d.now.size();
    if (at < d.durable && d.before.empty())
      d.before.assign(d.now.begin(), d.now.begin() + static_cast<std::ptrdiff_t>(d.durable));
    d.now.resize(std::max(d.now.size(), at + moved));
    std::copy_n(from.begin(), moved, d.now.begin() + static_cast<std::ptrdiff_t>(at));
    at += moved;
    if (dies) return begin("write");
    return 0;
  }
  int read(int h, std::span<std::byte> into, std::size_t& moved) const {
    const std::lock_guard lock(disk_->one_at_a_time);
    moved = 0;
    if (const int e = begin("read"); e != 0) return e;
    const auto opened = disk_->handles.find(h);
    if (opened == disk_->handles.end()) return EBADF;
    const auto& now = data(opened->second.inode).now;
    moved = std::min(into.size(), now.size() - opened->second.at);
    if (moved != 0) std::memcpy(into.data(), now.data() + opened->second.at, moved);
    opened->second.at += moved;
    return 0;
  }
  int sync(int h) const {
    const std::lock_guard lock(disk_->one_at_a_time);
    if (const int e = begin("sync"); e != 0) return e;
    const auto opened = disk_->handles.find(h);
    if (opened == disk_->handles.end()) return EBADF;
    auto& d = data(opened->second.inode);
    d.durable = d.now.size(), d.before.clear();
    return 0;
  }
  int rewind(int h) const {
    const std::lock_guard lock(disk_->one_at_a_time);
    if (const int e = begin("rewind"); e != 0) return e;
    const auto opened = disk_->handles.find(h);
    if (opened == disk_->handles.end()) return EBADF;
    opened->second.at = 0;
    return 0;
  }
  int close(int h) const {
    const std::lock_guard lock(disk_->one_at_a_time);
    const int e = begin("close");
    std::erase_if(disk_->claims, [h](const auto& claim) { return claim.second == h; });
    return disk_->handles.erase(h) == 0 ? EBADF : e;
  }
  int claim(int h) const {
    const std::lock_guard lock(disk_->one_at_a_time);
    if (const int e = begin("claim"); e != 0) return e;
    const auto opened = disk_->handles.find(h);
    if (opened == disk_->handles.end()) return EBADF;
    return disk_->claims.emplace(opened->second.inode, h).first->second == h ? 0 : EAGAIN;
  }
  int open_to_claim(const std::string& path, int& h) const {
    const std::lock_guard lock(disk_->one_at_a_time);
    if (const int e = begin("open_to_claim"); e != 0) return e;
    const auto found = disk_->live.find(path);
    return found == disk_->live.end() ? ENOENT : found->second == 0 ? EISDIR : open(found->second, h);
  }
  int rename(const std::string& from, const std::string& to) const {
    const std::lock_guard lock(disk_->one_at_a_time);
    if (const int e = begin("rename"); e != 0) return e;
    const auto found = disk_->live.find(from);
    if (found == disk_->live.end() || disk_->live.count(directory_of(to)) == 0) return ENOENT;
    change({directory_of(to), from, to, found->second});
    return 0;
  }
  int remove(const std::string& path) const {
    const std::lock_guard lock(disk_->one_at_a_time);
    if (const int e = begin("remove"); e != 0) return e;
    const auto found = disk_->live.find(path);
    if (found == disk_->live.end()) return ENOENT;
    if (found->second == 0) return EISDIR;
    change({directory_of(path), path, {}, 0});
    return 0;
  }
  int exists(const std::string& path) const {
    const std::lock_guard lock(disk_->one_at_a_time);
    if (const int e = begin("exists"); e != 0) return e;
    return disk_->live.count(path) != 0 ? 0 : ENOENT;
  }
  int make_directory(const std::string& path) const {
    const std::lock_guard lock(disk_->one_at_a_time);
    if (const int e = begin("make_directory"); e != 0) return e;
    if (disk_->live.count(path) != 0) return EEXIST;
    if (const int e = parent(path); e != 0) return e;
    change({directory_of(path), {}, path, 0});
    return 0;
  }
  int sync_directory(const std::string& path) const {
    const std::lock_guard lock(disk_->one_at_a_time);
    if (const int e = begin("sync_directory"); e != 0) return e;
    if (disk_->live.count(path) == 0) return ENOENT;
    std::erase_if(disk_->pending, [&](const name_change& c) {
      if (c.directory == path) c.apply(disk_->durable);
      return c.directory == path;
    });
    return 0;
  }
  int list(const std::string& path, std::vector<std::string>& names) const {
    const std::lock_guard lock(disk_->one_at_a_time);
    if (const int e = begin("list"); e != 0) return e;
    names.clear();
    if (disk_->live.count(path) == 0) return ENOENT;
    for (const auto& [entry, inode] : disk_->live)
      if (entry != path && directory_of(entry) == path) names.emplace_back(file_name_of(entry));
    return 0;
  }

private:
  using name_table = std::map<std::string, int>;  // inode 0: a directory
  struct name_change {
    std::string directory;
    std::string from;  // is removed, if not empty
    std::string to;    // then names `inode`, if not empty
    int inode = 0;
    void apply(name_table& names) const {
      if (!from.empty()) names.erase(from);
      if (!to.empty()) names[to] = inode;
    }
  };
  struct inode_data {
    std::vector<std::byte> now;
    std::size_t durable = 0;        // number of bytes that are on the disk
    std::vector<std::byte> before;  // these bytes, if some were written again since
  };
  struct open_file {
    int inode = 0;
    std::size_t at = 0;
    bool appends = false;
  };
  struct disk {
    std::mutex one_at_a_time;  // operations may come from several threads
    name_table live, durable;
    std::vector<name_change> pending;
    std::map<int, inode_data> inodes;
    std::map<int, open_file> handles;
    std::map<int, int> claims;  // inode: handle; they end with the process
    int next_inode = 1, next_handle = 3;
    std::int64_t count = 0;
    fault planned;
    std::string failing;  // the kind of operation that fails from now on
    std::size_t most = SIZE_MAX;
    bool dead = false;
  };

  inode_data& data(int inode) const { return disk_->inodes[inode]; }

  // Counts an operation and lets the planned fault happen.
  int begin(std::string_view operation) const {
    if (disk_->dead) return EIO;
    const fault& f = disk_->planned;
    if (disk_->count++ == f.at) {
      if (f.kill) {
        disk_->dead = true;
        throw killed{};
      }
      if (f.persistent) disk_->failing = operation;
      return f.error;
    }
    return disk_->failing == operation ? f.error : 0;
  }
  void change(name_change c) const {
    c.apply(disk_->live);
    disk_->pending.push_back(std::move(c));
  }
  int parent(const std::string& path) const {
    const auto found = disk_->live.find(directory_of(path));
    return found == disk_->live.end() ? ENOENT : found->second != 0 ? ENOTDIR : 0;
  }
  int open(int inode, int& h, bool appends = false) const {
    disk_->handles[h = disk_->next_handle++] = {inode, 0, appends};
    return 0;
  }
  int open_for_writing(std::string_view operation, const std::string& path, bool must_be_new, int& h) const {
    if (const int e = begin(operation); e != 0) return e;
    if (const int e = parent(path); e != 0) return e;
    const auto found = disk_->live.find(path);
    if (found != disk_->live.end() && must_be_new) return EEXIST;
    if (found != disk_->live.end()) return found->second == 0 ? EISDIR : open(found->second, h, true);
    const int inode = disk_->next_inode++;
    change({directory_of(path), {}, path, inode});
    return open(inode, h, !must_be_new);
  }
  static bool reachable(const std::string& path, const name_table& names) {
    for (auto above = path; above != "." && above != "/";) {
      above = directory_of(above);
      const auto found = names.find(above);
      if (found == names.end() || found->second != 0) return false;
    }
    return true;
  }

  static constexpr std::size_t sector = 512, ends = 8;

  // Returns the contents that one file may be left with.
  static std::set<std::vector<std::byte>> remains(const inode_data& d) {
    std::set<std::vector<std::byte>> out = remains_of_end(d);
    if (d.before.empty()) return out;
    const auto mixed = [&d](auto is_old) {
      inode_data m{d.now, d.durable, {}};
      for (std::size_t at = 0; at < d.before.size(); at += sector)
        if (is_old(at))
          std::copy_n(d.before.begin() + static_cast<std::ptrdiff_t>(at), std::min(sector, d.before.size() - at),
                      m.now.begin() + static_cast<std::ptrdiff_t>(at));
      return m;
    };
    out.merge(remains_of_end(mixed([](std::size_t) { return true; })));
    for (const std::size_t cut : some(0, d.before.size())) {
      out.insert(mixed([cut](std::size_t at) { return at < cut; }).now);
      out.insert(mixed([cut](std::size_t at) { return at == cut; }).now);
      out.insert(mixed([cut](std::size_t at) { return at > cut; }).now);
    }
    return out;
  }
  // Returns the first bytes of sectors from `at` on; of many only the first, the middle and the last ones.
  static std::vector<std::size_t> some(std::size_t at, std::size_t end) {
    std::vector<std::size_t> cuts;
    for (; at < end; at = (at / sector + 1) * sector) cuts.push_back(at);
    if (cuts.size() > 3 * ends) {
      const auto middle = cuts.begin() + static_cast<std::ptrdiff_t>(cuts.size() / 2 - ends / 2);
      std::vector<std::size_t> few(cuts.begin(), cuts.begin() + ends);
      few.insert(few.end(), middle, middle + ends);
      few.insert(few.end(), cuts.end() - ends, cuts.end());
      cuts = std::move(few);
    }
    return cuts;
  }
  static std::set<std::vector<std::byte>> remains_of_end(const inode_data& d) {
    std::set<std::vector<std::byte>> out{d.now};
    for (const std::size_t cut : some(d.durable, d.now.size())) {
      const auto keep = d.now.begin() + static_cast<std::ptrdiff_t>(cut);
      std::vector<std::byte> bytes(d.now.begin(), keep);
      out.insert(bytes);
      bytes.resize(d.now.size());
      out.insert(std::move(bytes));
      bytes = d.now;
      std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(cut), std::min(sector - cut % sector, bytes.size() - cut),
                  std::byte{0});
      out.insert(std::move(bytes));
    }
    return out;
  }

  void visit_data(const name_table& names, name_table::const_iterator next,
                  std::map<std::string, std::vector<std::byte>>& files,
                  std::set<std::map<std::string, std::vector<std::byte>>>& seen,
                  const std::function<void(const faulty_files&)>& visit) const {
    while (next != names.end() && next->second == 0) ++next;
    if (next == names.end()) {
      if (!seen.insert(files).second) return;
      faulty_files out;
      for (const auto& [path, inode] : names)
        if (inode == 0) out.disk_->live[path] = out.disk_->durable[path] = 0;
      for (const auto& [path, bytes] : files) {
        const int inode = out.disk_->next_inode++;
        out.disk_->live[path] = out.disk_->durable[path] = inode;
        out.disk_->inodes[inode] = {bytes, bytes.size(), {}};
      }
      visit(out);
      return;
    }
    for (const auto& bytes : remains(data(next->second))) {
      files[next->first] = bytes;
      visit_data(names, std::next(next), files, seen, visit);
    }
    files.erase(next->first);
  }

  std::shared_ptr<disk> disk_;
};
static_assert(claims_files<faulty_files> && rewinds_files<faulty_files>);

}  // namespace gradus::testing
