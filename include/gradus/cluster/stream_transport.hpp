// This is a transport over streams of frames of any kind: it handles hellos, refusals, queues of frames, and the
// renewal of lost streams. gRPC's streams are in grpc.hpp, those within a process in local_messages.hpp.
//
// A client and a server share one stream. The client's first frame is its hello, the server's first is the answer; both
// may be any bytes. The following frames are those of wire.hpp. A stream that ends is made again, after longer and
// longer waits, unless one side has refused the other. A second stream of a node replaces its first.
#pragma once
#include "../base/build.hpp"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "../base/error.hpp"
#include "../base/tasks.hpp"
#include "lent_frame.hpp"
#include "transport.hpp"
#include "wire.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// Memory for a frame, which begins at a multiple of 64 bytes and is used again.
class frame_memory {
public:
  // Makes room; the previous contents are lost.
  std::span<std::byte> resize(std::size_t bytes);
  std::span<const std::byte> bytes() const { return {at_.get(), size_}; }
  std::byte* data() const { return at_.get(); }
  std::size_t size() const { return size_; }
  std::size_t room() const { return room_; }

private:
  struct aligned_free {
    void operator()(std::byte* p) const { ::operator delete(p, std::align_val_t{wire_alignment}); }
  };
  std::unique_ptr<std::byte, aligned_free> at_;
  std::size_t size_ = 0, room_ = 0;
};

// Keeps the memory of frames that were sent or received for later frames, up to `most` bytes. That of a frame of
// `given_back` bytes or more goes back to the system, where it costs little beside the time that so many bytes are
// under way, and would lie unused through the rest of a step.
class frame_pool {
public:
  static constexpr std::size_t most_frames = 512, given_back = std::size_t{32} << 20;
  explicit frame_pool(std::uint64_t most) : most_(most) {}
  frame_memory take(std::size_t bytes);
  void give(frame_memory m);

private:
  std::mutex m_;
  std::vector<frame_memory> free_;
  std::uint64_t most_, held_ = 0;
};

// Memory of a pool, to which it returns with its last owner.
struct pooled_frame {
  frame_memory memory;
  std::shared_ptr<frame_pool> pool;

  pooled_frame(std::shared_ptr<frame_pool> of, std::size_t bytes) : memory(of->take(bytes)), pool(std::move(of)) {}
  pooled_frame(std::shared_ptr<frame_pool> of, frame_memory taken) : memory(std::move(taken)), pool(std::move(of)) {}
  pooled_frame(const pooled_frame&) = delete;
  ~pooled_frame() { pool->give(std::move(memory)); }

  // From this size on a receiver may keep the frame's memory in place of a copy.
  static constexpr std::size_t kept_bytes = 64 << 10;
  // A small frame does not hold much memory of a larger one.
  static constexpr std::size_t most_room(std::size_t bytes) { return bytes + bytes / 4; }
  bool may_be_kept() const { return memory.size() >= kept_bytes && memory.room() <= most_room(memory.size()); }
};

struct stream_end {
  status kind = status{};  // 0: nothing is wrong
  std::string why = {};
  bool is_refusal = false;  // the other side must not connect again
};

class stream_transport;

// One stream. The virtual functions start an operation and return; none is called while another of the same kind is
// under way. The implementation calls the was_ functions, in any thread, one of each kind at a time.
class frame_stream : public std::enable_shared_from_this<frame_stream> {
public:
  frame_stream(stream_transport& of, bool is_client) : of_(of), is_client_(is_client) {}
  frame_stream(const frame_stream&) = delete;
  frame_stream& operator=(const frame_stream&) = delete;
  virtual ~frame_stream() = default;

  virtual void read() = 0;                                     // was_read() follows
  virtual void write(frame_memory frame) = 0;                  // was_written() or was_written_in_part() follows
  virtual void write_rest() {}                                 // goes on with the frame, as write()
  virtual void write_lent(std::shared_ptr<lent_frame> frame);  // the same as write(), which it calls unless overridden
  virtual void end_writing() = 0;  // of a client: its server ends the stream when it has read all frames
  virtual void end(
      const stream_end& why) = 0;  // is called once, and nothing else but cancel() after it; was_done() follows
  virtual void cancel() = 0;       // calls under way fail at once; may be called at any time
  virtual transport_peer peer() const = 0;

  // A null frame means that there are no more.
  void was_read(const received_frame* frame);
  // Called in place of was_read for a frame of more than the transport's frame_limit() bytes, or a hello that is too
  // large, which was not copied.
  void was_too_large(std::uint64_t bytes);
  // Called in place of was_read for anything else that ends the stream.
  void was_wrong(status kind, const std::string& why);
  void was_written(bool ok);
  // A stream may carry a frame in parts. Between two of them it calls these, and read() or write_rest() follows unless
  // the stream is over.
  void was_read_in_part();
  void was_written_in_part();
  // Called last: `said` is the status with which a client's server ended the stream, or its error.
  void was_done(const stream_end& said);

private:
  friend stream_transport;
  stream_transport& of_;
  const bool is_client_;
  // Guarded by the transport's mutex. To start an operation takes as long as a system call, so it is done without the
  // mutex; an end that comes meanwhile is put off until the operation was started.
  int starting_ = 0;
  bool is_put_off_ = false;
  stream_end put_off_ = {};
  std::uint32_t node_ = 0;
  bool is_greeted_ = false;  // the hello was answered
  bool is_over_ = false;     // end() was called
  bool is_half_ = false;     // end_writing() was called
  bool is_writing_ = false, is_heard_ = false;
  double until_ = 0;           // the time until which it is greeted, or has received our last frames
  std::string refused_ = {};   // the reason why this side has refused the other
  std::uint64_t waiting_ = 0;  // bytes in the queue, with those that are being written
  std::size_t written_ = 0;    // bytes that are being written
  struct waiting_frame {
    frame_memory memory;
    std::shared_ptr<lent_frame> lent;  // null: it is in `memory`
    std::size_t size() const { return lent != nullptr ? lent->size() : memory.size(); }
  };
  std::deque<waiting_frame> queue_;
};

struct stream_options {
  std::size_t max_connections = 256;
  wire_limits limits = {};
  std::uint64_t waiting_bytes = std::uint64_t{256} << 20;
  double handshake_secs = 10;
  std::string server_role = {};  // the required role in a server's certificate; empty: any
};

class stream_transport : public transport {
public:
  stream_transport(stream_options options, const task_system& tasks);
  ~stream_transport() override;

  void tell(transport_told& listener) override { told_ = &listener; }
  void connect(std::uint32_t node, const std::string& address, std::vector<std::byte> hello) override;
  void send(std::uint32_t node, std::span<const std::span<const std::byte>> pieces) override;
  void send_lent(std::uint32_t node, std::span<const std::span<const std::byte>> pieces) override;
  void take_back() override;
  void part_with() override;
  std::string problem(std::uint32_t node) const override;
  transport_counts counts() const override;
  wire_limits limits() const override { return options_.limits; }

  // Takes a stream of a peer and begins to read, unless there are too many streams: then it is ended at once.
  void take(std::shared_ptr<frame_stream> s);
  // Returns the pool that keeps the memory of written frames.
  const std::shared_ptr<frame_pool>& pool() const { return pool_; }
  std::uint64_t frame_limit() const { return options_.limits.frame_bytes; }
  // Returns the length of the frame that begins with these bytes, at least its head. Raises data_loss.
  std::uint64_t frame_bytes(std::span<const std::byte> begin) const { return decoder_.frame_bytes(begin); }

protected:
  // Returns a stream to this address, whose read() and write() may be called before start().
  virtual std::shared_ptr<frame_stream> dial(const std::string& address) = 0;
  virtual void start(frame_stream& s) = 0;

  // For close(): sends the queued frames, for at most `secs`, ends all streams, and returns when no stream is left and
  // no task runs.
  void end_streams(double secs);
  // Destroys the last ended streams. Others are destroyed by a task; none in a thread that may be the stream's own.
  void bury();

  const stream_options options_;
  const task_system tasks_;
  transport_told* told_ = nullptr;

private:
  friend frame_stream;
  using holding = std::unique_lock<std::mutex>;
  static constexpr std::size_t lent_bytes = 1 << 20;  // below that a copy costs less than the care for lent memory
  static constexpr double first_wait = 0.05, longest_wait = 2, last_words_secs = 1;
  // A node that we keep a connection to.
  struct peer {
    std::string address;
    std::vector<std::byte> hello;
    frame_stream* stream = nullptr;
    double due = 0, wait = first_wait;
    bool is_refused = false;
    std::string problem = "is being connected to";
  };

  void tend();
  void came(frame_stream& s, const received_frame& frame);
  void hang_up_for(frame_stream& s, status kind, const std::string& why);  // hang_up(), and counts it
  void greet(frame_stream& s, std::span<const std::byte> hello);
  void welcome(frame_stream& s, std::span<const std::byte> answer);
  // These are called with the mutex locked; those that take `held` unlock it meanwhile.
  void begin(std::uint32_t node, peer& p);
  std::shared_ptr<frame_stream> stream_for(std::uint32_t node, std::size_t bytes);
  void enqueue(frame_stream& s, frame_stream::waiting_frame frame, holding& held);
  void hand_over(std::shared_ptr<frame_stream> s, frame_stream::waiting_frame frame);
  std::vector<std::shared_ptr<lent_frame>> lent_here();
  void write_next(frame_stream& s, holding& held);
  template <class Start>
  void start_outside(frame_stream& s, holding& held, Start start);
  void end(frame_stream& s, const stream_end& why);
  void hang_up(frame_stream& s, const stream_end& why);  // end(), and calls under way fail at once or soon
  void open(frame_stream& s);

  const message_decoder decoder_;  // only used for the length of frames
  std::shared_ptr<frame_pool> pool_;
  mutable std::mutex m_;
  task_condition changed_;
  std::map<std::uint32_t, peer> peers_;
  std::map<std::uint32_t, frame_stream*> open_;  // the streams by which frames are sent
  std::set<std::shared_ptr<frame_stream>> live_;
  std::vector<std::shared_ptr<frame_stream>> over_;
  std::vector<std::weak_ptr<lent_frame>> lent_;  // frames that may refer to memory of their sender
  transport_counts counts_;
  std::size_t served_ = 0;  // number of incoming streams
  bool is_closing_ = false, is_ended_ = false;
  task_handle tending_;
};

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "stream_transport.ipp"
#endif
