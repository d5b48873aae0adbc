// tests/host/cli/terminal_test.cpp - escape sequences go to terminals only, unless they are asked for.
#include "support.hpp"

namespace cli_test {
namespace {

struct Colours : Cli {
  Colours() { file("bad.toml", "[run]\nnam = 1\n"); }
  static bool coloured(const Outcome& o) {
    EXPECT_NE(o.output, "");
    return o.output.find('\x1b') != std::string::npos;
  }
  // A screen of standard output, two errors, and a manifest's diagnostics.
  const std::vector<std::string> commands = {"inspect sgd", "run none.toml", "run bad.toml"};
};

TEST_F(Colours, AreForTerminals) {
  for (const std::string& c : commands) {
    EXPECT_TRUE(coloured(on_screen(c))) << c;
    EXPECT_FALSE(coloured(lhost(c))) << c;
  }
}

TEST_F(Colours, AreOffWhereTheEnvironmentSaysSo) {
  for (const std::string& c : commands) {
    EXPECT_FALSE(coloured(on_screen(c, "NO_COLOR=1"))) << c;
    EXPECT_FALSE(coloured(on_screen(c, "TERM=dumb"))) << c;
    EXPECT_TRUE(coloured(on_screen(c, "NO_COLOR="))) << c << ": it counts when it is not empty";
  }
}

TEST_F(Colours, FollowTheOptionFirst) {
  for (const std::string& c : commands) {
    EXPECT_FALSE(coloured(on_screen(c + " --color never"))) << c;
    EXPECT_TRUE(coloured(lhost(c + " --color always", "NO_COLOR=1"))) << c;
    EXPECT_TRUE(coloured(lhost("--color=always " + c))) << c;
    EXPECT_FALSE(coloured(on_screen(c + " --color auto", "NO_COLOR=1"))) << c;
  }
}

TEST_F(Colours, OfOutputAndErrorsAreApart) {
  EXPECT_FALSE(coloured(on_screen("inspect sgd > out && cat out"))) << "a file is no terminal";
  EXPECT_FALSE(coloured(on_screen("run none.toml 2> err; cat err")));
}

TEST_F(Colours, TheExitCodeIsTheSame) {
  EXPECT_EQ(on_screen("inspect sgd").exit_code, 0);
  EXPECT_EQ(on_screen("run none.toml").exit_code, 2);
}

}  // namespace
}  // namespace cli_test
