// The bodies of writer.hpp.
#pragma once
#include "../base/body.hpp"
#include "../base/optional_library.hpp"
#include "../store/temporary.hpp"
#include "writer.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY std::string event_file_name(std::int64_t seconds, std::string_view host_and_suffix, int again) {
  const auto padded = [](std::int64_t n, std::size_t width) {
    const std::string digits = text(n);
    return text(std::string(width - std::min(width, digits.size()), '0'), digits);
  };
  std::string name = text(event_file_prefix, padded(seconds, 10), '.', host_and_suffix);
  if (again > 0) name += text('.', padded(again, 3));
  return name;
}

}  // namespace gradus

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY bool is_event_file_name(std::string_view name) {
  if (!name.starts_with(event_file_prefix)) return false;
  name.remove_prefix(event_file_prefix.size());
  return name.size() > 10 && name[10] == '.' && name.find_first_not_of("0123456789") == 10;
}

GRADUS_BODY std::string next_event_file_name(std::span<const std::string> names, std::int64_t now,
                                             std::string_view host_and_suffix) {
  std::string_view newest;
  for (const auto& name : names)
    if (is_event_file_name(name)) newest = std::max<std::string_view>(newest, name);
  std::int64_t seconds = now;
  if (!newest.empty()) {
    std::int64_t last = 0;
    for (char c : newest.substr(event_file_prefix.size(), 10)) last = 10 * last + (c - '0');
    seconds = std::max(now, last);
  }
  for (int again = 0; again < 1000; ++again)
    if (auto name = event_file_name(seconds, host_and_suffix, again); name > newest) return name;
  if (seconds >= last_event_second)
    raise(status::failed_precondition,
          text("no event file name sorts after \"", newest, "\", so viewers would ignore a new one; move it away"));
  return event_file_name(seconds + 1, host_and_suffix);  // another host's file, this second
}

GRADUS_BODY std::string host_name() {
#if defined(__unix__) || defined(__APPLE__)
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) == 0 && name[0] != '\0') return name;
#endif
  return "localhost";
}

GRADUS_BODY any_summary_writer::~any_summary_writer() = default;
GRADUS_BODY any_summary_writer::any_summary_writer(std::string logdir, summary_writer_options options,
                                                   any_file_system fs, any_clock clock)
    : logdir_(std::move(logdir)), options_(std::move(options)), fs_(std::move(fs)), clock_(std::move(clock)) {
  if (!has_protozero)  // before there is a file
    refuse_without(
        protozero_library, text("an event file in \"", logdir_, "\""),
        "write none (run_config::save_summary_steps = 0; a supervisor's option summary_writer = none; a monitored "
        "session's options save_summaries_steps = none and log_step_count_steps = 0)");
  if (options_.hostname.empty()) options_.hostname = host_name();
  for (const auto& part : {options_.hostname, options_.filename_suffix})
    if (part.find('/') != std::string::npos || !is_utf8(part))
      raise(status::invalid_argument,
            text("expected a part of a file name for hostname and filename_suffix, found \"", part, "\""));
  if (!(options_.flush_secs >= 0))
    raise(status::invalid_argument, text("flush_secs must be at least 0, it is ", options_.flush_secs));
  scratch_.reserve(4096);
  if (options_.max_queue > 0) queue_.emplace(mutex_, options_.max_queue, options_.buffer_bytes, options_.run);
  open();
}

GRADUS_BODY bool any_summary_writer::add_scalar(std::string_view tag, float value, std::int64_t step) {
  const scalar_value one{tag, value};
  return add_summary(std::span<const scalar_value>(&one, 1), step);
}

GRADUS_BODY bool any_summary_writer::add_summary(std::span<const scalar_value> values, std::int64_t step) {
  check_tags(values);
  return add([&](std::vector<std::byte>& out, double now) { encode_scalars(out, now, step, values); });
}

GRADUS_BODY bool any_summary_writer::add_summary(std::initializer_list<scalar_value> values, std::int64_t step) {
  return add_summary(std::span<const scalar_value>(values.begin(), values.size()), step);
}

GRADUS_BODY bool any_summary_writer::add_summary(const std::vector<summary_value>& values, std::int64_t step) {
  check_tags(std::span<const summary_value>(values.data(), values.size()));
  return add([&](std::vector<std::byte>& out, double now) {
    encode_summary(out, now, step, {values.data(), values.size()});
  });
}

GRADUS_BODY bool any_summary_writer::add_session_log(session_log_status what, std::int64_t step,
                                                     std::string_view checkpoint_path, std::string_view msg) {
  // Without a START viewers show the steps of a run that ended beside those of the run that goes on.
  const full_queue when_full = what == session_log_status::start ? full_queue::block : options_.when_full;
  return add(when_full, [&](std::vector<std::byte>& out, double now) {
    encode_session_log(out, now, step, what, utf8_text(checkpoint_path), utf8_text(msg));
  });
}

GRADUS_BODY bool any_summary_writer::add_graph(std::span<const std::byte> graph_def, std::int64_t step) {
  return add([&](std::vector<std::byte>& out, double now) { encode_graph(out, now, step, graph_def); });
}

GRADUS_BODY bool any_summary_writer::add_run_metadata(std::string_view tag, std::span<const std::byte> run_metadata,
                                                      std::int64_t step) {
  const scalar_value name{tag};
  check_tags(std::span<const scalar_value>(&name, 1));
  lock_type lock(mutex_);
  if (std::find(run_tags_.begin(), run_tags_.end(), tag) != run_tags_.end())
    raise(status::invalid_argument,
          text("the run metadata tag \"", tag, "\" was used already in this writer; give every step its own"));
  const bool accepted = add(lock, options_.when_full, [&](std::vector<std::byte>& out, double now) {
    encode_tagged_run_metadata(out, now, step, tag, run_metadata);
  });
  if (accepted) run_tags_.emplace_back(tag);
  return accepted;
}

GRADUS_BODY bool any_summary_writer::add_meta_graph(std::span<const std::byte> meta_graph_def, std::int64_t step) {
  return add([&](std::vector<std::byte>& out, double now) {
    event e;
    e.wall_time = now, e.step = step, e.what = event_kind::meta_graph_def;
    e.bytes.assign(meta_graph_def.begin(), meta_graph_def.end());
    encode_event(out, e);
  });
}

GRADUS_BODY bool any_summary_writer::add_event(const event& e) {
  return add([&](std::vector<std::byte>& out, double) { encode_event(out, e); });
}

GRADUS_BODY void any_summary_writer::flush() {
  const std::lock_guard one(control_);
  lock_type lock(mutex_);
  if (!open_ && is_shared_) return;  // another owner has closed it, which wrote all events
  check_open();
  if (queue_)
    queue_->drain(lock, queue::goal::flush);
  else
    file_->flush();
  flushed_at_ = clock_.elapsed();
}

GRADUS_BODY void any_summary_writer::sync() {
  const std::lock_guard one(control_);
  lock_type lock(mutex_);
  if (!open_ && is_shared_) return sync_closed();
  check_open();
  if (queue_)
    queue_->drain(lock, queue::goal::sync);
  else
    file_->sync();
  flushed_at_ = clock_.elapsed();
}

// Another owner has closed it, which wrote all events to the operating system alone.
GRADUS_BODY void any_summary_writer::sync_closed() const {
  any_file_system::handle h{};
  std::uint64_t size = 0;
  const int opened = uninterrupted([&] { return fs_.open_read(path_, h, size); });
  if (opened == ENOENT) return;  // it was removed with its events
  if (opened != 0) raise({opened, "open", path_});
  const closing at_end(fs_, h);
  if (const int e = uninterrupted([&] { return fs_.sync(h); }); e != 0) raise({e, "sync", path_});
}

GRADUS_BODY void any_summary_writer::close() {
  const std::lock_guard one(control_);
  lock_type lock(mutex_);
  close_file(lock);
}

GRADUS_BODY void any_summary_writer::reopen() {
  const std::lock_guard one(control_);
  lock_type lock(mutex_);
  close_file(lock);
  open();
}

// TensorBoard reads no file again behind which another writer has begun one.
GRADUS_BODY bool any_summary_writer::has_newest_file() const {
  std::vector<std::string> names;
  const int listed = uninterrupted([&] { return fs_.list(logdir_, names); });
  if (listed != 0 && listed != ENOENT) raise({listed, "list", logdir_});
  const std::string name = path_.substr(path_.rfind('/') + 1);
  return std::find(names.begin(), names.end(), name) != names.end() &&
         std::none_of(names.begin(), names.end(), [&](const auto& n) { return is_event_file_name(n) && n > name; });
}

GRADUS_BODY void any_summary_writer::resume() {
  const std::lock_guard one(control_);
  lock_type lock(mutex_);
  if (open_) return;
  if (!has_newest_file()) return open();
  file_.emplace(fs_, path_, options_.buffer_bytes);
  flushed_at_ = clock_.elapsed();
  if (queue_) queue_->start(*file_);
  open_ = true;
}

GRADUS_BODY void any_summary_writer::share() {
  {
    const std::lock_guard one(control_);
    lock_type lock(mutex_);
    is_shared_ = true;
    if (open_ && !has_newest_file()) {
      close_file(lock);
      open();
    }
  }
  resume();
}

GRADUS_BODY std::string any_summary_writer::path() const {
  const std::lock_guard lock(mutex_);
  return path_;
}

GRADUS_BODY std::uint64_t any_summary_writer::rejected() const {
  const std::lock_guard lock(mutex_);
  return rejected_;
}

GRADUS_BODY std::string any_summary_writer::lost_events() {
  const std::lock_guard lock(mutex_);
  const auto lost = rejected_ - std::exchange(reported_, rejected_);
  if (lost == 0) return {};
  return text(lost, " events are not in ", path_, ": the queue of summaries was full; raise max_queue (",
              "run_config::summaries), or let it wait by full_queue::block");
}

GRADUS_BODY void any_summary_writer::open() {
  make_directories(fs_, logdir_);
  const double now = clock_.now();
  const auto seconds =
      static_cast<std::int64_t>(now >= 0 ? std::min(now, static_cast<double>(last_event_second)) : 0.0);  // NaN too
  const std::string host_and_suffix = options_.hostname + options_.filename_suffix;
  int e = EEXIST;
  for (int tries = 0; e == EEXIST && tries < 1000; ++tries) {  // another process may take a name first
    std::vector<std::string> names;
    if (const int listed = uninterrupted([&] { return fs_.list(logdir_, names); }); listed != 0)
      raise({listed, "list", logdir_});
    path_ = join_path(logdir_, next_event_file_name(names, seconds, host_and_suffix));
    any_file_system::handle h{};
    e = uninterrupted([&] { return fs_.create(path_, h); });
    if (e == 0) fs_.close(h);  // still empty: creating it only reserved the name
  }
  if (e != 0) raise({e, "create", path_});
  if (const int synced = uninterrupted([&] { return fs_.sync_directory(logdir_); }); synced != 0)
    raise({synced, "sync the directory", logdir_});

  file_.emplace(fs_, path_, options_.buffer_bytes);
  scratch_.clear();
  // The version event has whole seconds, as in TensorFlow's events writer.
  append_record(scratch_, [&](std::vector<std::byte>& out) { encode_version(out, static_cast<double>(seconds)); });
  file_->write(scratch_);
  file_->flush();
  flushed_at_ = clock_.elapsed();
  if (queue_) queue_->start(*file_);
  open_ = true;
}

GRADUS_BODY void any_summary_writer::check_open() const {
  if (!open_)
    raise(status::failed_precondition, text("the summary writer of \"", logdir_, "\" is closed; reopen() it first"));
}

GRADUS_BODY void any_summary_writer::be_open(lock_type& lock) {
  while (!open_ && is_shared_) {
    lock.unlock();
    resume();
    lock.lock();
  }
  check_open();
}

GRADUS_BODY void any_summary_writer::close_file(lock_type& lock) {
  if (!open_) return;
  if (queue_) do
      queue_->drain(lock, queue::goal::flush);
    while (!queue_->is_empty());
  else
    file_->flush();
  open_ = false;
  if (queue_) queue_->stop(lock);
  appended_file last(std::move(*file_));
  file_.reset();
  last.close();
}

}  // namespace gradus::detail
