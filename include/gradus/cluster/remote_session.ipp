// The bodies of remote_session.hpp.
#pragma once
#include <algorithm>
#include <cstring>
#include <random>

#include "../base/body.hpp"
#include "../store/crc32c.hpp"
#include "graph_bytes.hpp"
#include "remote_session.hpp"

namespace gradus::inline GRADUS_BUILD {

// The memory of results: a frame from the server, and views of it.
class remote_session::answers final : public detail::run_memory_owner {
public:
  detail::run_lease keep(detail::answered_call a, std::span<const fetch> fetches) {
    auto h = std::make_unique<held>();
    h->call = std::move(a);
    const auto& results = h->call.said.results;
    if (results.size() != fetches.size() || h->call.frame.tensors.size() != fetches.size())
      raise(status::data_loss,
            text("a server of sessions has answered ", results.size(), " tensors to ", fetches.size(), " fetches"));
    for (std::size_t i = 0; i < results.size(); ++i)
      h->memory.results.push_back(results[i].type == dtype::none
                                      ? const_tensor_view{}
                                      : detail::tensor_of(results[i], h->call.frame.tensors[i]));
    detail::run_memory& m = h->memory;
    const std::lock_guard lock(mutex_);
    held_[&m] = std::move(h);
    return {*this, m};
  }
  void take_back(detail::run_memory& m) override {
    std::unique_ptr<held> last;
    const std::lock_guard lock(mutex_);
    const auto at = held_.find(&m);
    last = std::move(at->second);
    held_.erase(at);
  }

private:
  struct held {
    detail::answered_call call;
    detail::run_memory memory;
  };
  std::mutex mutex_;
  std::map<detail::run_memory*, std::unique_ptr<held>> held_;
};

namespace detail {
GRADUS_BODY std::uint64_t number_by_chance() {
  std::random_device chance;
  std::uint64_t n = 0;
  while (n == 0) n = std::uint64_t{chance()} << 32 | chance();
  return n;
}
GRADUS_BODY std::uint32_t crc_of(const resource_variable& v) {
  return crc32c({v.memory.data(), static_cast<std::size_t>(count(resolve(v.dims, 1))) * size_of(v.type)});
}
}  // namespace detail

GRADUS_BODY remote_session::remote_session(const std::string& target, graph& g, std::string_view protocol,
                                           std::unique_ptr<detail::transport> carrier, const remote_session_options& o)
    : base_session(g, nullptr, false),
      client_(target, protocol, std::move(carrier), o),
      number_(detail::number_by_chance()),
      known_(variables().size()),
      answers_(std::make_shared<answers>()) {
  resources().refuse_objects(
      text("a session on the server \"", target, "\" has its queues there: use them by their ops in a run"));
  for (std::size_t i = 0; i < known_.size(); ++i) known_[i].crc = detail::crc_of(*variables()[i]);
  detail::open_call said;
  said.has_config = o.config.has_value();
  if (said.has_config) said.config = o.config.value();
  const std::vector<std::byte> whole = detail::graph_to_bytes(g);
  const std::span<const std::byte> bytes(whole);
  call(detail::session_op::open, detail::bytes_of_said(said), std::span(&bytes, 1));
}
GRADUS_BODY remote_session::~remote_session() {
  try {
    if (!is_closed()) close_elsewhere();
  } catch (const error&) {  // the server is gone, and with it the session
  }
}

GRADUS_BODY detail::answered_call remote_session::call(detail::session_op op, std::span<const std::byte> said,
                                                       std::span<const std::span<const std::byte>> tensors,
                                                       cancellation* stop) const {
  return client_.call(op, number_, ++sequence_, said, tensors, stop);
}

GRADUS_BODY detail::answered_call remote_session::call_with(detail::session_op op, std::uint64_t seed,
                                                            std::span<const fetch> fetches, std::span<const feed> feeds,
                                                            const run_options& o, bool traced) const {
  send_changes(o.stop);
  detail::run_call said;
  said.seed = seed;
  for (const fetch& f : fetches) said.fetches.push_back(node_of(f));
  std::vector<std::span<const std::byte>> tensors;
  for (const feed& f : feeds) {
    said.fed.push_back(node_of(f));
    said.feeds.push_back({f.data.type, f.data.dims});
    tensors.push_back(f.data.bytes());
  }
  said.has_timeout = o.timeout_secs.has_value();
  said.timeout_secs = o.timeout_secs.value_or(0);
  said.trace = traced ? static_cast<int>(o.trace) : 0;
  try {
    return call(op, detail::bytes_of_said(said), tensors, o.stop);
  } catch (const failed_precondition&) {  // the server may have been given the close before this call
    if (is_closed()) raise(status::cancelled, "the session was closed while a run was under way");
    throw;
  }
}

GRADUS_BODY detail::run_lease remote_session::lease_of(std::span<const fetch> fetches, std::span<const feed> feeds,
                                                       const run_options& o, run_metadata* meta) {
  check_open();
  detail::answered_call a = call_with(detail::session_op::run, 0, fetches, feeds, o, meta != nullptr);
  if (meta != nullptr) meta->nodes = std::move(a.said.nodes);
  return answers_->keep(std::move(a), fetches);
}
GRADUS_BODY void remote_session::start_variables(std::uint64_t seed, std::span<const feed> feeds) {
  check_open();
  call_with(detail::session_op::initialize, seed, {}, feeds, {}, false);
}

// ---- variables

GRADUS_BODY void remote_session::look(std::span<const std::string_view> names) const {
  const std::lock_guard alone(exchange_);
  send_changes_first(nullptr);
  detail::names_call said;
  std::vector<std::size_t> which;
  for (std::size_t i = 0; i < variables().size(); ++i) {
    const std::string& name = variables()[i]->name;
    if (!names.empty() && std::find(names.begin(), names.end(), name) == names.end()) continue;
    said.names.push_back(name);
    which.push_back(i);
  }
  if (which.empty()) return;  // the caller reports a variable that does not exist
  const detail::answered_call a = call(detail::session_op::read, detail::bytes_of_said(said));
  if (a.said.results.size() != which.size() || a.said.has_value.size() != which.size() ||
      a.frame.tensors.size() != which.size())
    raise(status::data_loss, text("the server \"", target(), "\" has answered ", a.said.results.size(),
                                  " variables where ", which.size(), " were requested"));
  const std::lock_guard lock(mirror_);
  for (std::size_t k = 0; k < which.size(); ++k) {
    detail::resource_variable& v = *variables()[which[k]];
    // What was written here since the changes were sent is newer than the server's value.
    if (detail::crc_of(v) != known_[which[k]].crc || v.initialized != known_[which[k]].has_value) {
      may_differ_ = true;
      continue;
    }
    v.initialized = a.said.has_value[k] != 0;
    if (v.initialized) {
      const const_tensor_view from = detail::tensor_of(a.said.results[k], a.frame.tensors[k]);
      const tensor_view to = v.view();
      if (from.type != to.type || from.size_bytes() != to.size_bytes())
        raise(status::data_loss, text("the server \"", target(), "\" has the variable \"", v.name, "\" as ",
                                      gradus::name_of(from.type), " ", to_text(from.dims)));
      if (from.size_bytes() != 0) std::memcpy(to.mutable_data(), from.data, from.size_bytes());
    }
    known_[which[k]] = {detail::crc_of(v), v.initialized, known_[which[k]].handed_out};
  }
}
GRADUS_BODY void remote_session::will_change(const detail::resource_variable* for_good) {
  const std::lock_guard lock(mirror_);
  may_differ_ = true;
  for (std::size_t i = 0; for_good != nullptr && i < variables().size(); ++i)
    if (variables()[i] == for_good) handed_out_ = known_[i].handed_out = true;
}
GRADUS_BODY void remote_session::send_changes(cancellation* stop) const {
  {
    const std::lock_guard lock(mirror_);
    if (!may_differ_ && !handed_out_) return;  // such a run does not wait for another thread's exchange
  }
  const std::lock_guard alone(exchange_);
  send_changes_first(stop);
}
// Called with exchange_ locked.
GRADUS_BODY void remote_session::send_changes_first(cancellation* stop) const {
  detail::write_call said;
  std::vector<std::span<const std::byte>> tensors;
  std::vector<std::pair<std::size_t, known>> before;
  {
    const std::lock_guard lock(mirror_);
    const bool all = std::exchange(may_differ_, false);
    if (!all && !handed_out_) return;
    for (std::size_t i = 0; i < variables().size(); ++i) {
      const detail::resource_variable& v = *variables()[i];
      if (!all && !known_[i].handed_out) continue;
      const known now{detail::crc_of(v), v.initialized, known_[i].handed_out};
      if (now.crc == known_[i].crc && now.has_value == known_[i].has_value) continue;
      before.push_back({i, std::exchange(known_[i], now)});
      said.names.push_back(v.name);
      said.has_value.push_back(v.initialized);
      tensors.push_back(v.initialized ? variables()[i]->view().bytes() : std::span<const std::byte>());
    }
  }
  if (said.names.empty()) return;
  try {
    call(detail::session_op::write, detail::bytes_of_said(said), tensors, stop);
  } catch (...) {  // the server may have the values of before, so the next call sends them again
    const std::lock_guard lock(mirror_);
    for (const auto& [i, then] : before) known_[i].crc = then.crc, known_[i].has_value = then.has_value;
    may_differ_ = true;
    throw;
  }
}

GRADUS_BODY void remote_session::close_elsewhere() {
  try {
    call(detail::session_op::close, {});
  } catch (const aborted&) {  // the server was started again, or it is gone, and with it the session
  } catch (const unavailable&) {
  } catch (const deadline_exceeded&) {
  }
}
GRADUS_BODY runnable remote_session::build(graph, std::shared_ptr<const void>&) const {
  raise(status::internal, text("a session on the server \"", target(), "\" runs nothing in this process"));
}

GRADUS_BODY void reset_server(const std::string& target, std::string_view protocol,
                              std::unique_ptr<detail::transport> carrier, const std::vector<std::string>& containers,
                              const remote_session_options& o) {
  detail::session_client client(target, protocol, std::move(carrier), o);
  detail::names_call said;
  said.names = containers;
  client.call(detail::session_op::reset, detail::number_by_chance(), 1, detail::bytes_of_said(said));
}

}  // namespace gradus
