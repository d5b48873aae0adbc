#include "kinds/component.hpp"

#include "kinds/components.hpp"
#include "train/engine.hpp"

#include <gmock/gmock.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace lhost {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string>& destroyed() {
  static std::vector<std::string> names;
  return names;
}

// An object that tells when it is destroyed; its table has `destroy` and nothing that is called here.
template <class C>
struct Fake;
template <class Self, class Table>
struct Fake<Component<Self, Table>> {
  explicit Fake(std::string n = "fake") : name(std::move(n)) {
    table.size = sizeof table;
    table.destroy = [](Self* s) { destroyed().push_back(reinterpret_cast<Fake*>(s)->name); };
  }
  Created created() { return {this, &table, {"kind", name, "place", "1.0.0", 0}}; }
  std::string name;
  Table table{};
};

struct Slot {
  const char* name;
  size_t offset;
};
void put(void* table, const Slot& s, bool present) {
  static void (*const never_called)() = [] { std::abort(); };
  void (*value)() = present ? never_called : nullptr;
  std::memcpy(static_cast<char*>(table) + s.offset, &value, sizeof value);
}

// The slots are just what this kind needs: with them alone it is taken, without any one of them it is refused.
template <class C>
void expect_required(const char* kind, const std::vector<Slot>& slots) {
  SCOPED_TRACE(kind);
  Fake<C> minimal;
  for (const Slot& s : slots) put(&minimal.table, s, true);
  EXPECT_NO_THROW(C(minimal.created()));
  for (const Slot& missing : slots) {
    Fake<C> f(missing.name);
    for (const Slot& s : slots) put(&f.table, s, s.name != missing.name);
    destroyed().clear();
    try {
      C c(f.created());
      ADD_FAILURE() << "accepted without " << missing.name;
    } catch (const ComponentFailure& e) {
      EXPECT_EQ(e.code, LH_PLUGIN_FAULT);
      EXPECT_EQ(e.component, std::string("kind:") + missing.name);
      EXPECT_THAT(e.what(), HasSubstr("required slot \"" + std::string(missing.name) + "\""));
    }
    EXPECT_THAT(destroyed(), ElementsAre(missing.name)) << "what is refused is destroyed";
  }
  Fake<C> immortal;
  immortal.table.destroy = nullptr;
  for (const Slot& s : slots) put(&immortal.table, s, true);
  EXPECT_THROW(C(immortal.created()), ComponentFailure);
}
#define SLOT(table, name) \
  { #name, offsetof(table, name) }

TEST(RequiredSlots, AreWhatTheHeadersSay) {
  expect_required<Accelerator>(
      "accelerator",
      {SLOT(lh_accelerator_v0, score), SLOT(lh_accelerator_v0, device_count), SLOT(lh_accelerator_v0, open)});
  expect_required<Callback>("callback", {SLOT(lh_callback_v0, events), SLOT(lh_callback_v0, on_event)});
  expect_required<Checkpointer>(
      "checkpointer",
      {SLOT(lh_checkpointer_v0, suffix), SLOT(lh_checkpointer_v0, save), SLOT(lh_checkpointer_v0, load)});
  expect_required<Collective>("collective",
                              {SLOT(lh_collective_v0, init), SLOT(lh_collective_v0, all_reduce),
                               SLOT(lh_collective_v0, broadcast), SLOT(lh_collective_v0, all_gather)});
  expect_required<Data>("data", {SLOT(lh_data_v0, describe), SLOT(lh_data_v0, fetch)});
  expect_required<Launcher>("launcher", {SLOT(lh_launcher_v0, env)});
  expect_required<Logger>("logger", {SLOT(lh_logger_v1, open), SLOT(lh_logger_v1, record)});
  expect_required<Model>(
      "model", {SLOT(lh_model_v0, unit_count), SLOT(lh_model_v0, unit), SLOT(lh_model_v0, param_count),
                SLOT(lh_model_v0, param), SLOT(lh_model_v0, set_mode), SLOT(lh_model_v0, training_step)});
  expect_required<Optimizer>("optimizer", {SLOT(lh_optimizer_v0, step)});
  expect_required<Precision>("precision", {SLOT(lh_precision_v0, policy)});
  expect_required<Profiler>(
      "profiler", {SLOT(lh_profiler_v0, start), SLOT(lh_profiler_v0, begin), SLOT(lh_profiler_v0, end)});
  expect_required<Scheduler>("scheduler", {SLOT(lh_scheduler_v0, rate)});
  expect_required<Strategy>("strategy", {SLOT(lh_strategy_v0, setup)});
}

struct Schedulers : testing::Test {
  Schedulers() { destroyed().clear(); }
  using Object = Fake<Scheduler>;
  static Scheduler made(Object& f) {
    f.table.rate = [](lh_scheduler*, const lh_clock*, double, double*) -> lh_status { return nullptr; };
    return Scheduler(f.created());
  }
  Object a{"a"}, b{"b"};
};

TEST_F(Schedulers, ATableThatEndsBeforeARequiredSlotLacksIt) {
  a.table.rate = [](lh_scheduler*, const lh_clock*, double, double*) -> lh_status { return nullptr; };
  a.table.size = offsetof(lh_scheduler_v0, rate);
  EXPECT_THROW(Scheduler(a.created()), ComponentFailure);
}

TEST_F(Schedulers, ALongerTableIsCutToWhatIsKnown) {
  struct {
    lh_scheduler_v0 known;
    char later[64];
  } longer{};
  Object f("longer");
  longer.known = f.table;
  longer.known.size = sizeof longer;
  longer.known.rate = [](lh_scheduler*, const lh_clock*, double base, double* out) -> lh_status {
    *out = base / 2;
    return nullptr;
  };
  Created c = f.created();
  c.table = &longer;
  const Scheduler s(c);
  double rate = 0;
  check(s->rate(s.self(), nullptr, 3, &rate));
  EXPECT_EQ(rate, 1.5);
  EXPECT_EQ(s.table().size, sizeof(lh_scheduler_v0));
}

TEST_F(Schedulers, AreEmptyUntilTheyAreMade) {
  const Scheduler s;
  EXPECT_FALSE(s);
  EXPECT_EQ(s.self(), nullptr);
}

TEST_F(Schedulers, AreDestroyedOnceWhereverTheyMove) {
  {
    Scheduler first = made(a);
    Scheduler second = std::move(first);
    EXPECT_FALSE(first);
    EXPECT_TRUE(second);
    EXPECT_EQ(second.identity().name, "a");
    EXPECT_EQ(second.identity().instance, "place");
    Scheduler third;
    third = std::move(second);
    EXPECT_FALSE(second);
    EXPECT_THAT(destroyed(), testing::IsEmpty());
  }
  EXPECT_THAT(destroyed(), ElementsAre("a"));
}

TEST_F(Schedulers, AssigningDestroysWhatWasThere) {
  Scheduler s = made(a);
  s = made(b);
  EXPECT_THAT(destroyed(), ElementsAre("a"));
  s.reset();
  s.reset();
  EXPECT_THAT(destroyed(), ElementsAre("a", "b"));
}

TEST(ComponentsOfARun, AreDestroyedInTheReverseOrderOfCreation) {
  Fake<Profiler> profiler("profiler");
  Fake<Strategy> strategy("strategy");
  Fake<Model> model("model");
  Fake<Optimizer> optimizer("optimizer");
  const auto fill = [](auto& fake, std::initializer_list<Slot> slots) {
    for (const Slot& s : slots) put(&fake.table, s, true);
    return fake.created();
  };
  destroyed().clear();
  {
    Components c;
    c.profiler = Profiler(fill(
        profiler, {SLOT(lh_profiler_v0, start), SLOT(lh_profiler_v0, begin), SLOT(lh_profiler_v0, end)}));
    c.strategy = Strategy(fill(strategy, {SLOT(lh_strategy_v0, setup)}));
    c.model = Model(fill(
        model, {SLOT(lh_model_v0, unit_count), SLOT(lh_model_v0, unit), SLOT(lh_model_v0, param_count),
                SLOT(lh_model_v0, param), SLOT(lh_model_v0, set_mode), SLOT(lh_model_v0, training_step)}));
    c.optimizer = Optimizer(fill(optimizer, {SLOT(lh_optimizer_v0, step)}));
  }
  EXPECT_THAT(destroyed(), ElementsAre("optimizer", "model", "strategy", "profiler"));
}

TEST(CheckOf, ThrowsWhatThePluginReported) {
  EXPECT_NO_THROW(check(nullptr));
  try {
    check(make_status(LH_DATA_LOSS, "data:x", "fetch", "sample 3 is cut short"));
    FAIL();
  } catch (const ComponentFailure& e) {
    EXPECT_EQ(e.code, LH_DATA_LOSS);
    EXPECT_EQ(e.component, "data:x");
    EXPECT_EQ(e.where, "fetch");
    EXPECT_STREQ(e.what(), "sample 3 is cut short");
  }
}

struct CollectiveOfOne : testing::Test {
  static const Engine& engine() {
    static const Engine e = load_engine(LHOST_TEST_MOCK "/lib/mock_engine.so");
    return e;
  }
  lh_tensor* tensor(double value) {
    const int64_t shape[] = {3};
    lh_tensor* t = nullptr;
    check(engine().tensor.empty(nullptr, {LH_DEVICE_CPU, 0}, {LH_DT_FLOAT, 32, 1}, shape, 1, 0, &t));
    check(engine().ops.fill(t, value));
    made.push_back(t);
    return t;
  }
  static float element(lh_tensor* t, int i) {
    lh_view v{};
    check(engine().tensor.view(t, &v));
    return static_cast<float*>(v.data)[i];
  }
  ~CollectiveOfOne() override {
    for (lh_tensor* t : made) engine().tensor.release(t);
  }
  std::vector<lh_tensor*> made;
};

TEST_F(CollectiveOfOne, EveryExchangeGivesBackTheInput) {
  const lh_collective_v0& c = collective_of_one();
  lh_collective* self = collective_of_one_self();
  const lh_collective_init init{};
  check(c.init(self, nullptr, &init));
  for (auto exchange : {c.all_reduce, c.reduce, c.broadcast, c.all_gather, c.gather, c.reduce_scatter,
                        c.scatter, c.all_to_all}) {
    lh_collective_args a{};
    a.size = sizeof a;
    a.in = tensor(5);
    a.out = tensor(0);
    auto* work = reinterpret_cast<lh_work*>(self);
    check(exchange(self, &a, &work));
    EXPECT_EQ(work, nullptr) << "complete on return";
    for (int i = 0; i < 3; ++i) EXPECT_EQ(element(a.out, i), 5);
    a.out = a.in;
    check(exchange(self, &a, &work));
    for (int i = 0; i < 3; ++i) EXPECT_EQ(element(a.in, i), 5);
  }
}

TEST_F(CollectiveOfOne, NobodyIsWaitedFor) {
  const lh_collective_v0& c = collective_of_one();
  lh_collective* self = collective_of_one_self();
  ASSERT_NE(self, nullptr);
  auto* work = reinterpret_cast<lh_work*>(self);
  check(c.barrier(self, nullptr, &work));
  EXPECT_EQ(work, nullptr);
  c.abort(self, LH_ABORTED);
  c.destroy(self);
}

}  // namespace
}  // namespace lhost
