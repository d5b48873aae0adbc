// tests/host/manifest/diagnostics_test.cpp - the screens, letter by letter.
#include "support.hpp"

#include <cstdlib>

namespace lhost {
namespace {

using testing::HasSubstr;

std::string golden(const std::string& name) {
  std::ifstream in(std::string(LHOST_TEST_GOLDEN) + "/" + name);
  EXPECT_TRUE(in) << name;
  return {std::istreambuf_iterator<char>(in), {}};
}

// All that the host checks by itself, as a run would.
std::string screen(const std::string& name, const std::vector<std::string>& overrides = {},
                   bool colour = false) {
  ManifestInput input;
  input.path = std::string(LHOST_TEST_GOLDEN) + "/" + name;
  input.overrides = overrides;
  Diagnostics d;
  Manifest m = load_manifest(input, d);
  const std::string folder = std::string(LHOST_TEST_GOLDEN) + "/";
  for (Text& t : m.texts) {
    if (t.name.rfind(folder, 0) == 0) t.name.erase(0, folder.size());
  }
  const Node none;
  auto table = [&](const char* path) -> const Node& {
    return m.root.at_path(path) ? *m.root.at_path(path) : none;
  };
  OptionSpec lr = option("lr", LH_T_FLOAT);
  lr.flags = LH_O_REQUIRED, lr.min = ">0", lr.doc = "learning rate";
  const Schema optimizer = {lr};
  if (m.complete) {
    KnownKeys everything = host_known_keys();
    everything["optimizer sgd"] = {"lr"};
    check_table(m.root, "", root_keys(), m.texts, d);
    report_unknown(m.root, "", {&root_keys()}, everything, d);
    check_table(table("optimizer"), "optimizer", optimizer, m.texts, d);
    report_unknown(table("optimizer"), "optimizer", {&optimizer, &selection_keys()}, everything, d);
    const Values run = check_table(table("run"), "run", run_keys(), m.texts, d);
    report_unknown(table("run"), "run", {&run_keys()}, everything, d);
    const Values trainer = check_table(table("trainer"), "trainer", trainer_keys(), m.texts, d);
    report_unknown(table("trainer"), "trainer", {&trainer_keys()}, everything, d);
    check_together(run, trainer, d);
  }
  return d.render(m.texts, colour);
}

TEST(Render, ShowsAllErrorsOfAManifestWithTheirLines) { EXPECT_EQ(screen("bad.toml"), golden("bad.txt")); }

TEST(Render, ShowsOneSyntaxError) { EXPECT_EQ(screen("syntax.toml"), golden("syntax.txt")); }

TEST(Render, ShowsBasesAndOverridesUnderTheirNames) {
  EXPECT_EQ(screen("extends.toml", {"trainer.max_epoch=3", "optimizer.lr=fast"}), golden("extends.txt"));
}

TEST(Render, StaysReadableWithTabsWideLinesAndOtherAlphabets) {
  EXPECT_EQ(screen("odd.toml"), golden("odd.txt"));
}

TEST(Render, ColoursOnlyWhenAsked) {
  const std::string plain = screen("bad.toml"), coloured = screen("bad.toml", {}, true);
  EXPECT_EQ(plain.find('\033'), plain.npos);
  EXPECT_THAT(coloured, HasSubstr("\033[31;1merror:\033[0m"));
  EXPECT_THAT(coloured, HasSubstr("\033[31;1m^~~~~~~~~\033[0m"));
}

TEST(Render, WarningsStopNothing) {
  const Texts texts = {{"m.toml", "", "rate = 1\n"}};
  Diagnostics d;
  Diagnostic w{{Origin::file, 0, 1, 1, 5}, "optimizer.rate", "this key is deprecated; write \"lr\""};
  w.warning = true;
  d.add(w);
  EXPECT_TRUE(d.empty());
  EXPECT_EQ(d.render(texts, false),
            "m.toml:1:1: warning: optimizer.rate: this key is deprecated; write \"lr\"\n"
            "   1 | rate = 1\n"
            "     | ^~~~\n");
}

TEST(Render, ShowsTheFirstHundredOfVeryMany) {
  const Texts texts = {{"m.toml", "", "a = 1\n"}};
  Diagnostics d;
  for (int i = 0; i < 2000; ++i) d.add({Origin::file, 0, 1, 1, 2}, "a", "x");
  const std::string s = d.render(texts, false);
  EXPECT_EQ(std::count(s.begin(), s.end(), '\n'), 301);
  EXPECT_THAT(s, testing::EndsWith("2000 errors in m.toml; the first 100 are shown. Nothing was started.\n"));
}

TEST(Render, NothingAManifestHoldsReachesTheTerminalRaw) {
  const Texts texts = {{"m\033[2J.toml", "",
                        std::string("a = 1 # \033]0;x\007 \xC2\x9B"
                                    "31m \xFF\n")}};
  Diagnostics d;
  d.add({Origin::file, 0, 1, 1, 2}, "a\033", "found \033[31m");
  const std::string s = d.render(texts, false);
  for (char c : s) EXPECT_TRUE(c == '\n' || (c >= 0x20 && c < 0x7F)) << int(c);
}

TEST(Render, PlacesOutsideTheTextDoNoHarm) {
  const Texts texts = {{"m.toml", "", "a = 1"}};
  for (const Source& s :
       {Source{Origin::file, 0, 99, 1, 2}, Source{Origin::file, 0, 1, 500, 501},
        Source{Origin::file, 7, 1, 1, 2}, Source{Origin::file, 0, 1, 3, 1000000}, Source{}}) {
    Diagnostics d;
    d.add(s, "a", "x");
    EXPECT_THAT(d.render(texts, false), HasSubstr("error: a: x\n"));
    EXPECT_THAT(d.render({}, false), HasSubstr("1 error in the manifest"));
  }
}

}  // namespace
}  // namespace lhost
