// Codecs: every format of checkpoints that needs no other library, sharded ones, and what decides when and how a
// checkpoint is written. (checkpoint/cereal.hpp and cereal_json.hpp need cereal; matching("regex") needs <regex>.)
#pragma once
#include "checkpoint/background.hpp"
#include "checkpoint/detect.hpp"
#include "checkpoint/flat.hpp"
#include "checkpoint/npz.hpp"
#include "checkpoint/on_signal.hpp"
#include "checkpoint/open.hpp"
#include "checkpoint/safetensors.hpp"
#include "checkpoint/save_when.hpp"
#include "checkpoint/saver.hpp"
#include "checkpoint/sharded.hpp"
#include "checkpoint/tensor_bundle.hpp"
#include "checkpoint/var_list.hpp"
#include "checkpoint/warm_start.hpp"
