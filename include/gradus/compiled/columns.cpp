// The bodies of columns/, for programs that link gradus::compiled (base/body.hpp).
#ifndef GRADUS_COMPILED
#define GRADUS_COMPILED
#endif
#include "../columns/categorical_column.ipp"
#include "../columns/crossed_column.ipp"
#include "../columns/embedding_column.ipp"
#include "../columns/feature_column.ipp"
#include "../columns/feature_layers.ipp"
#include "../columns/feature_layout.ipp"
#include "../columns/id_lists.ipp"
#include "../columns/numeric_column.ipp"
#include "../columns/parse_example_spec.ipp"
#include "../columns/vocabulary_column.ipp"
#include "../columns/weighted_column.ipp"
