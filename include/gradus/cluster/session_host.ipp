// The bodies of session_host.hpp.
#pragma once
#include <algorithm>
#include <exception>
#include <optional>

#include "../base/body.hpp"
#include "session_host.hpp"
#include "shared_port.hpp"
#include "task_crew.hpp"
#include "task_network.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY session_host::session_host(const server& here, opener open, card_finder cards, const session_limits& limits)
    : here_(here),
      open_(std::move(open)),
      cards_(std::move(cards)),
      limits_(limits),
      tasks_(here.tasks()),
      changed_(tasks_),
      next_node_(first_session_node) {
  if (here.network() != nullptr) port_ = here.network()->share(this, carrier_);
  if (carrier_ == nullptr) {
    own_ = here.make_transport();
    if (own_ == nullptr)
      raise(status::failed_precondition,
            text("the server \"", here.target(),
                 "\" has no transport, so no other process can reach its sessions: make "
                 "it with one, as server(gradus::grpc{...}, def); sessions of this process reach it by the connect "
                 "policy in_process"));
    carrier_ = own_.get();
    own_->tell(*this);
    port_ = own_->listen(here.def().cluster.task_address(here.def().job_name, here.def().task_index));
  }
  try {
    sweeper_ = tasks_.start("a server of sessions", "raise the limit of threads", [this] { sweep(); });
  } catch (...) {
    if (own_ == nullptr) here.network()->share(nullptr, carrier_);
    throw;
  }
}
GRADUS_BODY session_host::~session_host() {
  if (own_ == nullptr) here_.network()->share(nullptr, carrier_);
  std::vector<std::shared_ptr<served>> all;
  std::vector<task_handle> crew;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    jobs_.clear();
    for (const auto& [number, s] : sessions_) all.push_back(s);
    crew.swap(crew_);
    changed_.notify_all();
  }
  drop(all);
  crew.clear();
  sweeper_ = {};
  constexpr double last_words_secs = 2;
  if (own_ != nullptr) own_->close(last_words_secs);
}

GRADUS_BODY std::string session_host::target() const {
  std::string t = here_.target();
  const auto colon = t.rfind(':');
  if (port_ != 0 && t.substr(colon) == ":0") t = text(t.substr(0, colon), ":", port_.load());
  return t;
}
GRADUS_BODY std::size_t session_host::sessions() const {
  const std::lock_guard lock(mutex_);
  std::size_t n = 0;
  for (const auto& [number, s] : sessions_)
    if (!s->is_closed) ++n;
  return n;
}

// ---- callbacks of the transport

GRADUS_BODY transport_greeting session_host::greeted(std::span<const std::byte> hello, const transport_peer& from) {
  const session_frame f = keep_frame(hello);
  const auto h = said_in<session_hello>(f);
  if (h.version != GRADUS_VERSION)
    raise(status::failed_precondition,
          text("the library of the server \"", here_.target(), "\" is ", GRADUS_VERSION, ", that of its client ",
               from.address, " is ", h.version, "; build both from one version"));
  if (from.role == "ps")
    raise(status::permission_denied, text("a certificate of the role \"ps\" opens no session; expected \"client\", "
                                          "\"worker\", \"chief\" or \"evaluator\""));
  std::uint32_t node = 0;
  {
    const std::lock_guard lock(mutex_);
    for (auto& [number, c] : clients_)
      if (c.number == h.client) node = number;
    if (node == 0) node = next_node_++;
    clients_[node] = {h.client, from.role, tasks_.elapsed()};
  }
  const auto said = bytes_of_said(session_hello{h.client});
  message_encoder out(carrier_->limits());
  transport_greeting g{node, {}};
  const session_slices slices(said, {});
  for (const auto piece : out.encode({.kind = message_kind::hello}, slices.slices()))
    g.answer.insert(g.answer.end(), piece.begin(), piece.end());
  return g;
}

GRADUS_BODY void session_host::came(std::uint32_t node, const received_frame& frame) {
  session_frame f = keep_frame(frame.bytes, carrier_->limits());
  const message_head h = f.head;
  if (h.kind != message_kind::call || h.about == 0 || h.about > last_session_op)
    raise(status::data_loss, text("a client of sessions has sent ", kind_name(h.kind), " ", h.about));
  const auto op = static_cast<session_op>(h.about);
  bool is_known = false;
  {
    const std::lock_guard lock(mutex_);
    const auto c = clients_.find(node);
    is_known = c != clients_.end();
    if (is_known) c->second.heard = tasks_.elapsed();
  }
  if (op == session_op::alive) return;
  if (!is_known) return say(node, h, answer_codes::no_session);
  if (op == session_op::ask || op == session_op::cancel || op == session_op::received) return note(node, h);
  take(node, std::move(f));
}

// Handles the calls that need no thread of the pool.
GRADUS_BODY void session_host::note(std::uint32_t node, const message_head& h) {
  const auto op = static_cast<session_op>(h.about);
  std::uint64_t code = answer_codes::working;
  std::vector<std::byte> answer;
  std::shared_ptr<call> stopped;
  std::optional<job> unbegun;
  {
    const std::lock_guard lock(mutex_);
    const auto s = sessions_.find(h.incarnation);
    if (s == sessions_.end() || s->second->node != node) {
      code = answer_codes::no_session;
    } else {
      auto& calls = s->second->calls;
      auto c = calls.find(h.sequence);
      // A client may give up a call before it is received here. An entry is made then, since otherwise `done` would
      // wait for the call for ever.
      constexpr std::size_t most = 10'000;
      if (op == session_op::received && c == calls.end() && h.sequence > s->second->done && calls.size() < most)
        c = calls.emplace(h.sequence, std::make_shared<call>()).first;
      if (op == session_op::received && (c != calls.end() || h.sequence <= s->second->done))
        code = answer_codes::let_go;
      if (c == calls.end()) {
        if (h.sequence > s->second->done) code = answer_codes::not_heard;
      } else if (op == session_op::received) {
        bytes_ -= std::exchange(c->second->bytes, 0);
        c->second->answer = {};
        if (c->second->state == call::at_work) stopped = c->second;  // its client has given it up
        c->second->state = call::gone;
        for (auto i = calls.find(s->second->done + 1); i != calls.end() && i->second->state == call::gone;
             i = calls.find(s->second->done + 1))
          calls.erase(i), ++s->second->done;
        if (s->second->is_closed && calls.empty()) sessions_.erase(s);
      } else if (op == session_op::cancel) {
        stopped = c->second;
      } else if (c->second->state == call::answered) {
        answer = c->second->answer;
      }
    }
    if (stopped != nullptr) {
      const auto j = std::find_if(jobs_.begin(), jobs_.end(), [&](const job& one) { return one.what == stopped; });
      if (j != jobs_.end() && works_in_session(static_cast<session_op>(j->frame.head.about)))
        unbegun = std::move(*j), jobs_.erase(j);
    }
  }
  if (stopped != nullptr) stopped->stop.cancel("the run was stopped by its client");
  if (unbegun) make(*unbegun, false);  // its answer is that it was stopped
  if (op == session_op::cancel) return;
  if (answer.empty()) return say(node, h, code);
  const std::span<const std::byte> whole(answer);
  carrier_->send(node, std::span(&whole, 1));
}

GRADUS_BODY void session_host::take(std::uint32_t node, session_frame f) {
  const message_head h = f.head;
  const auto op = static_cast<session_op>(h.about);
  std::string too_much;
  std::uint64_t code = 0;
  std::vector<std::byte> answer;
  bool wants_thread = false;
  std::string no_thread;
  {
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    auto s = sessions_.find(h.incarnation);
    if (s == sessions_.end() && (op == session_op::open || op == session_op::reset) && h.sequence == 1) {
      if (sessions_.size() >= limits_.sessions)
        too_much = text("it has ", sessions_.size(), " sessions, the limit `sessions`");
      else
        s = sessions_.emplace(h.incarnation, std::make_shared<served>()).first, s->second->node = node;
    }
    if (too_much.empty() && (s == sessions_.end() || s->second->node != node)) {
      code = answer_codes::no_session;
    } else if (too_much.empty()) {
      served& of = *s->second;
      const auto known = of.calls.find(h.sequence);
      if (known != of.calls.end() || h.sequence <= of.done) {
        code = answer_codes::working;
        if (known != of.calls.end()) answer = known->second->answer;
      } else if (of.at_work >= limits_.calls) {
        too_much = text("the session has ", of.at_work, " calls at work, the limit `calls`");
      } else if (bytes_ + f.memory.size() > limits_.bytes) {
        too_much = text("calls and answers hold ", bytes_, " bytes, and this call has ", f.memory.size(),
                        ", above the limit `bytes` of ", limits_.bytes);
      } else {
        const auto c = std::make_shared<call>();
        c->bytes = f.memory.size();
        bytes_ += c->bytes;
        of.calls[h.sequence] = c;
        ++of.at_work;
        jobs_.push_back({s->second, c, std::move(f), node});
        if (idle_ < jobs_.size() && crew_.size() < limits_.threads) wants_thread = true;
        changed_.notify_all();
      }
    }
    if (wants_thread) {
      try {
        crew_.push_back(tasks_.start("a server of sessions", "raise the limit of threads", [this] { work(); }));
      } catch (const error& e) {
        if (crew_.empty()) {  // else the other threads will make the call
          no_thread = e.what();
          served& of = *jobs_.back().of;
          --of.at_work, bytes_ -= jobs_.back().what->bytes;
          of.calls.erase(h.sequence);
          jobs_.pop_back();
        }
      }
    }
  }
  if (!no_thread.empty())
    return refuse(node, h, status::resource_exhausted,
                  text("the server \"", target(), "\" has no thread for its first call: ", no_thread));
  if (!too_much.empty())
    return refuse(node, h, status::resource_exhausted,
                  text("the server \"", target(), "\" takes no more: ", too_much, " of session_limits"));
  if (!answer.empty()) {
    const std::span<const std::byte> whole(answer);
    return carrier_->send(node, std::span(&whole, 1));
  }
  if (code != 0) say(node, h, code);
}

// ---- threads

GRADUS_BODY void session_host::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_;
    changed_.wait(lock, [&] { return ended_ || !jobs_.empty(); });
    --idle_;
    if (ended_) return;
    job j = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    make(j);
    j = {};  // it may hold the last reference to a session
    lock.lock();
  }
}

GRADUS_BODY void session_host::sweep() {
  std::unique_lock lock(mutex_);
  while (!ended_) {
    changed_.wait_for(lock, limits_.silent_secs / 4, [&] { return ended_; });
    if (ended_) return;
    std::vector<std::shared_ptr<served>> silent;
    for (auto c = clients_.begin(); c != clients_.end();) {
      if (tasks_.elapsed() - c->second.heard < limits_.silent_secs) {
        ++c;
        continue;
      }
      for (auto s = sessions_.begin(); s != sessions_.end();)
        if (s->second->node == c->first)
          silent.push_back(s->second), s = sessions_.erase(s);
        else
          ++s;
      c = clients_.erase(c);
    }
    lock.unlock();
    drop(silent);
    silent.clear();
    lock.lock();
  }
}

// Ends the waits of these sessions; calls of them that are still under way end soon. All sessions are marked as closed
// before the first wait ends, since a call that ends may let the next one in its queue be served.
GRADUS_BODY void session_host::drop(const std::vector<std::shared_ptr<served>>& all) {
  std::vector<std::shared_ptr<call>> calls;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& s : all) {
      s->is_closed = s->is_gone = true;
      for (const auto& [sequence, c] : s->calls) {
        bytes_ -= std::exchange(c->bytes, 0);
        calls.push_back(c);
      }
    }
  }
  const std::string why = "the session's client is gone";
  std::vector<std::shared_ptr<base_session>> opened;
  for (const auto& s : all) {
    const std::lock_guard opening(s->opening);  // which may take long
    if (s->session != nullptr) opened.push_back(s->session);
  }
  for (const auto& s : opened) s->closing().mark(why);
  for (const auto& s : opened) s->close();
  for (const auto& c : calls) c->stop.cancel(why);
}

// A thread of the transport may not wait for a session that is being opened: that call is at work too, and ends later.
GRADUS_BODY void session_host::make(job& j, bool may_wait) {
  std::uint64_t code = 0;
  std::vector<std::byte> answer;
  try {
    answer = answer_to(j, code);
  } catch (...) {
    status kind = status::unknown;
    try {
      throw;
    } catch (const error& e) {
      kind = e.kind();
    } catch (...) {
    }
    message_encoder out(carrier_->limits());
    const auto said = bytes_of_said(session_answer{.why = error_text(std::current_exception())});
    const session_slices slices(said, {});
    message_head h = j.frame.head;
    h.kind = message_kind::answer, h.about = static_cast<std::uint64_t>(kind);
    for (const auto piece : out.encode(h, slices.slices())) answer.insert(answer.end(), piece.begin(), piece.end());
  }
  const auto op = static_cast<session_op>(j.frame.head.about);
  const bool is_last = op == session_op::close || op == session_op::reset;
  std::shared_ptr<base_session> ends;
  {
    std::unique_lock opening(j.of->opening, std::defer_lock);
    if (!opening.try_lock() && may_wait) opening.lock();
    const std::lock_guard lock(mutex_);
    --j.of->at_work;
    if (opening.owns_lock() && j.of->is_closed && j.of->at_work == 0) ends = std::move(j.of->session);
    if (j.what->state == call::at_work && (!j.of->is_gone || is_last)) {
      bytes_ -= std::exchange(j.what->bytes, answer.size());
      bytes_ += answer.size();
      j.what->answer = answer;
      j.what->state = call::answered;
    }
  }
  const std::span<const std::byte> whole(answer);
  carrier_->send(j.node, std::span(&whole, 1));
}

// ---- calls

GRADUS_BODY std::vector<std::byte> session_host::answer_to(job& j, std::uint64_t& code) {
  const session_frame& f = j.frame;
  served& of = *j.of;
  session_answer a;
  std::vector<std::span<const std::byte>> tensors;
  std::vector<run_results> held;
  std::vector<std::byte> copy;
  const auto finished = [&] {
    message_head h = f.head;
    h.kind = message_kind::answer, h.about = code;
    const auto said = bytes_of_said(a);
    const session_slices slices(said, tensors);
    message_encoder out(carrier_->limits());
    std::vector<std::byte> frame;
    const auto pieces = out.encode(h, slices.slices());
    frame.reserve(static_cast<std::size_t>(out.frame_bytes()));
    for (const auto piece : pieces) frame.insert(frame.end(), piece.begin(), piece.end());
    return frame;
  };
  const auto op = static_cast<session_op>(f.head.about);
  if (works_in_session(op) && j.what->stop.is_cancelled()) raise(j.what->stop.kind(), j.what->stop.reason());
  if (op == session_op::reset) {
    {
      const std::lock_guard lock(mutex_);
      of.is_closed = true;
      const std::string role = clients_.contains(j.node) ? clients_[j.node].role : "";
      if (!role.empty() && role != "chief")
        raise(status::permission_denied,
              text("a certificate of the role \"", role, "\" may not reset a server; expected \"chief\""));
    }
    here_.reset(said_in<names_call>(f).names);
    return finished();
  }
  if (op == session_op::open) {
    const auto o = said_in<open_call>(f);
    if (f.tensors.size() != 1) raise(status::data_loss, text("a session is opened with one graph"));
    const std::lock_guard opening(of.opening);
    if (!here_.is_running()) raise(status::unavailable, text("the server \"", target(), "\" does not run; start() it"));
    if (of.what != nullptr)  // its calls may be at work
      raise(status::failed_precondition, text("a session is opened once, by its first call; make another one"));
    of.what = std::make_unique<graph>(graph_from_bytes(f.tensors[0], cards_, of.unknown));
    const auto box =
        here_.resources_for(o.has_config ? or_none<session_options>(o.config) : or_none<session_options>());
    of.session = open_(*of.what, *box);
    of.session->keep(box);
    return finished();
  }
  base_session* session = nullptr;
  {
    const std::lock_guard opening(of.opening);
    session = of.session.get();
  }
  if (op == session_op::close) {
    if (session != nullptr) session->close();
    const std::lock_guard lock(mutex_);
    of.is_closed = true;
    return finished();
  }
  if (session == nullptr)
    raise(status::failed_precondition, text("the session was not opened, or it was closed; make another one"));
  const int nodes = of.what->nodes.count;
  const auto node_at = [&](int id) {
    if (id < 0 || id >= nodes) raise(status::data_loss, text("a call names node ", id, " of ", nodes));
    return value{of.what.get(), id};
  };
  if (op == session_op::run || op == session_op::initialize) {
    const auto r = said_in<run_call>(f);
    if (r.fed.size() != r.feeds.size() || r.feeds.size() != f.tensors.size())
      raise(status::data_loss, text("a call has ", r.fed.size(), " feeds and ", f.tensors.size(), " tensors"));
    std::vector<feed> feeds;
    for (std::size_t i = 0; i < r.feeds.size(); ++i)
      feeds.push_back(feed(node_at(r.fed[i]), tensor_of(r.feeds[i], f.tensors[i])));
    if (op == session_op::initialize) {
      session->initialize(r.seed, std::span<const feed>(feeds));
      return finished();
    }
    std::vector<fetch> fetches;
    for (const int id : r.fetches) fetches.push_back(fetch(node_at(id)));
    if (!of.unknown.empty()) {
      if (const std::string lacking = unknown_for(*of.what, r.fetches, of.unknown); !lacking.empty())
        raise(status::unimplemented,
              text("the server \"", target(), "\" has no kernel for ", lacking,
                   "; give its session_service the policy ops<&your_card>{}. Optimizers train in the process that has "
                   "them: a session of the server's own process has the connect policy in_process{server}, a trainer "
                   "connected{server}"));
    }
    run_options o{.trace = static_cast<trace_level>(r.trace), .stop = &j.what->stop};
    if (r.has_timeout) o.timeout_secs = r.timeout_secs;
    run_metadata meta;
    held.push_back(
        session->run(std::span<const fetch>(fetches), std::span<const feed>(feeds), o, r.trace != 0 ? &meta : nullptr));
    for (const const_tensor_view& v : held.back()) {
      a.results.push_back({v.type, v.dims});
      tensors.push_back(v.type == dtype::none ? std::span<const std::byte>() : v.bytes());
    }
    a.nodes = std::move(meta.nodes);
    return finished();
  }
  if (op == session_op::read) {
    const auto r = said_in<names_call>(f);
    const auto here = session->pause_runs();
    for (const std::string& name : r.names) {
      const const_tensor_view v = session->variable(name);
      const bool has_value = session->is_variable_initialized(name);
      a.has_value.push_back(has_value);
      a.results.push_back({v.type, v.dims});
      tensors.push_back(has_value ? v.bytes() : std::span<const std::byte>());
    }
    return finished();
  }
  const auto w = said_in<write_call>(f);  // session_op::write
  if (w.names.size() != w.has_value.size() || w.names.size() != f.tensors.size())
    raise(status::data_loss, text("a call writes ", w.names.size(), " variables with ", f.tensors.size(), " tensors"));
  const auto here = session->pause_runs();
  for (std::size_t i = 0; i < w.names.size(); ++i)  // all or nothing
    if (w.has_value[i] != 0 && session->variable(w.names[i]).size_bytes() != f.tensors[i].size())
      raise(status::invalid_argument,
            text("variable \"", w.names[i], "\" has ", session->variable(w.names[i]).size_bytes(), " bytes, got ",
                 f.tensors[i].size()));
  for (std::size_t i = 0; i < w.names.size(); ++i) {
    const tensor_view v = session->mutable_variable(w.names[i]);
    if (w.has_value[i] != 0 && v.size_bytes() != 0)
      std::memcpy(v.mutable_data(), f.tensors[i].data(), f.tensors[i].size());
    if (w.has_value[i] == 0) session->variable_at(of.what->find(w.names[i])).initialized = false;
  }
  return finished();
}

GRADUS_BODY void session_host::say(std::uint32_t node, const message_head& of, std::uint64_t code,
                                   std::span<const std::byte> said,
                                   std::span<const std::span<const std::byte>> tensors) {
  message_head h = of;
  h.kind = message_kind::answer, h.about = code;
  const session_slices slices(said, tensors);
  message_encoder out(carrier_->limits());
  carrier_->send(node, out.encode(h, slices.slices()));
}
GRADUS_BODY void session_host::refuse(std::uint32_t node, const message_head& of, status kind, const std::string& why) {
  say(node, of, static_cast<std::uint64_t>(kind), bytes_of_said(session_answer{.why = why}));
}

}  // namespace gradus::detail
