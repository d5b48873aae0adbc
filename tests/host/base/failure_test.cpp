#include "base/failure.hpp"

#include <gmock/gmock.h>

#include <sstream>

namespace lhost {
namespace {

TEST(FailureOf, CarriesCodeAndText) {
  const Failure f(Exit::environment, "no disk");
  EXPECT_EQ(f.code, Exit::environment);
  EXPECT_STREQ(f.what(), "no disk");
}

TEST(ExitCodes, AreAllInTheTableOnceInOrder) {
  std::vector<int> shown;
  std::istringstream table(exit_code_table());
  for (std::string line; std::getline(table, line);) {
    if (line.rfind("A signal", 0) == 0) break;  // the sentence below the table
    EXPECT_EQ(line.rfind("  ", 0), 0u) << line;
    EXPECT_GT(line.size(), 7u) << line;
    shown.push_back(std::stoi(line));
  }
  const Exit all[] = {Exit::done,    Exit::failed,      Exit::usage,     Exit::environment,
                      Exit::plugin,  Exit::internal,    Exit::peer,      Exit::again,
                      Exit::hung_up, Exit::interrupted, Exit::terminated};
  std::vector<int> expected;
  for (Exit e : all) expected.push_back(static_cast<int>(e));
  EXPECT_EQ(shown, expected);
}

TEST(ExitCodes, OfSignalsAreTheShells) {
  EXPECT_EQ(static_cast<int>(Exit::hung_up), 128 + 1);
  EXPECT_EQ(static_cast<int>(Exit::interrupted), 128 + 2);
  EXPECT_EQ(static_cast<int>(Exit::terminated), 128 + 15);
}

}  // namespace
}  // namespace lhost
