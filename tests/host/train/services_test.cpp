// tests/host/train/services_test.cpp - the run as plugins see it, through the tables that they are given.
#include "base/terminal.hpp"
#include "engine_support.hpp"
#include "train/run_state.hpp"

#include <gmock/gmock.h>

#include <cstring>

namespace lhost {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using train_test::engine;
using train_test::Numbers;

struct Services : testing::Test {
  static lh_engine_config config() {
    lh_engine_config c{};
    c.size = sizeof c;
    c.threads = 1;
    return c;
  }
  RunHandle handle{engine(), config()};
  lh_run* run = handle.get();
  RunState& state = handle.state();
  const lh_metrics_v0& metrics = *static_cast<const lh_metrics_v0*>(host_service(LH_METRICS_SERVICE));
  const lh_trainer_v0& trainer = *static_cast<const lh_trainer_v0*>(host_service(LH_TRAINER_SERVICE));
  const lh_terminal_v0& terminal = *static_cast<const lh_terminal_v0*>(host_service(LH_TERMINAL_SERVICE));
};

TEST_F(Services, AreFoundByTheirExactName) {
  EXPECT_EQ(host_service("lhost.metrics/1"), nullptr);
  EXPECT_EQ(host_service(""), nullptr);
  EXPECT_EQ(metrics.size, sizeof metrics);
  EXPECT_EQ(trainer.size, sizeof trainer);
  EXPECT_EQ(terminal.size, sizeof terminal);
}

TEST_F(Services, AMetricIsDeclaredLoggedAndFound) {
  uint32_t id = 99, again = 98;
  check(metrics.declare(run, str("loss"), LH_PROG_BAR, LH_MEAN, &id));
  check(metrics.declare(run, str("loss"), LH_PROG_BAR, LH_MEAN, &again));
  EXPECT_EQ(id, again);
  double v = -1;
  EXPECT_FALSE(trainer.metric(run, str("loss"), &v));
  const Numbers one({1.5});
  check(metrics.log(run, id, one.get(), 1));
  ASSERT_TRUE(trainer.metric(run, str("loss"), &v));
  EXPECT_EQ(v, 1.5);
  check(metrics.log_number(run, id, 2.5, 1));
  uint32_t other = 0;
  check(metrics.declare(run, str("acc"), 0, LH_MEAN, &other));
  check(metrics.log_number(run, other, 0.5, 1));
  const lh_metric_value* list = nullptr;
  ASSERT_EQ(trainer.metrics(run, &list), 2u);
  EXPECT_EQ(view(list[0].name), "loss");
  EXPECT_EQ(list[0].value, 2.5);
  EXPECT_EQ(list[0].flags, uint32_t{LH_PROG_BAR});
  EXPECT_EQ(view(list[1].name), "acc");
}

TEST_F(Services, AMetricThatIsRefusedIsAStatusNotAnException) {
  uint32_t id = 0;
  lh_status s = metrics.declare(run, str(""), 0, LH_MEAN, &id);
  ASSERT_NE(s, nullptr);
  const PluginError e = take(s);
  EXPECT_EQ(e.code, LH_INVALID_ARGUMENT);
  EXPECT_THAT(e.message, HasSubstr("needs a name"));
}

TEST_F(Services, StepAndRankAreTheRunsOwn) {
  EXPECT_EQ(trainer.step(run), &state.step);
  EXPECT_EQ(trainer.env(run), &state.env);
  EXPECT_EQ(trainer.env(run)->world_size, 1);
  EXPECT_EQ(trainer.env(run)->rank, 0);
  EXPECT_EQ(trainer.step(run)->size, sizeof(lh_step));
}

TEST_F(Services, InfoIsCutToTheSizeThatWasAskedFor) {
  state.info.model = LH_STR("mlp");
  state.info.max_epochs = 3;
  state.info.samples = 1293;
  lh_trainer_info now{};
  now.size = sizeof now;
  trainer.info(run, &now);
  EXPECT_EQ(view(now.model), "mlp");
  EXPECT_EQ(now.max_epochs, 3);
  EXPECT_EQ(now.samples, 1293);

  lh_trainer_info older;
  std::memset(&older, 0x5a, sizeof older);
  const lh_trainer_info untouched = older;
  older.size = offsetof(lh_trainer_info, max_steps);
  trainer.info(run, &older);
  EXPECT_EQ(older.size, offsetof(lh_trainer_info, max_steps));
  EXPECT_EQ(older.max_epochs, 3);
  EXPECT_EQ(older.max_steps, untouched.max_steps);
  EXPECT_EQ(older.samples, untouched.samples);

  struct {
    lh_trainer_info known;
    char later[64];
  } newer;
  std::memset(&newer, 0x5a, sizeof newer);
  newer.known.size = sizeof newer;
  trainer.info(run, &newer.known);
  EXPECT_EQ(newer.known.size, sizeof newer);
  EXPECT_EQ(newer.known.samples, 1293);
  for (char c : newer.later) EXPECT_EQ(c, 0) << "what this host does not know is zero";
}

TEST_F(Services, GroupsShowTheirLiveRates) {
  double base = 0.1, other = 0.5;
  state.group_names = {"", "biases"};
  state.group_rates = {&base, &other};
  const lh_group_state* list = nullptr;
  ASSERT_EQ(trainer.groups(run, &list), 2u);
  EXPECT_EQ(view(list[0].name), "");
  EXPECT_EQ(list[1].lr, 0.5);
  other = 0.25;
  ASSERT_EQ(trainer.groups(run, &list), 2u);
  EXPECT_EQ(view(list[1].name), "biases");
  EXPECT_EQ(list[1].lr, 0.25);
}

TEST_F(Services, StoppingKeepsTheReason) {
  EXPECT_FALSE(state.stop);
  trainer.stop(run, str("val_loss did not improve"));
  EXPECT_TRUE(state.stop);
  EXPECT_EQ(state.stop_reason, "val_loss did not improve");
}

TEST_F(Services, TextsOfAMomentAreEmptyOutsideIt) {
  EXPECT_EQ(view(trainer.failure(run)), "");
  EXPECT_EQ(view(trainer.checkpoint(run)), "");
  state.failure = "disk full";
  state.checkpoint = "runs/x.ckpt";
  EXPECT_EQ(view(trainer.failure(run)), "disk full");
  EXPECT_EQ(view(trainer.checkpoint(run)), "runs/x.ckpt");
}

TEST_F(Services, PredictionsAreThoseOfTheBatch) {
  lh_tensor* const* list = nullptr;
  EXPECT_EQ(trainer.predictions(run, &list), 0u);
  const Numbers one({1});
  lh_tensor* tensors[] = {one.get()};
  state.predictions = tensors;
  state.n_predictions = 1;
  ASSERT_EQ(trainer.predictions(run, &list), 1u);
  EXPECT_EQ(list[0], one.get());
}

TEST_F(Services, TwoRunsAreKeptApart) {
  RunHandle second(engine(), config());
  trainer.stop(second.get(), str("enough"));
  EXPECT_FALSE(state.stop);
  uint32_t id = 0;
  check(metrics.declare(second.get(), str("m"), 0, LH_MEAN, &id));
  check(metrics.log_number(second.get(), id, 1, 1));
  double v = 0;
  EXPECT_FALSE(trainer.metric(run, str("m"), &v));
}

TEST_F(Services, TheTerminalIsTheHosts) {
  testing::internal::CaptureStdout();
  Terminal::get().configure({TerminalOptions::Colour::always, false});
  terminal.print(str("a line"));
  terminal.status_line(str("busy"));
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "a line\n");
  EXPECT_TRUE(terminal.colour());
  EXPECT_TRUE(terminal.enabled());
  Terminal::get().configure({TerminalOptions::Colour::never, true});
  EXPECT_FALSE(terminal.colour());
  EXPECT_FALSE(terminal.enabled());
  EXPECT_FALSE(terminal.is_tty());
  EXPECT_EQ(terminal.width(), 80);
}

}  // namespace
}  // namespace lhost
