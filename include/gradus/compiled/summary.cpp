// The bodies of graph and summary/, for programs that link gradus::compiled (base/body.hpp).
#ifndef GRADUS_COMPILED
#define GRADUS_COMPILED
#endif
#include "../graph/show.ipp"
#include "../summary/audio.ipp"
#include "../summary/collections.ipp"
#include "../summary/event.ipp"
#include "../summary/graph.ipp"
#include "../summary/graph_def.ipp"
#include "../summary/histogram.ipp"
#include "../summary/hparams.ipp"
#include "../summary/image.ipp"
#include "../summary/layout.ipp"
#include "../summary/meta_graph.ipp"
#include "../summary/outputs.ipp"
#include "../summary/run_graph.ipp"
#include "../summary/run_metadata.ipp"
#include "../summary/tag.ipp"
#include "../summary/tensorflow_graph.ipp"
#include "../summary/values.ipp"
#include "../summary/writer.ipp"
