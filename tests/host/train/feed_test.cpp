#include "train/feed.hpp"

#include "engine_support.hpp"

#include <gmock/gmock.h>

#include <set>
#include <stdexcept>

namespace lhost {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::IsEmpty;
using train_test::elements;
using train_test::engine;

// Sample i has x = {i, i + 0.5} (float32) and index = i (int64).
struct Samples {
  Samples() {
    table.size = sizeof table;
    table.destroy = [](lh_data*) {};
    table.describe = [](lh_data*, int32_t, lh_split*) -> lh_status { return nullptr; };
    table.fetch = [](lh_data* d, int32_t split, const int64_t* indices, uint64_t n, int64_t epoch,
                     void* const* dst) {
      return reinterpret_cast<Samples*>(d)->fetch(split, indices, n, epoch, dst);
    };
  }
  lh_status fetch(int32_t split, const int64_t* indices, uint64_t n, int64_t epoch, void* const* dst) {
    {
      std::unique_lock lock(mutex);
      ++fetched;
      splits.insert(split);
      epochs.insert(epoch);
      changed.notify_all();
      changed.wait(lock, [this] { return open; });
    }
    for (uint64_t k = 0; k < n; ++k) {
      const int64_t i = indices[k];
      if (i == fail_at)
        return make_status(LH_DATA_LOSS, "data:samples", "fetch",
                           "sample " + std::to_string(i) + " is damaged");
      if (i == throw_at) throw std::runtime_error("unguarded");
      static_cast<float*>(dst[0])[2 * k] = static_cast<float>(i);
      static_cast<float*>(dst[0])[2 * k + 1] = static_cast<float>(i) + 0.5f;
      static_cast<int64_t*>(dst[1])[k] = i;
    }
    return nullptr;
  }
  void wait_for_fetches(int n) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return fetched >= n; });
  }
  int fetches() {
    const std::lock_guard lock(mutex);
    return fetched;
  }
  void let_pass(bool yes) {
    const std::lock_guard lock(mutex);
    open = yes;
    changed.notify_all();
  }
  lh_data_v0 table{};
  std::mutex mutex;
  std::condition_variable changed;
  int fetched = 0;
  bool open = true;
  std::set<int32_t> splits;
  std::set<int64_t> epochs;
  int64_t fail_at = -1, throw_at = -1;
};

const int64_t kShape[] = {2};
const lh_field kFields[] = {{sizeof(lh_field), 1, LH_STR("x"), {LH_DT_FLOAT, 32, 1}, 0, kShape},
                            {sizeof(lh_field), 0, LH_STR("index"), {LH_DT_INT, 64, 1}, 0, nullptr}};
using Indices = std::vector<int64_t>;
constexpr int64_t kNoLimit = 1 << 30;

// Every claim holds without threads, with one and with many.
class FeedOf : public testing::TestWithParam<int32_t> {
 protected:
  FeedOptions options(int64_t batch_size) const {
    FeedOptions o;
    o.batch_size = batch_size;
    o.threads = GetParam();
    return o;
  }
  std::unique_ptr<Feed> feed(const FeedOptions& o) {
    return std::make_unique<Feed>(data, engine(), nullptr, o, kFields, 2);
  }
  static std::vector<int64_t> indices(const lh_batch* b) { return elements<int64_t>(b->tensors[1]); }
  static std::vector<std::vector<int64_t>> rest(Feed& f) {
    std::vector<std::vector<int64_t>> all;
    while (const lh_batch* b = f.next()) all.push_back(indices(b));
    return all;
  }
  static std::vector<int64_t> counting(int64_t n) {
    std::vector<int64_t> v;
    for (int64_t i = 0; i < n; ++i) v.push_back(i);
    return v;
  }
  Samples samples;
  const Data data = train_test::component<Data>("data", "samples", &samples, samples.table);
};
INSTANTIATE_TEST_SUITE_P(Threads, FeedOf, testing::Values(0, 1, 3));

TEST_P(FeedOf, GivesTheOrderInBatches) {
  auto f = feed(options(2));
  f->start({5, 3, 1, 0, 2}, 0, 0, kNoLimit);
  EXPECT_EQ(f->batches(), 3);
  EXPECT_EQ(f->total_rows(), 5);
  const lh_batch* b = f->next();
  ASSERT_TRUE(b);
  EXPECT_EQ(b->n, 2u);
  EXPECT_EQ(view(b->names[0]), "x");
  EXPECT_EQ(view(b->names[1]), "index");
  EXPECT_EQ(b->rows, 2);
  EXPECT_EQ(b->counted, 2);
  EXPECT_THAT(elements<float>(b->tensors[0]), ElementsAre(5, 5.5, 3, 3.5));
  EXPECT_THAT(indices(b), ElementsAre(5, 3));
  EXPECT_THAT(indices(f->next()), ElementsAre(1, 0));
  b = f->next();
  ASSERT_TRUE(b);
  EXPECT_EQ(b->rows, 1);
  EXPECT_EQ(b->counted, 1);
  EXPECT_THAT(elements<float>(b->tensors[0]), ElementsAre(2, 2.5));
  EXPECT_EQ(f->next(), nullptr);
  EXPECT_EQ(f->next(), nullptr);
}

TEST_P(FeedOf, AThousandBatchesComeInOrder) {
  auto f = feed(options(3));
  std::vector<int64_t> order;
  for (int64_t i = 0; i < 3000; ++i) order.push_back(i * 7919 % 3000);
  f->start(order, 0, 0, kNoLimit);
  for (size_t b = 0; b < 1000; ++b)
    ASSERT_THAT(indices(f->next()), ElementsAre(order[3 * b], order[3 * b + 1], order[3 * b + 2]));
  EXPECT_EQ(f->next(), nullptr);
}

TEST_P(FeedOf, DropLastLeavesOutTheShortBatch) {
  FeedOptions o = options(2);
  o.drop_last = true;
  auto f = feed(o);
  f->start(counting(5), 0, 0, kNoLimit);
  EXPECT_EQ(f->batches(), 2);
  EXPECT_EQ(f->total_rows(), 4);
  EXPECT_THAT(rest(*f), ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3)));
  f->start({0}, 0, 0, kNoLimit);
  EXPECT_EQ(f->total_rows(), 0);
  EXPECT_EQ(f->next(), nullptr);
}

TEST_P(FeedOf, SkipsTheFirstAndStopsAtTheLimit) {
  auto f = feed(options(2));
  f->start(counting(20), 0, 3, 5);
  EXPECT_EQ(f->batches(), 5);
  EXPECT_EQ(f->total_rows(), 10);
  EXPECT_THAT(rest(*f), ElementsAre(ElementsAre(6, 7), ElementsAre(8, 9)));
}

TEST_P(FeedOf, RanksShareEachGlobalBatch) {
  // 7 samples, 3 ranks, 2 rows each: the first global batch is full, in the second only rank 0 has a row
  for (int64_t rank = 0; rank < 3; ++rank) {
    FeedOptions o = options(2);
    o.rank = rank;
    o.ranks = 3;
    auto f = feed(o);
    f->start(counting(7), 0, 0, kNoLimit);
    EXPECT_EQ(f->batches(), 2);
    EXPECT_EQ(f->total_rows(), 7);
    EXPECT_EQ(f->global_rows(0), 6);
    EXPECT_EQ(f->global_rows(1), 1);
    EXPECT_THAT(indices(f->next()), ElementsAre(2 * rank, 2 * rank + 1));
    const lh_batch* b = f->next();
    ASSERT_TRUE(b);
    EXPECT_EQ(b->rows, 1) << "a rank without rows takes part with one";
    EXPECT_EQ(b->counted, rank == 0 ? 1 : 0) << "that does not count";
    EXPECT_THAT(indices(b), ElementsAre(6));
  }
}

TEST(FeedBatches, AreCountedOverAllRanks) {
  FeedOptions o;
  o.batch_size = 4;
  EXPECT_EQ(Feed::count_batches(0, o), 0);
  EXPECT_EQ(Feed::count_batches(8, o), 2);
  EXPECT_EQ(Feed::count_batches(9, o), 3);
  o.ranks = 2;
  EXPECT_EQ(Feed::count_batches(9, o), 2);
  o.drop_last = true;
  EXPECT_EQ(Feed::count_batches(9, o), 1);
  EXPECT_EQ(Feed::count_batches(7, o), 0);
}

TEST_P(FeedOf, StartsAgainAtAnyTime) {
  auto f = feed(options(1));
  for (int64_t epoch = 0; epoch < 20; ++epoch) {
    f->start(counting(50), epoch, 0, kNoLimit);
    for (int64_t i = 0; i < epoch; ++i) ASSERT_THAT(indices(f->next()), ElementsAre(i));
  }
  f->stop();
  EXPECT_EQ(f->next(), nullptr);
  EXPECT_EQ(f->total_rows(), 0);
  f->start({9}, 20, 0, kNoLimit);
  EXPECT_THAT(indices(f->next()), ElementsAre(9));
}

TEST_P(FeedOf, TellsTheDataSplitAndEpoch) {
  FeedOptions o = options(1);
  o.split = LH_SPLIT_VAL;
  auto f = feed(o);
  f->start({0, 1}, 7, 0, kNoLimit);
  rest(*f);
  f->start({0, 1}, 8, 0, kNoLimit);
  rest(*f);
  f.reset();
  EXPECT_THAT(samples.splits, ElementsAre(LH_SPLIT_VAL));
  EXPECT_THAT(samples.epochs, ElementsAre(7, 8));
}

TEST_P(FeedOf, ReadsAheadTwoBatchesPerThreadAndNotMore) {
  const int ahead = 2 * GetParam();
  auto f = feed(options(1));
  f->start(counting(100), 0, 0, kNoLimit);
  for (int n = 1; n <= 50; ++n) {
    ASSERT_TRUE(f->next());
    samples.wait_for_fetches(n + ahead);  // they come without being asked for
    ASSERT_LE(samples.fetches(), n + ahead);
  }
}

TEST_P(FeedOf, CastsFloatingPointFieldsOnly) {
  FeedOptions o = options(2);
  o.input = {LH_DT_FLOAT, 64, 1};
  auto f = feed(o);
  f->start(counting(5), 0, 0, kNoLimit);
  EXPECT_THAT(elements<double>(f->next()->tensors[0]), ElementsAre(0, 0.5, 1, 1.5));
  f->next();
  const lh_batch* b = f->next();
  EXPECT_THAT(elements<double>(b->tensors[0]), ElementsAre(4, 4.5));
  EXPECT_THAT(indices(b), ElementsAre(4));
}

TEST_P(FeedOf, ReusesItsBuffersWhenNobodyKeepsThem) {
  auto f = feed(options(2));
  f->start(counting(200), 0, 0, kNoLimit);
  std::set<const void*> places;
  while (const lh_batch* b = f->next()) {
    lh_view v{};
    check(engine().tensor.view(b->tensors[0], &v));
    places.insert(v.data);
  }
  EXPECT_EQ(places.size(), static_cast<size_t>(GetParam() ? 2 * GetParam() + 1 : 1));
}

TEST_P(FeedOf, LeavesABatchToWhoeverKeepsIt) {
  for (uint8_t bits : {0, 64}) {  // as they are, cast
    FeedOptions o = options(2);
    if (bits) o.input = {LH_DT_FLOAT, bits, 1};
    auto f = feed(o);
    f->start(counting(61), 0, 0, kNoLimit);  // the last batch is short
    std::vector<lh_tensor*> kept;
    while (const lh_batch* b = f->next())
      for (int field = 0; field < 2; ++field)
        check(engine().tensor.retain(b->tensors[field], &kept.emplace_back()));
    f.reset();
    for (int64_t i = 0; i < 31; ++i) {
      const auto at = static_cast<size_t>(2 * i);
      const double first = static_cast<double>(2 * i);
      EXPECT_THAT(elements<int64_t>(kept[at + 1]),
                  ElementsAreArray(i == 30 ? Indices{60} : Indices{2 * i, 2 * i + 1}));
      const double x =
          bits ? elements<double>(kept[at])[0] : static_cast<double>(elements<float>(kept[at])[0]);
      EXPECT_EQ(x, first);
    }
    for (lh_tensor* t : kept) engine().tensor.release(t);
  }
}

TEST_P(FeedOf, ADamagedSampleIsReportedWithItsBatchNotBefore) {
  samples.fail_at = 5;
  auto f = feed(options(2));
  f->start(counting(10), 0, 0, kNoLimit);
  EXPECT_THAT(indices(f->next()), ElementsAre(0, 1));
  EXPECT_THAT(indices(f->next()), ElementsAre(2, 3));
  try {
    f->next();
    FAIL();
  } catch (const ComponentFailure& e) {
    EXPECT_EQ(e.code, LH_DATA_LOSS);
    EXPECT_THAT(e.what(), HasSubstr("sample 5 is damaged"));
  }
  f->start({7, 8}, 1, 0, kNoLimit);
  EXPECT_THAT(indices(f->next()), ElementsAre(7, 8)) << "it can be used again";
}

TEST_P(FeedOf, ADamagedSampleThatNobodyReachesDoesNotMatter) {
  samples.fail_at = 2;
  auto f = feed(options(1));
  f->start(counting(10), 0, 0, kNoLimit);
  EXPECT_THAT(indices(f->next()), ElementsAre(0));
  samples.wait_for_fetches(1 + 2 * GetParam());
  f->stop();
  f->start(counting(2), 0, 0, kNoLimit);
  EXPECT_THAT(rest(*f), ElementsAre(ElementsAre(0), ElementsAre(1)));
}

TEST_P(FeedOf, AnExceptionThatLeavesThePluginIsItsFault) {
  samples.throw_at = 1;
  auto f = feed(options(1));
  f->start(counting(3), 0, 0, kNoLimit);
  f->next();
  try {
    f->next();
    FAIL();
  } catch (const ComponentFailure& e) {
    EXPECT_EQ(e.code, LH_PLUGIN_FAULT);
    EXPECT_EQ(e.component, "data:samples");
  }
}

TEST_P(FeedOf, EndsWhileItsThreadsAreBusy) {
  auto f = feed(options(1));
  samples.let_pass(GetParam() == 0);
  f->start(counting(100), 0, 0, kNoLimit);
  samples.wait_for_fetches(GetParam());
  std::thread later([this] { samples.let_pass(true); });
  f.reset();
  later.join();
}

TEST_P(FeedOf, NothingToGiveIsNoBatch) {
  auto f = feed(options(4));
  EXPECT_EQ(f->next(), nullptr) << "not started";
  f->start({}, 0, 0, kNoLimit);
  EXPECT_THAT(rest(*f), IsEmpty());
  f->start(counting(8), 0, 2, kNoLimit);
  EXPECT_THAT(rest(*f), IsEmpty()) << "all were skipped";
}

}  // namespace
}  // namespace lhost
