// How much of a push is hidden behind the backward pass: a transformer's gradients go to a parameter server over gRPC
// on this machine, behind a link that a throttle slows down to 400 MB/s.
//
//   bench_overlap [repetitions] [MB a second]
//
// The throttle records for each step how long the link is busy with its push, and how much of that lies behind the
// moment at which the backward pass has ended and the last piece is handed over: the rest is hidden. The three gates
// take turns; the median over all steps is shown, with the quartiles. With gate_graph no gradient is final before the
// last, so nothing should be hidden.
//
// needs: grpc
#include <gradus/cluster/connected.hpp>
#include <gradus/cluster/grpc.hpp>
#include <gradus/data.hpp>
#include <gradus/gradus.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {
using namespace gradus;
using clock_type = std::chrono::steady_clock;

constexpr int sequences = 16, length = 64, symbols = 128, steps = 40, warm = 8;
// benchmarks/gpt.cpp's, but that symbols are not rows of a table: rows are not sent ahead.
constexpr auto gpt = [](graph& g) {
  constexpr int width = 128, layers = 4, heads = 4;
  const auto ids = g.placeholder("ids", {batch, length}, int32), next = g.placeholder("next", {batch, length}, int32);
  const auto table = g.variable("symbols", {symbols, width}, {.init = random_normal(0, 0.06f)});
  auto x = matmul(one_hot(ids, symbols), table);
  for (int i = 0; i < layers; ++i) {
    const auto scope = g.name_scope("block");
    x = x + multi_head_attention(layer_norm(x), {.heads = heads});
    const auto up = gelu(dense(layer_norm(x), {.units = 4 * width, .name = "up"}));
    x = x + dense(up, {.units = width, .name = "down"});
  }
  const auto logits = matmul(layer_norm(x), table, {.transpose_b = true});
  return model_spec{.loss = reduce_mean(sparse_softmax_cross_entropy(logits, next)), .metrics = {}, .predictions = {}};
};

// Of each push: milliseconds that the link was busy with it, and that it was so behind the backward pass.
struct sending {
  double all = 0, behind = 0;
};
std::vector<sending> pushes;

// Passes frames on as late as a link of so many bytes a second would; 0: at once.
class throttled final : public detail::transport {
public:
  throttled(std::unique_ptr<detail::transport> inner, double speed)
      : inner_(std::move(inner)), speed_(speed), thread_([this] { run(); }) {}
  ~throttled() override { close(0); }
  void tell(detail::transport_told& told) override { inner_->tell(told); }
  int listen(const std::string& address) override { return inner_->listen(address); }
  void connect(std::uint32_t node, const std::string& address, std::vector<std::byte> hello) override {
    inner_->connect(node, address, std::move(hello));
  }
  void send(std::uint32_t node, std::span<const std::span<const std::byte>> pieces) override {
    std::vector<std::byte> frame;
    for (const auto p : pieces) frame.insert(frame.end(), p.begin(), p.end());
    const std::lock_guard lock(mutex_);
    waiting_.push_back({node, std::move(frame), clock_type::now()});
    came_.notify_one();
  }
  std::string problem(std::uint32_t node) const override { return inner_->problem(node); }
  detail::transport_counts counts() const override { return inner_->counts(); }
  void close(double secs) override {
    {
      const std::lock_guard lock(mutex_);
      is_closed_ = true;
      came_.notify_one();
    }
    if (thread_.joinable()) thread_.join();
    inner_->close(secs);
  }

private:
  std::unique_ptr<detail::transport> inner_;
  double speed_;
  std::mutex mutex_;
  std::condition_variable came_;
  struct waiting {
    std::uint32_t node;
    std::vector<std::byte> frame;
    clock_type::time_point since;
  };
  std::deque<waiting> waiting_;
  bool is_closed_ = false;
  std::thread thread_;

  static double ms(clock_type::duration d) { return std::chrono::duration<double, std::milli>(d).count(); }
  void run() {
    auto free_at = clock_type::now();
    double busy = 0;
    std::unique_lock lock(mutex_);
    for (;;) {
      came_.wait(lock, [&] { return is_closed_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      const auto [node, frame, since] = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      if (speed_ > 0) {
        const auto takes = std::chrono::duration_cast<clock_type::duration>(
            std::chrono::duration<double>(static_cast<double>(frame.size()) / speed_));
        free_at = std::max(free_at, since) + takes;
        std::this_thread::sleep_until(free_at);
        std::uint16_t kind = 0;
        std::memcpy(&kind, frame.data() + 6, sizeof kind);
        busy += ms(takes);
        if (kind == static_cast<std::uint16_t>(detail::message_kind::push))
          pushes.push_back({std::exchange(busy, 0), ms(free_at - since)});
      }
      const std::span<const std::byte> one(frame);
      inner_->send(node, std::span(&one, 1));
      lock.lock();
    }
  }
};
// gRPC, of which what workers send is throttled.
struct slow_link {
  static constexpr std::string_view protocol = "grpc";
  double speed;
  std::unique_ptr<detail::transport> make(const task_system& tasks) const {
    return std::make_unique<throttled>(gradus::grpc{}.make(tasks), speed);
  }
};

template <class Gate>
void train(double speed, const Gate& gate) {
  static int port = 4810;
  const cluster_spec cluster{{"ps", {text("localhost:", ++port)}}, {"worker", {"localhost:1"}}};
  std::thread ps([&] { server(slow_link{0}, server_def{.cluster = cluster, .job_name = "ps"}).join(); });
  {
    const server here(slow_link{speed}, server_def{.cluster = cluster, .job_name = "worker"});
    std::vector<std::int32_t> ids(sequences * length), next(ids.size());
    for (std::size_t i = 0; i < ids.size(); ++i)
      ids[i] = static_cast<std::int32_t>(i * 37 % symbols), next[i] = static_cast<std::int32_t>(i * 11 % symbols);
    auto t = make_trainer<gpt>(connected{here}, adamw{.rate = 1e-3, .weight_decay = 0.01}, silent{}, gate);
    t.train(from_spans("ids", ids, extents{length}, "next", next, extents{length}).repeat().batch(sequences),
            {.max_steps = steps});
  }
  ps.join();
}

struct gate_row {
  std::string name;
  std::vector<double> hidden, all;
};
double quantile(std::vector<double>& x, double q) {
  std::sort(x.begin(), x.end());
  return x[static_cast<std::size_t>(q * static_cast<double>(x.size() - 1))];
}
}  // namespace

int main(int argc, char** argv) {
  const int repetitions = argc > 1 ? std::atoi(argv[1]) : 7;
  const double speed = (argc > 2 ? std::atof(argv[2]) : 400) * 1e6;
  gate_row rows[] = {{"gate_none", {}, {}}, {"gate_op", {}, {}}, {"gate_graph", {}, {}}};
  for (int r = 0; r < repetitions; ++r) {
    const auto once = [&](gate_row& row, const auto& gate) {
      pushes.clear();
      train(speed, gate);
      for (std::size_t i = warm; i < pushes.size(); ++i) {
        row.hidden.push_back(100 * (1 - pushes[i].behind / pushes[i].all));
        row.all.push_back(pushes[i].all);
      }
    };
    once(rows[0], gate_none{}), once(rows[1], gate_op{}), once(rows[2], gate_graph{});
  }
  for (gate_row& row : rows)
    std::printf("%-10s  a push keeps the link busy for %.1f ms: %3.0f %% of it hidden (%.0f to %.0f)\n",
                row.name.c_str(), quantile(row.all, 0.5), quantile(row.hidden, 0.5), quantile(row.hidden, 0.25),
                quantile(row.hidden, 0.75));
}
