// Whether this test runs under a sanitizer, which brings an allocator of its own and takes ten times as long.
#pragma once

#define GRADUS_TEST_SANITIZED 0
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#undef GRADUS_TEST_SANITIZED
#define GRADUS_TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#undef GRADUS_TEST_SANITIZED
#define GRADUS_TEST_SANITIZED 1
#endif
#endif

inline constexpr bool is_sanitized = GRADUS_TEST_SANITIZED != 0;
