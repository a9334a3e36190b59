#include "gradus/checkpoint/folder.hpp"

#include <doctest/doctest.h>

#include "gradus/codec/detect.hpp"
#include "gradus/codec/flat.hpp"
#include "gradus/testing/faulty_files.hpp"

using namespace gradus;
using gradus::testing::faulty_files;
using names = std::vector<std::string>;

namespace {
void put(const any_file_system& fs, const std::string& path, std::string_view content) {
  any_file_system::handle h{};
  std::size_t written = 0;
  REQUIRE(fs.create(path, h) == 0);
  REQUIRE(write_all(fs, h, std::as_bytes(std::span(content.data(), content.size())), written) == 0);
  fs.close(h);
}
// A file system that cannot say who is alive.
struct without_claims {
  using policy_for = kind::file_system;
  using handle = int;
  int create(const std::string& p, int& h) const { return fs.create(p, h); }
  int open_append(const std::string& p, int& h) const { return fs.open_append(p, h); }
  int open_read(const std::string& p, int& h, std::uint64_t& n) const { return fs.open_read(p, h, n); }
  int write(int h, std::span<const std::byte> b, std::size_t& n) const { return fs.write(h, b, n); }
  int read(int h, std::span<std::byte> b, std::size_t& n) const { return fs.read(h, b, n); }
  int sync(int h) const { return fs.sync(h); }
  int close(int h) const { return fs.close(h); }
  int rename(const std::string& a, const std::string& b) const { return fs.rename(a, b); }
  int remove(const std::string& p) const { return fs.remove(p); }
  int exists(const std::string& p) const { return fs.exists(p); }
  int make_directory(const std::string& p) const { return fs.make_directory(p); }
  int sync_directory(const std::string& p) const { return fs.sync_directory(p); }
  int list(const std::string& p, std::vector<std::string>& n) const { return fs.list(p, n); }
  faulty_files fs;
};
static_assert(file_system<without_claims> && !claims_files<without_claims>);
}  // namespace

TEST_CASE("a step that a name says and the checkpoint does not") {
  const snapshot ours{110, {{"library", "gradus 0.5.0"}}, {}}, foreign{0, {}, {}};
  CHECK(detail::wrong_step("d/m-110.ckpt", ours).empty());
  CHECK(detail::wrong_step("d/m-00000110.r1.ckpt", ours).empty());
  CHECK(detail::wrong_step("d/best.ckpt", ours).empty());
  CHECK(detail::wrong_step("d/m-120.ckpt", ours)
            .starts_with("its name says step 120, but the checkpoint in it says step 110: "));
  CHECK(detail::wrong_step("d/model.ckpt-120", foreign).empty());  // it says no step
}

TEST_CASE("every codec that is known by the end of its files is asked for") {
  const auto known = detail::known_proofs();
  CHECK(std::vector<std::string_view>(std::begin(detail::all_proofs), std::end(detail::all_proofs)) == known);
}

TEST_CASE("what a cut save announced is no checkpoint for a reader, and goes when the folder is taken over") {
  const auto state = [](names all) { return to_text({all.back(), all, std::vector<double>(all.size(), 1.0), {}}); };
  for (const bool first_save : {false, true}) {
    const faulty_files fs;
    fs.make_directory("d");
    if (!first_save) put(fs, "d/checkpoint", state({"m-1.ckpt", "m-2.ckpt"}));
    for (const int step : {1, 2, 3}) put(fs, text("d/m-", step, ".ckpt"), "x");
    put(fs, "d/checkpoint.gradus-tmp-77", state({"m-2.ckpt", "m-3.ckpt"}));
    put(fs, "d/checkpoint.gradus-tmp-78", state({"m-2.ckpt", "m-9.ckpt"}).substr(0, 120));  // of a cut write
    put(fs, "d/checkpoint.gradus-tmp-79", to_text({"../m-1.ckpt", {"../m-1.ckpt"}, {1}, {}}));
    std::vector<std::string> all;
    fs.list("d", all);
    CHECK(detail::announced(fs, "d", all) == names{"m-3.ckpt"});
    CHECK(detail::candidates(flat_binary{}, fs, "d", "") == names{"d/m-2.ckpt", "d/m-1.ckpt"});
    CHECK(detail::candidates(flat_binary{}, fs, "d", "m") == names{"d/m-2.ckpt", "d/m-1.ckpt"});
    CHECK(detail::candidates(flat_binary{}, fs, "d", "other").size() == (first_save ? 0 : 2));  // what is listed counts
    CHECK(detail::unlisted(flat_binary{}, fs, "d", "m") == names{"m-2.ckpt", "m-1.ckpt"});
    CHECK(detail::unlisted(flat_binary{}, fs, "d", "model").empty());
    const auto kept = detail::take_over(flat_binary{}, fs, "d", 0.5);
    if (!first_save) CHECK(kept.all == names{"m-1.ckpt", "m-2.ckpt"});
    if (!first_save) CHECK(kept.timestamps == std::vector<double>{0.5, 0.5});  // they were from the future
    CHECK_FALSE(fs.holds("d/m-3.ckpt"));
    CHECK(fs.holds("d/m-2.ckpt"));
    for (const auto& file : fs.files()) CHECK_FALSE(is_temporary(file));
  }
}

TEST_CASE("beside a damaged state file no checkpoint is removed") {
  const faulty_files fs;
  fs.make_directory("d");
  put(fs, "d/checkpoint", "nonsense");
  put(fs, "d/m-3.ckpt", "x");
  put(fs, "d/checkpoint.gradus-tmp-1", to_text({"m-3.ckpt", {"m-3.ckpt"}, {1}, {}}));
  CHECK(detail::take_over(flat_binary{}, fs, "d", 0).all.empty());
  CHECK(fs.files() == names{"d/checkpoint", "d/m-3.ckpt"});
}

TEST_CASE("where nobody knows who is alive, only temporaries of checkpoints go, and no checkpoint") {
  const without_claims fs;
  fs.make_directory("d");
  put(fs.fs, "d/m-3.ckpt", "x");
  put(fs.fs, "d/checkpoint.gradus-tmp-1", to_text({"m-3.ckpt", {"m-3.ckpt"}, {1}, {}}));
  put(fs.fs, "d/m-4.ckpt.gradus-tmp-0", "");
  put(fs.fs, "d/graph.pbtxt.gradus-tmp-0", "");
  detail::take_over(flat_binary{}, fs, "d", 0);
  CHECK(fs.fs.files() == names{"d/graph.pbtxt.gradus-tmp-0", "d/m-3.ckpt"});
}
