#include <gradus/cluster/certificates.hpp>
#include <gradus/store/file.hpp>
#include <gradus/testing/temp_dir.hpp>

#include <doctest/doctest.h>

#include <vector>

#include "../message.hpp"

using namespace gradus;
using gradus::detail::read_certificates;
using gradus::detail::role_of;

TEST_CASE("a role is one URI of ours") {
  const auto of = [](std::vector<std::string> uris) { return role_of(uris); };
  CHECK(of({"spiffe://gradus/worker"}) == "worker");
  CHECK(of({"https://example.com", "spiffe://gradus/ps"}) == "ps");
  CHECK(of({"spiffe://gradus/ps", "spiffe://gradus/ps"}) == "ps");
  CHECK(of({"spiffe://gradus/ps", "spiffe://gradus/worker"}).empty());
  CHECK(of({"spiffe://gradus/"}).empty());
  CHECK(of({"spiffe://other/ps", "xspiffe://gradus/ps", "spiffe://gradus"}).empty());
  CHECK(of({}).empty());
}

TEST_CASE("certificates are read from a folder; what is missing is named with what to do") {
  const testing::temp_dir folder;
  const auto missing = [&](const mtls& m) { return message_of(status::not_found, [&] { read_certificates(m); }); };
  const std::string certificate = "-----BEGIN CERTIFICATE-----\n";
  CHECK(says(missing({folder.path()}), "ca.pem"));
  publish({}, folder / "ca.pem", "authority\n" + certificate);
  const std::string said = missing({folder.path()});
  CHECK(says(said, folder / "cert.pem"));
  CHECK(says(said, "The folder has to hold ca.pem, cert.pem and key.pem"));
  CHECK(says(said, "say insecure{} instead"));
  CHECK(says(missing({folder.path(), "worker"}), "has to hold ca.pem, worker.pem and worker.key"));
  publish({}, folder / "worker.pem", certificate);
  CHECK(says(missing({folder.path(), "worker"}), folder / "worker.key"));
  publish({}, folder / "worker.key", certificate);
  CHECK(says(message_of(status::failed_precondition,
                        [&] {
                          read_certificates({folder.path(), "worker"});
                        }),
             "is to hold the private key of this task and has no line with \"PRIVATE KEY-----\""));
  publish({}, folder / "worker.key", "-----BEGIN EC PRIVATE KEY-----\n");
  const auto read = read_certificates({folder.path(), "worker"});
  CHECK(read.authority == "authority\n" + certificate);
  CHECK(read.chain == certificate);
  CHECK(read.key == "-----BEGIN EC PRIVATE KEY-----\n");
}
