#include <gmock/gmock.h>
#include <sys/stat.h>
#include <zlib.h>

#include <algorithm>
#include <numeric>

#include "plugins/data/data_source.hpp"

namespace {

using lhost_test::DataSource;
using lhost_test::Options;
using lhost_test::TempDir;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kDigits = LHOST_TEST_SOURCE "/configs/data/digits-";

std::string idx(const std::vector<uint32_t>& shape, const std::string& values, char type = 8) {
  std::string s{0, 0, type, static_cast<char>(shape.size())};
  for (const uint32_t d : shape)
    for (int shift = 24; shift >= 0; shift -= 8) s += static_cast<char>(d >> shift);
  return s + values;
}

std::string gzip(const std::string& bytes) {
  TempDir dir;
  gzFile f = gzopen((dir / "x").c_str(), "wb");
  gzwrite(f, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(f);
  return dir.read("x");
}

// Pixels that no packer makes small.
std::string noise(size_t n) {
  std::string s;
  uint32_t x = 1;
  for (size_t i = 0; i < n; ++i) s += static_cast<char>((x = x * 1664525u + 1013904223u) >> 24);
  return s;
}

class IdxFault : public ::testing::Test {
 protected:
  // What describe says to these images (and labels that would fit 3 of them). Every fault names the file.
  std::string images(const std::string& bytes) { return images_at(dir_.write("images", bytes)); }
  std::string images_at(const std::string& path) {
    const std::string labels = dir_.write("labels", idx({3}, "\1\2\3"));
    const std::string message = DataSource("idx", {{"train.images", path}, {"train.labels", labels}})
                                    .describe_failure(LH_SPLIT_TRAIN);
    EXPECT_TRUE(message == "(no error)" || message.find(path) != message.npos) << message;
    return message;
  }
  TempDir dir_;
};

TEST(Idx, ReadsTheDigits) {
  DataSource data("idx", {{"train.images", kDigits + "train-images.idx3-ubyte.gz"},
                          {"train.labels", kDigits + "train-labels.idx1-ubyte.gz"},
                          {"test.images", kDigits + "test-images.idx3-ubyte.gz"},
                          {"test.labels", kDigits + "test-labels.idx1-ubyte.gz"},
                          {"scale", 1.0 / 16},
                          {"classes", int64_t{10}}});
  const lh_split train = data.describe(LH_SPLIT_TRAIN);
  EXPECT_EQ(train.samples, 1437);
  ASSERT_EQ(train.n_fields, 2u);
  EXPECT_EQ(lhost_test::text(train.fields[0].name), "image");
  EXPECT_EQ(train.fields[0].dtype.code, LH_DT_FLOAT);
  EXPECT_EQ(train.fields[0].dtype.bits, 32);
  ASSERT_EQ(train.fields[0].ndim, 2);
  EXPECT_EQ(train.fields[0].shape[0], 8);
  EXPECT_EQ(train.fields[0].shape[1], 8);
  EXPECT_EQ(lhost_test::text(train.fields[1].name), "label");
  EXPECT_EQ(train.fields[1].dtype.code, LH_DT_INT);
  EXPECT_EQ(train.fields[1].dtype.bits, 64);
  EXPECT_EQ(train.fields[1].ndim, 0);
  EXPECT_EQ(data.describe(LH_SPLIT_TEST).samples, 360);
  EXPECT_EQ(data.describe(LH_SPLIT_VAL).samples, 0);
  EXPECT_EQ(data.describe(LH_SPLIT_PREDICT).samples, 0);

  std::vector<int64_t> all(1437);
  std::iota(all.begin(), all.end(), 0);
  const auto rows = data.fetch<int64_t>(LH_SPLIT_TRAIN, all);
  // scikit-learn: load_digits().images[0][0] and target[:5]
  EXPECT_THAT(std::vector<float>(rows.inputs.begin(), rows.inputs.begin() + 8),
              ElementsAre(0, 0, 5.f / 16, 13.f / 16, 9.f / 16, 1.f / 16, 0, 0));
  EXPECT_THAT(std::vector<int64_t>(rows.labels.begin(), rows.labels.begin() + 5), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(*std::max_element(rows.inputs.begin(), rows.inputs.end()), 1.0f);
  EXPECT_EQ(*std::min_element(rows.inputs.begin(), rows.inputs.end()), 0.0f);
  EXPECT_EQ(*std::max_element(rows.labels.begin(), rows.labels.end()), 9);
}

TEST(Idx, FetchesAnyOrderFromPlainAndGzip) {
  TempDir dir;
  const std::string pixels =
      idx({3, 1, 2}, std::string{0, 1, 2, 3, static_cast<char>(254), static_cast<char>(255)});
  const std::string labels = idx({3}, "\7\10\11");
  for (const bool packed : {false, true}) {
    DataSource data("idx", {{"val.images", dir.write("i", packed ? gzip(pixels) : pixels)},
                            {"val.labels", dir.write("l", packed ? gzip(labels) : labels)}});
    const auto rows = data.fetch<int64_t>(LH_SPLIT_VAL, {2, 0, 2});
    EXPECT_THAT(rows.inputs, ElementsAre(254, 255, 0, 1, 254, 255));
    EXPECT_THAT(rows.labels, ElementsAre(9, 7, 9));
  }
}

TEST(Idx, PredictsWithoutLabels) {
  TempDir dir;
  const std::string images = dir.write("i", idx({2, 3}, "abcdef"));
  DataSource data("idx", {{"predict.images", images}});
  EXPECT_EQ(data.describe(LH_SPLIT_PREDICT).n_fields, 1u);
  EXPECT_THAT(data.fetch<int64_t>(LH_SPLIT_PREDICT, {1}).inputs, ElementsAre('d', 'e', 'f'));
}

TEST(Idx, NamesTheMissingHalfOfAPair) {
  EXPECT_THAT(DataSource("idx", {{"train.images", "/x"}}).describe_failure(LH_SPLIT_TRAIN),
              HasSubstr("train.images is set but train.labels is not"));
  EXPECT_THAT(DataSource("idx", {{"test.images", "/x"}}).describe_failure(LH_SPLIT_TEST),
              HasSubstr("test.labels is not"));
  EXPECT_THAT(DataSource("idx", {{"val.labels", "/x"}}).describe_failure(LH_SPLIT_VAL),
              HasSubstr("val.images is not"));
  EXPECT_THAT(DataSource("idx", {{"predict.labels", "/x"}}).describe_failure(LH_SPLIT_PREDICT),
              HasSubstr("predict.images is not"));
}

TEST(Idx, ChecksLabelsAgainstClasses) {
  TempDir dir;
  std::string labels(1000, '\1');
  labels[812] = 17;
  const std::string l = dir.write("l", idx({1000}, labels));
  const std::string i = dir.write("i", idx({1000, 1}, std::string(1000, 'x')));
  const auto with = [&](int64_t classes) {
    return DataSource("idx", {{"train.images", i}, {"train.labels", l}, {"classes", classes}})
        .describe_failure(LH_SPLIT_TRAIN);
  };
  EXPECT_THAT(with(10), AllOf(HasSubstr(l), HasSubstr("label 17 of sample 812 is outside 0..9")));
  EXPECT_THAT(with(17), HasSubstr("label 17 of sample 812 is outside 0..16"));
  EXPECT_EQ(with(18), "(no error)");
  EXPECT_EQ(with(0), "(no error)");
}

TEST(Idx, RefusesAnIndexOutside) {
  TempDir dir;
  DataSource data("idx", {{"predict.images", dir.write("i", idx({2, 3}, "abcdef"))}});
  data.describe(LH_SPLIT_PREDICT);
  EXPECT_THAT(data.fetch_failure(LH_SPLIT_PREDICT, 2), HasSubstr("no sample 2: predict has 2"));
  EXPECT_THAT(data.fetch_failure(LH_SPLIT_PREDICT, -1), HasSubstr("no sample -1"));
  EXPECT_THAT(data.fetch_failure(LH_SPLIT_TRAIN, 0), HasSubstr("no sample 0: train has 0"));
}

TEST_F(IdxFault, NamesAFileThatCannotBeOpened) {
  EXPECT_THAT(images_at(dir_ / "absent"), HasSubstr("No such file"));
  const std::string file = dir_.write("file", "x");
  EXPECT_THAT(images_at(file + "/inside"), HasSubstr("Not a directory"));
  std::filesystem::create_symlink("loop", dir_ / "loop");
  EXPECT_THAT(images_at(dir_ / "loop"), HasSubstr("symbolic links"));
  EXPECT_THAT(images_at(dir_.path()), HasSubstr("is a folder"));
  EXPECT_THAT(images_at("/dev/null"), HasSubstr("/dev/null: is not a regular file"));
}

TEST_F(IdxFault, DoesNotHangOnANamedPipe) {
  ASSERT_EQ(mkfifo((dir_ / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(images_at(dir_ / "pipe"), HasSubstr("is not a regular file"));
}

TEST_F(IdxFault, SaysWhatIsNoIdxFile) {
  EXPECT_THAT(images(""), HasSubstr("is empty"));
  EXPECT_THAT(images("\x89PNG\r\n"), HasSubstr("starts with the bytes 89 50 4e 47"));
  EXPECT_THAT(images(gzip("hello world")), HasSubstr("starts with the bytes 68 65 6c 6c"));
  EXPECT_THAT(images(std::string("\0\0", 2)), HasSubstr("starts with the bytes 00 00, expected 00 00 08"));
  EXPECT_THAT(images(idx({}, "")), HasSubstr("starts with the bytes 00 00 08 00"));
}

TEST_F(IdxFault, SaysWhichElementTypesAreRead) {
  EXPECT_THAT(images(idx({3, 1}, "abc", 0x09)),
              HasSubstr("signed byte (0x09); only unsigned byte (0x08) is read"));
  EXPECT_THAT(images(idx({3, 1}, "abc", 0x0b)), HasSubstr("16-bit integer (0x0b)"));
  EXPECT_THAT(images(idx({3, 1}, "abc", 0x0c)), HasSubstr("32-bit integer (0x0c)"));
  EXPECT_THAT(images(idx({3, 1}, "abc", 0x0d)), HasSubstr("32-bit float (0x0d)"));
  EXPECT_THAT(images(idx({3, 1}, "abc", 0x0e)), HasSubstr("64-bit float (0x0e)"));
  EXPECT_THAT(images(idx({3, 1}, "abc", 0x0f)), HasSubstr("not an idx file"));
}

TEST_F(IdxFault, FindsEveryCutOfAPlainFile) {
  const std::string whole = idx({3, 2, 2}, "abcdefghijkl");
  ASSERT_EQ(images(whole), "(no error)");
  for (size_t n = 0; n < whole.size(); ++n) {
    const std::string message = images(whole.substr(0, n));
    EXPECT_THAT(message, HasSubstr(n == 0 ? "is empty" : n < 4 ? "not an idx file" : "cut short")) << n;
  }
  EXPECT_THAT(images(whole.substr(0, 9)), HasSubstr("3 dimensions take 16 bytes, found 9"));
  EXPECT_THAT(images(whole.substr(0, 20)), HasSubstr("promises 3 x 2 x 2 values (12 bytes), found 4"));
}

TEST_F(IdxFault, FindsEveryCutOfAGzipFile) {
  const std::string whole = gzip(idx({3, 5, 5}, noise(75)));
  ASSERT_EQ(images(whole), "(no error)");
  for (size_t n = 0; n < whole.size(); ++n) EXPECT_NE(images(whole.substr(0, n)), "(no error)") << n;
  EXPECT_THAT(images(whole.substr(0, whole.size() - 1)), HasSubstr("gzip data is cut short"));
  EXPECT_THAT(images(whole.substr(0, whole.size() / 2)), HasSubstr("gzip data is cut short"));
}

TEST_F(IdxFault, FindsEveryChangedByteOfGzipData) {
  const std::string whole = gzip(idx({3, 5, 5}, noise(75)));
  for (size_t n = 10; n < whole.size(); ++n) {  // the ten before are the gzip header: time, system
    std::string changed = whole;
    changed[n] = static_cast<char>(changed[n] ^ 1);  // the upper bits of the last data byte are padding
    EXPECT_NE(images(changed), "(no error)") << n;
  }
  std::string wrong_crc = whole;
  wrong_crc[whole.size() - 8] = static_cast<char>(wrong_crc[whole.size() - 8] ^ 1);
  EXPECT_THAT(images(wrong_crc), HasSubstr("gzip data is damaged (incorrect data check)"));
}

TEST_F(IdxFault, FindsTrailingBytes) {
  EXPECT_THAT(images(idx({3, 1}, "abcd")),
              HasSubstr("promises 3 x 1 values (3 bytes), but more bytes follow"));
  EXPECT_THAT(images(gzip(idx({3, 1}, "abcd"))), HasSubstr("more bytes follow"));
}

TEST_F(IdxFault, AsksForNoMemoryThatTheFileCannotFill) {
  EXPECT_THAT(images(idx({4294967295u, 8, 8}, "abc")),
              HasSubstr("promises 4294967295 x 8 x 8 values, more than a file of 19 bytes can hold"));
  EXPECT_THAT(images(idx({4294967295u, 4294967295u, 4294967295u}, "abc")), HasSubstr("more than a file of"));
  EXPECT_THAT(images(gzip(idx({4294967295u, 8, 8}, "abc"))), HasSubstr("more than a file of"));
}

TEST_F(IdxFault, RefusesEmptyDimensions) {
  EXPECT_THAT(images(idx({0, 8, 8}, "")), HasSubstr("promises 0 x 8 x 8 values: there is no sample in it"));
  EXPECT_THAT(images(idx({3, 0, 8}, "")), HasSubstr("there is no sample in it"));
  EXPECT_THAT(images(idx({4294967295u, 4294967295u, 0}, "")), HasSubstr("more than a file of"));
}

TEST_F(IdxFault, ComparesTheNumberOfImagesAndLabels) {
  EXPECT_THAT(images(idx({2, 1}, "ab")), HasSubstr("holds 3 labels for the 2 images"));
}

TEST_F(IdxFault, GuessesThatImagesAndLabelsAreSwapped) {
  EXPECT_THAT(images(idx({3}, "abc")), HasSubstr("swapped"));
  const std::string i = dir_.write("i", idx({3, 2}, "abcdef"));
  EXPECT_THAT(DataSource("idx", {{"val.images", i}, {"val.labels", i}}).describe_failure(LH_SPLIT_VAL),
              AllOf(HasSubstr("has 2 dimensions, a file of labels has one"), HasSubstr("swapped")));
}

}  // namespace
