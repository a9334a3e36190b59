// What the cards of ops point to, and the bodies of cpu/, for programs that link gradus::compiled (base/body.hpp).
#ifndef GRADUS_COMPILED
#define GRADUS_COMPILED
#endif
#ifdef GRADUS_CARD_FUNCTION
#error "gradus: compiled/ops.cpp is compiled alone, without precompiled headers and not as a part of a unity build"
#endif
#define GRADUS_CARD_FUNCTIONS_HERE
#include "../cpu/initialize.ipp"
#include "../ops/arrange.hpp"
#include "../ops/attention.hpp"
#include "../ops/broadcast.hpp"
#include "../ops/cached_attention.hpp"
#include "../ops/conv.hpp"
#include "../ops/depthwise_conv.hpp"
#include "../ops/elementwise.hpp"
#include "../ops/frozen.hpp"
#include "../ops/fused.hpp"
#include "../ops/gather.hpp"
#include "../ops/host.hpp"
#include "../ops/layer_norm.hpp"
#include "../ops/matmul.hpp"
#include "../ops/pooled_conv.hpp"
#include "../ops/precision.hpp"
#include "../ops/random.hpp"
#include "../ops/reduce.hpp"
#include "../ops/softmax.hpp"
#include "../ops/state.hpp"
#include "../run/graph_update.hpp"
