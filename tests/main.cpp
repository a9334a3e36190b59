// One doctest main for every test program. A run in which no case was selected fails: a filter that matches nothing
// would otherwise look like success.
//
// A case of the rooms session and train that ends with more threads than it began with fails the run.
//
// It also counts the threads that the tests begin, and leaves a file at $GRADUS_THREADS_TO if there was one: those
// tests are what ThreadSanitizer has to see (tests/CMakeLists.txt).
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#if defined(__has_feature)
#define GRADUS_HAS_FEATURE(x) __has_feature(x)
#else
#define GRADUS_HAS_FEATURE(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || GRADUS_HAS_FEATURE(address_sanitizer) || \
    GRADUS_HAS_FEATURE(thread_sanitizer) || !defined(__linux__)
#define GRADUS_COUNTS_THREADS 0
#else
#define GRADUS_COUNTS_THREADS 1
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#endif

namespace {
unsigned selected = 0;
bool left_threads = false;
#if GRADUS_COUNTS_THREADS
std::atomic<unsigned> threads_begun{0};

int threads_alive() {
  DIR* const tasks = ::opendir("/proc/self/task");
  if (tasks == nullptr) return 0;
  int n = 0;
  while (const dirent* const entry = ::readdir(tasks)) n += entry->d_name[0] != '.';
  ::closedir(tasks);
  return n;
}
// A thread that was joined is in the list for some moments more.
bool ends_with(int wanted) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (threads_alive() > wanted) {
    if (std::chrono::steady_clock::now() > until) return false;
    ::sched_yield();
  }
  return true;
}
bool is_of_rooms_that_join(const char* file) {
  return std::strstr(file, "tests/session/") != nullptr || std::strstr(file, "tests/train/") != nullptr ||
         std::strstr(file, "tests/whole/blocked_calls") != nullptr;
}
#endif

struct counter final : doctest::IReporter {
  explicit counter(const doctest::ContextOptions&) {}
  void report_query(const doctest::QueryData&) override { selected = 1; }
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats& stats) override { selected = stats.numTestCasesPassingFilters; }
#if GRADUS_COUNTS_THREADS
  const doctest::TestCaseData* now = nullptr;
  int alive = 0;
  void test_case_start(const doctest::TestCaseData& test) override {
    now = is_of_rooms_that_join(test.m_file.c_str()) ? &test : nullptr;
    if (now != nullptr) alive = threads_alive();
  }
  void test_case_end(const doctest::CurrentTestCaseStats&) override {
    if (now == nullptr || ends_with(alive)) return;
    left_threads = true;
    std::fprintf(stderr, "%s:%u: \"%s\" began with %d threads and ended with %d; join what it started\n",
                 now->m_file.c_str(), now->m_line, now->m_name, alive, threads_alive());
  }
#else
  void test_case_start(const doctest::TestCaseData&) override {}
  void test_case_end(const doctest::CurrentTestCaseStats&) override {}
#endif
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}
};
REGISTER_LISTENER("counter", 1, counter);
}  // namespace

#if GRADUS_COUNTS_THREADS
// Stands before the C library's, which libstdc++ calls for every std::thread. Weak, so that a test may bring its own.
extern "C" [[gnu::weak]] int pthread_create(pthread_t* thread, const pthread_attr_t* how, void* (*run)(void*),
                                            void* with) noexcept {
  using create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto real = reinterpret_cast<create>(dlsym(RTLD_NEXT, "pthread_create"));
  ++threads_begun;
  return real(thread, how, run, with);
}

static void tell_threads() {
  const char* const to = std::getenv("GRADUS_THREADS_TO");
  if (to == nullptr) return;
  if (threads_begun == 0) {
    std::remove(to);
  } else if (std::FILE* const file = std::fopen(to, "w")) {
    std::fprintf(file, "%u\n", threads_begun.load());
    std::fclose(file);
  }
}
#endif

int main(int argc, char** argv) {
  doctest::Context context(argc, argv);
  const int result = context.run();
#if GRADUS_COUNTS_THREADS
  tell_threads();
#endif
  return result == 0 && (selected == 0 || left_threads) ? 2 : result;
}
