// The bodies of graph_queue.hpp.
#pragma once
#include <array>
#include <bit>

#include "../../base/body.hpp"
#include "graph_queue.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {

// --- a spec as the words of a node: numbers as they are, names as offsets in the graph's table

class spec_writer {
public:
  void put(std::int64_t x) {
    for (const int word : std::bit_cast<std::array<int, 2>>(x)) words.push_back(word);
  }
  std::vector<int> words;
};
class spec_reader {
public:
  explicit spec_reader(std::span<const int> words) : words_(words) {}
  // A graph may come from another process (cluster/graph_bytes.hpp), so every word is checked.
  std::int64_t get() {
    if (words_.size() - at_ < 2) refuse();
    const std::array<int, 2> two{words_[at_], words_[at_ + 1]};
    at_ += 2;
    return std::bit_cast<std::int64_t>(two);
  }
  // Returns the number of items that follow, each of two words.
  std::size_t count() {
    const std::int64_t n = get();
    if (n < 0 || static_cast<std::uint64_t>(n) > (words_.size() - at_) / 2) refuse();
    return static_cast<std::size_t>(n);
  }
  [[noreturn]] static void refuse() {
    raise(status::invalid_argument, "a node of a queue does not say what queue it is: the graph is malformed");
  }

private:
  std::span<const int> words_;
  std::size_t at_ = 0;
};

GRADUS_BODY std::vector<int> words_of_queue(graph& g, const queue_spec& s) {
  spec_writer w;
  w.put(static_cast<int>(s.kind)), w.put(s.capacity), w.put(s.min_after_dequeue);
  w.put(std::bit_cast<std::int64_t>(s.seed)), w.put(std::bit_cast<std::int64_t>(s.seed2));
  w.put(s.shared_name.empty() ? -1 : g.intern(s.shared_name));
  w.put(static_cast<std::int64_t>(s.dtypes.size()));
  for (const dtype t : s.dtypes) w.put(static_cast<int>(t));
  w.put(s.has_shapes());
  for (const extents& e : s.shapes) {
    w.put(e.rank);
    for (int i = 0; i < e.rank; ++i) w.put(e[i]);
  }
  w.put(!s.names.empty());
  for (const std::string& n : s.names) w.put(g.intern(n));
  return std::move(w.words);
}

GRADUS_BODY queue_spec queue_of_words(const graph& g, int node) {
  if (node < 0 || node >= g.nodes.count) spec_reader::refuse();
  const gradus::node& n = g.nodes[node];
  spec_reader r({g.ints.first + n.attr, static_cast<std::size_t>(n.attrs)});
  const auto text_of = [&](std::int64_t offset) {
    if (offset >= g.names.chars.count) spec_reader::refuse();
    return std::string(g.text_at(static_cast<int>(offset)));
  };
  queue_spec s;
  s.kind = static_cast<queue_kind>(r.get()), s.capacity = r.get(), s.min_after_dequeue = r.get();
  s.seed = std::bit_cast<std::uint64_t>(r.get()), s.seed2 = std::bit_cast<std::uint64_t>(r.get());
  if (const std::int64_t shared = r.get(); shared >= 0) s.shared_name = text_of(shared);
  s.name = std::string(g.name_of(node));
  s.dtypes.resize(r.count());
  for (dtype& t : s.dtypes) t = static_cast<dtype>(r.get());
  if (r.get() != 0) s.shapes.resize(s.dtypes.size());
  for (extents& e : s.shapes) {
    const std::size_t rank = r.count();
    if (rank > max_rank) spec_reader::refuse();
    for (std::size_t i = 0; i < rank; ++i) e.push(r.get());
  }
  if (r.get() != 0) s.names.resize(s.dtypes.size());
  for (std::string& name : s.names) name = text_of(r.get());
  return s;
}

// --- in a run

// Operands are in the order of the components, so ops use a handle without names, which takes a list.
GRADUS_BODY any_queue queue_in(base_session& session, int node, bool with_names) {
  queue_spec spec = queue_of_words(session.of(), node);
  session_resources& box = session.resources();
  const auto found =
      box.object(text("queue/", spec.shown_name()), [&] { return std::make_shared<any_queue>(spec, box.tasks()); });
  if (!with_names) spec.names.clear();
  return any_queue(spec, *static_cast<any_queue*>(found.get()));
}

struct queue_attr {
  int queue;                  // its node
  int mode = 0;               // enqueue: 1 is many; dequeue: 0 one, 1 many, 2 up to; close: 1 cancels
  std::array<int, 2> n = {};  // dequeue: the number of elements
  int first = -1;             // dequeue: the first of the placeholders, which follow each other
};
// The state that an op keeps from run to run.
struct queue_work {
  any_queue queue;
  datum taken;
};
GRADUS_BODY queue_work& work_of(session_call& c) {
  if (c.memory == nullptr)
    c.memory = std::make_shared<queue_work>(queue_work{queue_in(c.session, c.get<queue_attr>().queue, false), {}});
  return *static_cast<queue_work*>(c.memory.get());
}

GRADUS_BODY void run_enqueue(session_call& c) {
  any_queue& q = work_of(c).queue;
  c.get<queue_attr>().mode != 0 ? q.enqueue_many(c.operands, c.wait) : q.enqueue(c.operands, c.wait);
}
GRADUS_BODY void run_dequeue(session_call& c) {
  queue_work& w = work_of(c);
  const auto a = c.get<queue_attr>();
  const auto n = std::bit_cast<std::int64_t>(a.n);
  if (a.mode == 0)
    w.queue.dequeue(w.taken, c.wait);
  else if (a.mode == 1)
    w.queue.dequeue_many(n, w.taken, c.wait);
  else
    w.queue.dequeue_up_to(n, w.taken, c.wait);
  for (std::size_t k = 0; k < w.taken.size(); ++k)
    c.given->push_back(feed(value{&c.session.of(), a.first + static_cast<int>(k)}, w.taken[k]));
}
GRADUS_BODY void run_close(session_call& c) { work_of(c).queue.close(c.get<queue_attr>().mode != 0, c.wait); }
GRADUS_BODY void run_size(session_call& c) {
  c.result.mutable_as<std::int32_t>()[0] =
      static_cast<std::int32_t>(queue_in(c.session, c.get<queue_attr>().queue, false).size());
}
GRADUS_BODY void run_is_closed(session_call& c) {
  c.result.mutable_as<bool>()[0] = queue_in(c.session, c.get<queue_attr>().queue, false).is_closed();
}
GRADUS_BODY void infer_queue_size(inference& r) { r.type = int32; }
GRADUS_BODY void infer_queue_truth(inference& r) { r.type = boolean; }
}  // namespace detail

namespace cards {
// There is one card for each kind, since a graph shows kinds by their names. None of these nodes runs: a queue is made
// when an op first uses it.
inline constexpr unsigned queue_traits = trait::keeps | trait::blocks | trait::session | trait::at_session;
inline constexpr session_card fifo_queue{{"FIFOQueueV2", 0, queue_traits}},
    random_shuffle_queue{{"RandomShuffleQueueV2", 0, queue_traits}},
    padding_fifo_queue{{"PaddingFIFOQueueV2", 0, queue_traits}}, priority_queue{{"PriorityQueueV2", 0, queue_traits}};
inline constexpr session_card queue_enqueue{
    {"QueueEnqueueV2", -1, queue_traits}, &detail::run_enqueue, run_phase::after},
    queue_enqueue_many{{"QueueEnqueueManyV2", -1, queue_traits}, &detail::run_enqueue, run_phase::after},
    queue_dequeue{{"QueueDequeueV2", 0, queue_traits}, &detail::run_dequeue, run_phase::before},
    queue_dequeue_many{{"QueueDequeueManyV2", 0, queue_traits}, &detail::run_dequeue, run_phase::before},
    queue_dequeue_up_to{{"QueueDequeueUpToV2", 0, queue_traits}, &detail::run_dequeue, run_phase::before},
    queue_close{{"QueueCloseV2", 0, queue_traits}, &detail::run_close, run_phase::after},
    queue_size{{"QueueSizeV2", 0, queue_traits, &detail::infer_queue_size}, &detail::run_size},
    queue_is_closed{{"QueueIsClosedV2", 0, queue_traits, &detail::infer_queue_truth}, &detail::run_is_closed};
}  // namespace cards

namespace detail {
GRADUS_BODY const card& card_of(queue_kind kind) {
  switch (kind) {
  case queue_kind::random_shuffle: return cards::random_shuffle_queue;
  case queue_kind::padding_fifo: return cards::padding_fifo_queue;
  case queue_kind::priority: return cards::priority_queue;
  case queue_kind::fifo: break;
  }
  return cards::fifo_queue;
}
GRADUS_BODY std::span<const card* const> queue_cards() {
  static constexpr const card* all[] = {
      &cards::fifo_queue,          &cards::random_shuffle_queue, &cards::padding_fifo_queue, &cards::priority_queue,
      &cards::queue_enqueue,       &cards::queue_enqueue_many,   &cards::queue_dequeue,      &cards::queue_dequeue_many,
      &cards::queue_dequeue_up_to, &cards::queue_close,          &cards::queue_size,         &cards::queue_is_closed};
  return all;
}
GRADUS_BODY value add_queue_op(graph& g, const card& op, const queue_attr& a, std::span<const value> operands,
                               const std::string& name) {
  const auto words = to_words(a);
  return g.add(op, operands.data(), static_cast<int>(operands.size()), words.data(), static_cast<int>(words.size()),
               name);
}
GRADUS_BODY std::string last_part(std::string_view name) { return std::string(name.substr(name.rfind('/') + 1)); }
}  // namespace detail

GRADUS_BODY value dequeued::operator[](std::string_view name) const {
  for (std::size_t k = 0; k < names_.size(); ++k)
    if (names_[k] == name) return parts_[k];
  raise(status::invalid_argument, text("the queue has no component \"", name, "\"; its components are ",
                                       detail::in_brackets(names_, [](const std::string& n) { return n; })));
}
GRADUS_BODY dequeued::operator value() const {
  if (parts_.size() != 1)
    raise(status::invalid_argument,
          text("an element of the queue has ", parts_.size(), " components; take them one by one, as [0]"));
  return parts_[0];
}

GRADUS_BODY graph_queue::graph_queue(graph& g, queue_spec spec) : g_(&g), spec_(std::move(spec)) {
  spec_.check();
  const std::vector<int> words = detail::words_of_queue(g, spec_);
  const std::string wanted = spec_.name.empty() ? std::string(name_of(spec_.kind)) : spec_.name;
  node_ = g.add(detail::card_of(spec_.kind), nullptr, 0, words.data(), static_cast<int>(words.size()), wanted).id;
  spec_.name = std::string(name());
}

GRADUS_BODY graph_queue graph_queue::from_list(std::int64_t index, std::span<const graph_queue> queues) {
  if (queues.empty()) raise(status::invalid_argument, "from_list: expected at least one queue, found none");
  for (const graph_queue& q : queues)
    if (q.spec_.dtypes != queues[0].spec_.dtypes || q.spec_.names != queues[0].spec_.names)
      raise(status::invalid_argument,
            text("from_list: queues \"", queues[0].name(), "\" and \"", q.name(),
                 "\" differ in the types or names of their components; list queues of the same elements"));
  if (index < 0 || index >= static_cast<std::int64_t>(queues.size()))
    raise(status::out_of_range, text("from_list: expected an index from 0 to ", queues.size() - 1, ", got ", index));
  return queues[static_cast<std::size_t>(index)];
}

GRADUS_BODY any_queue graph_queue::in(base_session& s) const {
  if (&s.of() != g_)
    raise(status::invalid_argument, text("the queue \"", name(), "\" belongs to another graph than the session's"));
  return detail::queue_in(s, node_, true);
}

// Checks what is known when the graph is built; extents of a batch are checked when it runs.
GRADUS_BODY void graph_queue::check(std::size_t k, value v, bool many) const {
  const auto refuse = [&](const auto&... why) {
    raise(status::invalid_argument, text("queue \"", name(), "\": component ", k, " ", why...));
  };
  if (v.g != g_) refuse("belongs to another graph");
  if (v.type() != spec_.dtypes[k])
    refuse("has the wrong type: expected ", gradus::name_of(spec_.dtypes[k]), ", got ", gradus::name_of(v.type()));
  const shape found = v.dims();
  if (many && found.rank == 0) refuse("is a scalar; enqueue_many takes rows of elements");
  const bool is_key = spec_.kind == queue_kind::priority && k == 0;
  if (!spec_.has_shapes() && !is_key) return;
  const extents wanted = is_key ? extents{} : spec_.shapes[k];
  const int lead = many ? 1 : 0;
  bool fits = found.rank == wanted.rank + lead;
  for (int i = 0; fits && i < wanted.rank; ++i)
    fits = wanted[i] == any_extent || found[i + lead] < 0 || wanted[i] == found[i + lead];
  if (!fits)
    refuse("has the wrong shape: expected ", to_text(wanted), many ? " behind the rows" : "", ", got ", to_text(found));
}

GRADUS_BODY value graph_queue::put(std::span<const value> list, bool named, bool many) {
  if (!named && !spec_.names.empty())
    raise(status::invalid_argument,
          text("queue \"", name(), "\": its components have names; give a dictionary with them, such as {{\"",
               spec_.names[0], "\", tensor}}"));
  if (list.size() != spec_.dtypes.size())
    raise(status::invalid_argument, text("queue \"", name(), "\": expected ", spec_.dtypes.size(),
                                         " components of an element, got ", list.size()));
  for (std::size_t k = 0; k < list.size(); ++k) {
    check(k, list[k], many);
    const int rows = many ? list[k].dims()[0] : 0, first = many ? list[0].dims()[0] : 0;
    if (rows != first && rows >= 0 && first >= 0)
      raise(status::invalid_argument,
            text("queue \"", name(), "\": component ", k, " has ", rows, " rows and component 0 has ", first,
                 "; enqueue_many takes the same number of each"));
  }
  return detail::add_queue_op(*g_, many ? cards::queue_enqueue_many : cards::queue_enqueue, {node_, many}, list,
                              detail::last_part(name()) + (many ? "_EnqueueMany" : "_enqueue"));
}
GRADUS_BODY value graph_queue::put(std::initializer_list<std::pair<std::string_view, value>> dictionary, bool many) {
  const auto refuse = [&](const auto&... why) {
    raise(status::invalid_argument, text("queue \"", name(), "\": ", why...));
  };
  if (spec_.names.empty()) refuse("it has no names, so it takes no dictionary; give it names, or a list of tensors");
  if (dictionary.size() != spec_.names.size())
    refuse("expected a dictionary of ", spec_.names.size(), " names, got ", dictionary.size());
  std::vector<value> list(spec_.names.size());
  for (const auto& [key, v] : dictionary) {
    const auto at = std::find(spec_.names.begin(), spec_.names.end(), key);
    if (at == spec_.names.end())
      refuse("it has no component \"", key, "\"; its components are ",
             detail::in_brackets(spec_.names, [](const std::string& n) { return n; }));
    value& place = list[static_cast<std::size_t>(at - spec_.names.begin())];
    if (place) refuse("the dictionary has \"", key, "\" twice");
    place = v;
  }
  return put(list, true, many);
}
GRADUS_BODY value graph_queue::enqueue(std::span<const value> element) { return put(element, false, false); }
GRADUS_BODY value graph_queue::enqueue(std::initializer_list<std::pair<std::string_view, value>> element) {
  return put(element, false);
}
GRADUS_BODY value graph_queue::enqueue_many(std::span<const value> rows) { return put(rows, false, true); }
GRADUS_BODY value graph_queue::enqueue_many(std::initializer_list<std::pair<std::string_view, value>> rows) {
  return put(rows, true);
}

GRADUS_BODY dequeued graph_queue::dequeue(std::vector<shape> shapes) {
  const auto refuse = [&](status kind, const auto&... why) { raise(kind, text("queue \"", name(), "\": ", why...)); };
  if (!shapes.empty() && spec_.has_shapes())
    refuse(status::invalid_argument, "its components have shapes already; dequeue() without shapes");
  if (!spec_.has_shapes()) {
    if (shapes.size() != spec_.dtypes.size())
      refuse(status::invalid_argument, "it has no shapes, so a graph does not know what comes; expected ",
             spec_.dtypes.size(), " of them, as dequeue({{gradus::batch, 3}, {}}), got ", shapes.size());
    return take(0, 1, shapes);
  }
  for (std::size_t k = 0; k < spec_.shapes.size(); ++k) {
    shape s;
    int open = 0;
    for (int i = 0; i < spec_.shapes[k].rank; ++i) {
      const std::int64_t e = spec_.shapes[k][i];
      open += e == any_extent, s.push(e == any_extent ? batch : static_cast<int>(e));
    }
    if (open > 1)
      refuse(
          status::unimplemented, "component ", k, " has ", open,
          " extents that may be any, and a tensor of a graph has at most one; dequeue it as an object (in(session))");
    shapes.push_back(s);
  }
  return take(0, 1, shapes);
}
GRADUS_BODY dequeued graph_queue::dequeue_many(std::int64_t n) { return take(1, n, {}); }
GRADUS_BODY dequeued graph_queue::dequeue_up_to(std::int64_t n) { return take(2, n, {}); }

GRADUS_BODY dequeued graph_queue::take(int mode, std::int64_t n, const std::vector<shape>& given) {
  const auto refuse = [&](status kind, const auto&... why) { raise(kind, text("queue \"", name(), "\": ", why...)); };
  std::vector<shape> shapes = given;
  if (mode != 0 && !spec_.has_shapes())
    refuse(status::invalid_argument,
           "dequeue_many makes one tensor of several elements, so it needs specified shapes; make the queue with "
           "shapes, or dequeue one element at a time");
  if (n < 0) refuse(status::invalid_argument, "expected a number of elements from 0 on, got ", n);
  for (std::size_t k = 0; mode != 0 && k < spec_.shapes.size(); ++k) {
    shape rows{batch};
    for (int i = 0; i < spec_.shapes[k].rank; ++i) {
      if (spec_.shapes[k][i] == any_extent)
        refuse(status::unimplemented, "component ", k,
               " is padded to an extent that is known only when it comes, and the number of elements is one already; a "
               "tensor of a graph has at most one: dequeue it as an object (in(session))");
      rows.push(static_cast<int>(spec_.shapes[k][i]));
    }
    shapes.push_back(rows);
  }
  graph& g = *g_;
  const std::string called = detail::last_part(name()) + (mode == 0   ? "_Dequeue"
                                                          : mode == 1 ? "_DequeueMany"
                                                                      : "_DequeueUpTo");
  const detail::queue_attr a{node_, mode, std::bit_cast<std::array<int, 2>>(n), g.nodes.count + 1};
  const card& op = mode == 0   ? cards::queue_dequeue
                   : mode == 1 ? cards::queue_dequeue_many
                               : cards::queue_dequeue_up_to;
  const value taken = detail::add_queue_op(g, op, a, {}, {});
  std::vector<value> parts;
  for (std::size_t k = 0; k < shapes.size(); ++k) {
    parts.push_back(g.placeholder(called, shapes[k], spec_.dtypes[k]));
    g.depend(parts.back(), taken);
  }
  return {std::move(parts), spec_.names};
}

GRADUS_BODY value graph_queue::close(bool cancel_pending_enqueues) {
  return detail::add_queue_op(*g_, cards::queue_close, {node_, cancel_pending_enqueues}, {},
                              detail::last_part(name()) + "_Close");
}
GRADUS_BODY value graph_queue::size() {
  return detail::add_queue_op(*g_, cards::queue_size, {node_}, {}, detail::last_part(name()) + "_Size");
}
GRADUS_BODY value graph_queue::is_closed() {
  return detail::add_queue_op(*g_, cards::queue_is_closed, {node_}, {}, detail::last_part(name()) + "_IsClosed");
}

}  // namespace gradus
