#include "run_support.hpp"

#include "assembly/execute.hpp"
#include "base/files.hpp"
#include "base/terminal.hpp"
#include "plugin/loader.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <thread>

namespace run_test {
namespace fs = std::filesystem;
namespace {

const char* const kManifest = R"(
[run]
name = "t"
dir = "runs"
[trainer]
max_epochs = 1
num_sanity_val_steps = 0
log_every_n_steps = 1
threads = 1
[model]
use = "mock_linear"
inputs = 2
classes = 1
loss = "mse"
[data]
use = "mock_data"
samples = 8
val_samples = 0
batch_size = 2
shuffle = false
[optimizer]
use = "sgd"
lr = 0.1
[[logger]]
use = "jsonl"
[[callback]]
use = "recorder"
path = "events.txt"
[[checkpoint]]
use = "torch"
save_top_k = 0
save_last = true
)";

std::string hex(const char* bytes, size_t n) {
  std::string s;
  char b[3];
  for (size_t i = 0; i < n; ++i) {
    std::snprintf(b, sizeof b, "%02x", static_cast<unsigned char>(bytes[i]));
    s += b;
  }
  return s;
}
std::string text_of(double v) {
  char b[64];
  std::snprintf(b, sizeof b, "%a", v);
  return b;
}

std::string text_of(const lh_leaf& l) {
  const lh_value& v = l.value;
  if (l.kind == LH_LEAF_TENSOR) {
    size_t n = l.view.dtype.bits / 8u;
    std::string s =
        "tensor" + std::to_string(l.view.dtype.code) + ":" + std::to_string(l.view.dtype.bits) + "[";
    for (int32_t i = 0; i < l.view.ndim; ++i) {
      n *= static_cast<size_t>(l.view.shape[i]);
      s += std::to_string(l.view.shape[i]) + ",";
    }
    return s + "]" + hex(static_cast<const char*>(l.view.data) + l.view.byte_offset, n);
  }
  std::string list;
  switch (v.type) {
    case LH_T_BOOL:
      return v.u.b ? "true" : "false";
    case LH_T_INT:
      return std::to_string(v.u.i);
    case LH_T_FLOAT:
      return text_of(v.u.f);
    case LH_T_STR:
      return {v.u.s.ptr, v.u.s.len};
    case LH_T_LIST_FLOAT:
      for (uint32_t i = 0; i < v.n; ++i) list += text_of(v.u.lf[i]) + ",";
      return list;
    default:
      return "type " + std::to_string(v.type);
  }
}

lhost::Checkpointer& torch_format() {
  static lhost::Checkpointer c = [] {
    lhost::Selection s;
    s.kind = "checkpointer";
    s.instance = "checkpoint[0]";
    s.name = "torch";
    s.path = LHOST_TEST_PLUGINS "/checkpointer/torch.so";
    return lhost::Checkpointer(lhost::create_component(s, nullptr));
  }();
  return c;
}

struct Leaf {
  std::string path;
  lh_leaf leaf;
};
template <class F>
void visit(const std::string& file, F f) {
  const std::string bytes = lhost::read_file(file);
  const lh_leaf_visitor visitor = {sizeof visitor, 0, &f, [](void* ctx, const lh_leaf* l) -> lh_status {
                                     std::string path;
                                     for (uint32_t i = 0; i < l->n_path; ++i)
                                       path += (i ? "/" : "") + std::string(lhost::view(l->path[i]));
                                     (*static_cast<F*>(ctx))(path, *l);
                                     return nullptr;
                                   }};
  lhost::check(torch_format()->load(torch_format().self(), {bytes.data(), bytes.size()}, &visitor));
}

Event event_of(const std::string& line) {
  Event e;
  size_t at = std::min(line.find(' '), line.size());
  e.name = line.substr(0, at);
  while (at < line.size()) {
    const size_t begin = at + 1, equal = line.find('=', begin), space = line.find(' ', begin);
    if (space < equal || equal == line.npos) {
      e.sanity |= line.substr(begin, space - begin) == "sanity";
      at = std::min(space, line.size());
      continue;
    }
    const std::string key = line.substr(begin, equal - begin);
    std::string value;
    if (line[equal + 1] == '"') {
      const size_t end = line.find('"', equal + 2);
      value = line.substr(equal + 2, end - equal - 2);
      at = end + 1;
    } else {
      at = std::min(line.find(' ', equal), line.size());
      value = line.substr(equal + 1, at - equal - 1);
    }
    if (key == "step") e.step = std::stoll(value);
    else if (key == "epoch") e.epoch = std::stoll(value);
    else if (key == "batch") e.batch = std::stoll(value);
    else if (key == "samples") e.samples = std::stoll(value);
    else if (key == "micro") e.micro = value;
    else if (key == "lr") e.lr = std::stod(value);
    else if (key == "failure") e.failure = value;
    else if (key == "checkpoint") e.checkpoint = value;
    else e.metrics[key] = std::strtod(value.c_str(), nullptr);
  }
  return e;
}

Record record_of(const nlohmann::json& j) {
  Record r{j.at("stage"), j.at("global_step"), j.at("epoch"), j.at("samples"), {}};
  for (const auto& [name, v] : j.at("metrics").items())
    r.values[name] = v.is_string() ? std::strtod(v.get<std::string>().c_str(), nullptr) : v.get<double>();
  return r;
}

std::vector<std::string> lines_of(const std::string& file) {
  std::vector<std::string> lines;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

}  // namespace

Tree tree_of(const std::string& file) {
  Tree tree;
  visit(file, [&](const std::string& path, const lh_leaf& l) { tree[path] = text_of(l); });
  return tree;
}
Tree below(const Tree& tree, const std::string& prefix) {
  Tree part;
  for (const auto& [path, value] : tree)
    if (path.rfind(prefix, 0) == 0) part[path] = value;
  return part;
}
std::vector<double> weights_of(const std::string& file) {
  std::vector<double> w, b;
  visit(file, [&](const std::string& path, const lh_leaf& l) {
    if (path != "state_dict/linear.weight" && path != "state_dict/linear.bias") return;
    auto& to = path == "state_dict/linear.weight" ? w : b;
    const auto* data =
        reinterpret_cast<const float*>(static_cast<const char*>(l.view.data) + l.view.byte_offset);
    int64_t n = 1;
    for (int32_t i = 0; i < l.view.ndim; ++i) n *= l.view.shape[i];
    for (int64_t i = 0; i < n; ++i) {
      float v = 0;
      std::memcpy(&v, data + i, sizeof v);
      to.push_back(v);
    }
  });
  w.insert(w.end(), b.begin(), b.end());
  return w;
}

// linear.weight has two dimensions, the others one
void write_state_dict(const std::string& file, const std::map<std::string, std::vector<float>>& flat) {
  std::vector<lh_leaf> leaves;
  std::vector<std::vector<lh_str>> paths(flat.size());
  std::vector<std::vector<int64_t>> shapes(flat.size());
  size_t i = 0;
  for (const auto& [name, values] : flat) {
    paths[i] = {lhost::str(name)};
    shapes[i] = {static_cast<int64_t>(values.size())};
    if (name == "linear.weight") shapes[i].insert(shapes[i].begin(), 1);
    lh_leaf l{sizeof(lh_leaf), 1, paths[i].data(), LH_LEAF_TENSOR, 0, {}, {}};
    l.view.data = const_cast<float*>(values.data());
    l.view.device = {LH_DEVICE_CPU, 0};
    l.view.ndim = static_cast<int32_t>(shapes[i].size());
    l.view.dtype = {LH_DT_FLOAT, 32, 1};
    l.view.shape = shapes[i].data();
    leaves.push_back(l);
    ++i;
  }
  std::string bytes;
  const lh_sink sink = {sizeof sink, 0, &bytes, [](void* ctx, lh_bytes b) -> lh_status {
                          static_cast<std::string*>(ctx)->append(static_cast<const char*>(b.ptr), b.len);
                          return nullptr;
                        }};
  lhost::check(torch_format()->save(torch_format().self(), leaves.data(), leaves.size(), &sink));
  lhost::write_atomically(file, bytes);
}

// ---- Outcome

std::vector<Event> Outcome::all(const std::string& event) const {
  std::vector<Event> found;
  for (const Event& e : events)
    if (e.name == event) found.push_back(e);
  return found;
}
std::vector<std::string> Outcome::names() const {
  std::vector<std::string> list;
  for (const Event& e : events) list.push_back(e.name);
  return list;
}
std::vector<std::string> Outcome::files(const std::string& sub) const {
  std::vector<std::string> list;
  std::error_code ec;
  for (const auto& e : fs::directory_iterator(report.run_folder + "/" + sub, ec))
    list.push_back(e.path().filename());
  std::sort(list.begin(), list.end());
  return list;
}
std::string Outcome::read(const std::string& file) const {
  return lhost::read_file(report.run_folder + "/" + file);
}
std::string Outcome::result(const std::string& pointer) const {
  const auto j = nlohmann::json::parse(read("result.json"));
  const nlohmann::json::json_pointer p(pointer);
  if (!j.contains(p)) return "(none)";
  return j.at(p).is_string() ? j.at(p).get<std::string>() : j.at(p).dump();
}
std::vector<std::string> Outcome::log_lines(const std::string& holding) const {
  std::vector<std::string> found;
  for (const std::string& line : lines_of(report.run_folder + "/host.log"))
    if (line.find(holding) != line.npos) found.push_back(line);
  return found;
}
std::vector<Record> Outcome::of_stage(const std::string& stage) const {
  std::vector<Record> found;
  for (const Record& r : records)
    if (r.stage == stage) found.push_back(r);
  return found;
}
std::vector<double> Outcome::series(const std::string& metric) const {
  std::vector<double> found;
  for (const Record& r : records)
    if (r.values.count(metric)) found.push_back(r.values.at(metric));
  return found;
}

// ---- Run

Run::Run() : manifest(kManifest) {
  // kept between tests, so that plugins are asked for their options once
  setenv("XDG_CACHE_HOME", LHOST_TEST_BIN "/../tests/cache", 1);
  unsetenv("LHOST_SET");
  unsetenv("LHOST_PLUGIN_PATH");
}

Outcome Run::run(const Overrides& overrides) {
  const std::string events = folder / "events.txt";
  fs::remove(events);
  lhost::RunOptions o;
  o.manifest = folder.write("t.toml", manifest);
  o.overrides = overrides;
  o.plugin_dirs = {LHOST_TEST_MOCK "/plugins", LHOST_TEST_FIXTURES "/train"};
  o.prefix = LHOST_TEST_BIN "/..";
  o.engine = LHOST_TEST_MOCK "/lib/mock_engine.so";
  Outcome out{lhost::run_manifest(o), {}, {}};
  read(out, events);
  return out;
}

Outcome Run::done(const Overrides& overrides) {
  Outcome out = run(overrides);
  EXPECT_EQ(out.report.exit_code, 0) << out.report.error;
  EXPECT_EQ(out.report.outcome, "done");
  return out;
}

void Run::read(Outcome& out, const std::string& events) {
  for (const std::string& line : lines_of(events)) out.events.push_back(event_of(line));
  for (const std::string& line : lines_of(out.report.run_folder + "/metrics.jsonl"))
    out.records.push_back(record_of(nlohmann::json::parse(line)));
}

std::string Run::meddler(const std::string& options) {
  return "callback+={use = \"meddler\", " + options + "}";
}

bool Run::started() const {
  std::error_code ec;
  return !fs::is_empty(folder.path(), ec) && fs::exists(folder / "runs", ec);
}

// ---- RanksRun

namespace {

// Everything that a process does once is done before the first thread.
lhost::Plan plan_of_rank(const std::string& manifest, std::vector<std::string> overrides, int rank) {
  for (const char* more :
       {"strategy.use=\"ddp\"", "collective.use=\"threads\"", "collective.timeout=\"10s\""})
    overrides.insert(overrides.begin(), more);
  if (rank > 0) {
    const std::string events = fs::path(manifest).replace_filename("events_" + std::to_string(rank) + ".txt");
    overrides.push_back("callback[0].path=\"" + events + "\"");
  }
  lhost::Plan plan = lhost::resolve(
      lhost::input_for(manifest, overrides, {LHOST_TEST_MOCK "/plugins", LHOST_TEST_FIXTURES "/train"}),
      false);
  for (const lhost::Selection& s : plan.selections)
    if (!s.path.empty()) lhost::load_plugin(s.path);
  return plan;
}

lhost::RunResult run_thread(const lhost::Plan& plan, int rank, int ranks, const std::string& job) {
  const lhost::RankPages page = lhost::RankPages::alone();
  lhost::Member me;
  me.watch = lhost::Watch(page.at(0), false);
  me.env = {sizeof(lh_env),          0, ranks,           rank, ranks, rank, 1, 0,
            lhost::str("127.0.0.1"), 0, lhost::str(job), 0,    0};
  try {
    return lhost::run_rank(plan, {LHOST_TEST_MOCK "/lib/mock_engine.so", {}, false}, lhost::Launcher(), me);
  } catch (const std::exception& e) {
    lhost::RunResult r;
    r.outcome = "failed";
    r.code = lhost::Exit::internal;
    r.error = e.what();
    return r;
  }
}

}  // namespace

RanksRun::RanksOutcome RanksRun::run_on(int ranks, Overrides overrides) {
  const std::string events = folder / "events.txt", path = folder.write("t.toml", manifest);
  fs::remove(events);
  lhost::set_installation({LHOST_TEST_BIN "/../lib/lhost/plugins/1",
                           LHOST_TEST_BIN "/../lib/lhost/liblhost_engine.so",
                           LHOST_TEST_BIN "/../share/lhost/defaults.toml", LHOST_TEST_BIN "/lhost",
                           LHOST_TEST_BIN "/../lib/lhost/libtorch"});
  lhost::TerminalOptions quiet;
  quiet.quiet = true;
  lhost::Terminal::get().configure(quiet);
  lhost::start_engine(LHOST_TEST_MOCK "/lib/mock_engine.so");
  std::vector<lhost::Plan> plans;
  for (int r = 0; r < ranks; ++r) {
    Overrides own = overrides;
    if (r == 1) own.insert(own.end(), other_on_rank_1.begin(), other_on_rank_1.end());
    plans.push_back(plan_of_rank(path, own, r));
  }
  static int runs = 0;
  const std::string job = "run" + std::to_string(++runs);
  RanksOutcome out;
  out.ranks.resize(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] {
      out.ranks[static_cast<size_t>(r)] = run_thread(plans[static_cast<size_t>(r)], r, ranks, job);
    });
  for (std::thread& t : threads) t.join();
  const lhost::RunResult& first = out.ranks[0];
  out.report.exit_code = static_cast<int>(first.code);
  out.report.outcome = first.outcome;
  out.report.error = first.error;
  out.report.run_folder = first.run_folder;
  read(out, events);
  return out;
}

RanksRun::RanksOutcome RanksRun::done_on(int ranks, Overrides overrides) {
  RanksOutcome out = run_on(ranks, std::move(overrides));
  for (size_t r = 0; r < out.ranks.size(); ++r)
    EXPECT_EQ(out.ranks[r].code, lhost::Exit::done) << "rank " << r << ": " << out.ranks[r].error;
  return out;
}

// ---- by hand

ByHand::Gradient ByHand::gradient(int64_t first, int64_t n) const {
  Gradient g;
  for (int64_t i = first; i < first + n; ++i) {
    const double x[2] = {static_cast<double>(i % 5) / 4, static_cast<double>((i + 1) % 5) / 4};
    const double error = w[0] * x[0] + w[1] * x[1] + b - static_cast<double>(i % 2);
    const auto rows = static_cast<double>(n);
    g.loss += error * error / rows;
    for (int j = 0; j < 2; ++j) g.w[j] += 2 * error * x[j] / rows;
    g.b += 2 * error / rows;
  }
  return g;
}
void ByHand::step(const Gradient& g, double lr) {
  for (int j = 0; j < 2; ++j) w[j] -= lr * g.w[j];
  b -= lr * g.b;
}

void expect_near(const std::vector<double>& found, const std::vector<double>& expected, double relative) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i], expected[i], relative * std::max(1.0, std::abs(expected[i]))) << "element " << i;
}

}  // namespace run_test
