// tests/host/manifest/to_toml_test.cpp
#include "support.hpp"

#include <cmath>
#include <limits>

namespace lhost {
namespace {

TEST(ToToml, ScalarsKeepTheirTypeAndEveryBit) {
  Node n;
  n.type = Node::Type::floating;
  for (double v : {0.1, 1e-3, 3.0, -0.0, 1e300, 5e-324, 1.0 / 3.0, 123456789.0,
                   std::numeric_limits<double>::infinity()}) {
    n.floating = v;
    const auto back = parse_value(to_toml(n));
    ASSERT_TRUE(back) << to_toml(n);
    EXPECT_EQ(back->type, Node::Type::floating) << to_toml(n);
    EXPECT_EQ(std::signbit(back->floating), std::signbit(v));
    EXPECT_EQ(back->floating, v) << to_toml(n);
  }
  n.type = Node::Type::integer;
  n.integer = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(parse_value(to_toml(n))->integer, n.integer);
}

TEST(ToToml, EveryCharacterOfAStringComesBack) {
  Node n;
  n.type = Node::Type::string;
  for (int c = 0; c < 128; ++c) n.string += static_cast<char>(c);
  n.string += "\xC3\xA9 \xE2\x82\xAC";
  const auto back = parse_value(to_toml(n));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->string, n.string);
}

TEST(ToToml, DocumentReadsBackAsTheSameManifest) {
  const Parsed p(R"(schema = 1
odd."key with.dot" = { "a b" = [1, 2.5, ["x", true]], empty = {}, list = [{ x = 1 }, { y = [] }] }
when = 1979-05-27T07:32:00.5-07:00
day = 1979-05-27
hour = 00:30:00
[run]
name = "a \"quoted\" \\ name"
stages = ["fit", "test"]
[data]
train = { images = "i.gz", labels = "l.gz" }
split.train = "90%"
deep = { deeper = { deepest = { x = [[1], []] } } }
[optimizer]
lr = 1e-3
[[optimizer.group]]
match = '\.bias$|norm'
weight_decay = 0.0
[[optimizer.group]]
match = "x"
[[logger]]
use = "csv"
every = { steps = 500 }
[[logger]]
[[callback]]
sub = [{ a = 1 }]
[profiler]
)");
  ASSERT_TRUE(p.problems.list().empty());
  const std::string document = to_toml_document(p.root);
  const Parsed again(document);
  EXPECT_TRUE(again.problems.list().empty()) << document << again.problems.render(again.texts, false);
  EXPECT_TRUE(same(p.root, again.root)) << document;
  EXPECT_EQ(to_toml_document(again.root), document);
}

TEST(ToToml, DocumentIsLaidOutAsPeopleWriteIt) {
  const Parsed p(
      "logger = []\nrun = { name = \"x\" }\n[[callback]]\nuse = \"progress\"\n[[callback]]\nuse = \"lr\"\n"
      "[optimizer]\nlr = 0.5\n[[optimizer.group]]\nmatch = \"bias\"\n[data]\ntrain.images = \"i\"\n");
  EXPECT_EQ(to_toml_document(p.root), R"(logger = []

[run]
name = "x"

[[callback]]
use = "progress"

[[callback]]
use = "lr"

[optimizer]
lr = 0.5

[[optimizer.group]]
match = "bias"

[data]
train = { images = "i" }
)");
}

TEST(ToToml, MasksSecretsAndLeavesOutWhatHasNoValue) {
  Parsed p("[logger]\ntoken = \"hunter2\"\nurl = \"u\"");
  p.root.find("logger")->find("token")->secret = true;
  put(p.root, "logger.nothing", Node{});
  EXPECT_EQ(to_toml_document(p.root), "[logger]\ntoken = \"***\"\nurl = \"u\"\n");
  EXPECT_EQ(to_toml(p.root), "{ logger = { token = \"***\", url = \"u\" } }");
}

}  // namespace
}  // namespace lhost
