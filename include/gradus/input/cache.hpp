// cache: the first iteration reads the source and keeps what comes, in memory or in a file; the next ones read that.
//
//   .map(decode).cache()                 in memory
//   .map(decode).cache("run/decoded")    in a file, for later processes too; one process at a time writes it
//
// What comes after a whole first iteration is the same each time, so shuffle after cache. An iteration that was left
// before its end is forgotten (TensorFlow: discarded with a warning), and the next one fills anew.
//
// A position does not hold what was kept but where the source stood when filling began: restoring reads it again up to
// the same place, unless the file is whole.
#pragma once
#include <optional>

#include "../store/record.hpp"
#include "element_store.hpp"
#include "unit_stage.hpp"

namespace gradus {

namespace detail {

// The file: records (store/record.hpp), the first of which says what the elements are. It has its name when it is
// whole; until then it is `<path>.gradus-tmp-0`.
class cache_file {
public:
  cache_file(std::string path, const components& spec)
      : path_(std::move(path)), spec_(spec), header_("gradus cache 1: " + to_text(spec)) {}

  bool whole() const { return posix{}.exists(path_) == 0; }
  void begin_writing() {
    drop();
    out_.emplace(posix{}, temporary());
    put(std::as_bytes(std::span(header_.data(), header_.size())));
  }
  void append(const datum& d) {
    bytes_.clear();
    position_writer to(bytes_);
    d.write(to);
    put(bytes_);
  }
  void finish() {
    out_->sync();
    out_->close();
    out_.reset();
    if (const int e = posix{}.rename(temporary(), path_); e != 0) raise({e, "rename", temporary()});
    posix{}.sync_directory(directory_of(path_));
  }
  // What is not whole goes away.
  void drop() {
    if (out_) out_.reset();
    posix{}.remove(temporary());
  }
  // The element after so many; false at the end.
  bool read(std::int64_t at, datum& to) {
    if (!in_ || at_ != at) {
      in_.emplace(file_source<posix>(posix{}, path_));
      if (!in_->next(bytes_) ||
          std::string_view(reinterpret_cast<const char*>(bytes_.data()), bytes_.size()) != header_)
        raise(status::failed_precondition, text("\"", path_, "\" is not the cache of this dataset (", header_,
                                                "); remove it, or give another name"));
      for (at_ = 0; at_ < at; ++at_)
        if (!in_->next(bytes_))
          raise(status::data_loss, text("\"", path_, "\": expected more than ", at, " elements, found ", at_));
    }
    if (!in_->next(bytes_)) return false;
    ++at_;
    position_reader from(bytes_, true);
    to.read(from, spec_);
    return true;
  }

private:
  std::string temporary() const { return temporary_name(path_, 0); }
  void put(std::span<const std::byte> payload) {
    framed_.clear();
    append_record(framed_, payload);
    out_->write(framed_);
  }

  std::string path_;
  components spec_;
  std::string header_;
  std::optional<append_file<posix>> out_;
  std::optional<record_reader<file_source<posix>>> in_;
  std::int64_t at_ = 0;
  std::vector<std::byte> bytes_, framed_;
};

}  // namespace detail

template <bool Batched>
class cached final : public detail::unit_stage<cached<Batched>, Batched> {
public:
  cached(any_units<Batched> source, std::string path)
      : source_(std::move(source)),
        unit_spec_(Batched ? detail::with_lead(any_extent, source_.element_spec()) : source_.element_spec()),
        path_(std::move(path)),
        store_(unit_spec_) {
    open_file();
  }
  cached(cached&&) = default;
  cached& operator=(cached&&) = default;
  // Error: failed_precondition while a file is being written.
  cached(const cached& o)
      : detail::unit_stage<cached, Batched>(o),
        source_(o.source_),
        unit_spec_(o.unit_spec_),
        path_(o.path_),
        store_(o.store_),
        begin_(o.begin_),
        full_(o.full_),
        count_(o.count_),
        next_(o.next_) {
    if (o.file_ != nullptr && o.begin_ && !o.full_)
      raise(status::failed_precondition, text("cache: \"", path_, "\" is being written; copy the dataset before"));
    open_file();
  }
  cached& operator=(const cached& o) {
    cached copy(o);
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
      if (!take()) return false;
      next_ = count_;
      if (file_ != nullptr)
        std::swap(out, unit_);
      else
        store_.copy_out(static_cast<std::size_t>(count_ - 1), unit_spec_, out);
      return true;
    }
    if (file_ != nullptr) {
      if (!file_->read(next_, out)) return false;
    } else {
      if (next_ == count_) return false;
      store_.copy_out(static_cast<std::size_t>(next_), unit_spec_, out);
    }
    ++next_;
    return true;
  }
  void rewind() {
    next_ = 0;
    if (full_) return;
    source_.rewind();
    forget();
  }
  std::int64_t cardinality() const { return source_.cardinality(); }
  std::string external_state() const { return source_.external_state(); }
  void define(std::string& to) const {
    source_.define(to);
    to += file_ == nullptr ? ".cache" : ".cache(file)";
  }
  // Whether it is full, elements kept, the next one, the source when filling began.
  void write(position_writer& to) const {
    to.number(full_ ? 1 : 0);
    to.number(count_);
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
    const bool full = from.number(0, 1, "whether the cache is full") == 1;
    const auto count = from.number(0, most, "the elements in the cache");
    const auto next = from.number(file_ == nullptr && !full ? count : 0, file_ == nullptr ? count : most,
                                  "the next element of the cache");
    const auto size = from.number(0, most, "the length of the source's position");
    const auto at = from.bytes(static_cast<std::uint64_t>(size), "the position where the cache began");
    position_reader source(at, from.apply());
    source_.read(source);
    if (source.left() != 0) raise(status::data_loss, "the saved input position is damaged: the cache's source");
    if (!from.apply()) return;
    forget();
    full_ = file_ != nullptr && file_->whole();
    if (!full_ && (count > 0 || full)) {
      start_filling();
      while (count_ < (full ? most : count) && take()) {
      }
      if (count_ != count)
        raise(status::data_loss, text("cache: the position is after ", count, " elements, but the source has only ",
                                      count_, "; it is another one, or depends on more"));
    }
    next_ = next;
  }

private:
  void open_file() {
    if (path_.empty()) return;
    file_ = std::make_unique<detail::cache_file>(path_, unit_spec_);
    full_ = file_->whole();
  }
  void start_filling() {
    begin_.emplace();
    position_writer to(*begin_);
    source_.write(to);
    if (file_ != nullptr) file_->begin_writing();
  }
  void forget() {
    if (file_ != nullptr && begin_ && !full_) file_->drop();
    begin_.reset();
    store_.clear();
    full_ = false, count_ = next_ = 0;
  }
  // Keeps one element more; false if that was all.
  bool take() {
    const bool more =
        file_ != nullptr ? detail::read_unit(source_, unit_) : store_.take(source_, static_cast<std::size_t>(count_));
    if (!more) {
      full_ = true;
      if (file_ != nullptr) file_->finish();
      return false;
    }
    if (file_ != nullptr) file_->append(unit_);
    ++count_;
    return true;
  }

  any_units<Batched> source_;
  components unit_spec_;
  std::string path_;
  detail::element_store store_;
  std::unique_ptr<detail::cache_file> file_;
  std::optional<std::vector<std::byte>> begin_;  // where the source stood; nothing: filling has not begun
  bool full_ = false;
  std::int64_t count_ = 0, next_ = 0;
  datum unit_;
};

}  // namespace gradus
