// tests/host/manifest/node_test.cpp
#include "manifest/path.hpp"
#include "support.hpp"

namespace lhost {
namespace {

TEST(Node, FindsByPath) {
  const Parsed p(
      "data.train.images = \"i\"\n[[logger]]\nuse = \"csv\"\n[[logger]]\nuse = \"jsonl\"\n[x]\n\"a.b\" = 1");
  EXPECT_EQ(p.root.at_path("data.train.images")->string, "i");
  EXPECT_EQ(p.root.at_path("logger[1].use")->string, "jsonl");
  EXPECT_EQ(p.root.at_path("x.\"a.b\"")->integer, 1);
  for (const char* missing :
       {"data.val", "logger[2].use", "logger.use", "data[0]", "", ".", "data.", "data..train", "logger[x]",
        "logger[0", "logger[-1]", "logger[99999999999999999999]", "x.\"a.b"}) {
    EXPECT_EQ(p.root.at_path(missing), nullptr) << missing;
  }
}

TEST(Node, TellsListsOfTables) {
  const Parsed p("none = []\nnumbers = [1]\nmixed = [{}, 1]\n[[tables]]");
  EXPECT_TRUE(p.root.find("none")->is_array_of_tables());
  EXPECT_TRUE(p.root.find("tables")->is_array_of_tables());
  EXPECT_FALSE(p.root.find("numbers")->is_array_of_tables());
  EXPECT_FALSE(p.root.find("mixed")->is_array_of_tables());
  EXPECT_FALSE(p.root.is_array_of_tables());
}

TEST(Node, PutMakesTablesOnTheWayAndReplaces) {
  Node root, one;
  one.type = Node::Type::integer;
  one.integer = 1;
  put(root, "a.b.c", one);
  put(root, "a.b.d", one);
  one.integer = 2;
  put(root, "a.b.c", one);
  EXPECT_EQ(to_toml(root), "{ a = { b = { c = 2, d = 1 } } }");
}

TEST(KeyPath, RefusesMoreStepsThanAnySchemaHas) {
  std::string path = "a";
  for (int i = 0; i < 40; ++i) path += ".a";
  EXPECT_THAT(parse_path(path).error, testing::HasSubstr("more than 32 parts"));
  EXPECT_TRUE(parse_path(path).steps.empty());
}

}  // namespace
}  // namespace lhost
