#include "train/checkpoint_tree.hpp"

#include "assembly/execute.hpp"
#include "base/failure.hpp"
#include "base/signals.hpp"
#include "engine_support.hpp"
#include "support/temp_dir.hpp"

#include <sys/resource.h>

#include <gmock/gmock.h>

namespace lhost {
namespace {

namespace fs = std::filesystem;
using lhost_test::TempDir;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using train_test::elements;
using train_test::engine;
using train_test::Numbers;

const Checkpointer& torch_format() {
  static const Checkpointer c = [] {
    Selection s;
    s.kind = "checkpointer";
    s.name = "torch";
    s.path = LHOST_TEST_PLUGINS "/checkpointer/torch.so";
    return Checkpointer(create_component(s, nullptr));
  }();
  return c;
}

struct Tree : testing::Test {
  TempDir dir;
  CheckpointTree tree{engine()}, loaded{engine()};
  static std::vector<double> values_of(const CheckpointTree& t, const TreePath& path) {
    const TreeLeaf* l = t.find(path);
    if (!l || l->kind != LH_LEAF_TENSOR) return {};
    int64_t n = 1;
    for (int64_t d : l->shape) n *= d;
    std::vector<double> v(static_cast<size_t>(n));
    std::memcpy(v.data(), l->data, v.size() * sizeof(double));
    return v;
  }
};

TEST_F(Tree, GivesWhatWasPutAndTheDefaultForAnythingElse) {
  tree.put({"i"}, int64_t{7});
  tree.put({"f"}, 0.5);
  tree.put({"b"}, true);
  tree.put({"s"}, std::string("text"));
  EXPECT_EQ(tree.integer({"i"}, -1), 7);
  EXPECT_EQ(tree.integer({"b"}, -1), 1);
  EXPECT_EQ(tree.number({"f"}, -1), 0.5);
  EXPECT_EQ(tree.number({"i"}, -1), 7) << "a whole number is a number";
  EXPECT_EQ(tree.text({"s"}, "-"), "text");
  for (const TreePath& other : {TreePath{"s"}, TreePath{"f"}, TreePath{"none"}, TreePath{}})
    EXPECT_EQ(tree.integer(other, -1), -1);
  for (const TreePath& other : {TreePath{"s"}, TreePath{"b"}, TreePath{"none"}})
    EXPECT_EQ(tree.number(other, -1), -1);
  for (const TreePath& other : {TreePath{"i"}, TreePath{"none"}}) EXPECT_EQ(tree.text(other, "-"), "-");
}

TEST_F(Tree, KeysMayHoldDotsAndSlashes) {
  tree.put({"a", "b.c"}, int64_t{1});
  tree.put({"a.b", "c"}, int64_t{2});
  tree.put({"a/b", "c"}, int64_t{3});
  tree.put({"a", "b", "c"}, int64_t{4});
  EXPECT_EQ(tree.integer({"a", "b.c"}, 0), 1);
  EXPECT_EQ(tree.integer({"a.b", "c"}, 0), 2);
  EXPECT_EQ(tree.integer({"a/b", "c"}, 0), 3);
  EXPECT_EQ(tree.integer({"a", "b", "c"}, 0), 4);
}

TEST_F(Tree, BranchesAreListedInOrder) {
  tree.put({"p", "z", "1"}, int64_t{0});
  tree.put({"q"}, int64_t{0});
  tree.put({"p", "a"}, int64_t{0});
  tree.put({"p", "z", "2"}, int64_t{0});
  EXPECT_THAT(tree.children({"p"}), ElementsAre("z", "a"));
  EXPECT_THAT(tree.children({}), ElementsAre("p", "q"));
  EXPECT_THAT(tree.children({"p", "z"}), ElementsAre("1", "2"));
  EXPECT_THAT(tree.children({"q"}), IsEmpty()) << "a leaf has no branches";
  EXPECT_EQ(tree.below({"p"}).size(), 3u);
  EXPECT_TRUE(tree.has_below({"p", "z"}));
  EXPECT_FALSE(tree.has_below({"p", "a"}));
  EXPECT_FALSE(tree.has_below({"x"}));
}

TEST_F(Tree, ATensorInHostMemoryIsSharedAndKeptAlive) {
  {
    const Numbers t({1, 2});
    tree.put_tensor({"t"}, t.get());
    check(engine().ops.fill(t.get(), 5));
  }
  EXPECT_THAT(values_of(tree, {"t"}), ElementsAre(5, 5));
}

TEST_F(Tree, AFileGivesBackEveryKindOfLeaf) {
  const Numbers t({1, 2, 3, 4, 5, 6}, {2, 3}), scalar({7}, {}), none({}, {0, 4});
  tree.put({"lhost", "step"}, int64_t{-1} << 62);
  tree.put({"lhost", "lr"}, 0.1);
  tree.put({"lhost", "yes"}, true);
  tree.put({"lhost", "manifest"}, std::string("[run]\nname = \"\xC3\xBC\"\n"));
  tree.put({"lhost", "numbers"}, std::vector<double>{1, 0.5, -3});
  tree.put_tensor({"state_dict", "a.weight"}, t.get());
  tree.put_tensor({"state_dict", "scalar"}, scalar.get());
  tree.put_tensor({"state_dict", "none"}, none.get());
  tree.save(torch_format(), dir / "x.ckpt");
  loaded.load(torch_format(), dir / "x.ckpt");
  EXPECT_EQ(loaded.integer({"lhost", "step"}, 0), int64_t{-1} << 62);
  EXPECT_EQ(loaded.number({"lhost", "lr"}, 0), 0.1);
  EXPECT_EQ(loaded.find({"lhost", "yes"})->type, LH_T_BOOL);
  EXPECT_EQ(loaded.text({"lhost", "manifest"}, ""), "[run]\nname = \"\xC3\xBC\"\n");
  EXPECT_THAT(loaded.find({"lhost", "numbers"})->lf, ElementsAre(1, 0.5, -3));
  EXPECT_THAT(values_of(loaded, {"state_dict", "a.weight"}), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(loaded.find({"state_dict", "a.weight"})->shape, ElementsAre(2, 3));
  EXPECT_THAT(values_of(loaded, {"state_dict", "scalar"}), ElementsAre(7));
  EXPECT_THAT(loaded.find({"state_dict", "scalar"})->shape, IsEmpty());
  EXPECT_THAT(loaded.find({"state_dict", "none"})->shape, ElementsAre(0, 4));
  EXPECT_THAT(loaded.children({}), ElementsAre("lhost", "state_dict"));
}

TEST_F(Tree, OutlivesTheFileItCameFrom) {
  const Numbers t({1, 2, 3});
  tree.put_tensor({"t"}, t.get());
  tree.save(torch_format(), dir / "x.ckpt");
  loaded.load(torch_format(), dir / "x.ckpt");
  std::ofstream(dir / "x.ckpt") << "something else";
  EXPECT_THAT(values_of(loaded, {"t"}), ElementsAre(1, 2, 3));
}

TEST_F(Tree, AFileThatIsNoCheckpointIsNamed) {
  dir.write("x.ckpt", "not a checkpoint");
  try {
    loaded.load(torch_format(), dir / "x.ckpt");
    FAIL();
  } catch (const ComponentFailure& f) {
    EXPECT_THAT(f.what(), HasSubstr((dir / "x.ckpt") + ": "));
  }
  EXPECT_THROW(loaded.load(torch_format(), dir / "none.ckpt"), Failure);
}

std::string only_file_in(const std::string& folder) {
  std::string name;
  for (const auto& e : fs::directory_iterator(folder)) name += e.path().filename().string();
  return name;
}

TEST_F(Tree, AFullDiskKeepsTheOldFile) {
  const Numbers t(std::vector<double>(20000, 1));  // 160 kB
  dir.write("x.ckpt", "old");
  tree.put_tensor({"t"}, t.get());
  rlimit old{};
  getrlimit(RLIMIT_FSIZE, &old);
  const rlimit small = {50000, old.rlim_max};
  std::string message;
  {
    const SignalGuard no_signal;
    setrlimit(RLIMIT_FSIZE, &small);
    try {
      tree.save(torch_format(), dir / "x.ckpt");
    } catch (const Failure& f) {
      message = f.code == Exit::environment ? f.what() : "another kind of failure";
    }
    setrlimit(RLIMIT_FSIZE, &old);
  }
  EXPECT_THAT(message, AllOf(HasSubstr(dir / "x.ckpt"), HasSubstr("File too large")));
  EXPECT_EQ(dir.read("x.ckpt"), "old");
  EXPECT_EQ(only_file_in(dir.path()), "x.ckpt");
}

TEST_F(Tree, ACheckpointerThatFailsHalfwayLeavesNoFile) {
  lh_checkpointer_v0 table{};
  table.size = sizeof table;
  table.destroy = [](lh_checkpointer*) {};
  table.suffix = [](lh_checkpointer*) -> lh_str { return LH_STR(".x"); };
  table.load = [](lh_checkpointer*, lh_bytes, const lh_leaf_visitor*) -> lh_status { return nullptr; };
  table.save = [](lh_checkpointer*, const lh_leaf*, uint64_t, const lh_sink* sink) -> lh_status {
    if (lh_status s = sink->write(sink->ctx, {"half", 4})) return s;
    return make_status(LH_UNIMPLEMENTED, "checkpointer:half", "save", "cannot go on");
  };
  const auto half = train_test::component<Checkpointer>("checkpointer", "half", &table, table);
  try {
    tree.save(half, dir / "x.ckpt");
    FAIL();
  } catch (const ComponentFailure& f) {
    EXPECT_EQ(f.code, LH_UNIMPLEMENTED);
  }
  EXPECT_EQ(only_file_in(dir.path()), "");
}

// ---- state of a component

// A data component, of which only the state is used.
struct Stateful {
  Stateful() {
    table.size = sizeof table;
    table.destroy = [](lh_data*) {};
    table.describe = [](lh_data*, int32_t, lh_split*) -> lh_status { return nullptr; };
    table.fetch = [](lh_data*, int32_t, const int64_t*, uint64_t, int64_t, void* const*) -> lh_status {
      return nullptr;
    };
    table.save_state = [](lh_data* d, const lh_state_out* out) {
      return reinterpret_cast<Stateful*>(d)->save(*out);
    };
    table.load_state = [](lh_data* d, const lh_state_in* in) {
      return reinterpret_cast<Stateful*>(d)->load(*in);
    };
  }
  lh_status save(const lh_state_out& out) {
    lh_value v{};
    v.type = LH_T_INT;
    v.u.i = 42;
    if (lh_status s = out.put(out.ctx, LH_STR("count"), &v)) return s;
    const double numbers[] = {1, 2};
    v.type = LH_T_LIST_FLOAT;
    v.u.lf = numbers;
    v.n = 2;
    if (lh_status s = out.put(out.ctx, LH_STR("list"), &v)) return s;
    return out.put_tensor(out.ctx, LH_STR("tensor"), tensor.get(), nullptr);
  }
  lh_status load(const lh_state_in& in) {
    ++loads;
    lh_value v{};
    if (lh_status s = in.get(in.ctx, LH_STR("count"), &v)) return s;
    count = v.type == LH_T_INT ? v.u.i : -1;
    if (lh_status s = in.get(in.ctx, LH_STR("list"), &v)) return s;
    if (v.type == LH_T_LIST_FLOAT) list.assign(v.u.lf, v.u.lf + v.n);
    if (lh_status s = in.get(in.ctx, LH_STR("tensor"), &v)) return s;
    tensor_is_a_value = v.type != LH_T_NONE;
    if (lh_status s = in.get(in.ctx, LH_STR("none"), &v)) return s;
    none = v.type;
    return in.get_tensor(in.ctx, LH_STR("tensor"), (wrong_shape ? longer : tensor).get(), nullptr);
  }
  Data component() { return train_test::component<Data>("data", "stateful", this, table); }
  lh_data_v0 table{};
  Numbers tensor{{3, 4}}, longer{{0, 0, 0}};
  int loads = 0;
  int64_t count = 0;
  std::vector<double> list;
  int32_t none = -1;
  bool wrong_shape = false, tensor_is_a_value = true;
};

TEST_F(Tree, AComponentFindsItsStateAgain) {
  Stateful before, after;
  const Data saved = before.component(), restored = after.component();
  tree.save_state({"lhost", "state", "data"}, saved);
  tree.save(torch_format(), dir / "x.ckpt");
  loaded.load(torch_format(), dir / "x.ckpt");
  check(engine().ops.fill(after.tensor.get(), 0));
  loaded.load_state({"lhost", "state", "data"}, restored);
  EXPECT_EQ(after.count, 42);
  EXPECT_THAT(after.list, ElementsAre(1, 2));
  EXPECT_THAT(elements<double>(after.tensor.get()), ElementsAre(3, 4));
  EXPECT_EQ(after.none, LH_T_NONE) << "what the file does not have";
  EXPECT_FALSE(after.tensor_is_a_value);
}

TEST_F(Tree, AComponentWithoutSavedStateIsNotAsked) {
  Stateful s;
  const Data data = s.component();
  tree.put({"lhost", "state", "other", "count"}, int64_t{1});
  tree.load_state({"lhost", "state", "data"}, data);
  EXPECT_EQ(s.loads, 0);
}

TEST_F(Tree, AComponentWithoutStateHasNone) {
  Stateful s;
  s.table.save_state = nullptr;
  s.table.load_state = nullptr;
  const Data data = s.component();
  tree.save_state({"data"}, data);
  tree.save_state({"data"}, Data());
  EXPECT_FALSE(tree.has_below({"data"}));
  tree.put({"data", "count"}, int64_t{1});
  tree.load_state({"data"}, data);
  tree.load_state({"data"}, Data());
}

TEST_F(Tree, AMissingTensorIsAnError) {
  Stateful s;
  const Data data = s.component();
  tree.put({"data", "count"}, int64_t{1});
  try {
    tree.load_state({"data"}, data);
    FAIL();
  } catch (const ComponentFailure& f) {
    EXPECT_EQ(f.code, LH_NOT_FOUND);
    EXPECT_THAT(f.what(), HasSubstr("tensor"));
  }
}

TEST_F(Tree, ATensorOfAnotherShapeIsAnError) {
  Stateful s;
  const Data data = s.component();
  tree.save_state({"data"}, data);
  s.wrong_shape = true;
  EXPECT_THROW(tree.load_state({"data"}, data), ComponentFailure);
}

}  // namespace
}  // namespace lhost
