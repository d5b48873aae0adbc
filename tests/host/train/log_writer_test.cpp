#include "train/log_writer.hpp"

#include "base/terminal.hpp"
#include "engine_support.hpp"

#include <gmock/gmock.h>

#include <stdexcept>

namespace lhost {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// A logger that notes its calls, fails as told, and can be held up.
class Notes {
 public:
  explicit Notes(std::string name) : name_(std::move(name)) {
    table_.size = sizeof table_;
    table_.destroy = [](lh_logger*) {};
    table_.open = [](lh_logger* l, const lh_run_info* i) {
      return of(l).call("open " + std::string(view(i->name)), 0);
    };
    table_.params = [](lh_logger* l, const lh_pair* p, uint64_t n) {
      std::string text = "params";
      for (uint64_t k = 0; k < n; ++k)
        text += " " + std::string(view(p[k].key)) + "=" + std::string(view(p[k].value));
      return of(l).call(text, 0);
    };
    table_.record = [](lh_logger* l, const lh_record* r) {
      std::string text = "record " + std::to_string(r->global_step);
      for (uint64_t k = 0; k < r->n_scalars; ++k)
        text += " " + std::string(view(r->scalars[k].name)) + "=" +
                std::to_string(static_cast<int>(r->scalars[k].value));
      return of(l).call(text, r->global_step);
    };
    table_.flush = [](lh_logger* l) { return of(l).call("flush", 0); };
    table_.close = [](lh_logger* l, lh_code code, lh_str message) {
      return of(l).call("close " + std::to_string(code) + " " + std::string(view(message)), 0);
    };
  }
  Logger logger() { return train_test::component<Logger>("logger", name_.c_str(), this, table_); }
  std::vector<std::string> calls() {
    const std::lock_guard lock(mutex_);
    return calls_;
  }
  void hold(bool yes) {
    const std::lock_guard lock(mutex_);
    held_ = yes;
    changed_.notify_all();
  }
  void wait_for(size_t calls) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return calls_.size() >= calls; });
  }
  // What the call beginning with this word does; `step`: of record.
  std::function<lh_status(const std::string& call, int64_t step)> act;
  lh_status fail(const std::string& message) const {
    return make_status(LH_UNAVAILABLE, "logger:" + name_, "call", message);
  }

 private:
  static Notes& of(lh_logger* l) { return *reinterpret_cast<Notes*>(l); }
  lh_status call(const std::string& text, int64_t step) {
    {
      std::unique_lock lock(mutex_);
      calls_.push_back(text);
      changed_.notify_all();
      changed_.wait(lock, [this] { return !held_; });
    }
    return act ? act(text.substr(0, text.find(' ')), step) : nullptr;
  }
  std::string name_;
  lh_logger_v1 table_{};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> calls_;
  bool held_ = false;
};

struct Writer : testing::Test {
  Writer() {
    Terminal::get().configure({TerminalOptions::Colour::never, true});
    loggers.push_back(a.logger());
    loggers.push_back(b.logger());
  }
  static LogRecord record(int64_t step) {
    return {0, step, 0, 0, 0, {{"m", static_cast<double>(10 * step)}}};
  }
  static void open(LogWriter& w) {
    lh_run_info info{};
    info.size = sizeof info;
    info.name = LH_STR("run");
    w.open(info, {{LH_STR("lr"), LH_STR("0.1")}}, [](size_t) {});
  }
  static void post(LogWriter& w, int64_t first, int64_t last) {
    for (int64_t s = first; s <= last; ++s) w.post(record(s));
  }
  // Waits until everything posted so far was handled.
  static void drain(LogWriter& w) {
    EXPECT_TRUE(w.visit([](size_t) -> lh_status { return nullptr; }, 60));
  }
  static std::vector<std::string> records(Notes& n) {
    std::vector<std::string> list;
    for (const std::string& c : n.calls())
      if (c.rfind("record", 0) == 0) list.push_back(c);
    return list;
  }
  template <class F>
  static std::string warnings(const F& f) {
    testing::internal::CaptureStderr();
    f();
    return testing::internal::GetCapturedStderr();
  }
  Notes a{"a"}, b{"b"};
  std::vector<Logger> loggers;
};

TEST_F(Writer, EveryLoggerHearsEverythingInOrder) {
  {
    LogWriter w(loggers, {});
    open(w);
    w.post({2, 1, 0, 0, 0, {{"x", 1}, {"y", 2}}});
    post(w, 2, 3);
    w.close(LH_INTERNAL, "why");
  }
  for (Notes* n : {&a, &b})
    EXPECT_THAT(n->calls(), ElementsAre("open run", "params lr=0.1", "record 1 x=1 y=2", "record 2 m=20",
                                        "record 3 m=30", "flush", "close 13 why"));
}

TEST_F(Writer, StateIsLoadedBeforeALoggerIsOpened) {
  std::vector<std::string> order;
  LogWriter w(loggers, {});
  a.act = [&](const std::string& call, int64_t) -> lh_status {
    order.push_back("a " + call);
    return nullptr;
  };
  b.act = [&](const std::string& call, int64_t) -> lh_status {
    order.push_back("b " + call);
    return nullptr;
  };
  lh_run_info info{};
  w.open(info, {}, [&](size_t i) { order.push_back("load " + std::to_string(i)); });
  EXPECT_THAT(order, ElementsAre("load 0", "a open", "a params", "load 1", "b open", "b params"));
}

TEST_F(Writer, StateThatCannotBeLoadedIsThatLoggersFailure) {
  LogWriter w(loggers, {});
  lh_run_info info{};
  const auto load = [](size_t i) {
    if (i == 0) throw ComponentFailure(PluginError{LH_DATA_LOSS, "logger:a", "load_state", "no such byte"});
  };
  EXPECT_THAT(warnings([&] { w.open(info, {}, load); }), HasSubstr("logger:a: load_state: no such byte"));
  post(w, 1, 1);
  w.close(LH_OK, "");
  EXPECT_THAT(a.calls(), IsEmpty());
  EXPECT_THAT(records(b), SizeIs(1));
}

TEST_F(Writer, StateThatCannotBeLoadedStopsTheRunOfALoggerThatMatters) {
  LogWriter w(loggers, {true});
  lh_run_info info{};
  const auto load = [](size_t) {
    throw ComponentFailure(PluginError{LH_DATA_LOSS, "logger", "load_state", "no such byte"});
  };
  warnings([&] { EXPECT_THROW(w.open(info, {}, load), ComponentFailure); });
}

TEST_F(Writer, WithoutLoggersDoesNothing) {
  LogWriter w({}, {});
  EXPECT_TRUE(w.empty());
  open(w);
  post(w, 1, 3);
  EXPECT_TRUE(w.visit([](size_t) -> lh_status { return nullptr; }, 0));
  w.settle();
  w.close(LH_OK, "");
  EXPECT_FALSE(w.abandoned());
}

TEST_F(Writer, ARecordOfNothingIsNone) {
  LogWriter w(loggers, {});
  open(w);
  w.post({0, 1, 0, 0, 0, {}});
  drain(w);
  EXPECT_THAT(records(a), IsEmpty());
}

TEST_F(Writer, ThreeFailuresInARowCloseALogger) {
  LogWriter w(loggers, {});
  a.act = [this](const std::string& call, int64_t) { return call == "record" ? a.fail("broken") : nullptr; };
  open(w);
  const std::string said = warnings([&] {
    post(w, 1, 10);
    w.close(LH_OK, "");
  });
  EXPECT_THAT(records(a), SizeIs(3));
  EXPECT_THAT(records(b), SizeIs(10));
  EXPECT_THAT(said, HasSubstr("logger:a failed three times in a row"));
  size_t times = 0;
  for (size_t at = 0; (at = said.find("broken", at)) != said.npos; ++at) ++times;
  EXPECT_EQ(times, 3u) << said;
  EXPECT_NO_THROW(w.check());
}

TEST_F(Writer, ASuccessForgivesFailures) {
  LogWriter w(loggers, {});
  a.act = [this](const std::string& call, int64_t step) {
    return call == "record" && step % 3 ? a.fail("broken") : nullptr;
  };
  open(w);
  warnings([&] {
    post(w, 1, 30);
    w.close(LH_OK, "");
  });
  EXPECT_THAT(records(a), SizeIs(30));
}

TEST_F(Writer, ALoggerThatCannotOpenHearsNothingMore) {
  LogWriter w(loggers, {});
  a.act = [this](const std::string& call, int64_t) { return call == "open" ? a.fail("no folder") : nullptr; };
  EXPECT_THAT(warnings([&] { open(w); }), HasSubstr("no folder"));
  post(w, 1, 3);
  w.close(LH_OK, "");
  EXPECT_THAT(a.calls(), ElementsAre("open run"));
  EXPECT_THAT(records(b), SizeIs(3));
}

TEST_F(Writer, AnExceptionThatLeavesALoggerIsItsFailure) {
  LogWriter w(loggers, {});
  a.act = [](const std::string& call, int64_t) -> lh_status {
    if (call == "record") throw std::runtime_error("unguarded");
    return nullptr;
  };
  open(w);
  const std::string said = warnings([&] {
    post(w, 1, 5);
    w.close(LH_OK, "");
  });
  EXPECT_THAT(said, HasSubstr("logger:a: record: an exception left the plugin"));
  EXPECT_THAT(records(a), SizeIs(3));
  EXPECT_THAT(records(b), SizeIs(5));
}

TEST_F(Writer, AFailureOfALoggerThatMattersEndsTheRunOnce) {
  LogWriter w(loggers, {true, false});
  a.act = [this](const std::string& call, int64_t step) {
    return call == "record" && step == 2 ? a.fail("disk full") : nullptr;
  };
  open(w);
  warnings([&] {
    post(w, 1, 4);
    drain(w);
  });
  try {
    w.check();
    FAIL();
  } catch (const ComponentFailure& f) {
    EXPECT_STREQ(f.what(), "disk full");
    EXPECT_EQ(f.component, "logger:a");
  }
  EXPECT_NO_THROW(w.check());
  EXPECT_THAT(records(a), SizeIs(2));
  EXPECT_THAT(records(b), SizeIs(4));
}

TEST_F(Writer, SettlingWaitsForTheLoggersThatMatter) {
  LogWriter w(loggers, {false, true});
  open(w);
  EXPECT_NO_THROW(w.settle());
  b.act = [this](const std::string&, int64_t) { return b.fail("disk full"); };
  warnings([&] {
    post(w, 1, 1);
    EXPECT_THROW(w.settle(), ComponentFailure);
  });
}

TEST_F(Writer, SettlingDoesNotWaitForTheOthers) {
  LogWriter w(loggers, {});
  open(w);
  a.hold(true);
  post(w, 1, 1);
  w.settle();  // would hang here
  a.hold(false);
}

TEST_F(Writer, PostingDoesNotWaitForASlowLogger) {
  LogWriter w(loggers, {});
  open(w);
  a.hold(true);
  post(w, 1, 1000);
  EXPECT_LE(records(a).size(), 1u);
  a.hold(false);
  w.close(LH_OK, "");
  EXPECT_THAT(records(a), SizeIs(1000));
  EXPECT_EQ(records(a).back(), "record 1000 m=10000");
}

TEST_F(Writer, AFullQueueDropsTheOldestAndSaysHowMany) {
  LogWriter w(loggers, {});
  open(w);
  a.hold(true);
  post(w, 1, 1);
  a.wait_for(3);  // the first record is with the logger
  post(w, 2, 65536 + 1 + 7);
  a.hold(false);
  const std::string said = warnings([&] { w.close(LH_OK, ""); });
  EXPECT_THAT(said, HasSubstr("7 log records were dropped"));
  const std::vector<std::string> got = records(a);
  ASSERT_THAT(got, SizeIs(65536 + 1));
  EXPECT_EQ(got[0], "record 1 m=10");
  EXPECT_EQ(got[1], "record 9 m=90");
  EXPECT_EQ(got.back(), "record 65544 m=655440");
}

TEST_F(Writer, AVisitComesAfterAllRecordsBeforeIt) {
  LogWriter w(loggers, {});
  open(w);
  std::vector<std::pair<size_t, size_t>> seen;  // logger, its records so far
  for (int64_t s : {10, 20, 30}) {
    post(w, s - 9, s);
    EXPECT_TRUE(w.visit(
        [&](size_t i) -> lh_status {
          seen.emplace_back(i, records(i ? b : a).size());
          return nullptr;
        },
        60));
  }
  const auto at = [](size_t i, size_t n) { return std::pair<size_t, size_t>(i, n); };
  EXPECT_THAT(seen, ElementsAre(at(0, 10), at(1, 10), at(0, 20), at(1, 20), at(0, 30), at(1, 30)));
}

TEST_F(Writer, AVisitOfAClosedLoggerIsLeftOut) {
  LogWriter w(loggers, {});
  a.act = [this](const std::string& call, int64_t) { return call == "open" ? a.fail("no") : nullptr; };
  warnings([&] { open(w); });
  std::vector<size_t> seen;
  EXPECT_TRUE(w.visit(
      [&](size_t i) -> lh_status {
        seen.push_back(i);
        return nullptr;
      },
      60));
  EXPECT_THAT(seen, ElementsAre(1));
}

TEST_F(Writer, AVisitGivesUpOnALoggerThatHangs) {
  LogWriter w(loggers, {});
  open(w);
  a.hold(true);
  post(w, 1, 1);
  EXPECT_FALSE(w.visit([](size_t) -> lh_status { return nullptr; }, 0.01));
  a.hold(false);
  drain(w);
}

TEST_F(Writer, ClosesAsCancelledWhenNobodyDid) {
  {
    LogWriter w(loggers, {});
    open(w);
    post(w, 1, 1);
  }
  EXPECT_EQ(a.calls().back(), "close 1 ");
}

TEST_F(Writer, ClosesOnce) {
  LogWriter w(loggers, {});
  open(w);
  w.close(LH_OK, "");
  w.close(LH_INTERNAL, "again");
  EXPECT_EQ(a.calls().back(), "close 0 ");
  post(w, 1, 1);  // nobody hears it, nothing breaks
}

TEST(AHangingLogger, IsGivenUpWhenTheRunEnds) {
  Terminal::get().configure({TerminalOptions::Colour::never, true});
  // What the abandoned thread still uses stays for good, as its owner promises.
  static auto& notes = *new Notes("stuck");
  static auto& loggers = *new std::vector<Logger>;
  loggers.push_back(notes.logger());
  static auto& w = *new LogWriter(loggers, {});
  lh_run_info info{};
  w.open(info, {}, [](size_t) {});
  notes.hold(true);
  w.post({0, 1, 0, 0, 0, {{"m", 1}}});
  testing::internal::CaptureStderr();
  w.close(LH_OK, "");
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("did not come back within 10 s"));
  EXPECT_TRUE(w.abandoned());
  notes.hold(false);
  notes.wait_for(5);  // open, params, record, flush, close: it ends by itself when the logger lets it
  EXPECT_EQ(notes.calls().back(), "close 0 ");
}

}  // namespace
}  // namespace lhost
