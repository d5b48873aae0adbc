#include "train/metrics.hpp"

#include "engine_support.hpp"
#include "train/settings.hpp"

#include <gmock/gmock.h>

#include <cmath>

namespace lhost {

void PrintTo(const Scalar& s, std::ostream* out) { *out << s.name << " = " << s.value; }

namespace {

using testing::DoubleEq;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using train_test::engine;
using train_test::Numbers;

auto Is(const std::string& name, double value) {
  return testing::AllOf(testing::Field(&Scalar::name, name), testing::Field(&Scalar::value, DoubleEq(value)));
}

// An engine whose values live on a device: read later, with handles that are counted.
int held = 0, read_back = 0;
lh_status (*real_retain)(lh_tensor*, lh_tensor**);
void (*real_release)(lh_tensor*);
lh_status (*real_to_host)(lh_tensor*, double*);
Engine device_engine() {
  Engine e = engine();
  real_retain = e.tensor.retain;
  real_release = e.tensor.release;
  real_to_host = e.ops.to_host;
  e.table.scalar = [](lh_tensor*, double*, lh_bool* ready) -> lh_status {
    *ready = 0;
    return nullptr;
  };
  e.tensor.retain = [](lh_tensor* t, lh_tensor** out) {
    ++held;
    return real_retain(t, out);
  };
  e.tensor.release = [](lh_tensor* t) {
    if (t) --held;
    real_release(t);
  };
  e.ops.to_host = [](lh_tensor* t, double* out) {
    ++read_back;
    return real_to_host(t, out);
  };
  return e;
}

struct MetricsOf : testing::Test {
  MetricsOf() { held = read_back = 0; }
  Metrics m{engine()};
  void log(const std::string& name, double value, uint32_t flags = 0, int32_t reduce = LH_MEAN,
           double weight = 1) {
    check(m.log_number(m.declare(name, flags, reduce), value, weight));
  }
  double known(const std::string& name) {
    double v = 0;
    return m.find(name, v) ? v : std::nan("not known");
  }
  static std::string refused(Metrics& metrics, const std::string& name, uint32_t flags = 0,
                             int32_t reduce = LH_MEAN) {
    try {
      metrics.declare(name, flags, reduce);
    } catch (const ComponentFailure& f) {
      EXPECT_EQ(f.code, LH_INVALID_ARGUMENT);
      return f.what();
    }
    return "accepted";
  }
};

TEST_F(MetricsOf, TrainingLogsOnTheStepAndEvaluationOverTheEpoch) {
  log("loss", 1);
  EXPECT_THAT(m.step_values(), ElementsAre(Is("loss", 1)));
  EXPECT_THAT(m.epoch_values(), IsEmpty());
  m.set_stage(kValidate);
  log("val_loss", 1);
  log("val_loss", 2);
  EXPECT_THAT(m.step_values(), IsEmpty());
  EXPECT_THAT(m.epoch_values(), ElementsAre(Is("val_loss", 1.5)));
}

TEST_F(MetricsOf, BothGivesThreeNames) {
  constexpr uint32_t both = LH_ON_STEP | LH_ON_EPOCH;
  log("m", 1, both);
  log("m", 3, both);
  EXPECT_THAT(m.step_values(), ElementsAre(Is("m_step", 3)));
  EXPECT_THAT(m.epoch_values(), ElementsAre(Is("m_epoch", 2)));
  EXPECT_EQ(known("m"), 2);
  EXPECT_EQ(known("m_step"), 3);
  EXPECT_EQ(known("m_epoch"), 2);
}

TEST_F(MetricsOf, AMeanIsWeighted) {
  for (double v : {0.0, 1.0, 2.0, 3.0}) log("m", v, LH_ON_EPOCH, LH_MEAN, v == 3 ? 1 : 3);
  EXPECT_THAT(m.epoch_values(), ElementsAre(Is("m", 1.2)));  // (0 + 3 + 6 + 3) / 10
}

TEST_F(MetricsOf, AMeanOfNoWeightIsNoNumber) {
  log("m", 1, LH_ON_EPOCH, LH_MEAN, 0);
  EXPECT_TRUE(std::isnan(m.epoch_values()[0].value));
}

TEST_F(MetricsOf, SumLeastAndGreatestDoNotWeigh) {
  for (double v : {3.0, -1.0, 2.0}) {
    log("sum", v, LH_ON_EPOCH, LH_METRIC_SUM, 5);
    log("min", v, LH_ON_EPOCH, LH_METRIC_MIN, 5);
    log("max", v, LH_ON_EPOCH, LH_METRIC_MAX, 5);
  }
  EXPECT_THAT(m.epoch_values(), ElementsAre(Is("sum", 4), Is("min", -1), Is("max", 3)));
}

TEST_F(MetricsOf, LeastAndGreatestOfOneSignAreNotZero) {
  log("min", 3, LH_ON_EPOCH, LH_METRIC_MIN);
  log("max", -3, LH_ON_EPOCH, LH_METRIC_MAX);
  EXPECT_THAT(m.epoch_values(), ElementsAre(Is("min", 3), Is("max", -3)));
}

TEST_F(MetricsOf, AValueThatIsNoNumberIsSeenInEveryReduction) {
  const double none = std::nan("");
  for (const auto& values :
       {std::vector<double>{none, 1}, std::vector<double>{1, none}, std::vector<double>{1, none, 2}}) {
    m.begin_epoch();
    for (int32_t reduce : {LH_MEAN, LH_METRIC_SUM, LH_METRIC_MIN, LH_METRIC_MAX})
      for (double v : values) log("m" + std::to_string(reduce), v, LH_ON_EPOCH, reduce);
    for (const Scalar& s : m.epoch_values()) EXPECT_TRUE(std::isnan(s.value)) << s.name;
  }
}

TEST_F(MetricsOf, AStepsValueIsGivenOnce) {
  log("a", 1);
  EXPECT_THAT(m.step_values(), ElementsAre(Is("a", 1)));
  EXPECT_THAT(m.step_values(), IsEmpty());
  log("b", 2);
  EXPECT_THAT(m.step_values(), ElementsAre(Is("b", 2)));
  EXPECT_EQ(known("a"), 1);
}

TEST_F(MetricsOf, EpochsAndEvaluationsAreKeptApart) {
  log("m", 1, LH_ON_EPOCH);
  m.set_stage(kValidate);
  m.begin_evaluation();
  log("m", 10, LH_ON_EPOCH);
  EXPECT_THAT(m.epoch_values(), ElementsAre(Is("m", 10)));
  m.set_stage(kFit);
  log("m", 3, LH_ON_EPOCH);
  EXPECT_THAT(m.epoch_values(), ElementsAre(Is("m", 2)));
  m.begin_epoch();
  EXPECT_THAT(m.epoch_values(), IsEmpty());
  log("m", 7, LH_ON_EPOCH);
  EXPECT_THAT(m.epoch_values(), ElementsAre(Is("m", 7)));
}

TEST_F(MetricsOf, OneNameHasOneSetOfOptions) {
  const uint32_t id = m.declare("m", LH_ON_STEP, LH_MEAN);
  EXPECT_EQ(m.declare("m", LH_ON_STEP, LH_MEAN), id);
  EXPECT_THAT(refused(m, "m", LH_ON_EPOCH), HasSubstr("\"m\" was logged before with other options"));
  EXPECT_THAT(refused(m, "m", LH_ON_STEP, LH_METRIC_SUM), HasSubstr("other options"));
  EXPECT_TRUE(m.declared("m"));
  EXPECT_FALSE(m.declared("n"));
}

TEST_F(MetricsOf, NamesAreTextsThatCanBeShown) {
  EXPECT_THAT(refused(m, ""), HasSubstr("needs a name"));
  for (const char* name : {"a\nb", "\t", "a\x1b[31m"})
    EXPECT_THAT(refused(m, name), HasSubstr("control character"));
  EXPECT_THAT(refused(m, std::string("a\0b", 3)), HasSubstr("control character"));
  for (const char* name : {"a b", "lr/biases", "verlust_\xC3\xBC"}) EXPECT_EQ(refused(m, name), "accepted");
  EXPECT_THAT(refused(m, "m", 0, 4), HasSubstr("unknown reduction"));
  EXPECT_THAT(refused(m, "m", 0, -1), HasSubstr("unknown reduction"));
}

TEST_F(MetricsOf, AnUnknownIdIsAnError) {
  const Numbers one({1});
  for (lh_status s : {m.log_number(0, 1, 1), m.log(0, one.get(), 1)}) {
    ASSERT_NE(s, nullptr);
    EXPECT_EQ(take(s).code, LH_INVALID_ARGUMENT);
  }
}

TEST_F(MetricsOf, TensorsOfOneElementAreRead) {
  const Numbers one({2.5}), two({1, 2});
  const uint32_t id = m.declare("m", 0, LH_MEAN);
  check(m.log(id, one.get(), 1));
  EXPECT_THAT(m.step_values(), ElementsAre(Is("m", 2.5)));
  lh_status s = m.log(id, two.get(), 1);
  ASSERT_NE(s, nullptr);
  EXPECT_THAT(take(s).message, HasSubstr("log(\"m\")"));
}

TEST_F(MetricsOf, TheTestStageCallsValidationMetricsTest) {
  m.set_stage(kTest);
  log("val_loss", 1);
  log("other_val_x", 2);
  EXPECT_THAT(m.epoch_values(), ElementsAre(Is("test_loss", 1), Is("other_val_x", 2)));
  EXPECT_EQ(known("test_loss"), 1);
  EXPECT_TRUE(std::isnan(known("val_loss")));
}

TEST_F(MetricsOf, AnEpochsValueIsNotKnownBeforeItsEnd) {
  log("epoch", 1, LH_ON_EPOCH);
  log("step", 2);
  EXPECT_EQ(known("step"), 2);
  EXPECT_TRUE(std::isnan(known("epoch")));
  m.epoch_values();
  EXPECT_EQ(known("epoch"), 1);
}

TEST_F(MetricsOf, WhatIsKnownCanBePutBack) {
  log("m", 1);
  m.known();
  auto before = m.take_known();
  log("m", 2);
  log("n", 3);
  m.step_values();
  m.put_known(std::move(before));
  ASSERT_EQ(m.known().size(), 1u);
  EXPECT_EQ(known("m"), 1);
}

TEST_F(MetricsOf, AnEpochCutByACheckpointGoesOnAsIfItHadNotBeen) {
  const auto first = [](auto& log_one) {
    log_one("mean", 1, LH_MEAN, 3), log_one("sum", 1, LH_METRIC_SUM, 1), log_one("min", 4, LH_METRIC_MIN, 1);
  };
  const auto second = [](auto& log_one) {
    log_one("mean", 5, LH_MEAN, 1), log_one("sum", 2, LH_METRIC_SUM, 1), log_one("min", 5, LH_METRIC_MIN, 1);
  };
  const auto into = [](Metrics& to) {
    return [&to](const char* name, double v, int32_t reduce, double w) {
      check(to.log_number(to.declare(name, LH_ON_EPOCH, reduce), v, w));
    };
  };
  Metrics resumed(engine());
  auto before = into(m), after = into(resumed);
  first(before);
  const auto saved = m.save_epoch();
  resumed.load_epoch(saved);
  second(after);
  EXPECT_THAT(resumed.epoch_values(), ElementsAre(Is("mean", 2), Is("sum", 3), Is("min", 4)));
  EXPECT_THAT(Metrics(engine()).save_epoch(), IsEmpty());
}

TEST_F(MetricsOf, ADeviceIsWaitedForOnlyWhenARecordIsDue) {
  const Engine device = device_engine();
  const Numbers one({1}), two({2});
  {
    Metrics d(device);
    const uint32_t step = d.declare("step", 0, LH_MEAN), epoch = d.declare("epoch", LH_ON_EPOCH, LH_MEAN);
    for (int i = 0; i < 10; ++i) {
      check(d.log(step, one.get(), 1));
      check(d.log(epoch, one.get(), 1));
      check(d.log(epoch, two.get(), 3));
    }
    EXPECT_EQ(read_back, 0);
    EXPECT_EQ(held, 1 + 20) << "of a step's values only the newest is kept";
    EXPECT_THAT(d.step_values(), ElementsAre(Is("step", 1)));
    EXPECT_EQ(read_back, 1);
    EXPECT_THAT(d.epoch_values(), ElementsAre(Is("epoch", 1.75)));
    EXPECT_EQ(read_back, 21);
    EXPECT_EQ(held, 0);
    check(d.log(epoch, two.get(), 1));
    d.begin_epoch();
    EXPECT_EQ(held, 0) << "an epoch that is given up gives back its handles";
    check(d.log(epoch, two.get(), 1));
    EXPECT_EQ(d.save_epoch()[0].value, 2);
    check(d.log(step, two.get(), 1));
  }
  EXPECT_EQ(held, 0);
}

}  // namespace
}  // namespace lhost
