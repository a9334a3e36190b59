// The bodies of queue_runner.hpp.
#pragma once
#include <utility>

#include "../base/body.hpp"
#include "../store/wire.hpp"
#include "queue_runner.hpp"

namespace gradus::inline GRADUS_BUILD {

struct queue_runner::made {
  graph* g = nullptr;
  int queue = -1;
  std::string name;
  std::vector<value> enqueue_ops;
  value close_op, cancel_op;
  std::vector<status> closed_types;

  std::mutex mutex;
  std::vector<std::exception_ptr> raised;

  // Returns whether the error says that the queue was closed: it is of one of the closed types or, after a stop, what a
  // stopped call raises, or what one raises that finds the queue closed by the cancel op.
  bool is_end(const std::exception_ptr& e, const cancellation* stops) const {
    try {
      std::rethrow_exception(e);
    } catch (const error& known) {
      if (std::find(closed_types.begin(), closed_types.end(), known.kind()) != closed_types.end()) return true;
      return stops != nullptr && stops->is_cancelled() &&
             (known.kind() == stops->kind() || known.kind() == status::cancelled);
    } catch (...) {
      return false;
    }
  }
  // A session counts the threads of its runners by this name, since a runner in a collection of the graph is made again
  // for each call.
  std::string counted_as() const {
    std::string shown = text("queue runner ", queue);
    for (const value& op : enqueue_ops) shown += text(' ', op.id);
    return shown;
  }
  // Counts one running thread less; returns whether it was the session's last.
  bool one_less(base_session& s) const { return s.end_thread(counted_as()); }
  static void run_quietly(base_session& s, value op) {
    try {
      s.run(op);
    } catch (...) {  // the queue may be closed already, the session too
    }
  }

  void enqueue(base_session& s, value op, any_coordinator* coord, cancellation* stops) {
    try {
      while (coord == nullptr || !coord->should_stop()) s.run(op, {}, {.stop = stops});
    } catch (...) {
      const std::exception_ptr e = std::current_exception();
      if (is_end(e, stops)) {
        if (one_less(s)) run_quietly(s, close_op);
        return;
      }
      if (coord != nullptr) {
        coord->stop_on_exception([&] { std::rethrow_exception(e); });
      } else {
        const std::lock_guard lock(mutex);
        raised.push_back(e);
      }
    }
    one_less(s);
  }
};

GRADUS_BODY queue_runner::queue_runner(std::shared_ptr<made> m) : made_(std::move(m)) {}

GRADUS_BODY queue_runner::queue_runner(graph_queue q, std::vector<value> enqueue_ops, queue_runner_options o)
    : made_(std::make_shared<made>()) {
  const auto refuse = [&](const auto&... why) {
    raise(status::invalid_argument, text("queue_runner of \"", q.name(), "\": ", why...));
  };
  if (enqueue_ops.empty()) refuse("expected at least one enqueue op, found none");
  for (const value& op : enqueue_ops)
    if (op.g != &q.of()) refuse("an enqueue op belongs to another graph");
  if (o.queue_closed_exception_types.empty())
    refuse("expected at least one kind of error in queue_closed_exception_types, such as status::out_of_range");
  made_->g = &q.of(), made_->queue = q.node().id, made_->name = std::string(q.name());
  made_->enqueue_ops = std::move(enqueue_ops), made_->closed_types = std::move(o.queue_closed_exception_types);
  made_->close_op = o.close_op ? o.close_op : q.close(), made_->cancel_op = o.cancel_op ? o.cancel_op : q.close(true);
}

GRADUS_BODY const std::string& queue_runner::name() const { return made_->name; }
GRADUS_BODY value queue_runner::queue() const { return {made_->g, made_->queue}; }
GRADUS_BODY const std::vector<value>& queue_runner::enqueue_ops() const { return made_->enqueue_ops; }
GRADUS_BODY value queue_runner::close_op() const { return made_->close_op; }
GRADUS_BODY value queue_runner::cancel_op() const { return made_->cancel_op; }
GRADUS_BODY const std::vector<status>& queue_runner::queue_closed_exception_types() const {
  return made_->closed_types;
}
GRADUS_BODY void queue_runner::cancel(base_session& s) const { made::run_quietly(s, made_->cancel_op); }
GRADUS_BODY std::vector<std::exception_ptr> queue_runner::exceptions_raised() const {
  const std::lock_guard lock(made_->mutex);
  return made_->raised;
}

GRADUS_BODY std::vector<coordinated_thread> queue_runner::create_threads(base_session& s, any_coordinator* coord,
                                                                         bool start) const {
  made& m = *made_;
  if (&s.of() != m.g)
    raise(status::invalid_argument, text("the queue runner \"", m.name,
                                         "\" belongs to another graph than the session's; give it a session of its "
                                         "own graph"));
  if (!s.begin_threads(m.counted_as(), m.enqueue_ops.size())) return {};
  {
    const std::lock_guard lock(m.mutex);
    m.raised.clear();
  }
  const task_system tasks = coord != nullptr ? coord->tasks() : s.resources().tasks();
  std::vector<coordinated_thread> threads;
  // A thread may wait in another queue, which nobody closes, so `stops` ends it. `stops` is marked before the cancel op
  // runs, so that a thread that the cancel op ends knows why.
  const auto stops = coord != nullptr ? std::make_shared<cancellation>() : nullptr;
  for (const value& op : m.enqueue_ops)
    threads.emplace_back("queue runner", text(m.name, "/", m.g->name_of(op.id)), coord, tasks,
                         [keeps = made_, &s, op, coord, stops] { keeps->enqueue(s, op, coord, stops.get()); });
  if (coord != nullptr)
    threads.emplace_back("queue runner", text(m.name, "/close_on_stop"), coord, tasks,
                         [keeps = made_, &s, coord, stops] {
                           coord->wait_for_stop();
                           stops->mark("a stop was requested", status::out_of_range);
                           made::run_quietly(s, keeps->cancel_op);
                           stops->call();
                         });
  std::size_t begun = 0;
  try {
    for (; start && begun < threads.size(); ++begun) threads[begun].start();
  } catch (...) {  // those that began may wait in the queue, and their objects wait for them
    if (stops != nullptr) stops->cancel("a thread of its queue runner cannot begin", status::out_of_range);
    made::run_quietly(s, m.cancel_op);
    for (; begun < m.enqueue_ops.size(); ++begun) m.one_less(s);
    throw;
  }
  return threads;
}

// --- QueueRunnerDef: queue_name 1, enqueue_op_name 2, close_op_name 3, cancel_op_name 4,
// queue_closed_exception_types 5

GRADUS_BODY std::vector<std::byte> queue_runner::to_proto() const {
  return to_proto([&](value op) {
    const std::string_view name = made_->g->name_of(op.id);
    if (name.empty())
      raise(status::invalid_argument, text("queue_runner of \"", made_->name,
                                           "\": an op has no name, and a QueueRunnerDef knows ops by their names; "
                                           "name it when it is made"));
    return std::string(name);
  });
}
GRADUS_BODY std::vector<std::byte> queue_runner::to_proto(const std::function<std::string(value)>& name_of) const {
  const made& m = *made_;
  std::vector<std::byte> bytes;
  wire_writer w(bytes);
  w.bytes(1, std::string_view(m.name));
  for (const value& op : m.enqueue_ops) w.bytes(2, std::string_view(name_of(op)));
  w.bytes(3, std::string_view(name_of(m.close_op))), w.bytes(4, std::string_view(name_of(m.cancel_op)));
  std::vector<std::int64_t> codes;
  for (const status s : m.closed_types) codes.push_back(static_cast<int>(s));
  w.packed(5, codes);
  return bytes;
}

GRADUS_BODY queue_runner queue_runner::from_proto(graph& g, std::span<const std::byte> queue_runner_def) {
  auto m = std::make_shared<made>();
  m->g = &g;
  const auto found = [&](std::string_view name) {
    const int at = g.find(name);
    if (at < 0) raise(status::not_found, text("queue_runner: the graph has no node named \"", name, "\""));
    return value{&g, at};
  };
  std::vector<std::int64_t> codes;
  for (wire_reader r(queue_runner_def); r.next();) switch (r.key()) {
    case field(1, wire::length): m->name = std::string(r.string()); break;
    case field(2, wire::length): m->enqueue_ops.push_back(found(r.string())); break;
    case field(3, wire::length): m->close_op = found(r.string()); break;
    case field(4, wire::length): m->cancel_op = found(r.string()); break;
    case field(5, wire::length):
    case field(5, wire::varint): r.repeated(codes); break;
    default: break;
    }
  if (m->name.empty() || m->enqueue_ops.empty() || !m->close_op || !m->cancel_op)
    raise(status::data_loss,
          "a QueueRunnerDef names a queue, at least one enqueue op, a close op and a cancel op; these bytes do not");
  m->queue = found(m->name).id;
  for (const std::int64_t c : codes) {
    if (c < static_cast<int>(status::cancelled) || c > static_cast<int>(status::unauthenticated))
      raise(status::data_loss, text("a QueueRunnerDef lists error codes from 1 to 16, this one lists ", c));
    m->closed_types.push_back(static_cast<status>(c));
  }
  if (m->closed_types.empty()) m->closed_types = {status::out_of_range};
  return queue_runner(std::move(m));
}

// --- in a graph: a runner is a node that never runs, whose words are the runner's ops

namespace cards {
inline constexpr session_card queue_runner{
    {"QueueRunner", 0, trait::keeps | trait::blocks | trait::session | trait::at_session}};
}

struct queue_runner_nodes {
  static std::vector<int> words_of(const queue_runner& r) {
    std::vector<int> words{r.made_->queue, r.made_->close_op.id, r.made_->cancel_op.id,
                           static_cast<int>(r.made_->closed_types.size())};
    for (const status s : r.made_->closed_types) words.push_back(static_cast<int>(s));
    for (const value& op : r.made_->enqueue_ops) words.push_back(op.id);
    return words;
  }
  static queue_runner of_node(graph& g, int id) {
    const node& n = g.nodes[id];
    const int* const words = g.ints.first + n.attr;
    auto m = std::make_shared<queue_runner::made>();
    m->g = &g, m->queue = words[0], m->close_op = {&g, words[1]}, m->cancel_op = {&g, words[2]};
    m->name = std::string(g.name_of(m->queue));
    for (int i = 0; i < words[3]; ++i) m->closed_types.push_back(static_cast<status>(words[4 + i]));
    for (int i = 4 + words[3]; i < n.attrs; ++i) m->enqueue_ops.push_back({&g, words[i]});
    return queue_runner(std::move(m));
  }
};

GRADUS_BODY void add_queue_runner(const queue_runner& runner, std::string_view collection) {
  graph& g = *runner.queue().g;
  const std::vector<int> words = queue_runner_nodes::words_of(runner);
  g.add_to(collection, g.add(cards::queue_runner, nullptr, 0, words.data(), static_cast<int>(words.size())));
}

GRADUS_BODY bool is_queue_runner(value v) { return v.g->nodes[v.id].op == &cards::queue_runner; }

GRADUS_BODY std::vector<queue_runner> queue_runners_of(graph& g, std::string_view collection) {
  std::vector<queue_runner> list;
  g.for_each_in(collection, [&](value v) {
    if (is_queue_runner(v)) list.push_back(queue_runner_nodes::of_node(g, v.id));
  });
  return list;
}

GRADUS_BODY std::vector<coordinated_thread> start_queue_runners(base_session& s, any_coordinator* coord, bool start,
                                                                std::string_view collection) {
  std::vector<coordinated_thread> all;
  const std::vector<queue_runner> runners = queue_runners_of(s.of(), collection);
  for (std::size_t i = 0; i < runners.size(); ++i) try {
      for (coordinated_thread& t : runners[i].create_threads(s, coord, start)) all.push_back(std::move(t));
    } catch (...) {  // the threads of the runners before it wait for room or for a stop, and `all` waits for them
      if (coord != nullptr) coord->request_stop();
      for (std::size_t k = 0; k < i; ++k) runners[k].cancel(s);
      throw;
    }
  return all;
}

}  // namespace gradus
