// tests/mock_engine/mock_plugins_test.cpp - that the mock components do what tests of the host rely on.
#include "rig.hpp"

#include <lhost/callback.h>
#include <lhost/data.h>
#include <lhost/logger.h>
#include <lhost/trainer.h>

#include <gmock/gmock.h>

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

using namespace mock_test;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

std::string fails_with(Rig& rig, int step) {
  const Batch batch({1, 2}, {0});
  for (int i = 0; i < step; ++i) rig.micro(batch);
  lh_step_out out{};
  out.size = sizeof out;
  return lhost_test::failure((*rig.model)->training_step(rig.model->self, &batch.c, &out));
}

class Folder {
 public:
  Folder() { std::filesystem::create_directories(path_); }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string file(const std::string& name) const { return path_ / name; }
  lh_str path() const { return lhost_test::str(path_.native()); }
  std::string read(const std::string& name) const {
    std::ostringstream s;
    s << std::ifstream(file(name)).rdbuf();
    return s.str();
  }

 private:
  std::filesystem::path path_ = std::filesystem::temp_directory_path() /
                                (std::string(testing::UnitTest::GetInstance()->current_test_info()->name()) +
                                 std::to_string(::getpid()));
};

lh_run_info run_info(lh_str dir, uint32_t flags) {
  lh_run_info i{};
  i.size = sizeof i;
  i.flags = flags;
  i.dir = dir;
  return i;
}

}  // namespace

TEST(MockLinear, FailsAtTheStepThatItIsTold) {
  Rig rig({{"throw_at", int64_t{2}}});
  EXPECT_EQ(fails_with(rig, 2), "told to throw in training step 2");
}

TEST(MockLinear, IsNotANumberAtTheStepThatItIsTold) {
  Rig rig({{"nan_at", int64_t{1}}});
  const Batch batch({1, 2}, {0});
  EXPECT_FALSE(std::isnan(rig.micro(batch)));
  EXPECT_FALSE(std::isnan(rig.param("linear.bias").grad().get(0)));
  EXPECT_TRUE(std::isnan(rig.micro(batch)));
  EXPECT_TRUE(std::isnan(rig.param("linear.bias").grad().get(0)));
}

TEST(MockLinear, SaysWhichShapeAndLabelAreWrong) {
  Rig rig;
  lh_step_out out{};
  const Batch wide({1, 2, 3}, {0}), label({1, 2}, {2});
  EXPECT_THAT(lhost_test::failure((*rig.model)->training_step(rig.model->self, &wide.c, &out)),
              HasSubstr("expected inputs = 2"));
  EXPECT_EQ(lhost_test::failure((*rig.model)->training_step(rig.model->self, &label.c, &out)),
            "label 2 is outside 0..1");
}

TEST(MockLinear, RefusesStepsInTheWrongMode) {
  Rig rig;
  const Batch batch({1, 2}, {0});
  EXPECT_THAT(lhost_test::failure((*rig.model)->validation_step(rig.model->self, &batch.c)),
              HasSubstr("mode of training"));
  call((*rig.model)->set_mode(rig.model->self, LH_MODE_EVAL));
  EXPECT_THAT(fails_with(rig, 0), HasSubstr("mode of evaluation"));
}

TEST(MockLinear, ReportsTheWeightThatItIsTold) {
  Rig rig({{"weight", 3.5}});
  EXPECT_EQ(rig.forward(Batch({1, 2}, {0})).weight, 3.5);
  EXPECT_EQ(Rig().forward(Batch({1, 2}, {0})).weight, 0);
}

TEST(MockLinear, EvaluationLogsLossAndAccuracy) {
  // y = (0.1 + 0.4, 0.3 + 0.8) = (0.5, 1.1): log(1 + exp(0.6)) for label 0, log(1 + exp(-0.6)) for label 1
  Rig rig;
  call((*rig.model)->set_mode(rig.model->self, LH_MODE_EVAL));
  logged_metrics().clear();
  const Batch batch({1, 2, 1, 2, 1, 2, 1, 2}, {0, 1, 1, 1});
  call((*rig.model)->validation_step(rig.model->self, &batch.c));
  ASSERT_EQ(logged_metrics()["val_loss"].size(), 1u);
  EXPECT_NEAR(logged_metrics()["val_loss"][0],
              0.25 * std::log(1 + std::exp(0.6)) + 0.75 * std::log(1 + std::exp(-0.6)), 1e-6);
  EXPECT_THAT(logged_metrics()["val_acc"], ElementsAre(0.75));
}

TEST(MockLinear, PredictsItsOutputs) {
  Rig rig;
  call((*rig.model)->set_mode(rig.model->self, LH_MODE_EVAL));
  lh_tensor* const* outs = nullptr;
  uint64_t n = 0;
  const Batch batch({1, 2}, {0});
  call((*rig.model)->predict_step(rig.model->self, &batch.c, &outs, &n));
  ASSERT_EQ(n, 1u);
  EXPECT_NEAR(mock::tensor(outs[0]).get(0), 0.5, 1e-6);
  EXPECT_NEAR(mock::tensor(outs[0]).get(1), 1.1, 1e-6);
}

TEST(MockData, SamplesAreThoseOfTheFormula) {
  Component<lh_data, lh_data_v0> data("data", "mock_data",
                                      {{"features", int64_t{3}}, {"fail_at", int64_t{5}}});
  lh_split split{};
  split.size = sizeof split;
  call(data->describe(data.self, LH_SPLIT_TRAIN, &split));
  EXPECT_EQ(split.samples, 8);
  ASSERT_EQ(split.n_fields, 3u);
  EXPECT_EQ(split.fields[0].shape[0], 3);
  float x[6];
  int64_t label[2], index[2];
  void* dst[] = {x, label, index};
  const int64_t wanted[] = {7, 0}, bad[] = {5};
  call(data->fetch(data.self, LH_SPLIT_TRAIN, wanted, 2, 0, dst));
  EXPECT_THAT(x, ElementsAre(0.5f, 0.75f, 1.0f, 0.0f, 0.25f, 0.5f));
  EXPECT_THAT(label, ElementsAre(1, 0));
  EXPECT_THAT(index, ElementsAre(7, 0));
  EXPECT_EQ(lhost_test::failure(data->fetch(data.self, LH_SPLIT_TRAIN, bad, 1, 0, dst)),
            "sample 5: told to fail");
  call(data->describe(data.self, LH_SPLIT_TEST, &split));
  EXPECT_EQ(split.samples, 0);
}

TEST(Failing, FailsWhenToldOnly) {
  Component<lh_logger, lh_logger_v1> bad("logger", "failing"),
      slow("logger", "failing", {{"fail_record", false}, {"slow_ms", int64_t{1}}}),
      shut("logger", "failing", {{"fail_open", true}});
  const lh_run_info info = run_info(LH_STR(""), 0);
  lh_record record{};
  record.size = sizeof record;
  record.global_step = 3;
  call(bad->open(bad.self, &info));
  EXPECT_EQ(lhost_test::failure(bad->record(bad.self, &record)), "told to fail on the record of step 3");
  call(slow->record(slow.self, &record));
  EXPECT_THAT(lhost_test::failure(shut->open(shut.self, &info)), HasSubstr("told to fail"));
}

TEST(MemoryC, WritesALinePerRecordAndAResumeCutsTheFileBack) {
  const Folder folder;
  const lh_scalar scalars[] = {{LH_STR("loss"), 0.5}, {LH_STR("lr"), 0.1}};
  lh_record record{};
  record.size = sizeof record;
  record.global_step = 1;
  record.scalars = scalars;
  record.n_scalars = 2;
  int64_t saved = -1;
  {
    Component<lh_logger, lh_logger_v1> logger("logger", "memory_c");
    const lh_run_info info = run_info(folder.path(), 0);
    call(logger->open(logger.self, &info));
    call(logger->record(logger.self, &record));
    const lh_state_out out = {sizeof out, 0, &saved,
                              [](void* ctx, lh_str, const lh_value* v) -> lh_status {
                                *static_cast<int64_t*>(ctx) = v->u.i;
                                return nullptr;
                              },
                              nullptr};
    call(logger->save_state(logger.self, &out));
    record.global_step = 2;
    call(logger->record(logger.self, &record));
    call(logger->close(logger.self, LH_OK, LH_STR("")));
  }
  const std::string first = "step=1 epoch=0 loss=0.5 lr=0.10000000000000001\n";
  const std::string second = "step=2 epoch=0 loss=0.5 lr=0.10000000000000001\n";
  EXPECT_EQ(folder.read("memory_c.txt"), first + second);

  Component<lh_logger, lh_logger_v1> logger("logger", "memory_c");
  const lh_state_in in = {sizeof in, 0, &saved,
                          [](void* ctx, lh_str, lh_value* v) -> lh_status {
                            v->type = LH_T_INT;
                            v->u.i = *static_cast<int64_t*>(ctx);
                            return nullptr;
                          },
                          nullptr};
  call(logger->load_state(logger.self, &in));
  const lh_run_info resumed = run_info(folder.path(), LH_RUN_RESUMED);
  call(logger->open(logger.self, &resumed));
  call(logger->record(logger.self, &record));
  EXPECT_EQ(folder.read("memory_c.txt"), first + second);
}

TEST(MemoryC, SaysWhichFileItCannotWrite) {
  Component<lh_logger, lh_logger_v1> logger("logger", "memory_c");
  const lh_run_info info = run_info(LH_STR("/nonexistent"), 0);
  EXPECT_THAT(lhost_test::failure(logger->open(logger.self, &info)), HasSubstr("/nonexistent/memory_c.txt"));
}

// --- recorder: a trainer service with one metric

namespace {

lh_step g_step{};
std::string g_stopped;
const lh_trainer_v0 trainer_table = [] {
  lh_trainer_v0 t{};
  t.size = sizeof t;
  t.step = [](lh_run*) -> const lh_step* { return &g_step; };
  t.metrics = [](lh_run*, const lh_metric_value** out) -> uint64_t {
    static const lh_metric_value loss[] = {{LH_STR("loss"), 0.25, 0, 0}};
    *out = loss;
    return 1;
  };
  t.stop = [](lh_run*, lh_str reason) { g_stopped = lhost_test::text(reason); };
  t.failure = [](lh_run*) -> lh_str { return LH_STR("it broke"); };
  t.checkpoint = [](lh_run*) -> lh_str { return LH_STR("a.ckpt"); };
  return t;
}();

}  // namespace

TEST(Recorder, WritesEventsWithCountersAndStopsOrFailsAsTold) {
  const Folder folder;
  lhost_test::services()[LH_TRAINER_SERVICE] = &trainer_table;
  Component<lh_callback, lh_callback_v0> r(
      "callback", "recorder",
      {{"path", folder.file("events")}, {"stop_at_step", int64_t{2}}, {"fail", std::string("fit.end")}});
  const int32_t* ids = nullptr;
  EXPECT_EQ(r->events(r.self, &ids), 36u);  // 9 events in each of 4 stages
  g_step = {};
  g_step.global_step = 2;
  g_step.epoch = 1;
  g_step.samples = 8;
  g_step.micro_count = 1;
  g_step.lr = 0.1;
  call(r->on_event(r.self, LH_EVENT(LH_STAGE_FIT, LH_ON_EPOCH_END)));
  EXPECT_EQ(g_stopped, "");
  call(r->on_event(r.self, LH_EVENT(LH_STAGE_FIT, LH_ON_BATCH_END)));
  EXPECT_EQ(g_stopped, "told to stop");
  call(r->on_event(r.self, LH_EVENT(LH_STAGE_FIT, LH_ON_CHECKPOINT)));
  EXPECT_EQ(lhost_test::failure(r->on_event(r.self, LH_EVENT(LH_STAGE_FIT, LH_ON_END))),
            "told to fail at fit.end");
  const std::string counters = "step=2 epoch=1 batch=0 micro=0/1 samples=8 lr=0.1";
  EXPECT_EQ(folder.read("events"), "fit.epoch_end " + counters + " loss=0.25\nfit.batch_end " + counters +
                                       " loss=0.25\n" + "fit.checkpoint " + counters +
                                       " checkpoint=\"a.ckpt\" loss=0.25\n" + "fit.end " + counters +
                                       " loss=0.25\n");
}
