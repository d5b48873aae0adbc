// micro.cpp - the host's own parts, each alone and without LibTorch: log(), a call over the ABI, the order of an epoch,
// the next batch, a checkpoint's name, reading a manifest. Tensors are the mock engine's.
//   build/release/tests/bench/bench_micro [--benchmark_filter=Feed]
#include "manifest/manifest.hpp"
#include "plugin/host_table.hpp"
#include "train/checkpoint_keeper.hpp"
#include "train/feed.hpp"
#include "train/metrics.hpp"
#include "train/order.hpp"
#include "train/settings.hpp"

#include <benchmark/benchmark.h>
#include <dlfcn.h>

#include <cstring>
#include <limits>

namespace {

using namespace lhost;

const Engine& engine() {
  static const Engine e = load_engine(LHOST_TEST_MOCK "/lib/mock_engine.so");
  return e;
}
lh_run* run() {
  static lh_run r{};
  static const bool made = [] {
    const lh_engine_config config{sizeof(lh_engine_config), 1, 42, 0, 0};
    check(engine()->run_new(&host_table(), &r, &config));
    return true;
  }();
  benchmark::DoNotOptimize(made);
  return &r;
}

void log_number(benchmark::State& state) {
  Metrics metrics(engine());
  const uint32_t id = metrics.declare("loss", 0, LH_MEAN);
  for (auto _ : state) check(metrics.log_number(id, 0.5, 32));
}
BENCHMARK(log_number)->Name("Metrics::log_number");

void log_tensor(benchmark::State& state) {
  Metrics metrics(engine());
  const uint32_t id = metrics.declare("loss", LH_ON_STEP | LH_ON_EPOCH, LH_MEAN);
  lh_tensor* value = nullptr;
  check(engine().tensor.empty(run(), {LH_DEVICE_CPU, 0}, {LH_DT_FLOAT, 32, 1}, nullptr, 0, LH_EMPTY_ZEROED,
                              &value));
  for (auto _ : state) check(metrics.log(id, value, 32));
  engine().tensor.release(value);
}
BENCHMARK(log_tensor)->Name("Metrics::log, on step and epoch");

void step_values(benchmark::State& state) {
  Metrics metrics(engine());
  std::vector<uint32_t> ids;
  for (int i = 0; i < 8; ++i) ids.push_back(metrics.declare("scalar_" + std::to_string(i), 0, LH_MEAN));
  for (auto _ : state) {
    for (uint32_t id : ids) check(metrics.log_number(id, 0.5, 32));
    benchmark::DoNotOptimize(metrics.step_values());
  }
}
BENCHMARK(step_values)->Name("Metrics: 8 values and the record of the step");

// The empty hook of a callback written with the SDK, in its own module.
Callback hooked() {
  void* library = dlopen(LHOST_BENCH_HOOKED, RTLD_NOW | RTLD_LOCAL);
  if (!library) throw std::runtime_error(dlerror());
  const lh_plugin* plugin = reinterpret_cast<const lh_plugin* (*)()>(dlsym(library, "lh_plugin_v1"))();
  check(plugin->init(&host_table()));
  Created made;
  const lh_create_args args{sizeof(lh_create_args), 0, nullptr, 0, run(), {"bench", 5}};
  check(plugin->components->create(plugin->components, &args, &made.self, &made.table));
  made.identity.kind = "callback";
  return Callback(made);
}
void abi_call(benchmark::State& state) {
  offer_services([](std::string_view) -> const void* {  // taken at init, never used by an empty hook
    static const uint64_t empty_table[64] = {sizeof empty_table};
    return empty_table;
  });
  const Callback callback = hooked();
  for (auto _ : state) check(callback->on_event(callback.self(), LH_EVENT(LH_STAGE_FIT, LH_ON_BATCH_END)));
}
BENCHMARK(abi_call)->Name("an empty hook of a callback");

void shuffled(benchmark::State& state) {
  const auto n = state.range(0);
  uint64_t epoch = 0;
  for (auto _ : state) benchmark::DoNotOptimize(permutation(n, 42, epoch++));
  state.SetItemsProcessed(state.iterations() * n);
}
BENCHMARK(shuffled)->Name("permutation")->Arg(1437)->Arg(50000);

// A data component that copies rows of 64 floats and a label.
constexpr int64_t kRows = 1437, kShape[] = {8, 8};
const std::vector<float> kPixels(static_cast<size_t>(kRows) * 64, 0.5f);
const lh_field kFields[] = {{sizeof(lh_field), 2, {"image", 5}, {LH_DT_FLOAT, 32, 1}, 0, kShape},
                            {sizeof(lh_field), 0, {"label", 5}, {LH_DT_INT, 64, 1}, 0, nullptr}};
lh_status fetch(lh_data*, int32_t, const int64_t* indices, uint64_t n, int64_t, void* const* dst) LH_NX {
  auto* x = static_cast<float*>(dst[0]);
  auto* y = static_cast<int64_t*>(dst[1]);
  for (uint64_t i = 0; i < n; ++i) {
    std::memcpy(x + 64 * i, kPixels.data() + 64 * indices[i], 64 * sizeof(float));
    y[i] = indices[i] % 10;
  }
  return nullptr;
}
Data rows() {
  static const lh_data_v0 table = [] {
    lh_data_v0 t{};
    t.size = sizeof t;
    t.destroy = [](lh_data*) LH_NX {};
    t.describe = [](lh_data*, int32_t, lh_split*) LH_NX -> lh_status { return nullptr; };
    t.fetch = fetch;
    return t;
  }();
  static int object = 0;
  return Data(Created{&object, &table, {"data", "rows", "rows", "1.0.0", 0}});
}
void next_batch(benchmark::State& state) {
  const Data data = rows();
  FeedOptions options;
  options.drop_last = true;
  options.threads = static_cast<int32_t>(state.range(0));
  Feed feed(data, engine(), run(), options, kFields, 2);
  const auto order = permutation(kRows, 42, 0);
  const lh_batch* batch = nullptr;
  for (auto _ : state) {
    if (!batch) feed.start(order, 0, 0, std::numeric_limits<int64_t>::max());
    benchmark::DoNotOptimize(batch = feed.next());
  }
}
BENCHMARK(next_batch)->Name("Feed::next, 32 rows of 64 floats, by threads")->Arg(0)->Arg(1)->UseRealTime();

void name_of_checkpoint(benchmark::State& state) {
  const std::vector<KnownMetric> known{{"loss", 0.1, 0}, {"val_acc", 0.9, 0}, {"val_loss", 0.31831, 0}};
  for (auto _ : state) benchmark::DoNotOptimize(expand_filename("{epoch:02d}-{val_loss:.2f}", 3, 150, known));
}
BENCHMARK(name_of_checkpoint)->Name("expand_filename");

void read_manifest(benchmark::State& state) {
  ManifestInput input;
  input.path = LHOST_BENCH_SOURCE "/configs/digits.toml";
  input.overrides = {"trainer.max_epochs=3"};
  input.defaults_path = LHOST_BENCH_SOURCE "/host/manifest/defaults.toml";
  for (auto _ : state) {
    Diagnostics problems;
    benchmark::DoNotOptimize(load_manifest(input, problems));
    if (!problems.empty()) state.SkipWithError("configs/digits.toml cannot be read");
  }
}
BENCHMARK(read_manifest)->Name("load_manifest, configs/digits.toml")->Unit(benchmark::kMicrosecond);

}  // namespace

BENCHMARK_MAIN();
