// This header has every dataset, stage, reader and writer of files. (gradus.hpp includes idx, memory and the first
// stages.)
#pragma once
#include "base/foreign_macros.hpp"  // first: the standard library does not tolerate a macro min either

#if !defined(__cpp_exceptions)
#error \
    "gradus: readers and writers of files need exceptions (no -fno-exceptions); without them include gradus/run/session.hpp, gradus/run/updater.hpp, gradus/run/static_step.hpp or gradus/checkpoint/saver.hpp"
#endif

#include "input/any_dataset.hpp"
#include "input/combinators.hpp"
#include "input/criteo.hpp"
#include "input/csv.hpp"
#include "input/example.hpp"
#include "input/idx.hpp"
#include "input/libsvm.hpp"
#include "input/memory.hpp"
#include "input/npy.hpp"
#include "input/parse_example.hpp"
#include "input/record_writer.hpp"
#include "input/text_line.hpp"
#include "input/tf_example.hpp"
#include "input/tf_record.hpp"
