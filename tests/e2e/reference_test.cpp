// reference_test.cpp - configs/reference/*.toml show every key there is, and every key of them is guarded: misspelt,
// mistyped or out of range it is refused with the right line, column and suggestion before anything is touched.
#include "lhost/runtime.hpp"
#include "manifest/host_keys.hpp"
#include "plugin/describe.hpp"
#include "plugin/loader.hpp"
#include "plugin/registry.hpp"
#include "support/temp_dir.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

namespace lhost {
namespace {
namespace fs = std::filesystem;

const std::string kPrefix = fs::path(LHOST_TEST_BIN).parent_path();
const fs::path kFolder = fs::path(LHOST_TEST_SOURCE) / "configs/reference";

struct Line {  // `key = value  # comment`
  int number;
  std::string table, key, value;
  size_t value_column;
  bool comment;
};

std::vector<Line> lines_of(const std::string& text) {
  static const std::regex header(R"(^\[\[?([a-z.]+)\]\]?$)");
  static const std::regex entry(R"re(^(# )?([a-z_.]+)( = )("[^"]*"|'[^']*'|\[[^\]]*\]|[^ #]+).*$)re");
  std::vector<Line> found;
  std::istringstream in(text);
  std::string line, table;
  std::smatch m;
  for (int n = 1; std::getline(in, line); ++n) {
    if (std::regex_match(line, m, header)) table = m[1];
    else if (std::regex_match(line, m, entry))
      found.push_back({n, table, m[2], m[4], static_cast<size_t>(m.position(4)) + 1, m[1].matched});
  }
  return found;
}

std::string read(const fs::path& p) {
  std::ifstream in(p);
  return {std::istreambuf_iterator<char>(in), {}};
}
std::vector<fs::path> files() {
  std::vector<fs::path> found;
  for (const auto& e : fs::directory_iterator(kFolder))
    if (e.path().extension() == ".toml") found.push_back(e.path());
  std::sort(found.begin(), found.end());
  return found;
}

class Reference : public testing::Test {
 protected:
  // What lhost says of a reference file in which one line is another. Relative paths stay what they are.
  RunReport changed(const fs::path& file, const Line& line, const std::string& key,
                    const std::string& value) {
    std::istringstream in(read(file));
    std::string text, l;
    for (int n = 1; std::getline(in, l); ++n) text += (n == line.number ? key + " = " + value : l) + "\n";
    // beside its base; hidden, so that nobody takes it for one of the reference files
    const fs::path copy = temp_.path() + "/" + file.filename().string();
    text = std::regex_replace(text, std::regex("extends = \"host.toml\""),
                              "extends = \"" + (kFolder / "host.toml").string() + "\"");
    std::ofstream(copy) << text;
    RunOptions o;
    o.manifest = copy;
    o.prefix = kPrefix;
    if (line.key != "dir" || line.table != "run") o.overrides = {"run.dir=" + temp_.path() + "/runs"};
    const RunReport r = run_manifest(o);
    EXPECT_EQ(r.exit_code, 2) << file << ": " << key << " = " << value << "\n" << r.error;
    EXPECT_EQ(r.run_folder, "");
    EXPECT_FALSE(fs::exists(temp_.path() + "/runs"));
    return r;
  }
  static std::string at(const fs::path& file, int line, size_t column) {
    return file.filename().string() + ":" + std::to_string(line) + ":" + std::to_string(column) + ": error: ";
  }
  lhost_test::TempDir temp_;
};

const OptionSpec* find(const Schema& schema, const std::string& key) {
  for (const OptionSpec& o : schema)
    if (o.key == key) return &o;
  return nullptr;
}

// The schema of each line's key: from the host's tables and the installed components.
class Schemas {
 public:
  Schemas() {
    RunOptions o;
    o.manifest = kFolder / "host.toml";
    o.prefix = kPrefix;
    check_manifest(o);  // sets the installation
    const Registry registry(search_path({}), libtorch_version_or_empty());
    std::vector<std::string> paths;
    for (const Installed& i : registry.all())
      if (i.origin == "installation") paths.push_back(i.path);
    plugins_ = describe_plugins(paths);
  }
  const std::vector<PluginDescription>& plugins() const { return plugins_; }
  const OptionSpec* of(const fs::path& file, const Line& l) const {
    if (l.table.empty()) return find(root_keys(), l.key);
    if (l.table == "run") return find(run_keys(), l.key);
    if (l.table == "trainer") return find(trainer_keys(), l.key);
    if (l.table == "resume") return find(resume_keys(), l.key);
    const bool group = l.table == "optimizer.group";
    if (group && find(group_keys(), l.key)) return find(group_keys(), l.key);
    std::string kind = group ? "optimizer" : l.table;
    for (const KindTable& t : kind_tables())
      if (t.table == kind) kind = t.kind;
    if (const OptionSpec* o = find(selection_keys(), l.key)) return o;
    if (const OptionSpec* o = find(host_part(kind), l.key)) return o;
    const std::string stem = file.stem();
    const std::string name = stem.rfind(kind + "-", 0) == 0 ? stem.substr(kind.size() + 1)
                             : kind == "data"               ? "synthetic"
                                                            : "";
    for (const PluginDescription& p : plugins_)
      if (const ComponentDescription* c = p.find(kind, name); c && !name.empty())
        if (const OptionSpec* o = find(c->options, l.key)) return o;
    return nullptr;
  }

 private:
  std::vector<PluginDescription> plugins_;
};
const Schemas& schemas() {
  static const Schemas s;
  return s;
}

std::string mistyped(const OptionSpec& o) {
  switch (o.type) {
    case LH_T_BOOL:
      return "\"yes\"";
    case LH_T_INT:
      return "\"10\"";
    case LH_T_FLOAT:
      return "\"1e-3\"";
    case LH_T_STR:
    case LH_T_PATH:
    case LH_T_ENUM:
    case T_REGEX:
      return "12";
    case LH_T_LIST_INT:
    case LH_T_LIST_FLOAT:
      return "[\"a\", \"b\"]";
    case LH_T_LIST_STR:
      return "[1, 2]";
    default:
      return "{ a = 1 }";
  }
}

// A value of the right type that the schema forbids; empty if there is none.
std::string out_of_range(const OptionSpec& o) {
  switch (o.type) {
    case LH_T_ENUM:
      return "\"no_such_choice\"";
    case LH_T_INT:
      return !o.min.empty()   ? std::to_string(std::stoll(o.min) - 1)
             : !o.max.empty() ? std::to_string(std::stoll(o.max) + 1)
                              : "";
    case LH_T_FLOAT:
      return !o.min.empty() ? "-1.5" : !o.max.empty() ? "1e30" : "nan";
    case LH_T_LIST_INT:
      return !o.min.empty() ? "[" + std::to_string(std::stoll(o.min) - 1) + "]" : "";
    case LH_T_LIST_FLOAT:
      return !o.min.empty() ? "[-1.5, 0.5]" : "";
    case LH_T_LIST_STR:
      return o.choices.empty() ? "" : "[\"no_such_choice\"]";
    case LH_T_SHARE:
    case T_LIMIT:
      return "1.5";
    case T_WARMUP:
    case T_DEVICES:
      return "-1";
    case T_REGEX:
      return "\"(\"";
    case T_SAVE_LAST:
      return "\"copy\"";
    case LH_T_STR:
      return o.min_len ? "\"\"" : "";
    default:
      return "";
  }
}

TEST_F(Reference, EveryFileIsAccepted) {
  for (const fs::path& file : files()) {
    RunOptions o;
    o.manifest = file;
    o.prefix = kPrefix;
    const RunReport r = check_manifest(o);
    EXPECT_EQ(r.exit_code, 0) << file << "\n" << r.error;
  }
}

TEST_F(Reference, EveryKeyThereIsIsShown) {
  std::map<std::string, std::set<std::string>> shown;  // file -> keys, commented ones too
  std::set<std::string> anywhere;
  for (const fs::path& file : files())
    for (const Line& l : lines_of(read(file))) {
      shown[file.stem()].insert(l.key);
      anywhere.insert(l.key);
    }
  for (const Schema* s : {&run_keys(), &trainer_keys(), &resume_keys()})
    for (const OptionSpec& o : *s) EXPECT_TRUE(shown["host"].count(o.key)) << "host.toml lacks " << o.key;
  for (const OptionSpec& o : host_part("collective"))
    EXPECT_TRUE(o.type == LH_T_NONE || shown["host"].count(o.key)) << "host.toml lacks " << o.key;
  for (const OptionSpec& o : data_keys()) EXPECT_TRUE(anywhere.count(o.key)) << o.key;
  for (const OptionSpec& o : selection_keys()) EXPECT_TRUE(anywhere.count(o.key)) << o.key;
  for (const PluginDescription& p : schemas().plugins())
    for (const ComponentDescription& c : p.components) {
      const std::string stem = c.kind + "-" + c.name;
      ASSERT_TRUE(shown.count(stem)) << "configs/reference/" << stem << ".toml is missing";
      for (const OptionSpec& o : c.options)
        EXPECT_TRUE(shown[stem].count(o.key)) << stem << " lacks " << o.key;
      if (c.kind == "data" || c.kind == "collective")
        continue;  // the host's part is shown once, in host.toml
      for (const OptionSpec& o : host_part(c.kind)) {
        if (o.type == LH_T_NONE) continue;
        EXPECT_TRUE(shown[stem].count(o.key)) << stem << " lacks " << o.key;
      }
    }
}

TEST_F(Reference, AMisspeltKeyIsRefusedWithTheRightOne) {
  int tried = 0;
  for (const fs::path& file : files())
    for (const Line& l : lines_of(read(file))) {
      if (l.comment || l.key == "extends") continue;
      const size_t dot = l.key.rfind('.') + 1;  // npos + 1 = 0
      std::string wrong = l.key;
      wrong.insert(wrong.begin() + static_cast<long>(wrong.size() - 1), wrong.back());  // "lr" -> "lrr"
      const RunReport r = changed(file, l, wrong, l.value);
      const std::string place = at(file, l.number, dot + 1);
      const size_t found = r.error.find(place);
      ASSERT_NE(found, std::string::npos) << place << "\n" << r.error;
      const std::string message = r.error.substr(found, r.error.find('\n', found) - found);
      EXPECT_NE(message.find("unknown key"), std::string::npos) << message;
      const auto suggests = [&](const std::string& key) {
        return message.find("did you mean \"" + key + '"') != std::string::npos;
      };
      EXPECT_TRUE(suggests(l.key) || suggests(l.key.substr(dot))) << message;
      ++tried;
    }
  EXPECT_GT(tried, 150);
}

TEST_F(Reference, AMistypedValueIsRefusedAtItsPlace) {
  for (const fs::path& file : files())
    for (const Line& l : lines_of(read(file))) {
      if (l.comment || l.key == "extends") continue;
      const OptionSpec* o = schemas().of(file, l);
      ASSERT_NE(o, nullptr) << file << ": " << l.table << "." << l.key;
      const std::string value = mistyped(*o);
      const RunReport r = changed(file, l, l.key, value);
      const size_t column = l.key.size() + 4 + (value[0] == '[');  // of a list the element is the error
      EXPECT_NE(r.error.find(at(file, l.number, column)), std::string::npos) << l.key << "\n" << r.error;
    }
}

TEST_F(Reference, AValueOutOfRangeIsRefusedAtItsPlace) {
  int tried = 0;
  for (const fs::path& file : files())
    for (const Line& l : lines_of(read(file))) {
      const OptionSpec* o = l.comment || l.key == "extends" ? nullptr : schemas().of(file, l);
      const std::string value = o ? out_of_range(*o) : "";
      if (value.empty()) continue;
      const RunReport r = changed(file, l, l.key, value);
      const size_t column = l.key.size() + 4 + (value[0] == '[');
      EXPECT_NE(r.error.find(at(file, l.number, column)), std::string::npos)
          << l.key << " = " << value << "\n"
          << r.error;
      ++tried;
    }
  EXPECT_GT(tried, 100);
}

}  // namespace
}  // namespace lhost
