// Files that PyTorch does not write as it stands: other archives, other byte orders, records that do not fit the pickle.
#include "torch_file.hpp"

namespace torch_test {
namespace {

void expect(const std::string& file, lh_code code, const std::string& part) {
  const Refusal r = load_failure(file);
  EXPECT_EQ(r.code, code) << r.message;
  EXPECT_NE(r.message.find(part), std::string::npos) << r.message << "\nexpected " << part;
}

const std::string kEmptyDict = "\x80\x02}.";

TEST(TorchFormats, RefusesWhatIsNoCheckpoint) {
  expect("", LH_DATA_LOSS, "empty");
  expect("# a text file\n", LH_INVALID_ARGUMENT, "starts with \"# a text\"");
  expect(std::string("\x89HDF\r\n\x1a\n", 8), LH_INVALID_ARGUMENT, "starts with \"?HDF????\"");
  expect(std::string("\x80\x02}q\0.", 6), LH_INVALID_ARGUMENT, "not a torch checkpoint");
  expect(zip({{"a/readme.txt", "hello"}}), LH_INVALID_ARGUMENT, "no record a/data.pkl");
  expect(zip({}), LH_INVALID_ARGUMENT, "no record data.pkl");
}

TEST(TorchFormats, RefusesOldTarFiles) {
  std::string tar(512, '\0');
  tar.replace(257, 5, "ustar");
  expect(tar, LH_UNIMPLEMENTED, "before 1.6");
}

TEST(TorchFormats, RefusesTorchScriptByEitherSign) {
  expect(zip({{"a/data.pkl", kEmptyDict}, {"a/constants.pkl", kEmptyDict}}), LH_UNIMPLEMENTED, "TorchScript");
  expect(zip({{"a/data.pkl", kEmptyDict}, {"a/code/m.py", ""}}), LH_UNIMPLEMENTED, "TorchScript");
}

TEST(TorchFormats, RefusesBigEndianNumbers) {
  expect(zip({{"a/data.pkl", kEmptyDict}, {"a/byteorder", "big"}}), LH_UNIMPLEMENTED, "byte order \"big\"");
  EXPECT_TRUE(load(zip({{"a/data.pkl", kEmptyDict}, {"a/byteorder", "little"}})).empty());
  EXPECT_TRUE(load(zip({{"a/data.pkl", kEmptyDict}})).empty()) << "files before 2.1 do not say";
}

TEST(TorchFormats, RefusesCompressedRecords) {
  expect(zip({{"a/data.pkl", kEmptyDict, 8}}), LH_UNIMPLEMENTED, "record a/data.pkl is compressed");
}

TEST(TorchFormats, RefusesRecordsTwice) {
  expect(zip({{"a/data.pkl", kEmptyDict}, {"a/data.pkl", kEmptyDict}}), LH_DATA_LOSS, "twice");
}

TEST(TorchFormats, NamesTheRecordWhoseChecksumIsWrong) {
  std::string file = save({tensor({"w"}, kFloat32, {2}, bytes_of<float>({1, 2}))});
  file[file.find(bytes_of<float>({1, 2}))] ^= 1;
  expect(file, LH_DATA_LOSS, "damaged: record archive/data/0 has checksum ");
  expect(file, LH_DATA_LOSS, ", expected ");
}

// Neither the file nor the record need be aligned: elements are delivered where they can be read.
TEST(TorchFormats, ReadsRecordsAtAnyPlace) {
  for (size_t shift = 0; shift < 8; ++shift) {
    const std::string pickle = "\x80\x02" + pickled_tensor(2, 0, {2}, {1}) + ".";
    const std::string file = zip(
        {{"a/data.pkl", pickle}, {"a/x", std::string(shift, ' ')}, {"a/data/0", bytes_of<float>({3, 4})}});
    uint64_t misaligned = 0;
    const lh_leaf_visitor visitor = {
        sizeof(lh_leaf_visitor), 0, &misaligned, [](void* ctx, const lh_leaf* l) -> lh_status {
          *static_cast<uint64_t*>(ctx) += reinterpret_cast<uintptr_t>(l->view.data) % 4;
          return nullptr;
        }};
    lhost_test::call(torch_format()->load(torch_format().self, {file.data(), file.size()}, &visitor));
    EXPECT_EQ(misaligned, 0u);
    EXPECT_EQ(load(file)[0].bytes, bytes_of<float>({3, 4}));
  }
}

TEST(TorchFormats, ATensorAloneHasAnEmptyPath) {
  const std::vector<Leaf> leaves = load(checkpoint(pickled_tensor(2, 0, {2}, {1}), bytes_of<float>({3, 4})));
  EXPECT_EQ(leaves, (std::vector<Leaf>{tensor({}, kFloat32, {2}, bytes_of<float>({3, 4}))}));
}

TEST(TorchFormats, RefusesTensorsThatDoNotFitTheirRecord) {
  const std::string four = bytes_of<float>({1, 2, 3, 4});
  const auto file = [&](int32_t stored, int32_t offset, const std::vector<int32_t>& shape,
                        const std::vector<int32_t>& strides) {
    return checkpoint(pickled_tensor(stored, offset, shape, strides), four);
  };
  EXPECT_EQ(load(file(4, 0, {2, 2}, {1, 2}))[0].bytes, bytes_of<float>({1, 3, 2, 4}));
  EXPECT_EQ(load(file(4, 9, {0, 2}, {2, 1}))[0].bytes, "");
  expect(file(3, 0, {3}, {1}), LH_DATA_LOSS, "record a/data/0 has 16 bytes, expected 3 elements of 4");
  expect(file(INT32_MAX, 0, {1}, {1}), LH_DATA_LOSS, "has 16 bytes");
  expect(file(4, 0, {5}, {1}), LH_DATA_LOSS, "past the end");
  expect(file(4, 1, {4}, {1}), LH_DATA_LOSS, "past the end");
  expect(file(4, 0, {2, 2}, {3, 1}), LH_DATA_LOSS, "past the end");
  expect(file(4, INT32_MAX, {1}, {1}), LH_DATA_LOSS, "past the end");
  expect(file(4, 0, {INT32_MAX, INT32_MAX, INT32_MAX}, {INT32_MAX, INT32_MAX, INT32_MAX}), LH_DATA_LOSS,
         "past the end");
  expect(file(4, 0, {INT32_MAX, INT32_MAX, INT32_MAX}, {0, 0, 0}), LH_DATA_LOSS, "more elements than");
  expect(file(4, 0, {1 << 30}, {0}), LH_RESOURCE_EXHAUSTED, "clone()");
  expect(file(4, -1, {1}, {1}), LH_DATA_LOSS, "offset");
  expect(file(4, 0, {-1}, {1}), LH_DATA_LOSS, "shape");
  expect(file(4, 0, {1}, {-1}), LH_DATA_LOSS, "strides");
  expect(file(4, 0, {1, 1}, {1}), LH_DATA_LOSS, "strides");
  expect(file(4, 0, std::vector<int32_t>(65, 1), std::vector<int32_t>(65, 1)), LH_DATA_LOSS, "64");
}

TEST(TorchFormats, RefusesMissingRecords) {
  expect(zip({{"a/data.pkl", "\x80\x02" + pickled_tensor(1, 0, {1}, {1}) + "."}}), LH_DATA_LOSS,
         "record a/data/0 is missing");
}

TEST(TorchFormats, LastOfEqualKeysCounts) {
  const std::string twice =
      "}(" + pickled_text("k") + "K\1" + pickled_text("other") + "K\3" + pickled_text("k") + "K\2u";
  EXPECT_EQ(load(checkpoint(twice)),
            (std::vector<Leaf>{value({"k"}, int64_t{2}), value({"other"}, int64_t{3})}));
}

TEST(TorchFormats, KeysOfOtherTypesAreNamedByTheirPlace) {
  const std::string dict = "}(K\1K\1\x88K\2NK\3)K\4u";
  EXPECT_EQ(load(checkpoint(dict)),
            (std::vector<Leaf>{value({"1"}, int64_t{1}), value({"True"}, int64_t{2}),
                               value({"#2"}, int64_t{3}), value({"#3"}, int64_t{4})}));
}

TEST(TorchFormats, TextThatIsNotUtf8DoesNotFailTheFile) {
  const std::vector<Leaf> leaves =
      load(checkpoint("}(" + pickled_text("k") + pickled_text("\xED\xB2\x80") + "u"));
  ASSERT_EQ(leaves.size(), 1u);
  EXPECT_EQ(leaves[0].kind, LH_LEAF_UNKNOWN);
}

// Calls by name are never made: the object stays unknown, and what is added to it is dropped.
TEST(TorchFormats, UnknownObjectsNeverRun) {
  const std::string command = "cos\nsystem\n(" + pickled_text("touch /tmp/lhost-pwned") + "tR";
  const std::string object = "cmy.module\nThing\n)\x81}(" + pickled_text("a") + "K\1ub";
  const std::string dict_subclass = "cmy.module\nDict\n)R(" + pickled_text("a") + "K\1u";
  const std::string file = checkpoint("}(" + pickled_text("x") + command + pickled_text("y") + object +
                                      pickled_text("z") + dict_subclass + pickled_text("w") + "K\7u");
  const std::vector<Leaf> leaves = load(file);
  ASSERT_EQ(leaves.size(), 4u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(leaves[i].kind, LH_LEAF_UNKNOWN);
  EXPECT_EQ(leaves[3], value({"w"}, int64_t{7}));
}

}  // namespace
}  // namespace torch_test
