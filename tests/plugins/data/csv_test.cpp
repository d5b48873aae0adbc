#include <gmock/gmock.h>

#include "plugins/data/data_source.hpp"

namespace {

using lhost_test::DataSource;
using lhost_test::Options;
using lhost_test::TempDir;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Texts = std::vector<std::string>;

class CsvData : public ::testing::Test {
 protected:
  DataSource train(const std::string& bytes, Options options = {}) {
    options["train"] = dir_.write("train.csv", bytes);
    return DataSource("csv", options);
  }
  std::string fault(const std::string& bytes, const Options& options = {}) {
    return train(bytes, options).describe_failure(LH_SPLIT_TRAIN);
  }
  TempDir dir_;
  const std::string path_ = dir_ / "train.csv";
};

TEST_F(CsvData, ReadsClassesAndFeatures) {
  DataSource data = train("a,label,b\n1,3,2.5\n-4e-3,0,+6\n");
  const lh_split s = data.describe(LH_SPLIT_TRAIN);
  EXPECT_EQ(s.samples, 2);
  ASSERT_EQ(s.n_fields, 2u);
  EXPECT_EQ(lhost_test::text(s.fields[0].name), "features");
  ASSERT_EQ(s.fields[0].ndim, 1);
  EXPECT_EQ(s.fields[0].shape[0], 2);
  EXPECT_EQ(s.fields[0].dtype.code, LH_DT_FLOAT);
  EXPECT_EQ(lhost_test::text(s.fields[1].name), "label");
  EXPECT_EQ(s.fields[1].dtype.code, LH_DT_INT);
  EXPECT_EQ(s.fields[1].ndim, 0);
  const auto rows = data.fetch<int64_t>(LH_SPLIT_TRAIN, {1, 0});
  EXPECT_THAT(rows.inputs, ElementsAre(-0.004f, 6.f, 1.f, 2.5f));
  EXPECT_THAT(rows.labels, ElementsAre(0, 3));
  EXPECT_EQ(data.describe(LH_SPLIT_TEST).samples, 0);
  EXPECT_THAT(data.fetch_failure(LH_SPLIT_TRAIN, 2), HasSubstr("no sample 2: train has 2"));
}

TEST_F(CsvData, ReadsNumberLabels) {
  DataSource data = train("x,y\n1,0.5\n", {{"label", "y"}, {"label_type", "number"}});
  EXPECT_EQ(data.describe(LH_SPLIT_TRAIN).fields[1].dtype.code, LH_DT_FLOAT);
  EXPECT_THAT(data.fetch<float>(LH_SPLIT_TRAIN, {0}).labels, ElementsAre(0.5f));
}

TEST_F(CsvData, ReadsWithoutLabelAndHeader) {
  DataSource data = train("1;2\n3;4\n", {{"label", ""}, {"header", false}, {"delimiter", ";"}});
  EXPECT_EQ(data.describe(LH_SPLIT_TRAIN).n_fields, 1u);
  EXPECT_THAT(data.fetch<float>(LH_SPLIT_TRAIN, {1, 0}).inputs, ElementsAre(3, 4, 1, 2));
  DataSource labelled = train("1\t2\n3\t4\n", {{"label", "0"}, {"header", false}, {"delimiter", "\t"}});
  EXPECT_THAT(labelled.fetch<int64_t>(LH_SPLIT_TRAIN, {1}).labels, ElementsAre(3));
}

TEST_F(CsvData, TakesTheChosenFeaturesInTheirOrder) {
  DataSource data = train("a,b,c,label\n1,x,3,0\n", {{"features", Texts{"c", "a"}}});
  EXPECT_THAT(data.fetch<int64_t>(LH_SPLIT_TRAIN, {0}).inputs, ElementsAre(3, 1));
}

TEST_F(CsvData, FindsColumnsByNameInEverySplit) {
  const std::string test = dir_.write("test.csv", "extra,b,label,a\n9,2,1,1\n");
  const std::string predict = dir_.write("predict.csv", "b,a,label\n4,3,\n");
  DataSource data = train("a,b,label\n5,6,0\n", {{"test", test}, {"predict", predict}});
  data.describe(LH_SPLIT_TRAIN);
  EXPECT_THAT(data.fetch<int64_t>(LH_SPLIT_TEST, {0}).inputs, ElementsAre(1, 2));
  EXPECT_EQ(data.describe(LH_SPLIT_PREDICT).n_fields, 1u);
  EXPECT_THAT(data.fetch<int64_t>(LH_SPLIT_PREDICT, {0}).inputs, ElementsAre(3, 4));
}

TEST_F(CsvData, ReadsWhatSpreadsheetsWrite) {
  const std::string bytes = "\xef\xbb\xbf\"a \"\"x\"\", y\",label\r\n\" 1.5 \",\"2\"\r\n\r\n2,1\r\n";
  DataSource data = train(bytes, {{"features", Texts{"a \"x\", y"}}});
  const auto rows = data.fetch<int64_t>(LH_SPLIT_TRAIN, {0, 1});
  EXPECT_THAT(rows.inputs, ElementsAre(1.5f, 2));
  EXPECT_THAT(rows.labels, ElementsAre(2, 1));
}

TEST_F(CsvData, ReadsALastLineWithoutEnd) {
  EXPECT_EQ(train("a,label\n1,2\n3,4").describe(LH_SPLIT_TRAIN).samples, 2);
  EXPECT_EQ(train("a,label\r\n1,2\r\n3,4\r").describe(LH_SPLIT_TRAIN).samples, 2);
}

TEST_F(CsvData, NamesTheLineOfARaggedRow) {
  EXPECT_THAT(fault("a,label\n1,2\n1,2,3\n"), HasSubstr(path_ + ":3: found 3 cells, expected 2"));
  EXPECT_THAT(fault("a,label\n1,2\n\n1\n"), HasSubstr(path_ + ":4: found 1 cell, expected 2"));
  // a line break inside quotes counts as a line of the file
  EXPECT_THAT(fault("\"a\nb\",label\n1,2\n1\n"), HasSubstr(path_ + ":4: found 1 cell"));
}

TEST_F(CsvData, NamesLineColumnAndTextOfWhatIsNoNumber) {
  EXPECT_THAT(fault("a,label\n1,2\nabc,2\n"),
              HasSubstr(path_ + ":3: column \"a\": found \"abc\", expected a number"));
  EXPECT_THAT(fault("a,label\n1.5x,2\n"), HasSubstr("found \"1.5x\""));
  EXPECT_THAT(fault("a,label\n0x10,2\n"), HasSubstr("found \"0x10\""));
  EXPECT_THAT(fault("a,label\n+-1,2\n"), HasSubstr("found \"+-1\""));
  EXPECT_THAT(fault("a,label\n\"1,5\",2\n"), HasSubstr("found \"1,5\""));
  EXPECT_THAT(fault("a,label\n,2\n"),
              HasSubstr("found \"\", expected a number; fill it in or remove the row"));
}

TEST_F(CsvData, RefusesNumbersThatNoModelCanUse) {
  for (const std::string text : {"nan", "NaN", "inf", "-Infinity"})
    EXPECT_THAT(fault("a,label\n" + text + ",2\n"),
                HasSubstr("found \"" + text + "\", expected a finite number"));
  for (const std::string text : {"1e39", "1e999", "-4e38"})
    EXPECT_THAT(fault("a,label\n" + text + ",2\n"), HasSubstr("fits into 32-bit floating point")) << text;
}

TEST_F(CsvData, RefusesLabelsThatAreNoClass) {
  for (const std::string text : {"1.0", "setosa", "-1", "", "9223372036854775808"})
    EXPECT_THAT(fault("a,label\n1," + text + "\n"),
                AllOf(HasSubstr(path_ + ":2: column \"label\": found \"" + text + "\""),
                      HasSubstr("a whole number from 0"), HasSubstr("label_type = \"number\"")));
}

TEST_F(CsvData, SuggestsTheNearestColumn) {
  EXPECT_THAT(fault("a,lable,b\n1,2,3\n"),
              AllOf(HasSubstr(path_ + ": there is no column \"label\""), HasSubstr("did you mean \"lable\"?"),
                    HasSubstr("(a, lable, b)")));
  EXPECT_THAT(fault("height,label\n1,2\n", {{"features", Texts{"heigth"}}}),
              HasSubstr("did you mean \"height\"?"));
  EXPECT_THAT(fault("q,label\n1,2\n", {{"features", Texts{"temperature"}}}),
              AllOf(HasSubstr("no column \"temperature\""), Not(HasSubstr("did you mean"))));
  EXPECT_THAT(fault("a,a,label\n1,2,3\n"), HasSubstr("two columns are named \"a\""));
  EXPECT_THAT(fault("a,label,label\n1,2,3\n"), HasSubstr("two columns are named \"label\""));
  EXPECT_THAT(fault("a,b,b,label\n1,2,3,x\n", {{"features", Texts{"a"}}}), Not(HasSubstr("two columns")))
      << "what nobody chose may be there twice";
  EXPECT_THAT(fault("label\n1\n"), HasSubstr("no column but the label"));
}

TEST_F(CsvData, SaysWhatIsNoCsvFile) {
  EXPECT_THAT(fault(""), AllOf(HasSubstr(path_), HasSubstr("is empty")));
  EXPECT_THAT(fault("\n\r\n\n"), AllOf(HasSubstr(path_), HasSubstr("only blank lines")));
  EXPECT_THAT(fault("a,label\n"), AllOf(HasSubstr(path_), HasSubstr("has a header but no rows")));
  EXPECT_THAT(fault("\xff\xfe"
                    "a"),
              AllOf(HasSubstr(path_), HasSubstr("UTF-16")));
  EXPECT_THAT(fault("a,label\n\"1,2\n3,4\n"),
              HasSubstr(path_ + ":2: a quote is opened here and never closed"));
  EXPECT_THAT(fault("a,label\n\"1\"x,2\n"), HasSubstr(path_ + ":2: text follows a closing quote"));
  const auto at = [](const std::string& path) {
    return DataSource("csv", {{"val", path}}).describe_failure(LH_SPLIT_VAL);
  };
  EXPECT_THAT(at(dir_ / "absent"), AllOf(HasSubstr(dir_ / "absent"), HasSubstr("No such file")));
  EXPECT_THAT(at(dir_.path()), HasSubstr("is a folder"));
  EXPECT_THAT(at("/dev/null"), HasSubstr("is not a regular file"));
}

TEST(CsvOptions, RefusesALongDelimiter) {
  for (const std::string text : {"", ", ", "\"", "\n"})
    EXPECT_THROW(DataSource("csv", {{"delimiter", text}}), lhost_test::StatusError) << text;
}

}  // namespace
