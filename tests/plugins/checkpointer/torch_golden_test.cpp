// Files that Python's torch.save wrote (tests/golden/checkpoint/make.py), against the leaves that Python says are in them.
#include "torch_file.hpp"

#include <nlohmann/json.hpp>

#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

namespace torch_test {
namespace {

using nlohmann::json;

std::string read(const std::string& name) {
  std::ifstream in(std::string(LHOST_TEST_SOURCE) + "/tests/golden/checkpoint/" + name, std::ios::binary);
  EXPECT_TRUE(in) << name;
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

double half(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double magnitude = exponent ? std::ldexp(1024 + fraction, exponent - 25) : std::ldexp(fraction, -24);
  return bits >> 15 ? -magnitude : magnitude;
}

double bfloat(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float f;
  std::memcpy(&f, &wide, sizeof f);
  return f;
}

template <class T, class F>
std::vector<double> elements(const std::string& bytes, F convert) {
  std::vector<double> out;
  for (size_t i = 0; i < bytes.size(); i += sizeof(T)) {
    T x;
    std::memcpy(&x, bytes.data() + i, sizeof x);
    out.push_back(static_cast<double>(convert(x)));
  }
  return out;
}
template <class T>
std::vector<double> elements(const std::string& bytes) {
  return elements<T>(bytes, [](T x) { return x; });
}

// dtype name -> DLPack's code and bits, and the elements as doubles
struct ElementType {
  lh_dtype dtype;
  std::vector<double> (*decode)(const std::string&);
};
const std::map<std::string, ElementType> kTypes = {
    {"float64", {{LH_DT_FLOAT, 64, 1}, elements<double>}},
    {"float32", {{LH_DT_FLOAT, 32, 1}, elements<float>}},
    {"float16", {{LH_DT_FLOAT, 16, 1}, [](const std::string& b) { return elements<uint16_t>(b, half); }}},
    {"bfloat16", {{LH_DT_BFLOAT, 16, 1}, [](const std::string& b) { return elements<uint16_t>(b, bfloat); }}},
    {"int64", {{LH_DT_INT, 64, 1}, elements<int64_t>}},
    {"int32", {{LH_DT_INT, 32, 1}, elements<int32_t>}},
    {"int16", {{LH_DT_INT, 16, 1}, elements<int16_t>}},
    {"int8", {{LH_DT_INT, 8, 1}, elements<int8_t>}},
    {"uint8", {{LH_DT_UINT, 8, 1}, elements<uint8_t>}},
    {"bool", {{LH_DT_BOOL, 8, 1}, elements<uint8_t>}},
};

double number(const json& j) { return j.is_string() ? std::stod(j.get<std::string>()) : j.get<double>(); }

std::vector<double> numbers(const json& list) {
  std::vector<double> out;
  for (const json& j : list) out.push_back(number(j));
  return out;
}

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }
bool same(const std::vector<double>& a, const std::vector<double>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](double x, double y) { return same(x, y); });
}

bool matches(const Leaf& l, const json& e) {
  const std::string kind = e["kind"];
  if (l.path != e["path"].get<Path>()) return false;
  if (kind == "unknown") return l.kind == LH_LEAF_UNKNOWN;
  if (kind == "tensor") {
    const ElementType& t = kTypes.at(e["dtype"]);
    return l.kind == LH_LEAF_TENSOR && l.dtype.code == t.dtype.code && l.dtype.bits == t.dtype.bits &&
           l.shape == e["shape"].get<std::vector<int64_t>>() && same(t.decode(l.bytes), numbers(e["data"]));
  }
  if (l.kind != LH_LEAF_VALUE) return false;
  const json& v = e["value"];
  if (kind == "NoneType") return std::holds_alternative<std::monostate>(l.value);
  if (kind == "bool") return l.value == LeafValue(v.get<bool>());
  if (kind == "int") return l.value == LeafValue(v.get<int64_t>());
  if (kind == "str") return l.value == LeafValue(v.get<std::string>());
  if (kind == "list_int") return l.value == LeafValue(v.get<std::vector<int64_t>>());
  if (kind == "list_str") return l.value == LeafValue(v.get<std::vector<std::string>>());
  if (kind == "float")
    return std::holds_alternative<double>(l.value) && same(std::get<double>(l.value), number(v));
  if (kind == "list_float") {
    const auto* list = std::get_if<std::vector<double>>(&l.value);
    return list && same(*list, numbers(v));
  }
  ADD_FAILURE() << "the golden file has the unknown kind " << kind;
  return false;
}

struct Golden {
  const char *file, *leaves;
};

class TorchGolden : public testing::TestWithParam<Golden> {};

TEST_P(TorchGolden, HasTheLeavesThatPythonPutIn) {
  const json expected = json::parse(read(GetParam().leaves));
  const std::vector<Leaf> found = load(read(GetParam().file));
  for (size_t i = 0; i < std::min(found.size(), expected.size()); ++i)
    EXPECT_TRUE(matches(found[i], expected[i]))
        << testing::PrintToString(found[i]) << "\nexpected " << expected[i];
  EXPECT_EQ(found.size(), expected.size());
  EXPECT_FALSE(found.empty());
}

INSTANTIATE_TEST_SUITE_P(
    , TorchGolden,
    testing::Values(Golden{"state_dict.pt", "state_dict.json"}, Golden{"training.pt", "training.json"},
                    Golden{"lightning.ckpt", "lightning.json"}, Golden{"dtypes.pt", "dtypes.json"},
                    Golden{"views.pt", "views.json"}, Golden{"values.pt", "values.json"},
                    Golden{"values5.pt", "values.json"}, Golden{"unknown.pt", "unknown.json"},
                    Golden{"unknown5.pt", "unknown.json"}, Golden{"no_checksums.pt", "no_checksums.json"}),
    [](const testing::TestParamInfo<Golden>& i) {
      const std::string name = i.param.file;
      return name.substr(0, name.find('.'));
    });

TEST(TorchGoldenPaths, LightningNestingIsReachedByNumber) {
  std::map<Path, Leaf> leaves;
  for (const Leaf& l : load(read("lightning.ckpt"))) leaves[l.path] = l;
  EXPECT_EQ(leaves[(Path{"optimizer_states", "0", "state", "0", "exp_avg"})].kind, LH_LEAF_TENSOR);
  EXPECT_EQ(leaves[(Path{"optimizer_states", "0", "param_groups", "0", "betas"})].value,
            LeafValue(std::vector<double>{0.8, 0.99}));
  EXPECT_EQ(leaves[(Path{"state_dict", "weight"})].shape, (std::vector<int64_t>{1, 2}));
}

TEST(TorchGoldenRefusals, OldFormatSaysHowToConvert) {
  const Refusal r = load_failure(read("legacy.pt"));
  EXPECT_EQ(r.code, LH_UNIMPLEMENTED);
  EXPECT_NE(r.message.find("before 1.6"), std::string::npos) << r.message;
  EXPECT_NE(r.message.find("torch.save(torch.load(old), new)"), std::string::npos) << r.message;
}

TEST(TorchGoldenRefusals, TorchScriptSaysHowToConvert) {
  const Refusal r = load_failure(read("torchscript.pt"));
  EXPECT_EQ(r.code, LH_UNIMPLEMENTED);
  EXPECT_NE(r.message.find("TorchScript"), std::string::npos) << r.message;
  EXPECT_NE(r.message.find("state_dict()"), std::string::npos) << r.message;
}

}  // namespace
}  // namespace torch_test
