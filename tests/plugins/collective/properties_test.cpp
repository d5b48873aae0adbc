// What every transport has to do, checked bit for bit against model.hpp; compiled once for each transport.
#include "model.hpp"

#include <gmock/gmock.h>

namespace {
using namespace lhost_test;

constexpr lh_dtype kDtypes[] = {kFloat64, kFloat32, kFloat16, kBfloat16, kInt64, kUint8};
#ifdef __SANITIZE_THREAD__  // which makes everything ten times slower
constexpr int64_t kSizes[] = {0, 1, 17, 1000, 8209};
#else
constexpr int64_t kSizes[] = {0, 1, 17, 1000, 100003};
#endif
constexpr int32_t kOps[] = {LH_REDUCE_SUM, LH_REDUCE_AVG, LH_REDUCE_MAX, LH_REDUCE_MIN};

bool integer(lh_dtype d) { return d.code == LH_DT_INT || d.code == LH_DT_UINT; }

class Ranks : public testing::TestWithParam<int64_t> {
 protected:
  Ranks() : n(GetParam()), world(n) { world.init(); }
  // f(rank, dtype, op, size, seed) on every rank, over all of them
  template <class F>
  void each(F f) {
    world.run([&](Rank& r) {
      uint32_t seed = 0;
      for (const lh_dtype d : kDtypes)
        for (const int32_t op : kOps)
          for (const int64_t size : kSizes)
            if (++seed; !(op == LH_REDUCE_AVG && integer(d))) f(r, d, op, size, seed);
    });
  }
  // f(rank, dtype, size, seed): of calls that only move
  template <class F>
  void each_move(F f) {
    each([&](Rank& r, lh_dtype d, int32_t op, int64_t size, uint32_t seed) {
      if (op == LH_REDUCE_SUM) f(r, d, size, seed);
    });
  }
  const int64_t n;
  World world;
};

TEST_P(Ranks, AllReduceAddsInRankOrderAlsoInPlace) {
  each([&](Rank& r, lh_dtype d, int32_t op, int64_t size, uint32_t seed) {
    const std::string want = reduced(d, size, n, seed, op);
    const Tensor in = numbers(d, size, r.where.rank, seed), out(d, size);
    const std::string before = in.bytes();
    r.all_reduce(in, out, op);
    EXPECT_TRUE(out.bytes() == want) << "dtype " << +d.code << "/" << +d.bits << " op " << op << " size "
                                     << size;
    EXPECT_TRUE(in.bytes() == before) << "the input was changed";
    r.all_reduce(in, in, op);
    EXPECT_TRUE(in.bytes() == want) << "in place: dtype " << +d.code << "/" << +d.bits << " op " << op
                                    << " size " << size;
  });
}

TEST_P(Ranks, ReduceScatterGivesEachRankItsPartOfTheSameSum) {
  each([&](Rank& r, lh_dtype d, int32_t op, int64_t size, uint32_t seed) {
    const int64_t me = r.where.rank;
    const std::string all = reduced(d, n * size, n, seed, op);
    const std::string want = all.substr(static_cast<size_t>(me) * all.size() / static_cast<size_t>(n),
                                        all.size() / static_cast<size_t>(n));
    const Tensor in = numbers(d, n * size, me, seed), out(d, size);
    r.start(r.plugin->reduce_scatter, &in, &out, {.op = op}).wait();
    EXPECT_TRUE(out.bytes() == want) << "dtype " << +d.code << "/" << +d.bits << " op " << op << " size "
                                     << size;
    const Tensor part = in.part(me, n);
    r.start(r.plugin->reduce_scatter, &in, &part, {.op = op}).wait();
    EXPECT_TRUE(part.bytes() == want) << "in place";
  });
}

TEST_P(Ranks, ReduceGivesTheSumToTheRootAlone) {
  each([&](Rank& r, lh_dtype d, int32_t op, int64_t size, uint32_t seed) {
    const int64_t root = seed % n;
    const bool mine = r.where.rank == root;
    const Tensor in = numbers(d, size, r.where.rank, seed), out(d, size);
    r.start(r.plugin->reduce, &in, mine ? &out : nullptr, {.root = root, .op = op}).wait();
    if (mine) {
      EXPECT_TRUE(out.bytes() == reduced(d, size, n, seed, op)) << "op " << op << " size " << size;
    }
    r.start(r.plugin->reduce, &in, mine ? &in : nullptr, {.root = root, .op = op}).wait();
    if (mine) {
      EXPECT_TRUE(in.bytes() == reduced(d, size, n, seed, op)) << "in place";
    }
  });
}

std::string gathered(lh_dtype d, int64_t size, int64_t n, uint32_t seed) {
  std::string all;
  for (int64_t r = 0; r < n; ++r) all += numbers(d, size, r, seed).bytes();
  return all;
}

TEST_P(Ranks, AllGatherAndGatherPutPartsInRankOrder) {
  each_move([&](Rank& r, lh_dtype d, int64_t size, uint32_t seed) {
    const int64_t root = seed % n, me = r.where.rank;
    const std::string want = gathered(d, size, n, seed);
    const Tensor in = numbers(d, size, me, seed), out(d, n * size), second(d, n * size);
    r.start(r.plugin->all_gather, &in, &out, {}).wait();
    EXPECT_TRUE(out.bytes() == want);
    r.start(r.plugin->gather, &in, me == root ? &second : nullptr, {.root = root}).wait();
    if (me == root) {
      EXPECT_TRUE(second.bytes() == want);
    }
    const Tensor full(d, n * size), part = full.part(me, n);
    if (size) std::memcpy(part.get()->data, in.get()->data, in.bytes().size());
    r.start(r.plugin->all_gather, &part, &full, {}).wait();
    EXPECT_TRUE(full.bytes() == want) << "in place";
  });
}

TEST_P(Ranks, BroadcastAndScatterComeFromTheRoot) {
  each_move([&](Rank& r, lh_dtype d, int64_t size, uint32_t seed) {
    const int64_t root = seed % n, me = r.where.rank;
    const Tensor given = numbers(d, size, root, seed), out(d, size);
    r.start(r.plugin->broadcast, me == root ? &given : nullptr, me == root && seed % 2 ? &given : &out,
            {.root = root})
        .wait();
    EXPECT_TRUE((me == root && seed % 2 ? given : out).bytes() == given.bytes());
    const Tensor all = numbers(d, n * size, root, seed), mine(d, size);
    r.start(r.plugin->scatter, me == root ? &all : nullptr, &mine, {.root = root}).wait();
    EXPECT_TRUE(mine.bytes() == all.part(me, n).bytes());
  });
}

TEST_P(Ranks, AllToAllSendsPartRToRankRAlsoInPlace) {
  each_move([&](Rank& r, lh_dtype d, int64_t size, uint32_t seed) {
    const int64_t me = r.where.rank;
    std::string want;
    for (int64_t s = 0; s < n; ++s) want += numbers(d, n * size, s, seed).part(me, n).bytes();
    const Tensor in = numbers(d, n * size, me, seed), out(d, n * size);
    r.start(r.plugin->all_to_all, &in, &out, {}).wait();
    EXPECT_TRUE(out.bytes() == want);
    r.start(r.plugin->all_to_all, &in, &in, {}).wait();
    EXPECT_TRUE(in.bytes() == want) << "in place";
  });
}

TEST_P(Ranks, SendAndReceiveGoRoundTheRing) {
  if (n == 1) return;
  each_move([&](Rank& r, lh_dtype d, int64_t size, uint32_t seed) {
    const int64_t next = (r.where.rank + 1) % n, before = (r.where.rank + n - 1) % n;
    const Tensor in = numbers(d, size, r.where.rank, seed), out(d, size);
    const Work s = r.start(r.plugin->send, &in, nullptr, {.root = next});
    const Work t = r.start(r.plugin->recv, nullptr, &out, {.root = before});
    s.wait();
    t.wait();
    EXPECT_TRUE(out.bytes() == numbers(d, size, before, seed).bytes());
  });
}

TEST_P(Ranks, SeveralCallsMayBeOnTheirWay) {
  world.run([&](Rank& r) {
    for (uint32_t round = 0; round < 20; ++round) {
      std::vector<Tensor> tensors;
      std::vector<Work> works;
      const int64_t sizes[] = {3, 50000, 4, 1, 20000, 7};
      for (uint32_t i = 0; i < 6; ++i) {
        tensors.push_back(numbers(kFloat32, sizes[i], r.where.rank, 6 * round + i));
        works.push_back(r.start(r.plugin->all_reduce, &tensors[i], &tensors[i], {}));
      }
      r.barrier();
      for (uint32_t i = 6; i-- > 0;) {  // in any order
        works[i].wait();
        EXPECT_TRUE(tensors[i].bytes() == reduced(kFloat32, sizes[i], n, 6 * round + i, LH_REDUCE_SUM));
      }
    }
  });
}

// Of sizes about the limits up to which a call is one exchange, and is posted by the thread that issues it.
constexpr int64_t kAboutLimits[] = {3, 4096, 4097, 5000, 8192, 8193, 50000};

TEST_P(Ranks, TwoReductionsOfAnySizesMayBeWaitedForInAnyOrder) {
  world.run([&](Rank& r) {
    uint32_t seed = 0;
    for (const int64_t first : kAboutLimits)
      for (const int64_t second : kAboutLimits)
        for (const int order : {0, 1, 2}) {  // as issued, reversed, another one on each rank
          const uint32_t s = seed += 2;
          const Tensor a = numbers(kFloat32, first, r.where.rank, s),
                       b = numbers(kFloat32, second, r.where.rank, s + 1);
          const Work works[] = {r.start(r.plugin->all_reduce, &a, &a, {}),
                                r.start(r.plugin->all_reduce, &b, &b, {})};
          const bool reversed = order == 1 || (order == 2 && r.where.rank % 2 == 1);
          works[reversed ? 1 : 0].wait();
          works[reversed ? 0 : 1].wait();
          EXPECT_TRUE(a.bytes() == reduced(kFloat32, first, n, s, LH_REDUCE_SUM))
              << first << " before " << second << ", order " << order;
          EXPECT_TRUE(b.bytes() == reduced(kFloat32, second, n, s + 1, LH_REDUCE_SUM))
              << second << " after " << first << ", order " << order;
        }
  });
}

TEST_P(Ranks, ReductionsToDifferentRootsMayBeWaitedForInAnyOrder) {
  world.run([&](Rank& r) {
    for (const int64_t size : kAboutLimits) {
      const int64_t me = r.where.rank;
      std::vector<Tensor> in, out;
      std::vector<Work> works;
      for (int64_t i = 0; i < 2 * n; ++i) {
        in.push_back(numbers(kFloat32, size, me, static_cast<uint32_t>(i)));
        out.emplace_back(kFloat32, size);
      }
      for (int64_t i = 0; i < 2 * n; ++i) {
        const auto k = static_cast<size_t>(i);
        works.push_back(r.start(r.plugin->reduce, &in[k], me == i % n ? &out[k] : nullptr, {.root = i % n}));
      }
      for (int64_t i = 2 * n; i-- > 0;) works[static_cast<size_t>(me % 2 ? i : 2 * n - 1 - i)].wait();
      for (int64_t i = me; i < 2 * n; i += n)
        EXPECT_TRUE(out[static_cast<size_t>(i)].bytes() ==
                    reduced(kFloat32, size, n, static_cast<uint32_t>(i), LH_REDUCE_SUM))
            << "size " << size << " root " << me;
    }
  });
}

TEST_P(Ranks, AWorkThatNobodyWaitsForHoldsNobodyUp) {
  world.run([&](Rank& r) {
    const Tensor a = numbers(kFloat32, 5, r.where.rank, 1), b = numbers(kFloat32, 50000, r.where.rank, 2);
    r.start(r.plugin->all_reduce, &a, &a, {});
    r.start(r.plugin->all_reduce, &b, &b, {});
    r.barrier();
    r.barrier();
  });
}

TEST_P(Ranks, GroupsOfSomeRanksCountTheirOwnRanks) {
  if (n < 3) return;
  world.run([&](Rank& r) {
    const int64_t me = r.where.rank;
    lh_process_group* ends = r.group({n - 1, 0});  // place 0 is the world's last rank
    lh_process_group* rest = r.group({1});
    EXPECT_EQ(ends != nullptr, me == 0 || me == n - 1);
    EXPECT_EQ(rest != nullptr, me == 1);
    for (const int64_t size : {5, 100003}) {
      const Tensor in = numbers(kFloat32, size, me, 9), out(kFloat32, size);
      if (ends) {
        r.start(r.plugin->all_reduce, &in, &out, {.op = LH_REDUCE_MAX, .group = ends}).wait();
        auto greater = numbers(kFloat32, size, 0, 9).values<float>();
        const auto other = numbers(kFloat32, size, n - 1, 9).values<float>();
        for (size_t i = 0; i < greater.size(); ++i) greater[i] = std::max(greater[i], other[i]);
        EXPECT_TRUE(out.values<float>() == greater);
        const bool root = me == n - 1;
        r.start(r.plugin->broadcast, root ? &in : nullptr, &out, {.root = 0, .group = ends}).wait();
        EXPECT_TRUE(out.bytes() == numbers(kFloat32, size, n - 1, 9).bytes());
      }
      if (rest) {
        r.start(r.plugin->all_reduce, &in, &out, {.group = rest}).wait();
        EXPECT_TRUE(out.bytes() == in.bytes());
      }
      r.barrier();
    }
    if (ends) r.plugin->group_free(r.plugin.self, ends);
    if (rest) r.plugin->group_free(r.plugin.self, rest);
  });
}

#define LHOST_INSTANTIATE(prefix) INSTANTIATE_TEST_SUITE_P(prefix, Ranks, testing::Values(1, 2, 3, 4))
LHOST_INSTANTIATE(LHOST_TEST_SUITE);

TEST(LHOST_SUITE(Arguments), ThatCannotBeAreRefusedWithWhatIsWanted) {
  World w(1);
  w.init();
  Rank& r = *w.ranks[0];
  const Tensor a(kInt64, 3), b(kFloat32, 3), c(kFloat32, 4), d({LH_DT_INT, 32, 1}, 3);
  const auto refused = [&](auto f) {
    try {
      f();
    } catch (const StatusError& e) {
      EXPECT_EQ(e.code, LH_INVALID_ARGUMENT);
      return std::string(e.what());
    }
    return std::string("(accepted)");
  };
  using testing::HasSubstr;
  EXPECT_THAT(refused([&] { r.all_reduce(a, a, LH_REDUCE_AVG); }), HasSubstr("average of int64"));
  EXPECT_THAT(refused([&] { r.all_reduce(a, b, LH_REDUCE_SUM); }), HasSubstr("`in` is int64, `out` float32"));
  EXPECT_THAT(refused([&] { r.all_reduce(b, c, LH_REDUCE_SUM); }), HasSubstr("[3], `out` [4]"));
  EXPECT_THAT(refused([&] { r.all_reduce(d, d, LH_REDUCE_SUM); }), HasSubstr("is none of float64"));
  EXPECT_THAT(refused([&] { r.all_reduce(b, b, 9); }), HasSubstr("no reduction 9"));
  EXPECT_THAT(refused([&] { r.start(r.plugin->broadcast, &b, &b, {.root = 1}); }),
              HasSubstr("rank 1 is not in"));
  EXPECT_THAT(refused([&] { r.start(r.plugin->all_reduce, nullptr, &b, {}); }),
              HasSubstr("`in`, which is NULL"));
  EXPECT_THAT(refused([&] { r.group({0, 0}); }), HasSubstr("named twice"));
  EXPECT_THAT(refused([&] { r.group({7}); }), HasSubstr("no rank 7"));
}

}  // namespace
