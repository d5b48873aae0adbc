// tests/host/manifest/check_test.cpp - every type: what it takes, and what a refusal says and points to.
#include "support.hpp"

namespace lhost {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

OptionSpec ranged(int32_t type, const char* min, const char* max = "") {
  OptionSpec spec = option("x", type);
  spec.min = min;
  spec.max = max;
  return spec;
}
OptionSpec choosing(int32_t type) {
  OptionSpec spec = option("x", type);
  spec.choices = {"norm", "value"};
  return spec;
}
OptionSpec at_least(int32_t type, uint32_t n) {
  OptionSpec spec = option("x", type);
  spec.min_len = n;
  return spec;
}

// ---- what is taken --------------------------------------------------------------------------------------

lh_value taken(const OptionSpec& spec, const std::string& literal) {
  const Parsed p("x = " + literal);
  Diagnostics d;
  const Values v = check_table(p.root, "t", {spec}, p.texts, d);
  EXPECT_THAT(lines(d), IsEmpty()) << literal;
  EXPECT_TRUE(v.given("x")) << literal;
  return v["x"];
}

TEST(Check, ScalarsArriveAsTheirTypes) {
  EXPECT_EQ(taken(option("x", LH_T_BOOL), "true").u.b, 1u);
  EXPECT_EQ(taken(option("x", LH_T_BOOL), "false").u.b, 0u);
  EXPECT_EQ(taken(option("x", LH_T_INT), "-9223372036854775808").u.i, INT64_MIN);
  EXPECT_EQ(taken(ranged(LH_T_INT, "1"), "1").u.i, 1);
  EXPECT_EQ(taken(ranged(LH_T_INT, "0", "256"), "256").u.i, 256);
  EXPECT_EQ(taken(ranged(LH_T_INT, "", "9223372036854775806"), "9223372036854775806").u.i, INT64_MAX - 1);
  EXPECT_EQ(taken(option("x", LH_T_FLOAT), "1e-3").u.f, 1e-3);
  EXPECT_EQ(taken(option("x", LH_T_FLOAT), "3").u.f, 3.0);  // an integer is a number
  EXPECT_EQ(taken(ranged(LH_T_FLOAT, ">0"), "5e-324").u.f, 5e-324);
  EXPECT_EQ(taken(ranged(LH_T_FLOAT, "0", "\"<1\""), "0").u.f, 0.0);
  EXPECT_EQ(taken(choosing(LH_T_ENUM), "\"value\"").u.i, 1);
  EXPECT_EQ(taken(option("x", LH_T_SIZE), "\"25MiB\"").u.i, 26214400);
  EXPECT_EQ(taken(option("x", LH_T_SIZE), "100").u.i, 100);
  EXPECT_EQ(taken(ranged(LH_T_SIZE, "\"1KiB\"", "\"1MiB\""), "1024").u.i, 1024);
  EXPECT_EQ(taken(option("x", LH_T_DURATION), "\"00:30:00\"").u.i, 1800000000000);
  EXPECT_EQ(taken(ranged(LH_T_DURATION, "\"1s\""), "\"1s\"").u.i, 1000000000);
  EXPECT_EQ(taken(option("x", LH_T_SHARE), "\"5%\"").u.f, 0.05);
  EXPECT_EQ(taken(option("x", LH_T_SHARE), "0.05").u.f, 0.05);
  EXPECT_EQ(taken(option("x", LH_T_SHARE), "1").u.f, 1.0);
}

TEST(Check, CadencesCarryUnitAndCount) {
  struct {
    const char* text;
    uint32_t unit;
    int64_t count;
  } cases[] = {{"{ steps = 500 }", LH_EVERY_STEPS, 500},
               {"{ batches = 100 }", LH_EVERY_BATCHES, 100},
               {"{ samples = 1_000_000 }", LH_EVERY_SAMPLES, 1000000},
               {"{ epochs = 2 }", LH_EVERY_EPOCHS, 2},
               {"{ seconds = 600 }", LH_EVERY_SECONDS, 600000000000},
               {"{ seconds = 0.5 }", LH_EVERY_SECONDS, 500000000}};
  for (const auto& c : cases) {
    const lh_value v = taken(option("x", LH_T_CADENCE), c.text);
    EXPECT_EQ(v.n, c.unit) << c.text;
    EXPECT_EQ(v.u.i, c.count) << c.text;
  }
}

TEST(Check, HostTypesArriveAsDocumented) {
  EXPECT_EQ(taken(option("x", T_LIMIT), "1").n, 0u);
  EXPECT_EQ(taken(option("x", T_LIMIT), "1").u.i, 1);
  EXPECT_EQ(taken(option("x", T_LIMIT), "1.0").n, 1u);
  EXPECT_EQ(taken(option("x", T_LIMIT), "0.25").u.f, 0.25);
  EXPECT_EQ(taken(option("x", T_LIMIT), "\"25%\"").u.f, 0.25);
  EXPECT_EQ(taken(option("x", T_WARMUP), "100").u.i, 100);
  EXPECT_EQ(taken(option("x", T_WARMUP), "\"5%\"").n, 1u);
  EXPECT_EQ(taken(option("x", T_WARMUP), "\"5%\"").u.f, 0.05);
  EXPECT_EQ(taken(option("x", T_SAVE_LAST), "false").u.i, 0);
  EXPECT_EQ(taken(option("x", T_SAVE_LAST), "true").u.i, 1);
  EXPECT_EQ(taken(option("x", T_SAVE_LAST), "\"link\"").u.i, 2);
  EXPECT_EQ(taken(option("x", T_DEVICES), "\"auto\"").n, 0u);
  EXPECT_EQ(taken(option("x", T_DEVICES), "4096").n, 4096u);
  taken(option("x", T_REGEX), "'\\.bias$|norm'");
}

// ---- what is refused: the whole line, place included ------------------------------------------------------

struct Refusal {
  OptionSpec spec;
  const char *literal, *line;
};
void PrintTo(const Refusal& r, std::ostream* out) { *out << r.literal << " as type " << r.spec.type; }
class Check : public testing::TestWithParam<Refusal> {};

TEST_P(Check, RefusesWithPlaceAndWayOut) {
  const Refusal& r = GetParam();
  const Parsed p(std::string("x = ") + r.literal);
  ASSERT_THAT(lines(p.problems), IsEmpty());
  Diagnostics d;
  const Values v = check_table(p.root, "t", {r.spec}, p.texts, d);
  EXPECT_THAT(lines(d), ElementsAre(r.line));
  EXPECT_EQ(v["x"].type, LH_T_NONE);
}

const OptionSpec kBool = option("x", LH_T_BOOL), kInt = ranged(LH_T_INT, "1"),
                 kFloat = ranged(LH_T_FLOAT, ">0"), kString = option("x", LH_T_STR),
                 kPath = option("x", LH_T_PATH), kSize = option("x", LH_T_SIZE),
                 kDuration = option("x", LH_T_DURATION), kShare = option("x", LH_T_SHARE),
                 kCadence = option("x", LH_T_CADENCE), kInts = ranged(LH_T_LIST_INT, "1"),
                 kFloats = option("x", LH_T_LIST_FLOAT), kStrings = option("x", LH_T_LIST_STR);

INSTANTIATE_TEST_SUITE_P(
    Bool, Check,
    testing::Values(
        Refusal{kBool, "\"true\"",
                "1:5-11 t.x: found the string \"true\", expected true or false; remove the quotes"},
        Refusal{kBool, "1", "1:5-6 t.x: found 1, expected true or false; write true"},
        Refusal{kBool, "2", "1:5-6 t.x: found 2, expected true or false"},
        Refusal{kBool, "\"yes\"", "1:5-10 t.x: found the string \"yes\", expected true or false"},
        Refusal{kBool, "[true]", "1:5-11 t.x: found a list, expected true or false"}));

INSTANTIATE_TEST_SUITE_P(
    Int, Check,
    testing::Values(
        Refusal{kInt, "\"10\"",
                "1:5-9 t.x: found the string \"10\", expected an integer >= 1; remove the quotes"},
        Refusal{kInt, "\"ten\"", "1:5-10 t.x: found the string \"ten\", expected an integer >= 1"},
        Refusal{kInt, "\"0\"", "1:5-8 t.x: found the string \"0\", expected an integer >= 1"},
        Refusal{kInt, "1e-3", "1:5-9 t.x: found 1e-3, expected an integer >= 1"},
        Refusal{kInt, "3.0", "1:5-8 t.x: found 3.0, expected an integer >= 1; write 3"},
        Refusal{kInt, "1e3", "1:5-8 t.x: found 1e3, expected an integer >= 1; write 1000"},
        Refusal{kInt, "0", "1:5-6 t.x: found 0, expected an integer >= 1"},
        Refusal{kInt, "-1_000", "1:5-11 t.x: found -1_000, expected an integer >= 1"},
        Refusal{kInt, "true", "1:5-9 t.x: found true, expected an integer >= 1"},
        Refusal{kInt, "nan", "1:5-8 t.x: found nan, expected an integer >= 1"},
        Refusal{kInt, "{ a = 1 }", "1:5-14 t.x: found a table, expected an integer >= 1"},
        Refusal{kInt, "[]", "1:5-7 t.x: found an empty list, expected an integer >= 1"},
        Refusal{kInt, "1979-05-27",
                "1:5-15 t.x: found the date or time 1979-05-27, expected an integer >= 1"},
        Refusal{ranged(LH_T_INT, "0", "256"), "257", "1:5-8 t.x: found 257, expected an integer in 0..256"},
        Refusal{ranged(LH_T_INT, ">0", "<4"), "4", "1:5-6 t.x: found 4, expected an integer > 0 and < 4"},
        Refusal{ranged(LH_T_INT, ">0", "<4"), "0", "1:5-6 t.x: found 0, expected an integer > 0 and < 4"},
        Refusal{ranged(LH_T_INT, "1", "1"), "2", "1:5-6 t.x: found 2, expected 1"},
        Refusal{ranged(LH_T_INT, "", "9223372036854775806"), "9223372036854775807",
                "1:5-24 t.x: found 9223372036854775807, expected an integer <= 9223372036854775806"}));

INSTANTIATE_TEST_SUITE_P(
    Float, Check,
    testing::Values(
        Refusal{kFloat, "\"1e-3\"",
                "1:5-11 t.x: found the string \"1e-3\", expected a number > 0; remove the quotes"},
        Refusal{kFloat, "0.0", "1:5-8 t.x: found 0.0, expected a number > 0"},
        Refusal{kFloat, "-1", "1:5-7 t.x: found -1, expected a number > 0"},
        Refusal{kFloat, "nan", "1:5-8 t.x: found nan, expected a number > 0"},
        Refusal{kFloat, "inf", "1:5-8 t.x: found inf, expected a number > 0"},
        Refusal{kFloat, "false", "1:5-10 t.x: found false, expected a number > 0"},
        Refusal{ranged(LH_T_FLOAT, "0.0", "<1"), "1.0",
                "1:5-8 t.x: found 1.0, expected a number >= 0 and < 1"},
        Refusal{ranged(LH_T_FLOAT, "", "0.5"), "0.6", "1:5-8 t.x: found 0.6, expected a number <= 0.5"},
        Refusal{option("x", LH_T_FLOAT), "-inf", "1:5-9 t.x: found -inf, expected a number"}));

INSTANTIATE_TEST_SUITE_P(
    Text, Check,
    testing::Values(
        Refusal{kString, "5", "1:5-6 t.x: found 5, expected a string; write \"5\""},
        Refusal{kString, "1979-05-27",
                "1:5-15 t.x: found the date or time 1979-05-27, expected a string; write \"1979-05-27\""},
        Refusal{kString, "[]", "1:5-7 t.x: found an empty list, expected a string"},
        Refusal{at_least(LH_T_STR, 1), "\"\"",
                "1:5-7 t.x: found an empty string, expected a string that is not empty"},
        Refusal{kPath, "\"\"",
                "1:5-7 t.x: found an empty string, expected a path (a string that is not empty)"},
        Refusal{kString, "\"a\\u0000b\"",
                "1:5-15 t.x: holds the character \\u0000, which no text here may have; remove it"},
        Refusal{option("x", LH_T_LIST_STR), "[\"a\", \"\\u0000\"]",
                "1:11-19 t.x[1]: holds the character \\u0000, which no text here may have; remove it"},
        Refusal{kPath, "\"a\\u0000b\"",
                "1:5-15 t.x: found the string \"a\\u0000b\", expected a path (a string that is not empty)"},
        Refusal{kPath, "true",
                "1:5-9 t.x: found true, expected a path (a string that is not empty); write \"true\""},
        Refusal{
            choosing(LH_T_ENUM), "\"nrom\"",
            "1:5-11 t.x: found the string \"nrom\", expected \"norm\" or \"value\"; did you mean \"norm\"?"},
        Refusal{choosing(LH_T_ENUM), "\"l2\"",
                "1:5-9 t.x: found the string \"l2\", expected \"norm\" or \"value\""},
        Refusal{choosing(LH_T_ENUM), "1", "1:5-6 t.x: found 1, expected \"norm\" or \"value\""},
        Refusal{
            option("x", T_REGEX), "5",
            "1:5-6 t.x: found 5, expected a regular expression (a string that is not empty); write \"5\""}));

INSTANTIATE_TEST_SUITE_P(
    Units, Check,
    testing::Values(
        Refusal{kSize, "\"25M\"",
                "1:5-10 t.x: found the string \"25M\", expected a size such as \"25MiB\"; units: B, kB, MB, "
                "GB, TB, KiB, MiB, GiB, TiB"},
        Refusal{kSize, "\"25\"",
                "1:5-9 t.x: found the string \"25\", expected a size such as \"25MiB\"; remove the quotes"},
        Refusal{kSize, "-1", "1:5-7 t.x: found -1, expected a size such as \"25MiB\""},
        Refusal{kSize, "\"-1MiB\"",
                "1:5-12 t.x: found the string \"-1MiB\", expected a size such as \"25MiB\"; units: B, kB, "
                "MB, GB, TB, KiB, MiB, GiB, TiB"},
        Refusal{kSize, "1.5", "1:5-8 t.x: found 1.5, expected a size such as \"25MiB\""},
        Refusal{kSize, "2.0", "1:5-8 t.x: found 2.0, expected a size such as \"25MiB\"; write 2"},
        Refusal{ranged(LH_T_SIZE, "\"1KiB\"", "\"1MiB\""), "1023",
                "1:5-9 t.x: found 1023, expected a size in 1KiB..1MiB such as \"25MiB\""},
        Refusal{kDuration, "90",
                "1:5-7 t.x: found 90, expected a duration such as \"90s\" or \"00:30:00\"; write \"90s\""},
        Refusal{kDuration, "00:30:00",
                "1:5-13 t.x: found the date or time 00:30:00, expected a duration such as \"90s\" or "
                "\"00:30:00\"; write \"00:30:00\""},
        Refusal{kDuration, "\"90 sec\"",
                "1:5-13 t.x: found the string \"90 sec\", expected a duration such as \"90s\" or "
                "\"00:30:00\"; units: ns, us, ms, s, m, h, d"},
        Refusal{ranged(LH_T_DURATION, "\"1s\""), "\"999ms\"",
                "1:5-12 t.x: found the string \"999ms\", expected a duration >= 1s such as \"90s\" or "
                "\"00:30:00\"; units: ns, us, ms, s, m, h, d"},
        Refusal{kShare, "1.5", "1:5-8 t.x: found 1.5, expected a share in 0..1 such as \"5%\" or 0.05"},
        Refusal{kShare, "-0.1", "1:5-9 t.x: found -0.1, expected a share in 0..1 such as \"5%\" or 0.05"},
        Refusal{kShare, "nan", "1:5-8 t.x: found nan, expected a share in 0..1 such as \"5%\" or 0.05"},
        Refusal{kShare, "\"101%\"",
                "1:5-11 t.x: found the string \"101%\", expected a share in 0..1 such as \"5%\" or 0.05"},
        Refusal{kShare, "\"0.5\"",
                "1:5-10 t.x: found the string \"0.5\", expected a share in 0..1 such as \"5%\" or 0.05; "
                "remove the quotes"},
        Refusal{ranged(LH_T_SHARE, "0.1"), "0.05",
                "1:5-9 t.x: found 0.05, expected a share >= 0.1 such as \"5%\" or 0.05"},
        Refusal{kCadence, "500",
                "1:5-8 t.x: found 500, expected a cadence such as { steps = 500 }; write { steps = 500 }"},
        Refusal{kCadence, "{ step = 5 }",
                "1:7-11 t.x.step: unknown unit; did you mean \"steps\"? (steps, batches, samples, epochs, "
                "seconds)"},
        Refusal{kCadence, "{ steps = 5, epochs = 1 }",
                "1:5-30 t.x: found a table, expected a cadence such as { steps = 500 }"},
        Refusal{kCadence, "{ steps = 0 }", "1:15-16 t.x.steps: found 0, expected an integer >= 1"},
        Refusal{kCadence, "{ seconds = 0 }",
                "1:17-18 t.x.seconds: found 0, expected a number > 0 and <= 9e+09"},
        Refusal{kCadence, "{}", "1:5-7 t.x: found a table, expected a cadence such as { steps = 500 }"}));

INSTANTIATE_TEST_SUITE_P(
    Lists, Check,
    testing::Values(
        Refusal{kInts, "5", "1:5-6 t.x: found 5, expected a list of integers >= 1; write [5]"},
        Refusal{kInts, "[1, 0]", "1:9-10 t.x[1]: found 0, expected an integer >= 1"},
        Refusal{kInts, "[\"7\"]",
                "1:6-9 t.x[0]: found the string \"7\", expected an integer >= 1; remove the quotes"},
        Refusal{kInts, "[1.5]", "1:6-9 t.x[0]: found 1.5, expected an integer >= 1"},
        Refusal{kInts, "[[1]]", "1:6-9 t.x[0]: found a list, expected an integer >= 1"},
        Refusal{kFloats, "[1, nan]", "1:9-12 t.x[1]: found nan, expected a number"},
        Refusal{kStrings, "\"fit\"",
                "1:5-10 t.x: found the string \"fit\", expected a list of strings; write [\"fit\"]"},
        Refusal{kStrings, "[1]", "1:6-7 t.x[0]: found 1, expected a string; write \"1\""},
        Refusal{at_least(LH_T_LIST_INT, 2), "[1]",
                "1:5-8 t.x: found a list of 1, expected a list of at least 2 integers"},
        Refusal{choosing(LH_T_LIST_STR), "[\"norm\", \"norm\"]",
                "1:14-20 t.x[1]: \"norm\" is given twice; remove one of the two"},
        Refusal{choosing(LH_T_LIST_STR), "[\"vlaue\"]",
                "1:6-13 t.x[0]: found the string \"vlaue\", expected \"norm\" or \"value\"; did you mean "
                "\"value\"?"}));

INSTANTIATE_TEST_SUITE_P(
    HostTypes, Check,
    testing::Values(
        Refusal{option("x", T_LIMIT), "-1",
                "1:5-7 t.x: found -1, expected a number of batches (an integer >= 0) or a share of them (0.0 "
                "to 1.0)"},
        Refusal{option("x", T_LIMIT), "2.0",
                "1:5-8 t.x: found 2.0, expected a number of batches (an integer >= 0) or a share of them "
                "(0.0 to 1.0); write 2"},
        Refusal{option("x", T_LIMIT), "nan",
                "1:5-8 t.x: found nan, expected a number of batches (an integer >= 0) or a share of them "
                "(0.0 to 1.0)"},
        Refusal{option("x", T_LIMIT), "\"10\"",
                "1:5-9 t.x: found the string \"10\", expected a number of batches (an integer >= 0) or a "
                "share of them (0.0 to 1.0); remove the quotes"},
        Refusal{option("x", T_WARMUP), "0.05",
                "1:5-9 t.x: found 0.05, expected an integer >= 0 or a share such as \"5%\""},
        Refusal{option("x", T_WARMUP), "-5",
                "1:5-7 t.x: found -5, expected an integer >= 0 or a share such as \"5%\""},
        Refusal{option("x", T_SAVE_LAST), "\"true\"",
                "1:5-11 t.x: found the string \"true\", expected true, false or \"link\"; remove the quotes"},
        Refusal{option("x", T_SAVE_LAST), "1", "1:5-6 t.x: found 1, expected true, false or \"link\""},
        Refusal{option("x", T_DEVICES), "0",
                "1:5-6 t.x: found 0, expected \"auto\", a number of devices >= 1 or a list such as [0, 2]"},
        Refusal{
            option("x", T_DEVICES), "4097",
            "1:5-9 t.x: found 4097, expected \"auto\", a number of devices >= 1 or a list such as [0, 2]"},
        Refusal{option("x", T_DEVICES), "[]",
                "1:5-7 t.x: found an empty list, expected \"auto\", a number of devices >= 1 or a list such "
                "as [0, 2]"},
        Refusal{option("x", T_DEVICES), "[0, -1]",
                "1:9-11 t.x[1]: found -1, expected the number of a device, from 0"},
        Refusal{option("x", T_DEVICES), "[2, 2]",
                "1:9-10 t.x[1]: device 2 is given twice; remove one of the two"}));

TEST(Check, RefusesPatternsThatAreNone) {
  for (const std::string& bad :
       {std::string("(a"), std::string("[z"), std::string("*"), std::string(2000, '(')}) {
    const Parsed p("x = '" + bad + "'");
    Diagnostics d;
    check_table(p.root, "t", {option("x", T_REGEX)}, p.texts, d);
    ASSERT_EQ(d.list().size(), 1u) << bad;
    EXPECT_THAT(d.list()[0].message,
                testing::ContainsRegex("expected a regular expression|expected at most 1000"));
  }
}

TEST(Check, QuotesNoMoreThanTheBeginningOfALongString) {
  const Parsed p("x = \"" + std::string(5000, 'a') + "\"");
  Diagnostics d;
  check_table(p.root, "t", {kInt}, p.texts, d);
  EXPECT_LT(d.list()[0].message.size(), 200u);
}

// ---- tables -----------------------------------------------------------------------------------------------

TEST(CheckTable, ReportsEveryErrorAtOnce) {
  const Parsed p("a = \"1\"\nb = 1\nc = nan\n");
  Diagnostics d;
  check_table(p.root, "", {option("a", LH_T_INT), option("b", LH_T_BOOL), option("c", LH_T_FLOAT)}, p.texts,
              d);
  EXPECT_EQ(d.list().size(), 3u);
}

TEST(CheckTable, MissingRequiredKeysPointToTheTable) {
  const Parsed p("[run]\n[optimizer]\nuse = \"sgd\"\n");
  OptionSpec lr = ranged(LH_T_FLOAT, ">0");
  lr.key = "lr", lr.flags = LH_O_REQUIRED, lr.doc = "learning rate";
  Diagnostics d;
  check_table(*p.root.find("optimizer"), "optimizer", {lr}, p.texts, d);
  EXPECT_THAT(lines(d), ElementsAre("2:1-12 optimizer.lr: missing; expected a number > 0 (learning rate)"));
}

TEST(CheckTable, DottedKeysMatchTablesOfEveryNotation) {
  const Schema schema = {option("train.images", LH_T_PATH), option("train.deep.n", LH_T_INT)};
  for (const char* text :
       {"train.images = \"i\"\ntrain.deep.n = 1", "train = { images = \"i\", deep = { n = 1 } }",
        "[train]\nimages = \"i\"\n[train.deep]\nn = 1"}) {
    const Parsed p(text);
    Diagnostics d;
    const Values v = check_table(p.root, "data", schema, p.texts, d);
    EXPECT_THAT(lines(d), IsEmpty());
    EXPECT_EQ(v.text("train.images"), "/base/i") << text;
    EXPECT_EQ(v.integer("train.deep.n"), 1) << text;
  }
}

TEST(CheckTable, ATableIsExpectedWhereDottedKeysLeadThrough) {
  OptionSpec images = option("train.images", LH_T_PATH);
  images.flags = LH_O_REQUIRED;
  const Parsed p("train = \"x.gz\"");
  Diagnostics d;
  check_table(p.root, "data", {images, option("train.labels", LH_T_PATH)}, p.texts, d);
  EXPECT_THAT(lines(d), ElementsAre("1:9-15 data.train: found the string \"x.gz\", expected a table such as "
                                    "{ images = ..., labels = ... }"));
}

TEST(CheckTable, WhatIsNoTableIsOneError) {
  const Parsed p("trainer = 3");
  OptionSpec needed = option("n", LH_T_INT);
  needed.flags = LH_O_REQUIRED;
  Diagnostics d;
  check_table(*p.root.find("trainer"), "trainer", {needed}, p.texts, d);
  EXPECT_THAT(lines(d), ElementsAre("1:11-12 trainer: found 3, expected a table"));
}

TEST(CheckTable, PathsAreRelativeToTheTextThatNamesThem) {
  Parsed p("a = \"x/../data\"\nb = \"/abs\"");
  p.texts.push_back({"base.toml", "/elsewhere", "c = \"d\""});
  Diagnostics d;
  put(p.root, "c", *parse_toml(1, Origin::file, p.texts, d)->find("c"));
  OptionSpec with_default = option("d", LH_T_PATH);
  with_default.def = "\"runs\"";
  const Values v = check_table(
      p.root, "", {option("a", LH_T_PATH), option("b", LH_T_PATH), option("c", LH_T_PATH), with_default},
      p.texts, d);
  EXPECT_EQ(v.text("a"), "/base/data");
  EXPECT_EQ(v.text("b"), "/abs");
  EXPECT_EQ(v.text("c"), "/elsewhere/d");
  EXPECT_EQ(v.text("d"), "/base/runs");
  EXPECT_EQ(to_toml(v.node("a")), "\"/base/data\"");
}

TEST(CheckTable, DeprecatedKeysStillWorkAndSayTheirNewName) {
  OptionSpec old = option("rate", LH_T_FLOAT);
  old.flags = LH_O_DEPRECATED, old.replaced_by = "lr";
  const Parsed p("rate = 1");
  Diagnostics d;
  const Values v = check_table(p.root, "optimizer", {old, option("lr", LH_T_FLOAT)}, p.texts, d);
  EXPECT_EQ(v.number("rate"), 1.0);
  EXPECT_TRUE(d.empty());
  ASSERT_EQ(d.list().size(), 1u);
  EXPECT_TRUE(d.list()[0].warning);
  EXPECT_EQ(d.list()[0].message, "this key is deprecated; write \"lr\"");

  const Parsed both("rate = 1\nlr = 2");
  Diagnostics errors;
  check_table(both.root, "optimizer", {old, option("lr", LH_T_FLOAT)}, both.texts, errors);
  EXPECT_THAT(
      lines(errors),
      ElementsAre("1:8-9 optimizer.rate: given together with \"lr\", which replaces it; remove this one"));
  EXPECT_FALSE(errors.empty());
}

TEST(CheckTable, SecretsAreNeverSaid) {
  OptionSpec token = option("token", LH_T_INT);
  token.flags = LH_O_SECRET;
  const Parsed p("token = \"hunter2\"");
  Diagnostics d;
  check_table(p.root, "logger[0]", {token}, p.texts, d);
  EXPECT_THAT(d.render(p.texts, false), testing::Not(HasSubstr("hunter2")));
  EXPECT_THAT(lines(d), ElementsAre("1:9-18 logger[0].token: found a string, expected an integer"));
}

TEST(CheckTable, AComponentsOwnMistakesAreCalledSo) {
  OptionSpec bad_default = option("a", LH_T_INT), bad_limit = option("b", LH_T_INT), future = option("c", 77);
  bad_default.def = "\"x\"", bad_limit.min = "low";
  const Parsed p("b = 1\nc = 1");
  Diagnostics d;
  check_table(p.root, "t", {bad_default, bad_limit, future}, p.texts, d);
  EXPECT_THAT(
      lines(d),
      ElementsAre("0:0-0 t.a: its own default \"x\" is not an integer: a bug of the component",
                  "0:0-0 t.b: its own limit low cannot be read: a bug of the component",
                  "2:5-6 t.c: this host does not know the option's type 77; the plugin needs a newer lhost"));
}

TEST(CheckTable, ARefusedValueLeavesTheDefault) {
  OptionSpec n = option("n", LH_T_INT);
  n.def = "7";
  const Parsed p("n = true");
  Diagnostics d;
  EXPECT_EQ(check_table(p.root, "t", {n}, p.texts, d).integer("n"), 7);
}

}  // namespace
}  // namespace lhost
