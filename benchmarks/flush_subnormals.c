/* `compare` loads this into a peer (LD_PRELOAD), so that it flushes subnormal numbers to zero as our rows do: before its
   main runs, the processor of its first thread is told so, and Linux hands the setting down to every thread that it
   begins. */
#if defined(__x86_64__) || defined(__i386__)
#include <xmmintrin.h>
__attribute__((constructor)) static void flush(void) { _mm_setcsr(_mm_getcsr() | 0x8040u); }
#elif defined(__aarch64__)
__attribute__((constructor)) static void flush(void) {
  unsigned long mode;
  __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
  __asm__ volatile("msr fpcr, %0" : : "r"(mode | 1ul << 24));
}
#else
#error "how this processor flushes subnormal numbers is not known here"
#endif
