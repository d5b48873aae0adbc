// The bytes of a file as PyTorch's reader expects them, found here by walking the zip file's local headers.
#include "torch_file.hpp"

#include <sys/mman.h>

#include <algorithm>

namespace torch_test {
namespace {

template <class T>
T at(const char* file, uint64_t offset) {
  T n;
  std::memcpy(&n, file + offset, sizeof n);
  return n;
}

struct Record {
  std::string name;
  uint64_t data, size;
};
// From the first header on, each record after the last, until the directory begins.
std::vector<Record> records(const char* file) {
  std::vector<Record> out;
  for (uint64_t p = 0; at<uint32_t>(file, p) == 0x04034b50;) {
    const auto n_name = at<uint16_t>(file, p + 26), n_extra = at<uint16_t>(file, p + 28);
    uint64_t size = at<uint32_t>(file, p + 22);
    if (size == 0xFFFFFFFF) {
      EXPECT_EQ(at<uint16_t>(file, p + 30 + n_name), 1) << "zip64 sizes";
      size = at<uint64_t>(file, p + 30 + n_name + 4);
    }
    EXPECT_EQ(at<uint16_t>(file, p + 6), 0) << "no flags, so sizes stand before the data";
    EXPECT_EQ(at<uint16_t>(file, p + 8), 0) << "stored";
    out.push_back({std::string(file + p + 30, n_name), p + 30 + n_name + n_extra, size});
    p = out.back().data + size;
  }
  return out;
}
std::vector<std::string> names(const std::vector<Record>& list) {
  std::vector<std::string> out;
  for (const Record& r : list) out.push_back(r.name);
  return out;
}
std::string pickle(const std::string& file) {
  const Record r = records(file.data()).at(0);
  return file.substr(r.data, r.size);
}

const std::vector<Leaf> kTwoTensors = {tensor({"a"}, kFloat32, {3}, bytes_of<float>({1, 2, 3})),
                                       tensor({"b"}, kInt64, {1}, bytes_of<int64_t>({7}))};

TEST(TorchLayout, RecordsAreThoseOfTorchSave) {
  const std::string file = save(kTwoTensors);
  const std::vector<Record> list = records(file.data());
  EXPECT_EQ(names(list), (std::vector<std::string>{"archive/data.pkl", "archive/byteorder", "archive/version",
                                                   "archive/data/0", "archive/data/1"}));
  EXPECT_EQ(file.substr(list[1].data, list[1].size), "little");
  EXPECT_EQ(file.substr(list[2].data, list[2].size), "3\n");
  EXPECT_EQ(file.substr(list[3].data, list[3].size), bytes_of<float>({1, 2, 3}));
  EXPECT_EQ(file.substr(list[4].data, list[4].size), bytes_of<int64_t>({7}));
}

TEST(TorchLayout, EveryRecordStartsAtAMultipleOf64) {
  std::vector<Leaf> leaves;
  for (int64_t n = 0; n < 130; ++n)
    leaves.push_back(
        tensor({std::to_string(n)}, {LH_DT_UINT, 8, 1}, {n}, std::string(static_cast<size_t>(n), 'x')));
  const std::string file = save(leaves);
  const std::vector<Record> list = records(file.data());
  ASSERT_EQ(list.size(), 3u + 130u);
  for (const Record& r : list) EXPECT_EQ(r.data % 64, 0u) << r.name;
}

TEST(TorchLayout, DirectoryNamesEveryRecordWithItsChecksum) {
  const std::string file = save(kTwoTensors);
  const uint64_t end = file.size() - 22;
  ASSERT_EQ(at<uint32_t>(file.data(), end), 0x06054b50u);
  const std::vector<Record> list = records(file.data());
  ASSERT_EQ(at<uint16_t>(file.data(), end + 10), list.size());
  uint64_t p = at<uint32_t>(file.data(), end + 16);
  for (const Record& r : list) {
    ASSERT_EQ(at<uint32_t>(file.data(), p), 0x02014b50u);
    const auto n_name = at<uint16_t>(file.data(), p + 28);
    EXPECT_EQ(file.substr(p + 46, n_name), r.name);
    EXPECT_EQ(at<uint32_t>(file.data(), p + 16),
              crc32_z(0, reinterpret_cast<const Bytef*>(file.data() + r.data), r.size));
    EXPECT_EQ(at<uint32_t>(file.data(), p + 24), r.size);
    p += 46u + n_name + at<uint16_t>(file.data(), p + 30);
  }
  EXPECT_EQ(p, end);
}

TEST(TorchLayout, SameLeavesGiveTheSameBytes) { EXPECT_EQ(save(kTwoTensors), save(kTwoTensors)); }

TEST(TorchLayout, PickleOfOneValueIsAsPythonWouldReadIt) {
  // pickletools: PROTO 2, EMPTY_DICT, MARK, BINUNICODE 'k', BININT1 5, SETITEMS, STOP
  EXPECT_EQ(pickle(save({value({"k"}, int64_t{5})})), std::string("\x80\x02}(X\1\0\0\0kK\5u.", 14));
  // LONG1 of eight bytes for 2**40, as pickle.encode_long pads nothing but needs no minimum
  EXPECT_EQ(pickle(save({value({"k"}, int64_t{1} << 40)})),
            std::string("\x80\x02}(X\1\0\0\0k\x8a\x08\0\0\0\0\0\1\0\0u.", 22));
}

TEST(TorchLayout, TiedWeightsShareOneRecord) {
  const std::vector<float> memory = {1, 2, 3, 4};
  const auto lent = [&](const char* name, std::vector<int64_t> shape, lh_dtype d) {
    Leaf l = tensor({name}, d, std::move(shape), bytes_of(memory));
    l.lent = reinterpret_cast<const char*>(memory.data());
    return l;
  };
  const std::vector<Leaf> leaves = {lent("embedding", {2, 2}, kFloat32), lent("head", {2, 2}, kFloat32),
                                    lent("other_shape", {4}, kFloat32),
                                    lent("other_type", {2, 2}, {LH_DT_INT, 32, 1})};
  const std::string file = save(leaves);
  EXPECT_EQ(records(file.data()).size(), 3u + 3u);
  EXPECT_EQ(load(file), leaves);
}

TEST(TorchLayout, TensorsWithoutElementsShareNothing) {
  const std::string file = save({tensor({"a"}, kFloat32, {0}, ""), tensor({"b"}, kFloat32, {0}, "")});
  EXPECT_EQ(records(file.data()).size(), 3u + 2u);
}

TEST(TorchLayout, MoreThan65535RecordsNeedZip64AndWork) {
  std::vector<Leaf> leaves;
  for (int64_t i = 0; i < 65536; ++i)
    leaves.push_back(tensor({std::to_string(i)}, kInt64, {}, bytes_of<int64_t>({i})));
  const std::string file = save(leaves);
  const uint64_t end = file.size() - 22;
  EXPECT_EQ(at<uint16_t>(file.data(), end + 10), 0xFFFF);
  ASSERT_EQ(at<uint32_t>(file.data(), end - 20), 0x07064b50u);
  EXPECT_EQ(at<uint64_t>(file.data(), end - 20 - 56 + 32), 65536u + 3u);
  EXPECT_TRUE(load(file) == leaves);
}

// Memory that is never touched costs none: a tensor of zeros, and a file that gets only what is not zero.
class Zeros {
 public:
  explicit Zeros(uint64_t size) : size_(size) {
    void* p = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    data_ = p == MAP_FAILED ? nullptr : static_cast<char*>(p);
  }
  ~Zeros() {
    if (data_) munmap(data_, size_);
  }
  Zeros(const Zeros&) = delete;
  char* data() const { return data_; }

 private:
  uint64_t size_;
  char* data_;
};

TEST(TorchLayout, TensorOfMoreThan4GiBAndRecordsBehindItWork) {
  const uint64_t large = (uint64_t{1} << 32) + 3, room = large + (1 << 20);
  const Zeros zeros(large), file(room);
  ASSERT_TRUE(zeros.data() && file.data());
  Leaf t = tensor({"large"}, {LH_DT_UINT, 8, 1}, {static_cast<int64_t>(large)}, "");
  t.lent = zeros.data();
  struct State {
    const char* skipped;
    char* to;
    uint64_t size;
  } state{zeros.data(), file.data(), 0};
  const lh_sink sink = {sizeof(lh_sink), 0, &state, [](void* ctx, lh_bytes b) -> lh_status {
                          auto* s = static_cast<State*>(ctx);
                          if (b.ptr != s->skipped) std::memcpy(s->to + s->size, b.ptr, b.len);
                          s->size += b.len;
                          return nullptr;
                        }};
  lhost_test::call(save_to({t, tensor({"small"}, kFloat32, {1}, bytes_of<float>({5}))}, sink));
  ASSERT_LT(state.size, room);
  const std::vector<Record> list = records(file.data());
  ASSERT_EQ(list.size(), 5u);
  EXPECT_EQ(list[3].size, large);
  EXPECT_EQ(list[4].data % 64, 0u);

  std::vector<std::pair<int64_t, float>> found;  // number of elements, the last one
  const lh_leaf_visitor visitor = {sizeof(lh_leaf_visitor), 0, &found,
                                   [](void* ctx, const lh_leaf* l) -> lh_status {
                                     float last = 0;
                                     if (l->view.dtype.bits == 32)
                                       std::memcpy(&last, l->view.data, sizeof last);
                                     static_cast<decltype(found)*>(ctx)->emplace_back(l->view.shape[0], last);
                                     return nullptr;
                                   }};
  lhost_test::call(torch_format()->load(torch_format().self, {file.data(), state.size}, &visitor));
  EXPECT_EQ(found, (decltype(found){{static_cast<int64_t>(large), 0.0f}, {1, 5.0f}}));
}

}  // namespace
}  // namespace torch_test
