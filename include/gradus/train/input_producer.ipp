// The bodies of input_producer.hpp.
#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <random>

#include "../base/body.hpp"
#include "../base/random.hpp"
#include "../ops/gather.hpp"
#include "../run/variable_ops.hpp"
#include "input_producer.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
struct shuffled_attr {
  int queue;
  std::array<int, 2> seed;  // 0: drawn by each session
};
// This resource of a session holds which order comes next, whichever machine makes the run.
struct shuffled_orders {
  std::uint64_t seed;
  std::atomic<std::uint64_t> epochs{0};
};

// Puts the rows into the queue in an order of this epoch, as enqueue_many does.
GRADUS_BODY void run_enqueue_shuffled(session_call& c) {
  const auto a = c.get<shuffled_attr>();
  const auto kept = c.session.resources().object(text("input_producer/", c.session.of().name_of(a.queue)),
                                                 [&]() -> std::shared_ptr<void> {
                                                   auto orders = std::make_shared<shuffled_orders>();
                                                   orders->seed = std::bit_cast<std::uint64_t>(a.seed);
                                                   if (orders->seed == 0) {
                                                     std::random_device from;
                                                     orders->seed = std::uint64_t{from()} << 32 | from();
                                                   }
                                                   return orders;
                                                 });
  auto& orders = *static_cast<shuffled_orders*>(kept.get());
  const philox mixed(orders.seed);  // each epoch has a stream of its own
  const std::uint64_t epoch = orders.epochs++;
  random_stream draws{.seed = std::uint64_t{mixed.word(epoch, 1)} << 32 | mixed.word(epoch, 0)};
  const const_tensor_view& rows = c.operands[0];
  const auto n = static_cast<std::size_t>(rows.dims[0]);
  if (n == 0) return;
  const auto all = rows.bytes();
  const std::size_t size = all.size() / n;
  std::vector<std::size_t> order(n);
  for (std::size_t i = 0; i < n; ++i) order[i] = i;
  for (std::size_t i = n; i > 1; --i) std::swap(order[i - 1], order[draws.below(static_cast<std::uint32_t>(i))]);
  std::vector<std::byte> mixed_rows(all.size());
  for (std::size_t i = 0; i < n; ++i) std::memcpy(mixed_rows.data() + i * size, all.data() + order[i] * size, size);
  const const_tensor_view one[] = {{rows.type, rows.dims, mixed_rows.data()}};
  queue_in(c.session, a.queue, false).enqueue_many(one, c.wait);
}
}  // namespace detail

namespace cards {
inline constexpr session_card enqueue_shuffled{
    {"QueueEnqueueShuffled", 1, trait::keeps | trait::blocks | trait::session | trait::at_session},
    &detail::run_enqueue_shuffled,
    run_phase::after};
}

namespace detail {
// Returns the counter of epochs, on which the op that fills the queue depends, or an empty value without num_epochs;
// the counter raises out_of_range behind the last epoch.
GRADUS_BODY value epoch_of(graph& g, const producer_options& o) {
  if (!o.num_epochs) return {};
  if (*o.num_epochs <= 0)
    raise(status::invalid_argument, text("input_producer: expected num_epochs above 0, got ", *o.num_epochs,
                                         "; leave it out for an input without end"));
  const value epochs = g.variable(o.name.empty() ? "input_producer/epochs" : o.name + "/epochs", {},
                                  {.init = gradus::zeros, .trainable = false, .local = true, .type = int64});
  return count_up_to(epochs, *o.num_epochs);
}

GRADUS_BODY extents extents_behind(value v, int lead, bool may_be_any, std::string_view caller) {
  extents e;
  const shape dims = v.dims();
  for (int i = lead; i < dims.rank; ++i) {
    if (dims[i] < 0 && !may_be_any)
      raise(status::invalid_argument, text(caller, ": all shapes must be fully defined, and \"", v.g->name_of(v.id),
                                           "\" is ", to_text(dims), "; give shapes, or dynamic_pad"));
    e.push(dims[i] < 0 ? any_extent : dims[i]);
  }
  return e;
}

GRADUS_BODY void check_batching(const std::vector<example_tensors>& examples, std::int64_t batch_size,
                                std::int64_t capacity, const batching_options& o, std::string_view caller) {
  const auto refuse = [&](const auto&... why) { raise(status::invalid_argument, text(caller, ": ", why...)); };
  if (examples.empty()) refuse("expected at least one list of tensors, found none");
  if (examples[0].parts().empty()) refuse("expected at least one tensor of an example, found none");
  if (batch_size <= 0) refuse("expected a batch_size above 0, got ", batch_size);
  if (capacity <= 0) refuse("expected a capacity above 0, got ", capacity);
  if (o.num_threads <= 0) refuse("expected num_threads above 0, got ", o.num_threads);
  for (const example_tensors& e : examples) {
    if (e.parts().size() != examples[0].parts().size())
      refuse("lists of tensors differ in number: ", examples[0].parts().size(), " and ", e.parts().size());
    if (e.names() != examples[0].names()) refuse("lists of tensors differ in their names");
    for (std::size_t k = 0; k < e.parts().size(); ++k)
      if (e.parts()[k].type() != examples[0].parts()[k].type())
        refuse("lists of tensors differ in component ", k, ": ", name_of(examples[0].parts()[k].type()), " and ",
               name_of(e.parts()[k].type()));
  }
  if (!o.shapes.empty() && o.shapes.size() != examples[0].parts().size())
    refuse("expected ", examples[0].parts().size(), " shapes, one of each tensor, got ", o.shapes.size());
}

// If `min_after` is below 0, examples keep the order in which they come.
GRADUS_BODY dequeued batch_from_queue(const std::vector<example_tensors>& examples, std::int64_t batch_size,
                                      std::int64_t capacity, std::int64_t min_after, const batching_options& o,
                                      std::string_view caller) {
  check_batching(examples, batch_size, capacity, o, caller);
  const example_tensors& first = examples[0];
  std::vector<dtype> types;
  for (const value& v : first.parts()) types.push_back(v.type());
  std::vector<extents> shapes = o.shapes;
  const int lead = o.enqueue_many ? 1 : 0;
  if (shapes.empty())
    for (std::size_t k = 0; k < first.parts().size(); ++k) {
      extents e = extents_behind(first.parts()[k], lead, o.dynamic_pad, caller);
      for (const example_tensors& other : examples) {
        const extents mine = extents_behind(other.parts()[k], lead, o.dynamic_pad, caller);
        if (mine.rank != e.rank || (mine != e && !o.dynamic_pad))
          raise(status::invalid_argument, text(caller, ": lists of tensors differ in the shape of component ", k, ": ",
                                               to_text(e), " and ", to_text(mine)));
        extents both;
        for (int i = 0; i < e.rank; ++i) both.push(mine[i] == e[i] ? e[i] : any_extent);
        e = both;
      }
      shapes.push_back(e);
    }
  queue_spec spec = make_queue_spec(min_after >= 0  ? queue_kind::random_shuffle
                                    : o.dynamic_pad ? queue_kind::padding_fifo
                                                    : queue_kind::fifo,
                                    capacity, std::move(types),
                                    {.shapes = std::move(shapes),
                                     .names = first.names(),
                                     .shared_name = o.shared_name,
                                     .name = o.name.empty() ? std::string(caller) : o.name,
                                     .seed = o.seed});
  spec.min_after_dequeue = std::max<std::int64_t>(min_after, 0);
  graph_queue q(*first.parts()[0].g, std::move(spec));
  std::vector<value> ops;
  for (const example_tensors& e : examples) {
    const value op = q.put_in_order(e.parts(), o.enqueue_many);
    for (int i = 0; i < (examples.size() == 1 ? o.num_threads : 1); ++i) ops.push_back(op);
  }
  add_queue_runner(queue_runner(q, std::move(ops)));
  return o.allow_smaller_final_batch ? q.dequeue_up_to(batch_size) : q.dequeue_many(batch_size);
}
}  // namespace detail

GRADUS_BODY graph_queue input_producer(value input_tensor, producer_options o) {
  graph& g = *input_tensor.g;
  const shape dims = input_tensor.dims();
  if (dims.rank == 0) raise(status::invalid_argument, "input_producer: expected rows, [n, ...], got a scalar");
  const extents row = detail::extents_behind(input_tensor, 1, false, "input_producer");
  const value epoch = detail::epoch_of(g, o);
  graph_queue q(
      g, make_queue_spec(
             queue_kind::fifo, o.capacity, {input_tensor.type()},
             {.shapes = {row}, .shared_name = o.shared_name, .name = o.name.empty() ? "input_producer" : o.name}));
  const auto put = [&] {
    if (!o.shuffle) return q.enqueue_many({input_tensor});
    const auto words = to_words(detail::shuffled_attr{q.node().id, std::bit_cast<std::array<int, 2>>(o.seed)});
    return g.add(cards::enqueue_shuffled, &input_tensor, 1, words.data(), static_cast<int>(words.size()),
                 text(q.name(), "_EnqueueMany"));
  };
  const value op = put();
  if (epoch) g.depend(op, epoch);
  add_queue_runner(queue_runner(q, {op}));
  return q;
}

GRADUS_BODY graph_queue range_input_producer(graph& g, std::int64_t limit, producer_options o) {
  if (limit <= 0 || limit > std::numeric_limits<std::int32_t>::max())
    raise(status::invalid_argument, text("range_input_producer: expected a limit from 1 to 2147483647, got ", limit));
  std::vector<double> numbers;
  for (std::int64_t i = 0; i < limit; ++i) numbers.push_back(static_cast<double>(i));
  return input_producer(g.constant(numbers, {static_cast<int>(limit)}, int32), std::move(o));
}

GRADUS_BODY dequeued slice_input_producer(std::vector<value> tensors, producer_options o) {
  const auto refuse = [](const auto&... why) {
    raise(status::invalid_argument, text("slice_input_producer: ", why...));
  };
  if (tensors.empty()) refuse("expected at least one tensor, found none");
  const int rows = tensors[0].dims().rank == 0 ? 0 : tensors[0].dims()[0];
  for (const value& v : tensors)
    if (v.dims().rank == 0 || v.dims()[0] != rows || rows <= 0)
      refuse("expected tensors of the same number of rows, which is known, got ", to_text(tensors[0].dims()), " and ",
             to_text(v.dims()));
  if (o.name.empty()) o.name = "slice_input_producer";
  const auto index = static_cast<value>(range_input_producer(*tensors[0].g, rows, std::move(o)).dequeue());
  for (value& v : tensors) v = gather(v, index);
  return {std::move(tensors), {}};
}

GRADUS_BODY example_tensors::example_tensors(const dequeued& taken) : names_(taken.names()) {
  for (std::size_t k = 0; k < taken.size(); ++k) parts_.push_back(taken[k]);
}
GRADUS_BODY example_tensors::example_tensors(std::initializer_list<std::pair<std::string_view, value>> dictionary) {
  for (const auto& [name, tensor] : dictionary) names_.emplace_back(name), parts_.push_back(tensor);
}

GRADUS_BODY dequeued batch_tensors(const example_tensors& example, std::int64_t batch_size, batching_options o) {
  return detail::batch_from_queue({example}, batch_size, o.capacity, -1, o, "batch_tensors");
}
GRADUS_BODY dequeued batch_join(const std::vector<example_tensors>& examples, std::int64_t batch_size,
                                batching_options o) {
  return detail::batch_from_queue(examples, batch_size, o.capacity, -1, o, "batch_join");
}
GRADUS_BODY dequeued shuffle_batch(const example_tensors& example, std::int64_t batch_size, std::int64_t capacity,
                                   std::int64_t min_after_dequeue, batching_options o) {
  return detail::batch_from_queue({example}, batch_size, capacity, std::max<std::int64_t>(min_after_dequeue, 0), o,
                                  "shuffle_batch");
}
GRADUS_BODY dequeued shuffle_batch_join(const std::vector<example_tensors>& examples, std::int64_t batch_size,
                                        std::int64_t capacity, std::int64_t min_after_dequeue, batching_options o) {
  return detail::batch_from_queue(examples, batch_size, capacity, std::max<std::int64_t>(min_after_dequeue, 0), o,
                                  "shuffle_batch_join");
}

GRADUS_BODY queue_spec dataset_producer::queue(std::int64_t capacity, queue_options o) const {
  std::vector<dtype> types;
  std::vector<std::string> names;
  std::vector<extents> shapes;
  for (const component& c : data_->element_spec())
    types.push_back(c.type), names.push_back(c.name), shapes.push_back(c.dims);
  if (o.names.empty()) o.names = std::move(names);
  if (o.shapes.empty() && has_fixed_size(data_->element_spec())) o.shapes = std::move(shapes);
  return make_queue_spec(queue_kind::fifo, capacity, std::move(types), std::move(o));
}

GRADUS_BODY std::vector<coordinated_thread> dataset_producer::create_threads(const graph_queue& queue, base_session& s,
                                                                             any_coordinator* coord, bool start) {
  any_queue q = queue.in(s);
  const task_system tasks = coord != nullptr ? coord->tasks() : s.resources().tasks();
  std::vector<coordinated_thread> threads;
  *raised_ = nullptr;
  const auto read = [data = data_, raised = raised_, q, coord]() mutable {
    try {
      datum e;
      bool is_read = true;
      while (is_read && (coord == nullptr || !coord->should_stop()) && data->next(e)) try {
          q.enqueue(e);
        } catch (const cancelled&) {  // the queue was closed, so nothing reads any more
          is_read = false;
        }
    } catch (...) {
      if (coord != nullptr)
        coord->stop_on_exception([] { throw; });
      else
        *raised = std::current_exception();
    }
    try {
      q.close();
    } catch (const error&) {  // it is closed
    }
  };
  threads.emplace_back("dataset producer", text(queue.name(), "/dataset"), coord, tasks, read);
  if (coord != nullptr)
    threads.emplace_back("dataset producer", text(queue.name(), "/close_on_stop"), coord, tasks, [q, coord]() mutable {
      coord->wait_for_stop();
      try {
        q.close(true);
      } catch (const error&) {  // it is closed
      }
    });
  try {
    for (coordinated_thread& t : threads)
      if (start) t.start();
  } catch (...) {  // one that began may wait in the queue, and its object waits for it
    try {
      q.close(true);
    } catch (const error&) {  // it is closed
    }
    throw;
  }
  return threads;
}

}  // namespace gradus
