// With cache the first iteration reads the source and keeps its elements, in memory or in a file; the following
// iterations read the kept elements.
//
//   .map(decode).cache()                 in memory
//   .map(decode).cache("run/decoded")    in a file, for later processes too
//
// Several processes may share the file. Each writes a temporary file beside it and renames that when it is complete, so
// no process ever sees a part. A file that was truncated, or that gradus 0.5 wrote, is written again, and a line on
// stderr tells it (or `log` is called with it: cache(path, log)).
//
// After a whole first iteration the elements and their order are the same each time, so shuffle after cache. If the
// first iteration is left before its end, its elements are discarded (TensorFlow: discarded with a warning), and the
// next iteration fills the cache anew.
//
// A position does not hold the kept elements, but the source's position when filling began: restoring it reads the
// source again up to the same place, unless this cache has read the elements from that position already. A position
// behind a whole iteration uses a whole file; one inside the first iteration does not, since the file may be of another
// iteration, in another order. The position of a cache of batches counts batches, so batches of another size refuse it.
#pragma once
#include "../base/build.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <optional>

#include "../base/deferred.hpp"
#include "../base/owned.hpp"
#include "../store/record.hpp"
#include "element_store.hpp"
#include "unit_stage.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {

// The file is a sequence of records (store/record.hpp). The first record describes the elements. Then each element is a
// record of a zero byte and the element's bytes. The last record is a byte of value one and the number of elements in 8
// bytes; a file without it was truncated.
class cache_file {
public:
  cache_file(std::string path, const components& spec);
  cache_file(const cache_file&) = delete;
  cache_file& operator=(const cache_file&) = delete;
  ~cache_file() { drop(); }

  // Returns whether the file exists and is whole. If it has to be written again, `why` gets the reason. Raises
  // failed_precondition if the file is not the cache of this dataset, and the errors of the file system.
  bool whole(std::string& why) const;
  // Removes files that dead processes began.
  void clear() const { clear_temporaries_of(posix{}, path_); }
  void begin_writing();
  void append(const datum& d);
  void finish(std::int64_t count);
  // Removes an incomplete file.
  void drop();
  // Reads element `at` (from 0). Returns false at the end.
  bool read(std::int64_t at, datum& to);

private:
  static constexpr std::byte element{0}, last{1};
  static constexpr std::size_t end_bytes = record_overhead_bytes + 9, enough = std::size_t{1} << 16;

  static std::vector<std::byte> framed(std::span<const std::byte> payload);
  static std::vector<std::byte> framed(std::string_view s) { return framed(text_bytes(s)); }
  static std::vector<std::byte> end_record(std::uint64_t count);
  std::vector<std::byte> bytes_at(any_file_system::handle h, std::uint64_t at, std::uint64_t n) const;
  void flush();
  reader_limits limits() const;
  // Reads the record of the next element. Returns false at the end, which must come after as many elements as the last
  // record states.
  bool next();

  std::string path_;
  components spec_;
  std::vector<std::byte> header_, old_header_;
  temporary_file out_;
  std::vector<std::byte> pending_;  // not in the file yet
  std::optional<record_reader<file_source<any_file_system>>> in_;
  std::int64_t at_ = 0;
  bool ended_ = false;  // in_ has reached the end
  std::vector<std::byte> bytes_;
};

}  // namespace detail

template <bool Batched>
class cached_dataset final : public detail::unit_stage<cached_dataset<Batched>, Batched> {
public:
  // `log` is called when a file has to be written again; by default a line goes to stderr.
  cached_dataset(any_units<Batched> source, std::string path, std::function<void(std::string_view)> log = {})
      : source_(std::move(source)),
        unit_spec_(Batched ? detail::with_lead(any_extent, source_.element_spec()) : source_.element_spec()),
        path_(std::move(path)),
        log_(std::move(log)),
        store_(unit_spec_) {
    open_file();
  }
  cached_dataset(cached_dataset&&) = default;
  cached_dataset& operator=(cached_dataset&&) = default;
  // Raises failed_precondition while a file is being written.
  cached_dataset(const cached_dataset& o)
      : detail::unit_stage<cached_dataset, Batched>(o),
        source_(o.source_),
        unit_spec_(o.unit_spec_),
        path_(o.path_),
        log_(o.log_),
        store_(o.store_),
        begin_(o.begin_),
        full_(o.full_),
        ahead_(o.ahead_),
        left_(o.left_),
        count_(o.count_),
        next_(o.next_) {
    if (o.file_ != nullptr && o.begin_ && !o.full_)
      raise(status::failed_precondition, text("cache: \"", path_, "\" is being written; copy the dataset before"));
    open_file();
    full_ = full_ && (o.full_ || !left_);  // where the file may be of an iteration that `o` has left, it is not used
    if (o.full_ && !full_) go_to(o);       // the file is gone
  }
  cached_dataset& operator=(const cached_dataset& o) {
    cached_dataset copy(o);
    return *this = std::move(copy);
  }

  const components& element_spec() const { return source_.element_spec(); }
  std::int64_t batch_size() const
    requires Batched
  {
    return source_.batch_size();
  }
  bool pull_unit(datum& out) {
    if (!begin_ && !full_) start_filling();
    if (!full_) {
      if (!keep_one()) return false;
      next_ = count_;
      if (file_ != nullptr)
        std::swap(out, unit_);
      else
        store_.copy_out(static_cast<std::size_t>(count_ - 1), unit_spec_, out);
      return true;
    }
    const bool more = file_ != nullptr ? file_->read(next_, out) : next_ < count_;
    if (!more) {
      ahead_ = false;
      return false;
    }
    if (file_ == nullptr) store_.copy_out(static_cast<std::size_t>(next_), unit_spec_, out);
    ++next_;
    return true;
  }
  void rewind() {
    if (full_ && !ahead_) {
      next_ = 0;
      return;
    }
    // The source's next iteration may depend on where it stands, so it goes to where it would be without the elements
    // that were kept ahead.
    if (ahead_) {
      position_reader from(*begin_, true);
      source_.read(from);
      for (std::int64_t i = 0; i < next_ && source_.pull({}, 0, 1) != 0; ++i) {
      }
    }
    source_.rewind();
    forget();
  }
  std::int64_t cardinality() const { return source_.cardinality(); }
  std::string external_state() const { return source_.external_state(); }
  void define(std::string& to) const {
    source_.define(to);
    to += file_ == nullptr ? ".cache" : ".cache(file)";
  }
  // The position is: whether the cache is full (1) plus, if it has batches, twice batch_size(); the number of kept
  // elements, the number of the next element, and the source's position when filling began. Earlier versions wrote no
  // batch size. What was kept ahead does not count.
  void write(position_writer& to) const {
    const bool full = full_ && !ahead_;
    const std::int64_t count = ahead_ ? next_ : count_;
    to.number((full ? 1 : 0) + (full || count > 0 ? 2 * batch_rows() : 0));
    to.number(count);
    to.number(next_);
    std::vector<std::byte> now;
    position_writer current(now);
    if (!begin_) source_.write(current);
    const auto& at = begin_ ? *begin_ : now;
    to.number(static_cast<std::int64_t>(at.size()));
    to.bytes(at);
  }
  void read(position_reader& from) {
    constexpr auto most = std::numeric_limits<std::int64_t>::max();
    const auto state = from.number(0, Batched ? most : 1, "whether the cache is full");
    const bool full = state % 2 == 1;
    const auto count = from.number(0, most, "the elements in the cache");
    const auto next = from.number(file_ == nullptr && !full ? count : 0, file_ == nullptr ? count : most,
                                  "the next element of the cache");
    const auto size = from.number(0, most, "the length of the source's position");
    const auto at = from.bytes(static_cast<std::uint64_t>(size), "the position where the cache began");
    if (const auto rows = state / 2; rows != 0 && rows != batch_rows())
      raise(status::data_loss, text("the saved input position is among the batches of a cache, of ", rows,
                                    " elements each, and this input has batches of ", batch_rows(),
                                    "; give it batches of that size, or cache the elements, before batch"));
    position_reader source(at, from.apply());
    source_.read(source);
    if (source.left() != 0) raise(status::data_loss, "the saved input position is damaged: the cache's source");
    if (!from.apply()) return;
    std::string why;
    const auto whole = [&] { return file_ != nullptr && file_->whole(why); };
    // A stage that read ahead comes back: what is kept began at the same place.
    if (full_ && begin_ && std::equal(at.begin(), at.end(), begin_->begin(), begin_->end()) &&
        (full ? count == count_ : count <= count_) && (file_ == nullptr || whole())) {
      next_ = next;
      ahead_ = !full;
      return;
    }
    forget();
    full_ = full && whole();
    if (!full_ && (count > 0 || full)) {
      start_filling();
      while (count_ < (full ? most : count) && keep_one()) {
      }
      // Of a file that was whole already nobody counted the elements: then the place has to exist.
      const bool counted = !(full && file_ != nullptr && count == 0);
      if (counted ? count_ != count : count_ < next)
        raise(status::data_loss,
              text("cache: the position is after ", counted ? count : next, " elements, but the source has only ",
                   count_, "; it is another one, or depends on more"));
    }
    next_ = next;
  }

private:
  std::int64_t batch_rows() const {
    if constexpr (Batched)
      return source_.batch_size();
    else
      return 0;
  }
  void open_file() {
    if (path_.empty()) return;
    file_ = detail::make_owned<detail::cache_file>(path_, unit_spec_);
    file_->clear();
    std::string why;
    full_ = file_->whole(why);
    if (why.empty()) return;
    const auto line = text("cache \"", path_, "\" is written again: ", why);
    if (log_)
      log_(line);
    else
      std::fprintf(stderr, "%s\n", line.c_str());
  }
  // Goes where another one is, by its position.
  void go_to(const cached_dataset& o) {
    std::vector<std::byte> at;
    position_writer to(at);
    o.write(to);
    position_reader from(at, true);
    read(from);
  }
  void start_filling() {
    begin_.emplace();
    position_writer to(*begin_);
    source_.write(to);
    if (file_ != nullptr) file_->begin_writing();
  }
  void forget() {
    if (file_ != nullptr && begin_ && !full_) file_->drop();
    left_ = left_ || begin_.has_value();
    begin_.reset();
    store_.clear();
    full_ = ahead_ = false, count_ = next_ = 0;
  }
  // Keeps one more element. Returns false at the end of the source.
  bool keep_one() {
    const bool more =
        file_ != nullptr ? detail::read_unit(source_, unit_) : store_.take(source_, static_cast<std::size_t>(count_));
    if (!more) {
      full_ = true, left_ = false;
      if (file_ != nullptr) file_->finish(count_);
      return false;
    }
    if (file_ != nullptr) file_->append(unit_);
    ++count_;
    return true;
  }

  any_units<Batched> source_;
  components unit_spec_;
  std::string path_;
  std::function<void(std::string_view)> log_;
  detail::element_store store_;
  detail::owned<detail::cache_file> file_;
  std::optional<std::vector<std::byte>> begin_;  // the source's position then; empty: filling has not begun
  bool full_ = false;
  bool ahead_ = false;  // full, but the end was not given yet: a position before it was restored
  bool left_ = false;   // an iteration was left, whose elements a file may have in another order
  std::int64_t count_ = 0, next_ = 0;
  datum unit_;
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "cache.ipp"
#endif
