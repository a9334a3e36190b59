// The bodies of base and store/, for programs that link gradus::compiled (base/body.hpp).
#ifndef GRADUS_COMPILED
#define GRADUS_COMPILED
#endif
#include "../base/cancellation.ipp"
#include "../base/clock.ipp"
#include "../base/error.ipp"
#include "../base/partitioner.ipp"
#include "../base/sort.ipp"
#include "../base/state.ipp"
#include "../base/tasks.ipp"
#include "../store/any_file_system.ipp"
#include "../store/directory_lock.ipp"
#include "../store/directory_tree.ipp"
#include "../store/file.ipp"
#include "../store/file_bytes.ipp"
#include "../store/file_problem.ipp"
#include "../store/file_stream.ipp"
#include "../store/file_system.ipp"
#include "../store/inflate.ipp"
#include "../store/json.ipp"
#include "../store/no_zlib.ipp"
#include "../store/npy.ipp"
#include "../store/ordered_code.ipp"
#include "../store/parallel.ipp"
#include "../store/reader_limits.ipp"
#include "../store/record.ipp"
#include "../store/snappy.ipp"
#include "../store/sorted_table.ipp"
#include "../store/temporary.ipp"
#include "../store/text_lines.ipp"
#include "../store/text_message.ipp"
#include "../store/varint.ipp"
#include "../store/wire.ipp"
#include "../store/zip.ipp"

// The symbol that the linker misses for a file that was compiled with other flags than the library (base/build.hpp).
const char gradus::detail::this_file_needs_gradus_compiled_with_the_same_flags_and_macros = 0;
