// A thread that does something every so many seconds until its coordinator stops: TensorFlow's LooperThread.
//
//   gradus::looper_thread print(coord, 60, [&] { std::printf("loss %g\n", loss.load()); });
//   print.start();
//
// The first call comes at once, and the schedule is fixed: a call that takes longer than the interval is followed by
// others without a pause until the schedule is met again. What a call throws stops everybody (the coordinator raises it
// at join).
#pragma once
#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "../base/thread.hpp"
#include "coordinator.hpp"

namespace gradus::inline GRADUS_BUILD {

struct looper_options {
  std::string name = "looper";                 // in the error that names threads which do not stop
  std::function<void()> start_loop = nullptr;  // before the first call
  std::function<void()> stop_loop = nullptr;   // after the last, unless an error ended the loop
};

// Registered with the coordinator from construction on, so start it before anybody joins. Destroyed, it ends its own
// loop, waits for the call that is running, and leaves the others alone.
template <clock Clock = system_clock>
class looper_thread {
public:
  // `interval_secs` 0: back to back. Error: invalid_argument if it is negative or no number.
  looper_thread(coordinator<Clock>& coord, double interval_secs, std::function<void()> run_loop,
                looper_options options = {}, Clock clock = {})
      : coord_(&coord),
        interval_(interval_secs),
        run_loop_(std::move(run_loop)),
        options_(std::move(options)),
        clock_(std::move(clock)) {
    if (!(interval_secs >= 0))
      raise(status::invalid_argument, text("a looper's interval must be at least 0 seconds, got ", interval_secs));
    if (!run_loop_) raise(status::invalid_argument, "a looper needs a function to call");
    registered_ = coord.register_thread(options_.name);
  }
  looper_thread(const looper_thread&) = delete;
  ~looper_thread() {
    leave_ = true;
    coord_->notify();
    if (thread_.joinable()) thread_.join();
  }

  void start() {
    if (thread_.joinable())
      raise(status::failed_precondition, text("the looper \"", options_.name, "\" is started already"));
    thread_ = start_thread<std::thread>(text("the looper \"", options_.name, '"'), "loop less",
                                        [this, here = std::move(registered_)]() mutable {
                                          coord_->stop_on_exception([this] { loop(); });
                                          here.release();  // now, and not when the thread's own memory goes
                                        });
  }

private:
  coordinator<Clock>* coord_;
  double interval_;
  std::function<void()> run_loop_;
  looper_options options_;
  Clock clock_;
  registration registered_;
  std::atomic<bool> leave_{false};
  std::thread thread_;

  void loop() {
    if (options_.start_loop) options_.start_loop();
    double next = clock_.elapsed();
    while (!coord_->wait_until([this] { return leave_.load(); }, next - clock_.elapsed()) && !leave_) {
      next += interval_;
      run_loop_();
    }
    if (options_.stop_loop) options_.stop_loop();
  }
};

}  // namespace gradus
