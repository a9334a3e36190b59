// The bodies of session_resources.hpp.
#pragma once
#include "../base/body.hpp"
#include "session_resources.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY detail::resource_variable* session_resources::find(std::string_view name) const {
  for (const auto& v : variables_)
    if (v.name == name) return const_cast<detail::resource_variable*>(&v);
  return nullptr;
}

GRADUS_BODY session_resources::session_resources(const task_system& t) : tasks_(t), order_(t) {}
GRADUS_BODY session_resources::~session_resources() = default;

GRADUS_BODY std::size_t session_resources::size() const {
  const std::lock_guard lock(mutex_);
  return variables_.size();
}

GRADUS_BODY bool session_resources::has(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  return find(name) != nullptr;
}

GRADUS_BODY bool session_resources::is_variable_initialized(std::string_view name) const {
  const detail::run_order::turn here(order_, order_.alone());
  const std::lock_guard lock(mutex_);
  const auto* v = find(name);
  if (v == nullptr)
    raise(status::not_found, text("no variable is named \"", name, "\"; give the full name of a session's variable"));
  return v->initialized;
}

GRADUS_BODY void session_resources::reset() {
  const detail::run_order::turn here(order_, order_.alone());
  const std::lock_guard lock(mutex_);
  for (auto& v : variables_) {
    v.initialized = false;
    if (v.memory.size() != 0) std::memset(v.memory.data(), 0, v.memory.size());
  }
  objects_.clear();
}

// All sessions are marked before the first wait ends, since a call that ends may let the next one in its queue be
// served, which is another session's.
GRADUS_BODY void session_resources::mark_sessions(const std::string& why, status kind) {
  const std::lock_guard lock(sessions_mutex_);
  if (closed_.empty() && kind == status::cancelled) closed_ = why;
  for (detail::session_end* const s : sessions_) s->closing.mark(why, kind);  // unless it is closed
}
// The mutex is held while they are closed, so that no session is destroyed during the call.
GRADUS_BODY void session_resources::end_marked_sessions() {
  const std::lock_guard lock(sessions_mutex_);
  for (detail::session_end* const s : sessions_)
    if (s->closing.is_cancelled()) s->closing.call();
}
GRADUS_BODY void session_resources::close_sessions(const std::string& why) {
  mark_sessions(why, status::cancelled);
  end_marked_sessions();
}
GRADUS_BODY void session_resources::abort_sessions(const std::string& why) {
  mark_sessions(why, status::aborted);
  end_marked_sessions();
}
GRADUS_BODY void session_resources::enter(detail::session_end& s) {
  const std::lock_guard lock(sessions_mutex_);
  sessions_.push_back(&s);
  if (!closed_.empty()) s.closing.cancel(closed_);
}
GRADUS_BODY void session_resources::leave(detail::session_end& s) {
  const std::lock_guard lock(sessions_mutex_);
  std::erase(sessions_, &s);
}

GRADUS_BODY std::shared_ptr<void> session_resources::object(std::string_view name,
                                                            const std::function<std::shared_ptr<void>()>& make) {
  if (!no_objects_.empty()) raise(status::unimplemented, no_objects_);
  const std::lock_guard lock(mutex_);
  for (const auto& [known, object] : objects_)
    if (known == name) return object;
  return objects_.emplace_back(std::string(name), make()).second;
}

GRADUS_BODY detail::resource_variable& session_resources::declare(const variable_info& v) {
  const std::lock_guard lock(mutex_);
  if (auto* known = find(v.name)) {
    if (known->type != v.type || !(known->dims == v.dims))
      raise(status::invalid_argument,
            text("variable \"", v.name, "\" is ", gradus::name_of(v.type), " ", to_text(v.dims), " in this graph and ",
                 gradus::name_of(known->type), " ", to_text(known->dims),
                 " in the resources that the session shares; give one of them another name, or the session resources "
                 "of its own"));
    return *known;
  }
  auto& made = variables_.emplace_back();
  made.name = v.name, made.type = v.type, made.dims = v.dims, made.init = v.init, made.local = v.local;
  made.number = static_cast<int>(variables_.size()) - 1;
  made.memory = aligned_buffer(v.size() * size_of(v.type));
  return made;
}

}  // namespace gradus
