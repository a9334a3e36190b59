# A toolchain: 32-bit x86 with SSE2 from Debian's g++-i686-linux-gnu (g++-multilib cannot stand beside the other cross
# compilers). Its programs are this processor's, so nothing emulates them where the kernel runs 32-bit programs; some do
# not, and there qemu-user does. They find the C library where Debian's cross compiler has it. Without SSE2 the x87 unit
# rounds otherwise. Read by tests/machines too.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR i686)
set(CMAKE_CXX_COMPILER i686-linux-gnu-g++)
set(CMAKE_CXX_FLAGS_INIT "-msse2 -mfpmath=sse")
set(CMAKE_EXE_LINKER_FLAGS_INIT
  "-Wl,--dynamic-linker=/usr/i686-linux-gnu/lib/ld-linux.so.2 -Wl,-rpath,/usr/i686-linux-gnu/lib")
execute_process(COMMAND /usr/i686-linux-gnu/lib/ld-linux.so.2 --version
  RESULT_VARIABLE i686_result OUTPUT_QUIET ERROR_QUIET)
if(i686_result STREQUAL "0")
  set(CMAKE_CROSSCOMPILING_EMULATOR "")
else()
  set(CMAKE_CROSSCOMPILING_EMULATOR qemu-i386 -cpu max)
endif()
unset(i686_result)
