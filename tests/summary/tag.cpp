#include <doctest/doctest.h>

#include <gradus/summary/tag.hpp>

using namespace gradus;

TEST_CASE("tags are cleaned as tf.summary cleans names") {
  CHECK(clean_tag("loss") == "loss");
  CHECK(clean_tag("a/b-c_d.e9") == "a/b-c_d.e9");
  CHECK(clean_tag("learning rate (%)") == "learning_rate____");
  CHECK(clean_tag("w:0") == "w_0");
  CHECK(clean_tag("//loss") == "loss");
  CHECK(clean_tag(" /loss") == "_/loss");
  CHECK(clean_tag("loss/") == "loss/");
  CHECK(clean_tag("") == "");
  CHECK(clean_tag("///") == "");
  CHECK(clean_tag("\xc3\xa9t\xc3\xa9") == "\xc3\xa9t\xc3\xa9");  // letters beyond ASCII stay
}

TEST_CASE("a cleaned tag is UTF-8, whatever came") {
  CHECK(clean_tag("a\xff"
                  "b") == "a_b");
  CHECK(clean_tag("\xc3") == "_");                 // cut
  CHECK(clean_tag("\xc0\xaf") == "__");            // overlong '/'
  CHECK(clean_tag("\xed\xa0\x80") == "___");       // surrogate
  CHECK(clean_tag("\xf4\x90\x80\x80") == "____");  // past U+10FFFF
  CHECK(clean_tag("\xe2\x82\xac") == "\xe2\x82\xac");
  CHECK(clean_tag("\xf0\x9f\x8e\x93") == "\xf0\x9f\x8e\x93");
  for (int a = 0; a < 256; ++a)
    for (int b = 0; b < 256; ++b)
      for (const char* tail : {"", "\x80", "\x80\x80"})
        REQUIRE(detail::is_utf8(clean_tag(std::string{static_cast<char>(a), static_cast<char>(b)} + tail)));
}

TEST_CASE("scopes and families") {
  CHECK(summary_tag("loss") == "loss");
  CHECK(summary_tag("loss", "train") == "train/loss");
  CHECK(summary_tag("loss", "train/") == "train/loss");
  CHECK(summary_tag("w norm", "hidden", "norms") == "norms/hidden/norms/w_norm");
  CHECK(summary_tag("loss", "", "f") == "f/f/loss");
}
