// One summary writer serves everything of a process that writes into one directory, as TensorFlow's SummaryWriterCache.
//
// A second event file would begin with a START of its own, behind which viewers hide what the first writer has written
// of the same steps. So a hook that is given the directory of a run finds the writer of that run.
#pragma once
#include "../base/build.hpp"

#include <memory>
#include <string>

#include "writer.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// Returns this process's writer of the directory, whatever path leads there: the one that an owner still has, otherwise
// a new one with these options, which then hold for all owners. It has one file, which is the newest of the directory
// when this returns. An owner may close it at any time, since what another owner adds resumes it. Any thread may call
// this; a forked child finds none of its parent's writers. Raises the errors of a summary_writer.
std::shared_ptr<any_summary_writer> shared_summary_writer(const std::string& logdir,
                                                          const summary_writer_options& options = {});

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "shared_writer.ipp"
#endif
