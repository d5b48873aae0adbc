// tests/host/manifest/values_test.cpp
#include "support.hpp"

#include <cstring>

namespace lhost {
namespace {

using testing::ElementsAre;

TEST(Values, DefaultsAreNotGivenAndComeFromNowhere) {
  OptionSpec n = option("n", LH_T_INT);
  n.def = "7";
  Parsed p("x = 1");
  Diagnostics d;
  const Values v = check_table(p.root, "t", {n, option("none", LH_T_STR), option("x", LH_T_INT)}, p.texts, d);
  EXPECT_EQ(v.integer("n"), 7);
  EXPECT_FALSE(v.given("n"));
  EXPECT_EQ(v.source("n").origin, Origin::component_default);
  EXPECT_EQ(v.source("n").text, -1);
  EXPECT_EQ(v.node("n").integer, 7);
  EXPECT_FALSE(v.has("none"));
  EXPECT_EQ(v.text("none"), "");
  EXPECT_TRUE(v.given("x"));
  EXPECT_EQ(place(v.source("x")), "1:5-6");
}

TEST(Values, TheDefaultsFileDoesNotCountAsGiven) {
  Texts texts = {{"defaults.toml", "", "x = 1"}};
  Diagnostics d;
  const auto root = parse_toml(0, Origin::defaults_file, texts, d);
  const Values v = check_table(*root, "t", {option("x", LH_T_INT)}, texts, d);
  EXPECT_FALSE(v.given("x"));
  EXPECT_EQ(v.integer("x"), 1);
}

TEST(Values, PointersStayGoodWhenMoved) {
  const Parsed p("s = \"short\"\nl = [\"a\", \"bb\"]\ni = [3, 4]\nf = [0.5]\nd = [2, 5]");
  Diagnostics d;
  Values first = check_table(p.root, "t",
                             {option("s", LH_T_STR), option("l", LH_T_LIST_STR), option("i", LH_T_LIST_INT),
                              option("f", LH_T_LIST_FLOAT), option("d", T_DEVICES)},
                             p.texts, d);
  const Values v = std::move(first);
  EXPECT_EQ(v.text("s"), "short");
  ASSERT_EQ(v["l"].n, 2u);
  EXPECT_EQ(std::string(v["l"].u.ls[1].ptr, v["l"].u.ls[1].len), "bb");
  EXPECT_EQ(v["i"].u.li[1], 4);
  EXPECT_EQ(v["f"].u.lf[0], 0.5);
  EXPECT_EQ(v["d"].u.li[1], 5);
}

TEST(Values, ACountOfDevicesBecomesTheFirstOnes) {
  const Parsed p("d = 3");
  Diagnostics d;
  const Values v = check_table(p.root, "t", {option("d", T_DEVICES)}, p.texts, d);
  EXPECT_THAT(std::vector<int64_t>(v["d"].u.li, v["d"].u.li + v["d"].n), ElementsAre(0, 1, 2));
}

TEST(Values, ListsAreParallelToTheSchema) {
  const Parsed p("b = 2");
  Diagnostics d;
  const Schema schema = {option("a", LH_T_NONE), option("b", LH_T_INT)};
  const Values v = check_table(p.root, "t", schema, p.texts, d);
  ASSERT_EQ(v.list().size(), 2u);
  EXPECT_EQ(v.list()[1].u.i, 2);
  EXPECT_THROW(v["c"], std::out_of_range);
}

TEST(SchemaOf, CopiesEveryFieldAndMindsTheStride) {
  struct Longer {  // a newer plugin's option
    lh_option known;
    uint64_t later;
  };
  const lh_str choices[] = {LH_STR("a"), LH_STR("b")};
  Longer list[2] = {};
  for (Longer& o : list) o.known.size = sizeof(Longer), o.later = ~uint64_t{0};
  list[1].known.type = LH_T_ENUM;
  list[1].known.flags = LH_O_REQUIRED;
  list[1].known.key = LH_STR("train.images");
  list[1].known.doc = LH_STR("doc");
  list[1].known.def = LH_STR("\"a\"");
  list[1].known.min = LH_STR("1");
  list[1].known.max = LH_STR("2");
  list[1].known.replaced_by = LH_STR("new");
  list[1].known.choices = choices;
  list[1].known.n_choices = 2;
  list[1].known.min_len = 3;
  const Schema schema = schema_of(&list[0].known, 2, sizeof(Longer));
  ASSERT_EQ(schema.size(), 2u);
  EXPECT_EQ(schema[1].key, "train.images");
  EXPECT_EQ(schema[1].type, LH_T_ENUM);
  EXPECT_EQ(schema[1].flags, uint32_t{LH_O_REQUIRED});
  EXPECT_EQ(schema[1].doc + schema[1].def + schema[1].min + schema[1].max + schema[1].replaced_by,
            "doc\"a\"12new");
  EXPECT_THAT(schema[1].choices, ElementsAre("a", "b"));
  EXPECT_EQ(schema[1].min_len, 3u);
}

TEST(SchemaOf, ReadsNoFurtherThanAnOlderOptionReaches) {
  constexpr size_t old_size = offsetof(lh_option, min_len);
  std::vector<char> bytes(2 * old_size);
  for (size_t i = 0; i < 2; ++i) {
    lh_option o{};
    o.size = old_size;
    o.type = LH_T_INT;
    o.key = LH_STR("n");
    o.min_len = 9;
    std::memcpy(bytes.data() + i * old_size, &o, old_size);
  }
  const Schema schema = schema_of(reinterpret_cast<const lh_option*>(bytes.data()), 2, old_size);
  ASSERT_EQ(schema.size(), 2u);
  EXPECT_EQ(schema[1].key, "n");
  EXPECT_EQ(schema[1].min_len, 0u);
  EXPECT_TRUE(schema_of(nullptr, 5, sizeof(lh_option)).empty());
}

}  // namespace
}  // namespace lhost
