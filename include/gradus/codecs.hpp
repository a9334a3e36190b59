// This header has every format of checkpoints that needs no other library, sharded ones, and the policies that decide
// when and how a checkpoint is written. (codec/cereal.hpp and cereal_json.hpp need cereal; matching("regex") needs
// <regex>.)
#pragma once
#include "base/foreign_macros.hpp"  // first: the standard library does not tolerate a macro min either

#include "checkpoint/background.hpp"
#include "checkpoint/on_signal.hpp"
#include "checkpoint/save_when.hpp"
#include "checkpoint/saver.hpp"
#include "checkpoint/var_list.hpp"
#include "checkpoint/warm_start.hpp"
#include "codec/detect.hpp"
#include "codec/flat.hpp"
#include "codec/npz.hpp"
#include "codec/open.hpp"
#include "codec/safetensors.hpp"
#include "codec/sharded.hpp"
#include "codec/tensor_bundle.hpp"
