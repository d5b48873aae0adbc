// Any bytes give leaves or one error: files cut at every length, every byte changed, and pickles made to exhaust.
#include "torch_file.hpp"

#include <fstream>
#include <sstream>

namespace torch_test {
namespace {

std::string golden(const std::string& name) {
  std::ifstream in(std::string(LHOST_TEST_SOURCE) + "/tests/golden/checkpoint/" + name, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  EXPECT_FALSE(out.str().empty()) << name;
  return out.str();
}

std::string own() {
  return save({tensor({"state_dict", "w"}, kFloat32, {2, 2}, bytes_of<float>({1, 2, 3, 4})),
               tensor({"state_dict", "b"}, kInt64, {}, bytes_of<int64_t>({5})), value({"epoch"}, int64_t{3}),
               value({"name"}, std::string("a"))});
}

template <class T>
T get_number(const std::string& file, size_t at) {
  T n;
  std::memcpy(&n, file.data() + at, sizeof n);
  return n;
}

class TorchHostile : public testing::TestWithParam<std::string> {
 protected:
  std::string file() const { return GetParam().empty() ? own() : golden(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(, TorchHostile, testing::Values("", "views.pt", "unknown5.pt"),
                         [](const testing::TestParamInfo<std::string>& i) {
                           return i.param.empty() ? "own" : i.param.substr(0, i.param.find('.'));
                         });

TEST_P(TorchHostile, CutAtEveryLengthIsRefused) {
  const std::string whole = file();
  for (size_t n = 0; n < whole.size(); ++n) {
    const Refusal r = load_failure(std::string(whole, 0, n));
    EXPECT_TRUE(r.code == LH_DATA_LOSS || (n < 2 && r.code == LH_INVALID_ARGUMENT))
        << n << " bytes: " << r.message;
  }
}

TEST_P(TorchHostile, EveryChangedByteIsFoundOrChangesNothing) {
  const std::string whole = file();
  const std::vector<Leaf> expected = load(whole);
  size_t found = 0;
  for (size_t i = 0; i < whole.size(); ++i) {
    for (const int change : {0xFF, 0x01}) {
      std::string damaged = whole;
      damaged[i] = static_cast<char>(damaged[i] ^ change);
      try {
        EXPECT_TRUE(load(damaged) == expected) << "byte " << i;
      } catch (const lhost_test::StatusError& e) {
        EXPECT_STRNE(e.what(), "");
        ++found;
      }
    }
  }
  EXPECT_GT(found, whole.size() / 2) << "most bytes matter";
}

// Damage that the checksums do not see: each byte of the pickle changed in a file whose checksums are right.
TEST_P(TorchHostile, EveryChangedByteOfThePickleGivesLeavesOrAnError) {
  const std::string whole = file();
  const auto number16 = [&](size_t at) { return get_number<uint16_t>(whole, at); };
  const uint64_t directory = get_number<uint32_t>(whole, whole.size() - 22 + 16);
  const std::string pickle =
      whole.substr(30u + number16(26) + number16(28), get_number<uint32_t>(whole, directory + 24));
  ASSERT_EQ(pickle.back(), '.');
  size_t read = 0;
  for (size_t i = 0; i < pickle.size(); ++i) {
    for (const char change : {'\xFF', '\x01', '\x02', '\x04', '\x10', '\x80'}) {
      std::string changed = pickle;
      changed[i] = static_cast<char>(changed[i] ^ change);
      const Refusal r = load_failure(zip(
          {{"a/data.pkl", changed}, {"a/data/0", std::string(16, 'x')}, {"a/data/1", std::string(8, 'x')}}));
      read += r.code == LH_OK;
    }
  }
  EXPECT_GT(read, 0u) << "a letter of a key";
  EXPECT_LT(read, pickle.size() * 6);
}

std::string repeat(const std::string& s, size_t n) {
  std::string out;
  for (size_t i = 0; i < n; ++i) out += s;
  return out;
}

void expect_refused(const std::string& operations, lh_code code, const std::string& part) {
  const Refusal r = load_failure(checkpoint(operations));
  EXPECT_EQ(r.code, code) << r.message;
  EXPECT_NE(r.message.find(part), std::string::npos) << r.message << "\nexpected " << part;
}

TEST(TorchHostilePickle, DeepNestingIsRefused) {
  expect_refused(repeat("](", 100'000) + repeat("e", 100'000), LH_UNIMPLEMENTED, "100 levels");
  expect_refused(")" + repeat("\x85", 100'000), LH_UNIMPLEMENTED, "100 levels");
  expect_refused(repeat("}(K\1", 100'000) + "N" + repeat("u", 100'000), LH_UNIMPLEMENTED, "100 levels");
}

TEST(TorchHostilePickle, ListThatHoldsItselfIsRefused) {
  expect_refused(std::string("]q\0h\0a", 6), LH_UNIMPLEMENTED, "holds itself");
  expect_refused(std::string("}q\0K\1h\0s", 8), LH_UNIMPLEMENTED, "holds itself");
}

// Fifty lists of two, each holding the one before twice: 2^50 leaves.
TEST(TorchHostilePickle, ExponentialSharingIsRefused) {
  std::string operations = std::string("](Ne", 4);
  for (char i = 0; i < 50; ++i) operations += std::string("q") + i + "0](h" + i + "h" + i + "e";
  expect_refused(operations, LH_RESOURCE_EXHAUSTED, "again and again");
}

// Long texts named many times, as values, keys, paths and names of classes.
TEST(TorchHostilePickle, LongTextsNamedManyTimesAreRefused) {
  const std::string text = pickled_text(std::string(1'000'000, 'x')) + std::string("q\0", 2) + "0";
  const std::string name = std::string("h\0", 2);
  expect_refused(text + "](" + repeat(name, 100'000) + "Ne", LH_RESOURCE_EXHAUSTED, "again and again");
  expect_refused(text + "](" + repeat(name, 100'000) + "e", LH_RESOURCE_EXHAUSTED, "again and again");
  expect_refused(text + "}(" + repeat(name + "N", 100'000) + "u", LH_RESOURCE_EXHAUSTED, "again and again");
  expect_refused(text + "}(" + name + "](" + repeat("N", 100'000) + "eu", LH_RESOURCE_EXHAUSTED,
                 "again and again");
  expect_refused(text + "](" + repeat(name + name + "\x93", 10'000) + "e", LH_DATA_LOSS, "a name of");
}

TEST(TorchHostilePickle, HugeCountsAreRefused) {
  const std::string huge32 = "\xFF\xFF\xFF\xFF", huge64 = "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F";
  for (const std::string& op :
       {"X" + huge32, "T" + huge32, "B" + huge32, "\x8b" + huge32, "\x8d" + huge64, "\x8e" + huge64,
        "\x96" + huge64, std::string("\x8c\xFF"), std::string("U\xFF")})
    expect_refused(op, LH_DATA_LOSS, "ends past its end");
  expect_refused("j" + huge32, LH_DATA_LOSS, "does not hold");
  expect_refused("ctorch", LH_DATA_LOSS, "a name without end");
}

TEST(TorchHostilePickle, OperationsWithoutOperandsAreRefused) {
  for (const char* op : {"",     "0",    "1",  "a",    "e",    "s",    "u",     "t",    "b",    "R",
                         "\x81", "\x92", "Q",  "\x85", "\x86", "\x87", "\x93",  "q1",   "\x94", "\x90",
                         "\x91", "(.",   "(a", "N(s",  "N(R",  "K\1a", "](N)s", "]Na0", "\x98"})
    EXPECT_EQ(load_failure(checkpoint(op)).code, LH_DATA_LOSS) << testing::PrintToString(op);
}

TEST(TorchHostilePickle, UnknownOperationsAreRefused) {
  for (const char* op : {"I01\n", "Pid\n", "Z", "\xFF", "o", "i"})
    expect_refused(op, LH_DATA_LOSS, "unknown operation");
}

TEST(TorchHostilePickle, PairsOfOperationsGiveLeavesOrAnError) {
  size_t read = 0, all = 0;
  for (int a = 0; a < 256; ++a) {
    for (int b = a % 8; b < 256; b += 8, ++all) {
      const std::string operations = {'(', ']', static_cast<char>(a), static_cast<char>(b), 'K', 1};
      read += load_failure(checkpoint(operations)).code == LH_OK;
    }
  }
  EXPECT_GT(read, 0u);
  EXPECT_LT(read, all);
}

TEST(TorchHostileZip, EveryNumberOfTheDirectoryMayBeHuge) {
  const std::string whole = own();
  const size_t end = whole.size() - 22;
  uint32_t directory = 0;
  std::memcpy(&directory, whole.data() + end + 16, 4);
  for (size_t i = directory; i + 4 <= whole.size(); ++i) {
    for (const char* number : {"\xFF\xFF\xFF\xFF", "\xFF\xFF\xFF\x7F", "\0\0\0\x80"}) {
      std::string damaged = whole;
      std::memcpy(damaged.data() + i, number, 4);
      load_failure(damaged);  // no fault
    }
  }
}

// Sixty entries that all name the same large record: checking them all would cost sixty passes.
TEST(TorchHostileZip, OverlappingRecordsAreRefused) {
  std::vector<HandRecord> records = {{"a/data.pkl", "\x80\x02}."}};
  for (int i = 10; i < 70; ++i) records.push_back({"a/data/" + std::to_string(i), std::string(100, 'x')});
  std::string file = zip(records);
  const size_t first_local = file.find("a/data/10") - 30,
               first = file.find("a/data/10", first_local + 60) - 46;
  const auto where = static_cast<uint32_t>(first_local);
  for (size_t entry = first; file.compare(entry, 4, "PK\1\2") == 0; entry += 46 + 9) {
    std::memcpy(file.data() + entry + 42, &where, 4);
    file.replace(entry + 46, 9, "a/data/10");
  }
  EXPECT_EQ(load_failure(file).code, LH_DATA_LOSS);
}

}  // namespace
}  // namespace torch_test
