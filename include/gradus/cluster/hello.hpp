// A fingerprint holds the settings on which the tasks of a cluster must agree before they compute together; an error
// message has the first difference of two. It is the content of the first message of a connection
// (docs/formats/wire.md, "Hello").
//
//   gradus::cluster_fingerprint mine{.model = "digits", .rule = "adam", .settings = {{"rate", "0.001"}}, ...};
//   out.encode(head, {{"fingerprint", uint8, 0, bytes_of_my_fingerprint}});
//   must_agree(mine, "worker 0", cluster_fingerprint_from(bytes_that_came), "ps 1");    // or failed_precondition
#pragma once
#include "../base/build.hpp"

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../base/dtype.hpp"
#include "../base/shape.hpp"
#include "../base/version.hpp"

namespace gradus::inline GRADUS_BUILD {

struct cluster_fingerprint {
  struct variable {
    std::string name = {};
    dtype type = dtype::none;
    extents dims = {};
    friend bool operator==(const variable&, const variable&) = default;
  };
  std::string version = GRADUS_VERSION;  // of the library
  std::string model = {}, rule = {}, arithmetic = {};
  std::vector<std::pair<std::string, std::string>> settings = {};  // ascending by name, each once
  std::vector<variable> variables = {};                            // in the graph's order

  friend bool operator==(const cluster_fingerprint&, const cluster_fingerprint&) = default;
};

std::vector<std::byte> to_bytes(const cluster_fingerprint& f);
// Raises data_loss for malformed bytes; takes no more memory than a small multiple of the bytes that came.
cluster_fingerprint cluster_fingerprint_from(std::span<const std::byte> bytes);

// Returns the first difference as a sentence; empty if there is none. `a_name` and `b_name` name the owners.
std::string difference_of(const cluster_fingerprint& a, std::string_view a_name, const cluster_fingerprint& b,
                          std::string_view b_name);
// Raises failed_precondition with the difference and the remedy.
void must_agree(const cluster_fingerprint& a, std::string_view a_name, const cluster_fingerprint& b,
                std::string_view b_name);

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "hello.ipp"
#endif
