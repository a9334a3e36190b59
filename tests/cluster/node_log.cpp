// The log of a node: what was acknowledged is there after a kill at any operation and, where it is durable, after any
// power failure; what is damaged is an error or an older state, and never another one.
#include <gradus/cluster/node_log.hpp>
#include <gradus/store/crc32c.hpp>
#include <gradus/testing/faulty_files.hpp>
#include <gradus/testing/temp_dir.hpp>

#include <doctest/doctest.h>

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cstdlib>
#include <string>
#include <vector>

#include "../message.hpp"
#include "log_page.hpp"

using namespace gradus;
using namespace gradus::detail;
using testing::faulty_files;
using testing::temp_dir;

namespace {

// A machine whose state is all records that it has had: so a state says how many there were, and whether they are
// right.
using records = std::vector<std::string>;

std::span<const std::byte> bytes_of(const std::string& s) { return std::as_bytes(std::span(s.data(), s.size())); }
// The n-th record, from 1 on; every seventh is long, one is empty.
std::string record_of(std::uint64_t n) {
  if (n == 5) return {};
  return std::string(n % 7 == 0 ? 600 : n % 13, static_cast<char>('a' + n % 26)) + text("record ", n, " GRLR");
}
records first_records(std::size_t n) {
  records all;
  for (std::size_t i = 1; i <= n; ++i) all.push_back(record_of(i));
  return all;
}
void save(const records& all, bytes_out out) {
  out.number(static_cast<std::uint32_t>(all.size()));
  for (const std::string& r : all) out.string(r);
}
records recovered(node_log& log) {
  records all;
  const bool any = log.recover(
      [&](bytes_in& in) {
        all.clear();
        for (std::size_t n = in.count(4); n != 0; --n) all.push_back(in.string());
      },
      [&](std::span<const std::byte> r) {
        all.emplace_back(reinterpret_cast<const char*>(r.data()), r.size());
        return true;
      });
  CHECK(any == (log.last() != 0));
  CHECK(log.last() == all.size());
  CHECK(log.synced_up_to() == log.last());
  return all;
}
records recovered(const any_file_system& fs, const std::string& folder, node_log_options o = {}) {
  node_log log(fs, folder, o);
  return recovered(log);
}

// A process: opens, appends records up to `target`, two by two between syncs, and takes snapshots when they are due.
// `acknowledged` is good whatever ends it.
void live(const any_file_system& fs, const node_log_options& o, std::uint64_t target, std::uint64_t& acknowledged) {
  node_log log(fs, "logs/ps-0", o);
  records all = recovered(log);
  while (log.last() < target) {
    for (int i = 0; i < 2 && log.last() < target; ++i) {
      all.push_back(record_of(log.last() + 1));
      const std::uint64_t number = log.append(bytes_of(all.back()));  // outside of CHECK, which would catch
      CHECK(number == all.size());
    }
    log.sync();
    acknowledged = log.synced_up_to();
    CHECK(acknowledged == all.size());
    if (log.wants_snapshot()) log.snapshot([&](bytes_out out) { save(all, out); });
  }
}
faulty_files with_folder() {
  faulty_files fs;
  fs.make_directory("logs");
  fs.sync_directory(".");
  fs.count_from_zero();
  return fs;
}
// A disk whose files can only grow.
struct appends_only {
  using policy_for = kind::file_system;
  using handle = int;
  faulty_files disk;
  int create(const std::string& path, int& h) const { return disk.create(path, h); }
  int open_append(const std::string& path, int& h) const { return disk.open_append(path, h); }
  int open_read(const std::string& path, int& h, std::uint64_t& n) const { return disk.open_read(path, h, n); }
  int write(int h, std::span<const std::byte> from, std::size_t& n) const { return disk.write(h, from, n); }
  int read(int h, std::span<std::byte> into, std::size_t& n) const { return disk.read(h, into, n); }
  int sync(int h) const { return disk.sync(h); }
  int close(int h) const { return disk.close(h); }
  int rename(const std::string& from, const std::string& to) const { return disk.rename(from, to); }
  int remove(const std::string& path) const { return disk.remove(path); }
  int exists(const std::string& path) const { return disk.exists(path); }
  int make_directory(const std::string& path) const { return disk.make_directory(path); }
  int sync_directory(const std::string& path) const { return disk.sync_directory(path); }
  int list(const std::string& path, std::vector<std::string>& names) const { return disk.list(path, names); }
};
std::string name_of(const faulty_files& fs, std::string_view kind) {
  std::string last;
  for (const std::string& f : fs.files())
    if (file_name_of(f).starts_with(kind)) last = f;
  return last;
}

}  // namespace

TEST_CASE("records and snapshots come back, and numbers go on, over many processes") {
  const temp_dir place;
  std::uint64_t next = 1;
  for (int process = 0; process < 12; ++process) {
    node_log log(any_file_system(), place / "a/ps-1",
                 {.durable = process % 2 == 1, .least_bytes = 300, .times_state = 1});
    records all = recovered(log);
    CHECK(all == first_records(next - 1));
    for (int i = 0; i < process; ++i, ++next) {
      all.push_back(record_of(next));
      CHECK(log.append(bytes_of(all.back())) == next);
      if (i % 3 == 2) log.sync();
    }
    log.sync();
    CHECK(log.synced_up_to() == next - 1);
    if (process % 4 == 2) log.snapshot([&](bytes_out out) { save(all, out); });
  }
}

TEST_CASE("nothing is acknowledged before it is written") {
  const faulty_files fs = with_folder();
  node_log log(fs, "logs/ps-0");
  CHECK(recovered(log).empty());
  log.append(bytes_of("a"));
  CHECK(log.synced_up_to() == 0);
  CHECK(recovered(fs.after_kill(), "logs/ps-0").empty());
  log.sync();
  CHECK(log.synced_up_to() == 1);
  CHECK(recovered(fs.after_kill(), "logs/ps-0") == records{"a"});
}

TEST_CASE("a log that was torn at any byte is its whole records") {
  const faulty_files fs = with_folder();
  std::uint64_t acknowledged = 0;
  live(fs, {}, 6, acknowledged);
  const std::string file = name_of(fs, "log-");
  const std::vector<std::byte> whole = fs.bytes(file);
  std::size_t most = 0;
  for (std::size_t cut = 0; cut <= whole.size(); ++cut) {
    const faulty_files torn = fs.after_kill();
    torn.bytes(file).resize(cut);
    const records all = recovered(torn, "logs/ps-0");
    CHECK(all == first_records(all.size()));
    CHECK(all.size() >= most);
    most = all.size();
    // And it goes on behind them.
    live(torn, {}, 9, acknowledged);
    CHECK(recovered(torn, "logs/ps-0") == first_records(9));
  }
  CHECK(most == 6);
}

TEST_CASE("a byte that has changed is an error, or costs the last record, which nothing shows to have been there") {
  for (const bool has_snapshot : {false, true}) {
    const faulty_files fs = with_folder();
    std::uint64_t acknowledged = 0;
    live(fs, {.least_bytes = has_snapshot ? 150u : 100000u, .times_state = 1}, 6, acknowledged);
    REQUIRE(name_of(fs, "snapshot-").empty() == !has_snapshot);
    int errors = 0, older = 0;
    for (const std::string& file : fs.files())
      for (std::size_t at = 0; at < fs.bytes(file).size(); ++at)
        for (const int flip : {0x01, 0x80, 0xFF}) {
          const faulty_files other = fs.after_kill();
          other.bytes(file)[at] ^= static_cast<std::byte>(flip);
          try {
            const records all = recovered(other, "logs/ps-0");
            CHECK(all == first_records(all.size()));
            CHECK(all.size() >= (has_snapshot ? 4 : 4));
            CHECK(!file_name_of(file).starts_with("snapshot-"));
            ++older;
          } catch (const error& e) {
            CHECK((e.kind() == status::data_loss || e.kind() == status::failed_precondition));
            CHECK(says(e.what(), file));
            CHECK(says(e.what(), "byte"));
            CHECK(says(e.what(), "go on from the last checkpoint"));
            ++errors;
          }
        }
    CHECK(errors > 100);
    CHECK(older > 100);
  }
}

TEST_CASE("whatever operation a process is killed at, the next one has all that was acknowledged") {
  for (const bool durable : {false, true})
    for (std::int64_t at = 0;; ++at) {
      const faulty_files fs = with_folder();
      fs.plan({.at = at, .kill = true});
      std::uint64_t acknowledged = 0, since = 0;
      bool is_killed = false;
      try {
        live(fs, {.durable = durable, .least_bytes = 100, .times_state = 1}, 16, acknowledged);
      } catch (const testing::killed&) {
        is_killed = true;
      }
      const faulty_files next = fs.after_kill();
      const records all = recovered(next, "logs/ps-0", {.durable = durable});
      INFO("operation ", at);
      CHECK(all == first_records(all.size()));
      CHECK(all.size() >= acknowledged);
      live(next, {.durable = durable, .least_bytes = 100, .times_state = 1}, 20, since);
      CHECK(recovered(next, "logs/ps-0") == first_records(20));
      if (!is_killed) break;
    }
}

TEST_CASE("a durable log has all that was acknowledged after any power failure, also one behind a kill") {
  for (std::int64_t at = 0;; at += 1) {
    const faulty_files fs = with_folder();
    fs.plan({.at = at, .kill = true});
    std::uint64_t acknowledged = 0, again = 0;
    bool is_killed = false;
    const node_log_options o{.durable = true, .least_bytes = 100, .times_state = 1};
    const auto check = [&](const faulty_files& left) {
      if (!left.holds("logs/ps-0")) {
        CHECK(acknowledged == 0);
        return;
      }
      records all;
      try {
        all = recovered(left, "logs/ps-0", o);
      } catch (const error& e) {
        FAIL(e.what());
      }
      CHECK(all == first_records(all.size()));
      CHECK(all.size() >= acknowledged);
    };
    try {
      live(fs, o, 11, acknowledged);
    } catch (const testing::killed&) {
      is_killed = true;
    }
    INFO("operation ", at);
    fs.after_kill().after_power_failure(check, 6);
    if (!is_killed) break;
    // The next process trusts what it finds.
    const faulty_files next = fs.after_kill();
    live(next, o, acknowledged + 3, again);
    acknowledged = again;
    next.after_power_failure(check, 6);
  }
}

TEST_CASE("a disk that is full, or fails, is an error that names the folder, and nothing is acknowledged after it") {
  for (const int e : {ENOSPC, EIO, EINTR})
    for (const bool persistent : {true, false})
      for (std::int64_t at = 0;; ++at) {
        const faulty_files fs = with_folder();
        fs.plan({.at = at, .error = e, .persistent = persistent});
        std::uint64_t acknowledged = 0;
        const node_log_options o{.durable = at % 2 == 0, .least_bytes = 100, .times_state = 1};
        INFO("operation ", at);
        try {
          live(fs, o, 12, acknowledged);
        } catch (const error& failed) {
          CHECK(says(failed.what(), "logs"));
          if (e == ENOSPC) CHECK(failed.kind() == status::resource_exhausted);
          if (e == ENOSPC) CHECK(says(failed.what(), "free some space"));
        }
        const records all = recovered(fs.after_kill(), "logs/ps-0", o);
        CHECK(all == first_records(all.size()));
        CHECK(all.size() >= acknowledged);
        if (fs.operations() <= at) break;
      }
}

TEST_CASE("after an error in writing nothing more is written") {
  const faulty_files fs = with_folder();
  node_log log(fs, "logs/ps-0");
  recovered(log);
  log.append(bytes_of("a"));
  log.sync();
  log.append(bytes_of("b"));
  fs.count_from_zero();
  fs.plan({.at = 0, .error = ENOSPC});
  const std::string full = message_of(status::resource_exhausted, [&] { log.sync(); });
  CHECK(says(full, "cannot write \"logs/ps-0/log-1\""));
  CHECK(says(full, "its log in \"logs/ps-0\" holds all that was acknowledged"));
  CHECK(log.synced_up_to() == 1);
  for (int i = 0; i < 2; ++i) {
    CHECK(says(message_of(status::failed_precondition, [&] { log.append(bytes_of("c")); }), "could not be written"));
    CHECK(says(message_of(status::failed_precondition, [&] { log.sync(); }), "could not be written"));
    CHECK(says(message_of(status::failed_precondition, [&] { log.snapshot([](bytes_out) {}); }), "open it again"));
  }
  CHECK(log.synced_up_to() == 1);
  CHECK(recovered(fs.after_kill(), "logs/ps-0") == records{"a"});
}

TEST_CASE("writes that are short are gone on with") {
  const faulty_files fs = with_folder();
  fs.short_writes(7);
  std::uint64_t acknowledged = 0;
  live(fs, {.least_bytes = 500, .times_state = 1}, 20, acknowledged);
  fs.short_writes(SIZE_MAX);
  CHECK(recovered(fs, "logs/ps-0") == first_records(20));
}

TEST_CASE("old snapshots and segments go away, and temporaries of the dead") {
  const faulty_files fs = with_folder();
  std::uint64_t acknowledged = 0;
  live(fs, {.least_bytes = 100, .times_state = 1}, 40, acknowledged);
  std::size_t files = 0;
  for (const std::string& f : fs.files()) files += f.starts_with("logs/ps-0/") ? 1 : 0;
  CHECK(files <= 2);
  int h = 0;
  fs.create("logs/ps-0/" + temporary_name("snapshot-77", 4711), h);
  fs.close(h);
  CHECK(recovered(fs, "logs/ps-0") == first_records(40));
  CHECK(!fs.holds("logs/ps-0/" + temporary_name("snapshot-77", 4711)));
}

TEST_CASE("a snapshot that is damaged is replaced by an older one only where all records behind that are there") {
  const faulty_files fs = with_folder();
  {
    node_log log(fs, "logs/ps-0");
    records all = recovered(log);
    for (std::uint64_t n = 1; n <= 6; ++n) {
      all.push_back(record_of(n));
      log.append(bytes_of(all.back()));
      log.sync();
      if (n != 3) continue;
      log.snapshot([&](bytes_out out) { save(all, out); });
    }
  }
  const std::vector<std::byte> segment = fs.bytes("logs/ps-0/log-4"), older = fs.bytes("logs/ps-0/snapshot-3");
  {
    node_log log(fs, "logs/ps-0");
    const records all = recovered(log);
    log.snapshot([&](bytes_out out) { save(all, out); });
  }
  fs.bytes("logs/ps-0/snapshot-6").back() ^= std::byte{1};
  const std::string lost = message_of(status::data_loss, [&] { recovered(fs, "logs/ps-0"); });
  CHECK(says(lost, "record 1 is not there, and 6 was"));
  CHECK(says(lost, "\"logs/ps-0/snapshot-6\" fails its checksum from byte 32 on"));
  int h = 0;
  std::size_t moved = 0;
  fs.create("logs/ps-0/log-4", h), fs.write(h, segment, moved), fs.close(h);
  fs.create("logs/ps-0/snapshot-3", h), fs.write(h, older, moved), fs.close(h);
  CHECK(recovered(fs, "logs/ps-0") == first_records(6));
}

TEST_CASE("a file that is written again: what it held before is never read as new") {
  // Records of one length, so that new ones end where old ones began.
  const auto equal = [](char process, std::uint64_t n) { return text(process, " wrote record ", 1000 + n); };
  const auto live_on = [&](const any_file_system& fs, const node_log_options& o, char process, std::uint64_t more,
                           records& wrote) {
    node_log log(fs, "logs/ps-0", o);
    records all = recovered(log);
    CHECK(all.size() >= wrote.size());
    all.resize(std::min(all.size(), wrote.size() + 1));  // one may be whole that was not acknowledged
    CHECK(std::equal(wrote.begin(), wrote.end(), all.begin()));
    for (wrote = all; more != 0; --more) {
      all.push_back(equal(process, all.size() + 1));
      log.append(bytes_of(all.back()));
      log.sync();
      wrote = all;
      if (log.wants_snapshot()) log.snapshot([&](bytes_out out) { save(all, out); });
    }
  };
  for (const bool durable : {false, true}) {
    const node_log_options o{.durable = durable, .least_bytes = 300, .times_state = 0};
    std::size_t segments = 0;
    for (std::int64_t at = 0;; ++at) {
      const faulty_files fs = with_folder();
      records wrote;
      live_on(fs, o, 'a', 7, wrote);
      const faulty_files second = fs.after_kill();
      second.plan({.at = at, .kill = true});
      bool is_killed = false;
      try {
        live_on(second, o, 'b', 20, wrote);
      } catch (const testing::killed&) {
        is_killed = true;
      }
      INFO("operation ", at);
      const std::size_t before = wrote.size();
      live_on(second.after_kill(), o, 'c', 20, wrote);
      CHECK(wrote.size() - before >= 20);
      CHECK(wrote.size() - before <= 21);
      if (is_killed) continue;
      for (const std::string& f : second.files()) segments += file_name_of(f).starts_with("log-") ? 1 : 0;
      CHECK(second.bytes(name_of(second, "log-")).size() > 300);
      break;
    }
    CHECK(segments == 1);
  }
}

TEST_CASE(
    "the file of a process that a power failure ended is not written again: its lost records had the same numbers") {
  const faulty_files fs = with_folder();
  const auto write = [](node_log& log, records& all, std::size_t n, std::size_t length) {
    for (; n != 0; --n) log.append(bytes_of(all.emplace_back(length, static_cast<char>('a' + all.size()))));
    log.sync();
  };
  records all;
  {
    node_log first(fs, "logs/ps-0");
    recovered(first);
    write(first, all, 14, 10);
  }
  auto& bytes = fs.bytes("logs/ps-0/log-1");
  std::fill_n(bytes.begin() + 24 + 3 * 50, 50, std::byte{0});  // record 4 did not reach the disk
  all.resize(3);
  {
    node_log second(fs, "logs/ps-0");
    CHECK(recovered(second) == all);
    write(second, all, 2, 60);
    second.snapshot([&](bytes_out out) { save(all, out); });
    // In the first process's file, records 6 to 10 of this length would end where its record 11 begins.
    write(second, all, 5, 60);
  }
  CHECK(!fs.holds("logs/ps-0/log-1"));
  CHECK(recovered(fs, "logs/ps-0") == all);
}

TEST_CASE("killed by SIGKILL at any instant while it writes its file again: all that was acknowledged, once") {
  const temp_dir place;
  auto* const acknowledged = static_cast<volatile std::uint64_t*>(
      ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  // The state is the number of records and a sum over their bytes; record n is long enough to be written in place, or
  // not, and the same for every process.
  const auto record = [](std::uint64_t n) {
    std::vector<std::byte> r(n * 7919 % 5 == 0 ? 40'000 : n * 104729 % 3000);
    for (std::size_t i = 0; i < r.size(); ++i) r[i] = static_cast<std::byte>(n * 31 + i * (n % 7));
    return r;
  };
  struct sums {
    std::uint64_t count = 0;
    std::uint32_t of = 0;
    void add(std::span<const std::byte> r) { ++count, of = extend(of, r); }
  };
  const auto begin = [&](node_log& log, sums& s) {
    log.recover([&](bytes_in& in) { s.count = in.number<std::uint64_t>(), s.of = in.number<std::uint32_t>(); },
                [&](std::span<const std::byte> r) { return s.add(r), true; });
  };
  std::uint64_t dice = 4711;
  const int kills = std::getenv("GRADUS_LONG") != nullptr ? 2000 : 60;
  std::uint64_t written_again = 0;
  sums expected;
  for (int k = 0; k < kills; ++k) {
    const pid_t child = ::fork();
    if (child == 0) {
      node_log log(any_file_system(), place / "ps-0", {.least_bytes = 60'000, .times_state = 0});
      sums s;
      begin(log, s);
      for (;;) {
        const auto r = record(s.count + 1);
        s.add(r);
        const std::span<const std::byte> halves[] = {std::span(r).first(r.size() / 9),
                                                     std::span(r).subspan(r.size() / 9)};
        log.append(halves);
        log.sync();
        acknowledged[0] = s.count;
        if (!log.wants_snapshot()) continue;
        log.snapshot([&](bytes_out out) { out.number(s.count), out.number(s.of); });
        acknowledged[1] = acknowledged[1] + 1;
      }
    }
    dice = dice * 6364136223846793005u + 1442695040888963407u;
    ::usleep(static_cast<useconds_t>(500 + (dice >> 33) % 8000));
    ::kill(child, SIGKILL);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(WIFSIGNALED(status));
    written_again = acknowledged[1];
    node_log log(any_file_system(), place / "ps-0");
    sums s;
    begin(log, s);
    INFO("kill ", k);
    CHECK(s.count >= acknowledged[0]);
    CHECK(s.count <= acknowledged[0] + 1);
    while (expected.count < s.count) expected.add(record(expected.count + 1));
    REQUIRE(s.of == expected.of);
    acknowledged[0] = s.count;
  }
  CHECK(written_again > 10);
  ::munmap(const_cast<std::uint64_t*>(acknowledged), 4096);
}

TEST_CASE("large arrays of a record and of a state are written from where they are") {
  const temp_dir place;
  const std::vector<std::byte> large(100'000, std::byte{7}), other(40'000, std::byte{8});
  const auto put_in = [&](bytes_out out) {
    out.number(std::uint32_t{1});
    out.lent_bytes(large);
    out.lent_bytes(other);
    out.string("between");
    out.lent_bytes(std::span(other).first(5));
    out.lent_bytes(large);
  };
  std::vector<std::byte> copied;
  put_in(bytes_out(copied));
  const auto is_it = [&](std::span<const std::byte> b) {
    return std::equal(b.begin(), b.end(), copied.begin(), copied.end());
  };
  for (const bool has_snapshot : {false, true}) {
    node_log log(any_file_system(), place / text("ps-", has_snapshot));
    recovered(log);
    gathered_bytes record;
    put_in(bytes_out(record));
    for (int i = 0; i < 3; ++i) CHECK(log.append(record.pieces()) == static_cast<std::uint64_t>(i) + 1);
    log.sync();
    if (has_snapshot) log.snapshot(put_in);
  }
  int records = 0, snapshots = 0;
  const auto replay = [&](std::span<const std::byte> r) { return records += is_it(r), true; };
  const auto load = [&](bytes_in& in) {
    std::vector<std::byte> all;
    bytes_out out(all);
    out.number(in.number<std::uint32_t>());
    out.bytes(in.bytes()), out.bytes(in.bytes()), out.string(in.string()), out.bytes(in.bytes()), out.bytes(in.bytes());
    snapshots += is_it(all);
  };
  for (const bool has_snapshot : {false, true})
    CHECK(node_log(any_file_system(), place / text("ps-", has_snapshot)).recover(load, replay));
  CHECK(records == 3);
  CHECK(snapshots == 1);
}

TEST_CASE("a file system that cannot write a file again gets a new one after each snapshot") {
  const faulty_files fs = with_folder();
  std::uint64_t acknowledged = 0;
  live(appends_only{fs}, {.least_bytes = 100, .times_state = 0}, 40, acknowledged);
  std::size_t logs = 0;
  for (const std::string& f : fs.files()) logs += file_name_of(f).starts_with("log-");
  CHECK(fs.bytes(name_of(fs, "log-")).size() < 1000);
  CHECK(logs == 1);
  CHECK(recovered(fs, "logs/ps-0") == first_records(40));
}

TEST_CASE("one process has the folder") {
  const temp_dir place;
  node_log log(any_file_system(), place / "a");
  const std::string taken =
      message_of(status::failed_precondition, [&] { node_log other(any_file_system(), place / "a"); });
  CHECK(says(taken, place / "a"));
  CHECK(says(taken, "choose another directory"));
}

TEST_CASE("what is of another build, or of nobody, is named") {
  const faulty_files fs = with_folder();
  std::uint64_t acknowledged = 0;
  live(fs, {}, 2, acknowledged);
  node_log log(fs, "logs/ps-0");
  const std::string unknown = message_of(
      status::data_loss, [&] { log.recover([](bytes_in&) {}, [](std::span<const std::byte>) { return false; }); });
  CHECK(says(unknown, "\"logs/ps-0/log-1\", byte 24: record 1: nobody knows it"));
  log.append(bytes_of("a"));
  log.snapshot([](bytes_out out) { out.number(4); });
  const std::string longer = message_of(status::data_loss, [&] {
    node_log again(fs, "logs/ps-0");
    again.recover([](bytes_in& in) { in.number<std::uint64_t>(); }, [](std::span<const std::byte>) { return true; });
  });
  CHECK(says(longer, "byte 32: malformed snapshot of a node: expected 8 more bytes, and 4 are left"));
}

TEST_CASE("the page's worked example is what is written") {
  const faulty_files fs = with_folder();
  node_log log(fs, "logs/ps-0");
  recovered(log);
  for (int i = 0; i < 4; ++i) log.append(bytes_of("a"));
  log.sync();
  log.snapshot([](bytes_out) {});
  log.append(bytes_of("hello"));
  log.sync();
  log_page::must_show(fs.bytes("logs/ps-0/log-5"));
}
