// The bodies of stream_transport.hpp.
#pragma once
#include <cstring>
#include <exception>

#include "../base/body.hpp"
#include "stream_transport.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY std::span<std::byte> frame_memory::resize(std::size_t bytes) {
  if (bytes > room_) {
    at_.reset();
    size_ = room_ = 0;
    at_.reset(static_cast<std::byte*>(::operator new(bytes, std::align_val_t{wire_alignment})));
    room_ = bytes;
  }
  size_ = bytes;
  return {at_.get(), size_};
}

GRADUS_BODY frame_memory frame_pool::take(std::size_t bytes) {
  frame_memory m;
  {
    std::lock_guard lock(m_);
    // Takes the smallest that is large enough, but not one of more than four times the size, so that a small frame does
    // not use a large one's memory, nor, for a frame that a receiver may keep, one with which it may not be kept.
    const std::size_t most = bytes < pooled_frame::kept_bytes ? 4 * bytes : pooled_frame::most_room(bytes);
    auto best = free_.end();
    for (auto i = free_.begin(); i != free_.end(); ++i)
      if (i->room() >= bytes && i->room() <= most && (best == free_.end() || i->room() < best->room())) best = i;
    if (best != free_.end()) {
      held_ -= best->room();
      m = std::move(*best);
      *best = std::move(free_.back());
      free_.pop_back();
    }
  }
  m.resize(bytes);
  return m;
}
GRADUS_BODY void frame_pool::give(frame_memory m) {
  if (m.room() >= given_back) return;
  std::lock_guard lock(m_);
  if (free_.size() >= most_frames || held_ + m.room() > most_) return;
  held_ += m.room();
  free_.push_back(std::move(m));
}

template <class Start>
void stream_transport::start_outside(frame_stream& s, holding& held, Start start) {
  ++s.starting_;
  held.unlock();
  start();
  held.lock();
  if (--s.starting_ == 0 && s.is_put_off_) {
    s.is_put_off_ = false;
    s.end(s.put_off_);
  }
}

GRADUS_BODY void frame_stream::write_lent(std::shared_ptr<lent_frame> frame) {
  frame_memory whole = of_.pool()->take(frame->left());
  frame->read({whole.data(), whole.size()});
  frame.reset();
  write(std::move(whole));
}
GRADUS_BODY void frame_stream::was_read(const received_frame* frame) {
  if (frame != nullptr) return of_.came(*this, *frame);
  stream_transport::holding lock(of_.m_);
  of_.end(*this, {});
}
GRADUS_BODY void frame_stream::was_too_large(std::uint64_t bytes) {
  of_.hang_up_for(*this, status::resource_exhausted,
                  bytes > of_.frame_limit()
                      ? text("a message has ", bytes, " bytes, above the limit frame_bytes of ", of_.frame_limit())
                      : text("a first message, a hello, has ", bytes, " bytes, above what one may have"));
}
GRADUS_BODY void frame_stream::was_wrong(status kind, const std::string& why) { of_.hang_up_for(*this, kind, why); }
GRADUS_BODY void frame_stream::was_read_in_part() {
  stream_transport::holding lock(of_.m_);
  if (!is_over_) of_.start_outside(*this, lock, [this] { read(); });
}
GRADUS_BODY void frame_stream::was_written_in_part() {
  stream_transport::holding lock(of_.m_);
  if (!is_over_) of_.start_outside(*this, lock, [this] { write_rest(); });
}
GRADUS_BODY void frame_stream::was_written(bool ok) {
  stream_transport::holding lock(of_.m_);
  is_writing_ = false;
  waiting_ -= written_;
  written_ = 0;
  // A stream to which bytes cannot be written any more cannot be read either, and the failed read ends it.
  if (ok) of_.write_next(*this, lock);
}
GRADUS_BODY void frame_stream::was_done(const stream_end& said) {
  std::string refused;
  {
    stream_transport::holding lock(of_.m_);
    if (is_client_) {
      const auto i = of_.peers_.find(node_);
      if (i != of_.peers_.end() && i->second.stream == this) {
        stream_transport::peer& p = i->second;
        refused = !refused_.empty() ? refused_ : said.is_refusal ? said.why : "";
        p.stream = nullptr;
        p.is_refused = !refused.empty();
        p.problem = p.is_refused            ? text("has refused: ", refused)
                    : said.kind == status{} ? std::string("has closed the connection")
                                            : text("cannot be reached at ", p.address, ": ", said.why);
        if (is_greeted_) p.wait = stream_transport::first_wait;
        p.due = of_.tasks_.elapsed() + p.wait;
        p.wait = std::min(2 * p.wait, stream_transport::longest_wait);
        if (p.is_refused) ++of_.counts_.refused;
        if (of_.is_closing_) refused.clear();
      }
    }
  }
  if (!refused.empty()) of_.told_->refused(node_, refused);
  stream_transport::holding lock(of_.m_);
  of_.served_ -= is_client_ ? 0 : 1;
  // No reference is left in this thread, which may be one of the stream's.
  of_.over_.push_back(shared_from_this());
  of_.live_.erase(of_.over_.back());
  of_.changed_.notify_all();
}

GRADUS_BODY stream_transport::stream_transport(stream_options options, const task_system& tasks)
    : options_(std::move(options)),
      tasks_(tasks),
      decoder_(options_.limits),
      pool_(std::make_shared<frame_pool>(options_.waiting_bytes)),
      changed_(tasks) {
  tending_ = tasks_.start("transport", "raise the limit of threads", [this] { tend(); });
}

// The derived class has called end_streams, unless its constructor failed.
GRADUS_BODY stream_transport::~stream_transport() {
  holding lock(m_);
  is_ended_ = true;
  changed_.notify_all();
}

GRADUS_BODY void stream_transport::connect(std::uint32_t node, const std::string& address,
                                           std::vector<std::byte> hello) {
  holding lock(m_);
  if (is_closing_) return;
  peer& p = peers_[node];
  if (p.stream != nullptr) hang_up(*p.stream, {});
  p = {.address = address, .hello = std::move(hello)};
  changed_.notify_all();
}

// Returns the stream for a frame, whose bytes wait from now on; null, and the frame is lost, if there is none.
GRADUS_BODY std::shared_ptr<frame_stream> stream_transport::stream_for(std::uint32_t node, std::size_t bytes) {
  holding lock(m_);
  const auto i = open_.find(node);
  const bool is_too_large = bytes > options_.limits.frame_bytes;
  if (i == open_.end() || is_closing_ || is_too_large ||
      (i->second->waiting_ > 0 && i->second->waiting_ + bytes > options_.waiting_bytes)) {
    ++(is_too_large ? counts_.too_large : counts_.lost);
    return nullptr;
  }
  i->second->waiting_ += bytes;
  return i->second->shared_from_this();
}
GRADUS_BODY void stream_transport::hand_over(std::shared_ptr<frame_stream> s, frame_stream::waiting_frame frame) {
  holding lock(m_);
  s->waiting_ -= frame.size();  // enqueue counts it again
  if (frame.lent != nullptr) lent_.push_back(frame.lent);
  enqueue(*s, std::move(frame), lock);
  // This thread may be one of the stream's, which must not destroy it; so it does not keep the last reference.
  if (live_.contains(s)) return s.reset();
  over_.push_back(std::move(s));  // it has ended meanwhile
  changed_.notify_all();
}

GRADUS_BODY void stream_transport::send(std::uint32_t node, std::span<const std::span<const std::byte>> pieces) {
  std::size_t bytes = 0;
  for (const auto piece : pieces) bytes += piece.size();
  std::shared_ptr<frame_stream> s = stream_for(node, bytes);
  if (s == nullptr) return;
  frame_memory frame = pool_->take(bytes);
  std::byte* to = frame.data();
  for (const auto piece : pieces)
    if (!piece.empty()) std::memcpy(to, piece.data(), piece.size()), to += piece.size();
  hand_over(std::move(s), {std::move(frame), nullptr});
}
GRADUS_BODY void stream_transport::send_lent(std::uint32_t node, std::span<const std::span<const std::byte>> pieces) {
  std::size_t bytes = 0;
  for (const auto piece : pieces) bytes += piece.size();
  if (bytes < lent_bytes) return send(node, pieces);
  if (std::shared_ptr<frame_stream> s = stream_for(node, bytes); s != nullptr)
    hand_over(std::move(s), {{}, std::make_shared<lent_frame>(pieces)});
}
// Called with the mutex locked.
GRADUS_BODY std::vector<std::shared_ptr<lent_frame>> stream_transport::lent_here() {
  std::vector<std::shared_ptr<lent_frame>> all;
  for (const auto& one : lent_)
    if (auto f = one.lock(); f != nullptr) all.push_back(std::move(f));
  lent_.clear();
  return all;
}
GRADUS_BODY void stream_transport::part_with() {
  holding lock(m_);
  if (lent_.empty()) return;
  const auto all = lent_here();
  lock.unlock();
  for (const auto& f : all) f->part_with();
}
GRADUS_BODY void stream_transport::take_back() {
  {
    holding lock(m_);
    if (lent_.empty()) return;
    for (const auto& s : live_) {
      for (const auto& f : s->queue_)
        if (f.lent != nullptr) s->waiting_ -= f.size();
      std::erase_if(s->queue_, [](const auto& f) { return f.lent != nullptr; });
    }
  }
  part_with();
}

GRADUS_BODY std::string stream_transport::problem(std::uint32_t node) const {
  holding lock(m_);
  if (open_.contains(node)) return {};
  const auto i = peers_.find(node);
  return i != peers_.end() ? i->second.problem : std::string("is not connected");
}
GRADUS_BODY transport_counts stream_transport::counts() const {
  holding lock(m_);
  return counts_;
}

GRADUS_BODY void stream_transport::take(std::shared_ptr<frame_stream> s) {
  holding lock(m_);
  live_.insert(s);
  ++served_;
  if (is_closing_) return end(*s, {status::unavailable, "this task ends"});
  if (served_ > options_.max_connections) {
    ++counts_.too_many;
    return end(*s, {status::resource_exhausted,
                    text("there are ", options_.max_connections, " connections already; raise max_connections")});
  }
  s->until_ = tasks_.elapsed() + options_.handshake_secs;
  changed_.notify_all();
  s->read();
}

GRADUS_BODY void stream_transport::begin(std::uint32_t node, peer& p) {
  const std::shared_ptr<frame_stream> s = dial(p.address);
  s->node_ = node;
  s->until_ = tasks_.elapsed() + options_.handshake_secs;
  p.stream = s.get();
  live_.insert(s);
  frame_memory hello;
  hello.resize(p.hello.size());
  if (!p.hello.empty()) std::memcpy(hello.data(), p.hello.data(), p.hello.size());
  // These are called under the mutex, since nothing is called back before start().
  s->is_writing_ = true;
  s->waiting_ = s->written_ = hello.size();
  s->read();
  s->write(std::move(hello));
  start(*s);
}

// Does what is due: makes lost streams again, ends those of silent peers, and destroys streams that are over.
GRADUS_BODY void stream_transport::tend() {
  holding lock(m_);
  while (!is_ended_) {
    const double now = tasks_.elapsed();
    double next = now + 3600;
    for (auto& [node, p] : peers_) {
      if (p.stream != nullptr || p.is_refused || is_closing_) continue;
      if (p.due <= now)
        begin(node, p);
      else
        next = std::min(next, p.due);
    }
    // After dialing: to destroy the last stream of a process may take seconds, since gRPC waits for threads of its own
    // then.
    if (!over_.empty() && (peers_.empty() || !live_.empty())) {
      std::vector<std::shared_ptr<frame_stream>> over;
      over.swap(over_);
      lock.unlock();
      over.clear();
      lock.lock();
      continue;
    }
    for (const auto& s : live_) {
      if (s->is_greeted_ && !s->is_over_) continue;
      if (s->until_ <= now && s->is_over_) {
        s->until_ = now + 3600;
        s->cancel();
      } else if (s->until_ <= now) {
        hang_up(*s, {status::deadline_exceeded, text("nothing was heard for ", options_.handshake_secs, " seconds")});
      }
      next = std::min(next, s->until_);
    }
    changed_.wait_for(lock, std::max(next - now, 1e-4));
  }
}

GRADUS_BODY void stream_transport::enqueue(frame_stream& s, frame_stream::waiting_frame frame, holding& held) {
  if (s.is_over_ || s.is_half_) {
    ++counts_.lost;
    return;
  }
  s.waiting_ += frame.size();
  s.queue_.push_back(std::move(frame));
  write_next(s, held);
}
GRADUS_BODY void stream_transport::write_next(frame_stream& s, holding& held) {
  if (s.is_writing_ || s.is_over_ || s.is_half_) return;
  if (!s.queue_.empty()) {
    s.is_writing_ = true;
    frame_stream::waiting_frame frame = std::move(s.queue_.front());
    s.queue_.pop_front();
    s.written_ = frame.size();
    return start_outside(s, held, [&] {
      frame.lent != nullptr ? s.write_lent(std::move(frame.lent)) : s.write(std::move(frame.memory));
    });
  }
  if (!is_closing_ || !s.is_greeted_) return;
  if (s.is_client_)
    s.is_half_ = true, s.end_writing();
  else
    end(s, {});
}
GRADUS_BODY void stream_transport::end(frame_stream& s, const stream_end& why) {
  if (s.is_over_) return;
  s.is_over_ = true;
  if (const auto i = open_.find(s.node_); i != open_.end() && i->second == &s) open_.erase(i);
  counts_.lost += s.is_greeted_ ? s.queue_.size() : 0;
  for (const auto& f : s.queue_) s.waiting_ -= f.size();
  s.queue_.clear();
  if (s.starting_ == 0) return s.end(why);
  s.is_put_off_ = true;
  s.put_off_ = why;
}
GRADUS_BODY void stream_transport::hang_up(frame_stream& s, const stream_end& why) {
  if (s.is_over_) return;
  end(s, why);
  // A server's last message comes after the written frames; a client that does not read it is not waited for.
  if (s.is_client_)
    s.cancel();
  else
    s.until_ = tasks_.elapsed() + last_words_secs, changed_.notify_all();
}
GRADUS_BODY void stream_transport::open(frame_stream& s) {
  s.is_greeted_ = true;
  ++counts_.connections;
  frame_stream*& there = open_[s.node_];
  frame_stream* const before = there;
  there = &s;
  if (before != nullptr) hang_up(*before, {status::aborted, "another connection of this node has taken its place"});
}

GRADUS_BODY void stream_transport::hang_up_for(frame_stream& s, status kind, const std::string& why) {
  holding lock(m_);
  if (s.is_over_) return;
  ++(kind == status::resource_exhausted ? counts_.too_large : counts_.malformed);
  hang_up(s, {kind, why});
}

GRADUS_BODY void stream_transport::came(frame_stream& s, const received_frame& frame) {
  bool is_first = false;
  {
    holding lock(m_);
    if (s.is_over_) return;
    is_first = !s.is_heard_;
    s.is_heard_ = true;
    // Frames that come while this side closes are read and dropped, so that the other side can end as well.
    if (is_closing_) return start_outside(s, lock, [&] { s.read(); });
  }
#if defined(__cpp_exceptions)
  try {
#endif
    if (is_first) {
      if (s.is_client_)
        welcome(s, frame.bytes);
      else
        greet(s, frame.bytes);
    } else {
      const std::uint64_t whole = decoder_.frame_bytes(frame.bytes);
      if (whole != frame.bytes.size())
        raise(status::data_loss, text("malformed message: its head says that it has ", whole, " bytes, and ",
                                      frame.bytes.size(), " came"));
      told_->came(s.node_, frame);
    }
#if defined(__cpp_exceptions)
  } catch (const error& e) {
    return hang_up_for(s, e.kind(), e.what());
  } catch (const std::exception& e) {
    return hang_up_for(s, status::internal, e.what());
  }
#endif
  holding lock(m_);
  if (!s.is_over_) start_outside(s, lock, [&] { s.read(); });
}

GRADUS_BODY void stream_transport::greet(frame_stream& s, std::span<const std::byte> hello) {
  const transport_peer from = s.peer();
  const auto refuse = [&](status kind, const std::string& why) {
    holding lock(m_);
    ++counts_.refused;
    end(s, {kind == status::permission_denied ? kind : status::failed_precondition, why, true});
  };
  if (!from.is_trusted && from.role.empty())
    return refuse(status::permission_denied,
                  "your certificate says no role; give it one alternative name like URI:spiffe://gradus/worker");
  transport_greeting g;
#if defined(__cpp_exceptions)
  try {
    g = told_->greeted(hello, from);
  } catch (const error& e) {
    return refuse(e.kind(), e.what());
  }
#else
  g = told_->greeted(hello, from);
#endif
  frame_memory answer;
  answer.resize(g.answer.size());
  if (!g.answer.empty()) std::memcpy(answer.data(), g.answer.data(), g.answer.size());
  holding lock(m_);
  if (s.is_over_) return;
  s.node_ = g.node;
  open(s);
  enqueue(s, {std::move(answer), nullptr}, lock);
}

GRADUS_BODY void stream_transport::welcome(frame_stream& s, std::span<const std::byte> answer) {
  const auto refuse = [&](const std::string& why) {
    holding lock(m_);
    s.refused_ = why;
    hang_up(s, {status::failed_precondition, why});
  };
  const transport_peer at = s.peer();
  if (!options_.server_role.empty() && !at.is_trusted && at.role != options_.server_role)
    return refuse(text("the certificate of ", at.address, " says the role \"", at.role, "\"; expected \"",
                       options_.server_role, "\" (spiffe://gradus/", options_.server_role, ")"));
  {
    holding lock(m_);
    if (s.is_over_) return;
    open(s);
  }
#if defined(__cpp_exceptions)
  try {
    told_->welcomed(s.node_, answer);
  } catch (const error& e) {
    refuse(e.what());
  }
#else
  told_->welcomed(s.node_, answer);
#endif
}

GRADUS_BODY void stream_transport::end_streams(double secs) {
  holding lock(m_);
  if (is_ended_) return;
  is_closing_ = true;
  const std::vector<std::shared_ptr<frame_stream>> streams(live_.begin(), live_.end());
  for (const auto& s : streams) {
    if (s->is_greeted_)
      write_next(*s, lock);  // ends it if nothing waits
    else
      hang_up(*s, {status::unavailable, "this task ends"});
  }
  changed_.wait_for(lock, secs, [&] { return live_.empty(); });
  for (const auto& s : live_) {
    end(*s, {status::unavailable, "this task ends"});
    s->cancel();
  }
  changed_.wait(lock, [&] { return live_.empty(); });
  is_ended_ = true;
  changed_.notify_all();
  lock.unlock();
  tending_.join();
}
GRADUS_BODY void stream_transport::bury() {
  holding lock(m_);
  std::vector<std::shared_ptr<frame_stream>> over;
  over.swap(over_);
  lock.unlock();
}

}  // namespace gradus::detail
