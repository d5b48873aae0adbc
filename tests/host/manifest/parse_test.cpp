// tests/host/manifest/parse_test.cpp - places of keys and values, and what syntax errors say.
#include "support.hpp"

namespace lhost {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const Node::Entry& entry(const Node& table, std::string_view key) {
  for (const Node::Entry& e : table.table) {
    if (e.key == key) return e;
  }
  throw std::out_of_range(std::string(key));
}

TEST(Parse, KnowsWhereEveryKeyAndValueStands) {
  const Parsed p(
      "a = 1\n"
      "b.c = \"h\xC3\xA9llo\" # x\n"
      "[t]\n"
      "  x = [1, 2.5,\n"
      "    3]\n"
      "y = {z = 1, \"q w\" = true}\n"
      "[[l]]\n"
      " u = 1e-3\n"
      "[[l]]\n"
      "\tv = \"\"\"a\nb\"\"\"\n");
  const Node &t = *p.root.find("t"), &l = *p.root.find("l");
  EXPECT_EQ(place(entry(p.root, "a").key_source), "1:1-2");
  EXPECT_EQ(place(p.root.find("a")->source), "1:5-6");
  EXPECT_EQ(place(entry(*p.root.find("b"), "c").key_source), "2:3-4");
  EXPECT_EQ(place(p.root.at_path("b.c")->source), "2:7-14");
  EXPECT_EQ(place(t.source), "3:1-4");
  EXPECT_EQ(place(entry(p.root, "t").key_source), "3:2-3");
  EXPECT_EQ(place(t.find("x")->source), "4:7-8");  // goes on in the next line: only where it begins
  EXPECT_EQ(place(t.find("x")->array[1].source), "4:11-14");
  EXPECT_EQ(place(t.find("x")->array[2].source), "5:5-6");
  EXPECT_EQ(place(entry(*t.find("y"), "q w").key_source), "6:13-18");
  EXPECT_EQ(place(t.at_path("y.z")->source), "6:10-11");
  EXPECT_EQ(place(l.array[0].source), "7:1-6");
  EXPECT_EQ(place(l.array[0].find("u")->source), "8:6-10");
  EXPECT_EQ(place(entry(l.array[1], "v").key_source), "10:2-3");
  EXPECT_EQ(l.array[1].find("v")->source.text, 0);
  EXPECT_EQ(l.array[1].find("v")->source.origin, Origin::file);
}

TEST(Parse, KeepsTheOrderOfTheFile) {
  const Parsed p("z = 1\na = 2\n[m]\ny = 1\nb = 2\n[c]");
  EXPECT_EQ(to_toml(p.root), "{ z = 1, a = 2, m = { y = 1, b = 2 }, c = {} }");
}

struct Syntax {
  const char *text, *line;
};
class SyntaxError : public testing::TestWithParam<Syntax> {};

TEST_P(SyntaxError, IsOneDiagnosticWithItsPlaceAndReason) {
  const Parsed p(GetParam().text);
  EXPECT_THAT(lines(p.problems), ElementsAre(GetParam().line)) << GetParam().text;
}

INSTANTIATE_TEST_SUITE_P(
    Every, SyntaxError,
    testing::Values(
        Syntax{"[optimizer]\nlr = 1\n[model]\nlr = 5\nx = 1\nlr = 2\n",
               "6:1-3 the key \"lr\" is given twice, first in line 4; remove one of the two"},
        Syntax{"[a]\nx = 1\n[b]\n[a]\n",
               "4:1-2 the table [a] is given twice, first in line 1; merge the two"},
        Syntax{"a = 1\n[a]\n", "2:1-2 the table [a] is given twice, first in line 1; merge the two"},
        Syntax{"a = {b = 1, b = 2}", "1:13-14 the key \"b\" is given twice; remove one of the two"},
        Syntax{"x.y = 1\nx.y.z = 2", "2:3-4 this key is given twice; remove one of the two"},
        Syntax{"a = 99999999999999999999",
               "1:25-26 '99999999999999999999' is not representable in 64 bits (in a decimal integer)"},
        Syntax{"a = yes", "1:5-6 this is not a value; a text needs quotes"},
        Syntax{"a = 5MiB",
               "1:6-7 expected digit, saw 'M' (in a decimal integer); a text or a value with a unit needs "
               "quotes"},
        Syntax{"a = True",
               "1:5-6 expected 'true', saw 'T' (in a boolean); a text or a value with a unit needs quotes"},
        Syntax{"a = \"x", "1:7-8 the file ends (in a string)"},
        Syntax{"a = [1,", "1:8-9 the file ends (in a list)"},
        Syntax{"a =", "1:4-5 the file ends (in a key-value pair)"},
        Syntax{"[$]", "1:2-3 expected bare key starting character or string delimiter, saw '$' (in a key)"},
        Syntax{"[a\xC3\xBC]", "1:3-4 expected ']', saw '\xC3\xBC' (in a table header)"},
        Syntax{"a = \xFF", "1:4-5 Encountered invalid utf-8 sequence"}));

TEST(Parse, RefusesNestingThatCouldExhaustTheStack) {
  std::string dotted, quoted = "\"x y\"", blanks = "a", list;
  for (int i = 0; i < 100000; ++i) dotted += "a.", quoted += ".\",=\"", blanks += " . a", list += "[";
  for (const std::string& s : {dotted + "a = 1", "[" + dotted + "a]", quoted + " = 1", blanks + " = 1",
                               "v = {" + dotted + "a = 1}", "v = " + list}) {
    const Parsed p("first = 1\n" + s);
    ASSERT_EQ(p.problems.list().size(), 1u) << s.substr(0, 20);
    EXPECT_EQ(p.problems.list()[0].source.line, 2);
  }
}

TEST(Parse, LongListsAndTextsWithManyDotsAreNoNesting) {
  std::string floats = "0.5", text = "a.b";
  for (int i = 0; i < 1000; ++i) floats += ", 0.5", text += " or c.d. Then";
  const Parsed p("x = [" + floats + "]\ny = \"" + text + "\"\nz = \"" + std::string(1000, '.') + "\"");
  EXPECT_TRUE(p.problems.list().empty()) << p.problems.render(p.texts, false);
  EXPECT_EQ(p.root.find("x")->array.size(), 1001u);
}

TEST(ParseValue, IsExactlyOneValue) {
  EXPECT_EQ(parse_value("3")->integer, 3);
  EXPECT_EQ(parse_value(" \"x\" ")->string, "x");
  EXPECT_EQ(parse_value("{ a = [1, 2] }")->find("a")->array.size(), 2u);
  for (const char* s :
       {"", " ", "1 2", "1\nb = 2", "1 # comment", "[1", "abc", "1\n[t]\nx = 1", "\"a\" \"b\"", "{a=1} x"}) {
    std::string why;
    EXPECT_FALSE(parse_value(s, &why)) << s;
    EXPECT_NE(why, "") << s;
  }
}

TEST(ParseValue, CountsColumnsFromItsFirstCharacter) {
  const auto v = parse_value("{ a = [10, 2] }");
  EXPECT_EQ(place(v->source), "1:1-16");
  EXPECT_EQ(place(v->table[0].key_source), "1:3-4");
  EXPECT_EQ(place(v->find("a")->array[1].source), "1:12-13");
}

}  // namespace
}  // namespace lhost
