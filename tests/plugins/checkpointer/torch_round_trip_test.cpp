// What is saved comes back: every type, the order of leaves, shared memory; and what is refused on saving.
#include "torch_file.hpp"

#include <cmath>
#include <limits>

namespace torch_test {
namespace {

TEST(TorchRoundTrip, EveryElementType) {
  std::vector<Leaf> leaves;
  const std::string pattern = "\x01\x02\x03\x04\x05\x06\x07\x08";
  for (const lh_dtype d :
       {lh_dtype{LH_DT_FLOAT, 64, 1}, lh_dtype{LH_DT_FLOAT, 32, 1}, lh_dtype{LH_DT_FLOAT, 16, 1},
        lh_dtype{LH_DT_BFLOAT, 16, 1}, lh_dtype{LH_DT_INT, 64, 1}, lh_dtype{LH_DT_INT, 32, 1},
        lh_dtype{LH_DT_INT, 16, 1}, lh_dtype{LH_DT_INT, 8, 1}, lh_dtype{LH_DT_UINT, 8, 1},
        lh_dtype{LH_DT_BOOL, 8, 1}}) {
    const std::string name = std::to_string(d.code) + "_" + std::to_string(d.bits);
    std::string bytes;
    for (int i = 0; i < 6; ++i)
      bytes += d.code == LH_DT_BOOL ? std::string(1, i % 2 ? '\1' : '\0') : pattern.substr(0, d.bits / 8u);
    leaves.push_back(tensor({"state", name}, d, {2, 3}, bytes));
  }
  EXPECT_EQ(load(save(leaves)), leaves);
}

TEST(TorchRoundTrip, EveryValueType) {
  const std::vector<Leaf> leaves = {
      value({"none"}, {}),
      value({"yes"}, true),
      value({"no"}, false),
      value({"text"}, std::string("gr\xC3\xBCn \xF0\x9F\x90\x8D \x7F")),
      value({"with_nul"}, std::string("a\0b", 3)),
      value({"empty"}, std::string()),
      value({"ints"}, std::vector<int64_t>{1, -2, INT64_MAX}),
      value({"floats"}, std::vector<double>{0.1, -1e300}),
      value({"texts"}, std::vector<std::string>{"a", "", "b"}),
  };
  EXPECT_EQ(load(save(leaves)), leaves);
}

TEST(TorchRoundTrip, IntegersAtEveryBoundary) {
  std::vector<Leaf> leaves;
  for (const int64_t edge : {int64_t{0}, int64_t{127}, int64_t{255}, int64_t{65535}, int64_t{INT32_MAX},
                             int64_t{UINT32_MAX}, INT64_MAX - 1, INT64_MIN + 1, int64_t{INT32_MIN}})
    for (const int64_t n : {edge - 1, edge, edge + 1})
      leaves.push_back(value({std::to_string(leaves.size())}, n));
  EXPECT_EQ(load(save(leaves)), leaves);
}

TEST(TorchRoundTrip, FloatsBitForBit) {
  std::vector<Leaf> leaves;
  using Limits = std::numeric_limits<double>;
  const std::vector<double> all = {0.0,
                                   -0.0,
                                   0.1,
                                   Limits::denorm_min(),
                                   Limits::max(),
                                   Limits::infinity(),
                                   -Limits::infinity(),
                                   Limits::quiet_NaN()};
  for (const double d : all) leaves.push_back(value({std::to_string(leaves.size())}, d));
  const std::vector<Leaf> loaded = load(save(leaves));
  ASSERT_EQ(loaded.size(), all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    const double d = std::get<double>(loaded[i].value);
    EXPECT_EQ(std::memcmp(&d, &all[i], sizeof d), 0) << all[i];
  }
}

TEST(TorchRoundTrip, ShapesWithoutElementsAndWithoutDimensions) {
  const std::vector<Leaf> leaves = {tensor({"empty"}, kFloat32, {0}, ""),
                                    tensor({"empty_2d"}, kFloat32, {3, 0, 2}, ""),
                                    tensor({"scalar"}, kFloat32, {}, bytes_of<float>({1.5f})),
                                    tensor({"ones"}, kFloat32, {1, 1}, bytes_of<float>({2}))};
  EXPECT_EQ(load(save(leaves)), leaves);
}

TEST(TorchRoundTrip, NoLeavesAtAll) { EXPECT_TRUE(load(save({})).empty()); }

TEST(TorchRoundTrip, OrderOfFirstAppearanceIsKept) {
  const std::vector<Leaf> saved = {value({"z", "b"}, int64_t{1}), value({"a"}, int64_t{2}),
                                   value({"z", "a"}, int64_t{3}), value({"m.with.dots", ""}, int64_t{4})};
  const std::vector<Leaf> expected = {saved[0], saved[2], saved[1], saved[3]};
  EXPECT_EQ(load(save(saved)), expected);
}

TEST(TorchRoundTrip, EmptyListsComeBackAsListsOfIntegers) {
  const std::vector<Leaf> loaded = load(save({value({"l"}, std::vector<std::string>{})}));
  ASSERT_EQ(loaded.size(), 1u);
  EXPECT_EQ(std::get<std::vector<int64_t>>(loaded[0].value).size(), 0u);
}

TEST(TorchRoundTrip, OffsetOfTheViewIsHonoured) {
  const std::vector<float> memory = {1, 2, 3, 4};
  const Leaf leaf = tensor({"t"}, kFloat32, {2}, "");
  const Borrowed borrowed(leaf);
  lh_leaf shifted = borrowed.get();
  shifted.view.data = const_cast<float*>(memory.data());
  shifted.view.byte_offset = 8;
  std::string file;
  const lh_sink sink = {sizeof(lh_sink), 0, &file, [](void* ctx, lh_bytes b) -> lh_status {
                          static_cast<std::string*>(ctx)->append(static_cast<const char*>(b.ptr), b.len);
                          return nullptr;
                        }};
  lhost_test::call(torch_format()->save(torch_format().self, &shifted, 1, &sink));
  EXPECT_EQ(load(file)[0].bytes, bytes_of<float>({3, 4}));
}

TEST(TorchRoundTrip, DeepestPathThatIsAllowed) {
  const std::vector<Leaf> leaves = {value(Path(100, "k"), int64_t{1})};
  EXPECT_EQ(load(save(leaves)), leaves);
}

TEST(TorchSave, RefusesWhatAFileCannotHold) {
  const Leaf t = tensor({"w"}, kFloat32, {2}, bytes_of<float>({1, 2}));
  const auto with = [&](auto change) {
    Leaf l = t;
    change(l);
    return save_failure({l});
  };
  EXPECT_NE(save_failure({t, t}).find("\"w\" is there twice"), std::string::npos);
  EXPECT_NE(save_failure({t, value({"w", "x"}, true)}).find("\"w.x\" goes on below"), std::string::npos);
  EXPECT_NE(save_failure({value({"w", "x"}, true), t}).find("\"w\" is a leaf, but"), std::string::npos);
  EXPECT_NE(save_failure({value({}, true)}).find("no path"), std::string::npos);
  EXPECT_NE(save_failure({value(Path(101, "k"), true)}).find("101 levels"), std::string::npos);
  EXPECT_NE(save_failure({value({"\xFF"}, true)}).find("not UTF-8"), std::string::npos);
  EXPECT_NE(save_failure({value({"k"}, std::string("\xED\xA0\x80"))}).find("not UTF-8"), std::string::npos);
  EXPECT_NE(with([](Leaf& l) { l.kind = LH_LEAF_UNKNOWN; }).find("\"w\" has kind 2"), std::string::npos);
  EXPECT_NE(with([](Leaf& l) { l.dtype = {LH_DT_UINT, 64, 1}; }).find("64 bits"), std::string::npos);
  EXPECT_NE(with([](Leaf& l) { l.dtype.lanes = 2; }).find("2 lanes"), std::string::npos);
  EXPECT_NE(with([](Leaf& l) { l.shape = {-1}; }).find("shape"), std::string::npos);
  EXPECT_NE(with([](Leaf& l) { l.shape = {INT64_MAX, INT64_MAX}; }).find("shape"), std::string::npos);
}

TEST(TorchSave, RefusesMemoryThatItCannotReadInOrder) {
  const Leaf leaf = tensor({"w"}, kFloat32, {2, 2}, bytes_of<float>({1, 2, 3, 4}));
  const Borrowed borrowed(leaf);
  const auto failure = [&](auto change) {
    lh_leaf l = borrowed.get();
    change(l.view);
    const lh_sink sink = {sizeof(lh_sink), 0, nullptr, [](void*, lh_bytes) -> lh_status { return nullptr; }};
    return lhost_test::failure(torch_format()->save(torch_format().self, &l, 1, &sink));
  };
  int64_t transposed[] = {1, 2};
  EXPECT_NE(failure([&](lh_view& v) { v.strides = transposed; }).find("not contiguous"), std::string::npos);
  EXPECT_NE(failure([](lh_view& v) { v.device.type = LH_DEVICE_CUDA; }).find("host memory"),
            std::string::npos);
  EXPECT_NE(failure([](lh_view& v) { v.data = nullptr; }).find("no data"), std::string::npos);
}

// Whichever write fails, the sink's own status comes back, and nothing is written after it.
TEST(TorchSave, HandsOnTheStatusOfTheSink) {
  struct Failing {
    int writes_left;
    lh_status status;
    bool failed = false;
  };
  const std::vector<Leaf> leaves = {tensor({"w"}, kFloat32, {2}, bytes_of<float>({1, 2})),
                                    value({"n"}, int64_t{1})};
  bool saved = false;
  int writes = 0;
  for (; !saved; ++writes) {
    ASSERT_LT(writes, 100);
    lh_error mine{LH_RESOURCE_EXHAUSTED, "test", "write", "no space left"};
    Failing state{writes, &mine};
    const lh_sink sink = {sizeof(lh_sink), 0, &state, [](void* ctx, lh_bytes) -> lh_status {
                            auto* f = static_cast<Failing*>(ctx);
                            EXPECT_FALSE(f->failed) << "a write after one that failed";
                            f->failed = f->writes_left-- == 0;
                            return f->failed ? f->status : nullptr;
                          }};
    const lh_status s = save_to(leaves, sink);
    saved = s == nullptr;
    if (!saved) {
      EXPECT_EQ(s, &mine);
    }
  }
  EXPECT_GT(writes, 5);
}

// The visitor's status too, at whichever leaf.
TEST(TorchLoad, HandsOnTheStatusOfTheVisitor) {
  const std::string file = save({value({"a"}, int64_t{1}), value({"b"}, int64_t{2})});
  for (int stop = 0; stop < 2; ++stop) {
    lh_error mine{LH_CANCELLED, "test", "leaf", "enough"};
    std::pair<int, lh_status> state{stop, &mine};
    const lh_leaf_visitor visitor = {sizeof(lh_leaf_visitor), 0, &state,
                                     [](void* ctx, const lh_leaf*) -> lh_status {
                                       auto* p = static_cast<std::pair<int, lh_status>*>(ctx);
                                       return p->first-- == 0 ? p->second : nullptr;
                                     }};
    EXPECT_EQ(torch_format()->load(torch_format().self, {file.data(), file.size()}, &visitor), &mine);
    EXPECT_EQ(state.first, -1);
  }
}

TEST(TorchLoad, LendsTensorsThatLieInTheFile) {
  const std::string text = save({tensor({"w"}, kFloat32, {2}, bytes_of<float>({1, 2}))});
  alignas(64) static char file[4096];
  ASSERT_LT(text.size(), sizeof file);
  std::memcpy(file, text.data(), text.size());
  const void* data = nullptr;
  const lh_leaf_visitor visitor = {sizeof(lh_leaf_visitor), 0, &data,
                                   [](void* ctx, const lh_leaf* l) -> lh_status {
                                     *static_cast<const void**>(ctx) = l->view.data;
                                     return nullptr;
                                   }};
  lhost_test::call(torch_format()->load(torch_format().self, {file, text.size()}, &visitor));
  EXPECT_GE(data, static_cast<const void*>(file));
  EXPECT_LT(data, static_cast<const void*>(file + text.size()));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % 64, 0u);
}

TEST(TorchFormat, SaysItsSuffix) {
  EXPECT_EQ(lhost_test::text(torch_format()->suffix(torch_format().self)), ".ckpt");
}

}  // namespace
}  // namespace torch_test
