// The bodies of codec/, for programs that link gradus::compiled (base/body.hpp).
#ifndef GRADUS_COMPILED
#define GRADUS_COMPILED
#endif
#include "../codec/codec.ipp"
#include "../codec/bundle_decode.ipp"
#include "../codec/bundle_encode.ipp"
#include "../codec/bundle_entry.ipp"
#include "../codec/bundle_names.ipp"
#include "../codec/bundle_notes.ipp"
#include "../codec/detect.ipp"
#include "../codec/flat.ipp"
#include "../codec/foreign.ipp"
#include "../codec/frame.ipp"
#include "../codec/manifest.ipp"
#include "../codec/npz.ipp"
#include "../codec/opaque.ipp"
#include "../codec/opaque_type.ipp"
#include "../codec/open.ipp"
#include "../codec/others.ipp"
#include "../codec/partition.ipp"
#include "../codec/safetensors.ipp"
#include "../codec/state_file.ipp"
#include "../codec/tensor_bundle.ipp"
