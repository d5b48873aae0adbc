// The frozen part of the ABI stays as it was: every line of golden/abi-1.txt is still what the compiler says.
#include "support/shell.hpp"

#include <gtest/gtest.h>
#include <algorithm>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace {

using lhost_test::output_of;

const std::string kGolden = LHOST_TEST_SOURCE "/tests/abi/golden/abi-1.txt";

std::vector<std::string> lines(std::istream&& in) {
  std::vector<std::string> all;
  for (std::string line; std::getline(in, line);) all.push_back(line);
  return all;
}
std::vector<std::string> now() { return lines(std::istringstream(output_of(LHOST_ABI_LAYOUT_C))); }

std::string read(const std::string& path) {
  std::ostringstream s;
  s << std::ifstream(path).rdbuf();
  return s.str();
}

TEST(AbiLayout, NothingFrozenHasMovedOrGone) {
  const auto current = now();
  const auto golden = lines(std::ifstream(kGolden));
  ASSERT_GT(golden.size(), 150u);
  for (const auto& line : golden)
    EXPECT_TRUE(std::find(current.begin(), current.end(), line) != current.end())
        << "\"" << line << "\" no longer holds: plugins that are out there would break. Append instead.";
}

TEST(AbiLayout, WhatWasAppendedIsRecorded) {
  const auto golden = lines(std::ifstream(kGolden));
  for (const auto& line : now())
    EXPECT_TRUE(std::find(golden.begin(), golden.end(), line) != golden.end())
        << "new: append \"" << line << "\" to " << kGolden << " and raise LH_ABI_MINOR";
}

TEST(AbiLayout, CAndCxxAgree) { EXPECT_EQ(output_of(LHOST_ABI_LAYOUT_C), output_of(LHOST_ABI_LAYOUT_CXX)); }

// layout.c finds an unlisted member by itself; an unlisted struct or constant is found here.
TEST(AbiLayout, EveryStructAndConstantOfTheFrozenHeadersIsListed) {
  std::set<std::string> known;
  for (const auto& line : now()) known.insert(line.substr(0, line.find_first_of(" .")));
  int seen = 0;
  for (const char* header : {"abi.h", "logger.h"}) {
    const std::string text = read(std::string(LHOST_TEST_SOURCE "/plugin-api/include/lhost/") + header);
    const std::regex name(R"((?:typedef struct (lh_\w+) \{)|(?:\b(LH_\w+) = -?\d))");
    for (std::sregex_iterator m(text.begin(), text.end(), name), end; m != end; ++m, ++seen) {
      const std::string found = (*m)[1].matched ? (*m)[1] : (*m)[2];
      EXPECT_TRUE(known.count(found)) << header << ": " << found << " is missing in tests/abi/layout.c";
    }
  }
  EXPECT_GT(seen, 70);
}

}  // namespace
