// prefetch reads ahead in a thread, so that the next batch is ready when it is pulled.
//
// .prefetch(n) starts this one thread, at the first pull. The thread fills a ring of n places, which is allocated once.
// The saved position is the consumer's, not the thread's: elements that were read ahead are read again after a restart.
// An error in the source is raised by next() when its element is due, and again by each further call until the dataset
// is rewound or restored. Destroying the dataset stops the thread as soon as the source returns from its read.
//
// As with any dataset, only one thread may use a prefetched dataset at a time. It can be moved, also while its thread
// runs, but not copied.
#pragma once
#include "../base/build.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../base/deferred.hpp"
#include "../base/owned.hpp"
#include "../base/tasks.hpp"
#include "stage.hpp"

namespace gradus::inline GRADUS_BUILD {

template <dataset Source>
class prefetched_dataset final : public composable<prefetched_dataset<Source>> {
public:
  // Makes room for n batches, or for n elements if the source is not batched.
  prefetched_dataset(Source source, std::int64_t n, const task_system& run = {}) {
    if (n < 1) raise(status::invalid_argument, text("prefetch(", n, "): expected room for at least one"));
    shop_ = detail::make_owned<workshop>(std::move(source), n, run);
  }

  const components& element_spec() const { return shop_->source.element_spec(); }
  std::int64_t batch_size() const
    requires batched_dataset<Source>
  {
    return shop_->source.batch_size();
  }

  std::int64_t pull(std::span<const tensor_view> out, std::int64_t first, std::int64_t n) {
    shop_->start();
    if constexpr (batched_dataset<Source>) {
      return shop_->take(out, first);
    } else {
      std::int64_t done = 0;
      while (done < n && shop_->take(out, first + done) != 0) ++done;
      return done;
    }
  }
  bool pull(datum& out) {
    shop_->start();
    return shop_->take(out);
  }
  // Returns whether the next element was read already, so that a pull would not wait. Starts the thread.
  bool ready() {
    shop_->start();
    return shop_->ready();
  }
  std::int64_t cardinality() const { return shop_->cardinality; }
  std::string external_state() const { return shop_->external_state; }
  void rewind() {
    shop_->halt();
    shop_->source.rewind();
  }
  void define(std::string& to) const {
    shop_->source.define(to);
    to += ".prefetch";
  }
  void write(position_writer& to) const {
    to.number(shop_->running() ? shop_->behind : 0);
    if (shop_->running())
      to.bytes(detail::const_span(shop_->position));
    else
      shop_->source.write(to);
  }
  void read(position_reader& from) {
    shop_->halt();
    const auto behind = from.number(0, detail::position_notes::rare, "what prefetch delivered");
    shop_->source.read(from);
    if (from.apply()) shop_->pass(behind);
  }

private:
  // This is a place in the ring.
  struct place {
    aligned_buffer memory;
    std::vector<tensor_view> arrays;
    datum unit;                       // used instead of both if elements differ in size
    std::int64_t rows = 0;            // 0: the end
    std::vector<std::byte> position;  // the source's position after these rows; empty if it was not noted
    std::exception_ptr error;
  };

  // The state that the thread and the consumer share. It keeps its address when the dataset moves.
  struct workshop {
    workshop(Source s, std::int64_t n, const task_system& of)
        : source(std::move(s)),
          fixed(has_fixed_size(source.element_spec())),
          cardinality(source.cardinality()),
          external_state(source.external_state()),
          ring(static_cast<std::size_t>(n)),
          threads(of),
          room(of),
          filled(of) {
      if (!fixed) return;
      std::int64_t rows = 1;
      if constexpr (batched_dataset<Source>) rows = source.batch_size();
      for (auto& p : ring) {
        std::size_t bytes = 0;
        for (const auto& c : source.element_spec()) bytes += align_up(size_bytes(c) * static_cast<std::size_t>(rows));
        p.memory = aligned_buffer(bytes);
        bytes = 0;
        for (const auto& c : source.element_spec()) {
          extents dims{rows};
          for (int i = 0; i < std::min(c.dims.rank, max_rank - 1); ++i) dims.push(c.dims[i]);
          p.arrays.emplace_back(c.type, dims, p.memory.data() + bytes);
          bytes += align_up(size_bytes(c) * static_cast<std::size_t>(rows));
        }
      }
    }

    ~workshop() { stop(); }

    bool running() const { return thread.joinable(); }

    void start() {
      if (running()) return;
      behind = 0;
      notes.note(source, position);
      produced = consumed = 0;
      stopping = false;
      for (auto& p : ring) p.error = nullptr;
      thread = threads.start("prefetch", "leave prefetch out", [this] { run(); });
    }

    // Ends the thread and takes the source back to where the consumer is.
    void halt() {
      if (!running()) return;
      stop();
      position_reader from(detail::const_span(position), true);
      source.read(from);
      pass(behind);
    }
    void stop() {
      if (!running()) return;
      {
        const std::lock_guard lock(mutex);
        stopping = true;
      }
      room.notify_one();
      thread.join();
    }
    void pass(std::int64_t n) {
      for (std::int64_t k = 1; n > 0 && k > 0; n -= k) k = detail::counted<Source>(source.pull({}, 0, n));
    }

    bool ready() {
      const std::lock_guard lock(mutex);
      return produced > consumed;
    }
    // The consumer calls this. It takes one place, calls `give` with it unless it is the end, and returns its rows.
    std::int64_t take(auto&& give) {
      {
        std::unique_lock lock(mutex);
        filled.wait(lock, [&] { return produced > consumed; });
      }
      place& p = ring[static_cast<std::size_t>(consumed) % ring.size()];
#if defined(__cpp_exceptions)
      if (p.error) std::rethrow_exception(p.error);
#endif
      if (p.rows != 0) ++behind;
      if (!p.position.empty()) {
        position.swap(p.position);
        p.position.clear();
        behind = 0;
      }
      if (p.rows == 0) return 0;  // the end stays in the ring, for the next pull
      const std::int64_t rows = p.rows;
      give(p);
      {
        const std::lock_guard lock(mutex);
        ++consumed;
      }
      room.notify_one();
      return rows;
    }
    std::int64_t take(std::span<const tensor_view> out, std::int64_t first) {
      return take([&](place& p) {
        if (!out.empty() && !fixed)
          raise(status::failed_precondition,
                text("elements of ", to_text(source.element_spec()), " differ in size; read them with next(datum&)"));
        for (std::size_t k = 0; k < out.size(); ++k) {
          const component& c = source.element_spec()[k];
          const std::size_t bytes = size_bytes(c) * static_cast<std::size_t>(p.rows);
          if (bytes != 0) std::memcpy(detail::row_of(out[k], c, first), p.arrays[k].data, bytes);
        }
      });
    }
    bool take(datum& out) {
      return take([&](place& p) {
               if (!fixed) {
                 std::swap(out, p.unit);
                 return;
               }
               out.conform(source.element_spec(), batched_dataset<Source> ? p.rows : -1);
               for (std::size_t k = 0; k < p.arrays.size(); ++k)
                 if (const auto bytes = out[k].mutable_bytes(); !bytes.empty())
                   std::memcpy(bytes.data(), p.arrays[k].data, bytes.size());
             }) != 0;
    }

    // The thread runs this.
    void run() {
      const auto size = static_cast<std::int64_t>(ring.size());
      for (bool more = true; more;) {
        {
          std::unique_lock lock(mutex);
          room.wait(lock, [&] { return stopping || produced - consumed < size; });
          if (stopping) return;
        }
        more = fill(ring[static_cast<std::size_t>(produced) % ring.size()]);
        {
          const std::lock_guard lock(mutex);
          ++produced;
        }
        filled.notify_one();
      }
    }
    bool fill(place& p) {
#if defined(__cpp_exceptions)
      try {
#endif
        if (fixed)
          p.rows = source.pull(detail::const_span(p.arrays), 0, 1);
        else
          p.rows = !detail::read_unit(source, p.unit) ? 0 : batched_dataset<Source> ? p.unit.about(0).dims[0] : 1;
        p.position.clear();
        if (notes.is_due() || p.rows == 0) notes.note(source, p.position);
        return p.rows != 0;
#if defined(__cpp_exceptions)
      } catch (...) {
        p.error = std::current_exception();
        return false;
      }
#endif
    }
    Source source;  // only the thread uses it while it runs
    bool fixed;     // whether all elements have one size
    std::int64_t cardinality;
    std::string external_state;
    std::vector<place> ring;  // the consumer uses places [consumed, produced), the thread the others

    std::vector<std::byte> position;  // the last noted position of the source that the consumer has reached
    std::int64_t behind = 0;          // places taken since

    detail::position_notes notes;  // of every place and of the end; used by the thread

    task_system threads;
    std::mutex mutex;
    task_condition room, filled;
    bool stopping = false;                    // changed under the mutex
    std::int64_t produced = 0, consumed = 0;  // each changed under the mutex, by one side; that side may read it freely
    task_handle thread;
  };

  detail::owned<workshop> shop_;
};

}  // namespace gradus
