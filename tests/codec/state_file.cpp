#include "gradus/codec/state_file.hpp"
#include "gradus/store/crc32c.hpp"

#include <doctest/doctest.h>

#include "gradus/testing/faulty_files.hpp"

using namespace gradus;
using gradus::testing::faulty_files;

namespace {
using names = std::vector<std::string>;
checkpoint_state parsed(std::string_view content) {
  checkpoint_state s;
  CHECK(parse_checkpoint_state(content, s).empty());
  return s;
}
std::string refusal(std::string_view content) {
  checkpoint_state s;
  return parse_checkpoint_state(content, s);
}
}  // namespace

TEST_CASE("state file: TensorFlow's own is read") {
  const auto s = parsed(
      "model_checkpoint_path: \"model.ckpt-2000\"\n"
      "all_model_checkpoint_paths: \"model.ckpt-0\"\n"
      "all_model_checkpoint_paths: \"model.ckpt-1000\"\n"
      "all_model_checkpoint_paths: \"model.ckpt-2000\"\n"
      "all_model_checkpoint_timestamps: 1511111111.25\n"
      "all_model_checkpoint_timestamps: 1.5e9\n"
      "last_preserved_timestamp: 1511111110.5\n");
  CHECK(s.newest == "model.ckpt-2000");
  CHECK(s.all == names{"model.ckpt-0", "model.ckpt-1000", "model.ckpt-2000"});
  CHECK(s.timestamps == std::vector<double>{1511111111.25, 1.5e9});
  // Windows paths come doubled; other layouts of the text format are the same message.
  CHECK(parsed(R"(model_checkpoint_path:"C:\\Users\\m-1", # note
                  all_model_checkpoint_paths: 'a\tb\"\101';)")
            .all == names{"a\tb\"A", "C:\\Users\\m-1"});
}

TEST_CASE("state file: what is written is read") {
  checkpoint_state s{"b \"q\" \\ \xc3\xa9\n-2.ckpt",
                     {"a-1.ckpt", "b \"q\" \\ \xc3\xa9\n-2.ckpt"},
                     {1.0 / 3, 1792000000.5},
                     {"z-0.ckpt"}};
  const auto content = to_text(s);
  const auto back = parsed(content);
  CHECK(back.newest == s.newest);
  CHECK(back.all == s.all);
  CHECK(back.timestamps == s.timestamps);
  CHECK(back.superseded == s.superseded);
  const std::string expected =
      "# gradus state 1: the last line is the checksum of what stands before it\n"
      "model_checkpoint_path: \"m-2.ckpt\"\n"
      "all_model_checkpoint_paths: \"m-1.ckpt\"\n"
      "all_model_checkpoint_paths: \"m-2.ckpt\"\n"
      "all_model_checkpoint_timestamps: 0.5\n"
      "all_model_checkpoint_timestamps: 2\n"
      "# superseded: \"m-0.ckpt\"\n";
  CHECK(to_text({"m-2.ckpt", {"m-1.ckpt", "m-2.ckpt"}, {0.5, 2}, {"m-0.ckpt"}}) ==
        text(expected, "# crc32c: ", detail::hex(crc32c(expected)), '\n'));
}

namespace {
bool same(const checkpoint_state& a, const checkpoint_state& b) {
  return a.newest == b.newest && a.all == b.all && a.timestamps == b.timestamps && a.superseded == b.superseded &&
         a.best == b.best;
}
}  // namespace

TEST_CASE("state file: one flipped bit, and one cut, is noticed wherever it changes what is read") {
  const checkpoint_state s{"m-120.ckpt",
                           {"m-100.ckpt", "m-110.ckpt", "m-120.ckpt"},
                           {1792000000.5, 1792000060, 1792000120.25},
                           {"m-90.ckpt"},
                           {{"m-70.ckpt", 0.97}}};
  const auto good = to_text(s);
  std::size_t refused = 0, harmless = 0;
  for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
    auto changed = good;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
    checkpoint_state out;
    if (!parse_checkpoint_state(changed, out).empty())
      ++refused;
    else if (same(out, s))
      ++harmless;
    else
      FAIL_CHECK("bit ", bit, " gives another state");
  }
  CHECK(refused > 8 * (good.size() - 10));
  MESSAGE(refused, " of ", 8 * good.size(), " flips are refused, ", harmless, " change nothing that is read");
  for (std::size_t n = 0; n < good.size(); ++n) {
    checkpoint_state out;
    CHECK_MESSAGE(!parse_checkpoint_state(good.substr(0, n), out).empty(), n);
  }
  CHECK(refusal(good + "\n").find("its checksum does not fit") == 0);
  CHECK(refusal(good.substr(0, good.size() - 5)) ==
        "its checksum does not fit its bytes (if it was changed by hand, delete its first and its last line)");
  // Without both lines it is a file as TensorFlow and gradus 0.5.0 write it.
  const auto begin = good.find('\n') + 1;
  checkpoint_state out;
  CHECK(parse_checkpoint_state(good.substr(begin, good.rfind("# crc32c") - begin), out).empty());
  CHECK(same(out, s));
}

TEST_CASE("state file: each line is one that protobuf's text format knows") {
  const auto said = to_text({"m-2.ckpt", {"m-2.ckpt"}, {0.5}, {"m-0.ckpt"}, {{"m-1.ckpt", 2}}});
  std::size_t lines = 0;
  for (std::size_t at = 0; at < said.size(); ++lines) {
    const auto end = said.find('\n', at);
    const auto line = said.substr(at, end - at);
    CHECK_MESSAGE(
        (line.starts_with("# ") || line.starts_with("model_checkpoint_path: \"") ||
         line.starts_with("all_model_checkpoint_paths: \"") || line.starts_with("all_model_checkpoint_timestamps: ")),
        line);
    at = end + 1;
  }
  CHECK(lines == 7);
}

TEST_CASE("state file: nonsense is refused, and where it stands is said") {
  CHECK(refusal("") == "it has no model_checkpoint_path");
  CHECK(refusal("# superseded: \"x\"\n") == "it has no model_checkpoint_path");
  CHECK(refusal("model_checkpoint_path: \"a").find("begins no `name: value`") != std::string::npos);
  CHECK(refusal("model_checkpoint_path \"a\"").find("begins no") != std::string::npos);
  CHECK(refusal("model_checkpoint_path: \"a\\q\"").find("begins no") != std::string::npos);
  CHECK(refusal(std::string(100, '\0')).find("byte 0 begins no") != std::string::npos);
  CHECK(refusal("all_model_checkpoint_timestamps: 1.2.3") == "\"1.2.3\" is no number");
  CHECK(refusal("model_checkpoint_path: \"../../etc/passwd\"") == "\"../../etc/passwd\" leads out of the directory");
  CHECK(refusal("model_checkpoint_path: \"a/../../b\"") == "\"a/../../b\" leads out of the directory");
  CHECK(refusal("model_checkpoint_path: \"a\\000b\"") != "");
  CHECK(refusal("model_checkpoint_path: \"a..b\"").empty());
  // Every truncation and every changed byte gives a state or a refusal, no more.
  const std::string good = to_text({"m-2.ckpt", {"m-1.ckpt", "m-2.ckpt"}, {0.5, 2}, {"m-0.ckpt"}});
  for (std::size_t i = 0; i < good.size(); ++i) {
    refusal(std::string_view(good).substr(0, i));
    for (int c = 0; c < 256; ++c) {
      auto changed = good;
      changed[i] = static_cast<char>(c);
      refusal(changed);
    }
  }
}

TEST_CASE("latest_checkpoint and read_state_file") {
  const faulty_files fs;
  fs.make_directory("d");
  CHECK(!read_state_file(fs, "d"));
  CHECK(!read_state_file(fs, "no/such"));
  CHECK(latest_checkpoint(fs, "d").empty());
  publish(fs, "d/m-3.ckpt", "x");
  CHECK(latest_checkpoint(fs, "d").empty());  // a file alone is no checkpoint
  publish(fs, "d/checkpoint", "model_checkpoint_path: \"m-3.ckpt\"");
  CHECK(latest_checkpoint(fs, "d") == "d/m-3.ckpt");
  CHECK(is_newest_checkpoint(fs, "d", "d/m-3.ckpt"));
  CHECK(is_newest_checkpoint(fs, "d", ""));
  CHECK_FALSE(is_newest_checkpoint(fs, "d", "d/m-2.ckpt"));
  publish(fs, "d/checkpoint", "model_checkpoint_path: \"/abs/m-3.ckpt\"");
  CHECK(read_state_file(fs, "d")->newest == "/abs/m-3.ckpt");
  CHECK(latest_checkpoint(fs, "d") == "d/m-3.ckpt");  // the directory was moved
  publish(fs, "d/checkpoint", "model_checkpoint_path: \"/abs/m-5.ckpt\"");
  CHECK(latest_checkpoint(fs, "d").empty());
  publish(fs, "d/checkpoint", "model_checkpoint_path: \"m-4.ckpt\"");
  CHECK(latest_checkpoint(fs, "d").empty());
  publish(fs, "d/checkpoint", "");
  try {
    read_state_file(fs, "d");
    FAIL("no error");
  } catch (const data_loss& e) {
    CHECK(std::string_view(e.what()) ==
          "the state file \"d/checkpoint\" is damaged: it has no model_checkpoint_path; restore a checkpoint of this "
          "directory by its path, or delete the file and choose with restore_newest");
  }
}

TEST_CASE("checkpoint_step") {
  CHECK(checkpoint_step("runs/a-1/model-150.ckpt") == 150);
  CHECK(checkpoint_step("model.ckpt-0") == 0);
  CHECK(checkpoint_step("model--5") == 5);
  CHECK(checkpoint_step("my-model-00000007.ckpt") == 7);
  for (const char* name : {"model", "model-", "model-x.ckpt", "a-3/model", "model-5x", "model-99999999999999999999"})
    CHECK_MESSAGE(!checkpoint_step(name), name);
}
