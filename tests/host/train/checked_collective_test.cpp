// tests/host/train/checked_collective_test.cpp - [collective] check = true, seen from rank 0. What rank 1 says is taken
// from a call of the same object that was recorded: so every operation is tested against every other.
#include "train/checked_collective.hpp"
#include "engine_support.hpp"

#include <gmock/gmock.h>

#include <functional>

namespace lhost {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using train_test::engine;
using train_test::Numbers;

// A transport that only knows all_gather of descriptions, and counts what gets through to it.
struct Fake {
  std::string heard;                 // of this rank, last
  std::string other;                 // what rank 1 says; empty: the same
  std::vector<std::string> through;  // operations that were let through
  int exchanges = 0;
  lh_collective_v0 table{};

  static Fake& of(lh_collective* c) { return *reinterpret_cast<Fake*>(c); }

  static lh_status all_gather(lh_collective* c, const lh_collective_args* a, lh_work** work) {
    *work = nullptr;
    lh_view in{}, out{};
    check(engine().tensor.view(a->in, &in));
    if (in.dtype.code != LH_DT_UINT) return let_through<'G'>(c, a, work);
    check(engine().tensor.view(a->out, &out));
    Fake& self = of(c);
    ++self.exchanges;
    self.heard = static_cast<const char*>(in.data);
    auto* to = static_cast<char*>(out.data) + out.byte_offset;
    const auto line = static_cast<size_t>(in.shape[0]);
    for (int64_t r = 0; r < out.shape[0] / in.shape[0]; ++r) std::memcpy(to + r * in.shape[0], in.data, line);
    if (!self.other.empty()) {
      std::memset(to + line, 0, line);
      std::memcpy(to + line, self.other.data(), self.other.size());
    }
    return nullptr;
  }
  template <char id>
  static lh_status let_through(lh_collective* c, const lh_collective_args*, lh_work** work) {
    *work = nullptr;
    of(c).through.emplace_back(1, id);
    return nullptr;
  }
  Fake() {
    table.size = sizeof table;
    table.destroy = [](lh_collective*) {};
    table.init = [](lh_collective*, lh_run*, const lh_collective_init*) -> lh_status { return nullptr; };
    table.all_gather = all_gather;
    table.all_reduce = let_through<'R'>;
    table.broadcast = let_through<'B'>;
    table.reduce = let_through<'r'>;
    table.barrier = let_through<'|'>;
    table.send = let_through<'>'>;
    table.group = [](lh_collective*, const int64_t*, uint64_t, lh_process_group** out) -> lh_status {
      static int any;
      *out = reinterpret_cast<lh_process_group*>(&any);
      return nullptr;
    };
    table.group_free = [](lh_collective*, lh_process_group*) {};
  }
};

struct CollectiveCheck : testing::Test {
  Fake fake;
  Collective inner = train_test::component<Collective>("collective", "fake", &fake, fake.table);
  RunHandle run{engine(), {sizeof(lh_engine_config), 1, 0, 0, 0}};
  CheckedCollective checked{engine(), run.get(), inner, 2};
  const lh_collective_v0& t = checked.table();
  Numbers three{{1, 2, 3}}, four{{1, 2, 3, 4}};

  using Slot = lh_collective_fn lh_collective_v0::*;
  static lh_collective_args args(const Numbers* in, const Numbers* out, int32_t op = 0, int64_t root = 0,
                                 lh_process_group* group = nullptr) {
    return {sizeof(lh_collective_args), op,   group,   in ? in->get() : nullptr,
            out ? out->get() : nullptr, root, nullptr, 0};
  }
  void call(Slot slot, const lh_collective_args& a) {
    lh_work* work = nullptr;
    check((t.*slot)(checked.self(), &a, &work));
  }
  // What rank 0 hears when rank 1 makes call `b` where it makes call `a`.
  std::string failure(const std::function<void()>& a, const std::function<void()>& b) {
    fake.other.clear();
    b();
    fake.other = fake.heard;
    fake.through.clear();
    try {
      a();
    } catch (const ComponentFailure& e) {
      EXPECT_EQ(e.code, LH_FAILED_PRECONDITION);
      EXPECT_TRUE(fake.through.empty()) << "the operation ran all the same";
      return e.what();
    }
    return "(no error)";
  }
};

using V = lh_collective_v0;

TEST_F(CollectiveCheck, EqualCallsGoThrough) {
  call(&V::all_reduce, args(&three, &three));
  call(&V::all_gather, args(&three, &four));
  call(&V::barrier, args(nullptr, nullptr));
  call(&V::broadcast, args(&four, &four, 0, 1));
  EXPECT_EQ(fake.exchanges, 4);
  EXPECT_EQ(testing::PrintToString(fake.through),
            testing::PrintToString(std::vector<std::string>{"R", "G", "|", "B"}));
}

TEST_F(CollectiveCheck, AnotherShapeOperationReductionOrRootIsNamedOnBothSides) {
  const auto reduce3 = [&] { call(&V::all_reduce, args(&three, &three)); };
  EXPECT_THAT(
      failure(reduce3, [&] { call(&V::all_reduce, args(&four, &four)); }),
      AllOf(HasSubstr("call 2 is all_reduce sum of 3 float64 on rank 0 and all_reduce sum of 4 float64 on "
                      "rank 1"),
            HasSubstr("the same calls in the same order")));
  EXPECT_THAT(failure(reduce3, [&] { call(&V::barrier, args(nullptr, nullptr)); }),
              HasSubstr("all_reduce sum of 3 float64 on rank 0 and barrier on rank 1"));
  EXPECT_THAT(failure(reduce3, [&] { call(&V::all_reduce, args(&three, &three, LH_REDUCE_MAX)); }),
              HasSubstr("all_reduce sum of 3 float64 on rank 0 and all_reduce max of 3 float64 on rank 1"));
  EXPECT_THAT(
      failure([&] { call(&V::broadcast, args(nullptr, &three)); },
              [&] { call(&V::broadcast, args(&three, &three, 0, 1)); }),
      HasSubstr("broadcast of 3 float64, root 0 on rank 0 and broadcast of 3 float64, root 1 on rank 1"));
}

TEST_F(CollectiveCheck, WhatOnlyTheRootGivesIsNoDifference) {
  EXPECT_EQ(failure([&] { call(&V::broadcast, args(&three, &three)); },
                    [&] { call(&V::broadcast, args(nullptr, &three)); }),
            "(no error)");
  EXPECT_EQ(failure([&] { call(&V::reduce, args(&three, &three)); },
                    [&] { call(&V::reduce, args(&three, nullptr)); }),
            "(no error)");
}

TEST_F(CollectiveCheck, AGroupHasItsOwnRanks) {
  const int64_t both[] = {1, 0};
  lh_process_group* g = nullptr;
  check(t.group(checked.self(), both, 2, &g));
  EXPECT_THAT(failure([&] { call(&V::all_reduce, args(&three, &three, 0, 0, g)); },
                      [&] { call(&V::all_reduce, args(&four, &four, 0, 0, g)); }),
              HasSubstr("on rank 1 of the group"));
  t.group_free(checked.self(), g);
}

// send on one rank is recv on another: nothing to compare.
TEST_F(CollectiveCheck, SendIsNotCompared) {
  call(&V::send, args(&three, nullptr, 0, 1));
  EXPECT_EQ(fake.exchanges, 0);
  EXPECT_EQ(fake.through.size(), 1u);
}

TEST_F(CollectiveCheck, WhatTheTransportHasNotIsNotThere) {
  EXPECT_EQ(t.all_to_all, nullptr);
  EXPECT_EQ(t.recv, nullptr);
  EXPECT_NE(t.send, nullptr);
}

}  // namespace
}  // namespace lhost
