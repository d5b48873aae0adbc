#include "plugin/host_table.hpp"

#include "base/log.hpp"
#include "support.hpp"

#include <lhost/tensor.h>

#include <cstring>
#include <new>
#include <thread>

using namespace lhost;
using namespace lhost_test;

// Lets a test run out of memory. Not inlined, else GCC takes malloc and free for a mismatch with new and delete.
#define NOT_INLINED __attribute__((noinline))
static thread_local bool no_memory = false;
NOT_INLINED void* operator new(size_t n) {
  if (void* p = no_memory ? nullptr : std::malloc(n)) return p;
  throw std::bad_alloc();
}
NOT_INLINED void* operator new(size_t n, const std::nothrow_t&) noexcept {
  return no_memory ? nullptr : std::malloc(n);
}
NOT_INLINED void operator delete(void* p) noexcept { std::free(p); }
NOT_INLINED void operator delete(void* p, size_t) noexcept { std::free(p); }

namespace {

lh_str str(std::string_view s) { return {s.data(), s.size()}; }
std::string text(lh_str s) { return {s.ptr, s.len}; }

}  // namespace

TEST(HostTable, SaysWhoItIs) {
  const lh_host& h = host_table();
  EXPECT_EQ(h.size, sizeof(lh_host));
  EXPECT_EQ(h.abi_major, LH_ABI_MAJOR);
  EXPECT_EQ(text(h.name), "lhost");
}

TEST(HostTable, CarriesErrorsOverTheBoundary) {
  const lh_host& h = host_table();
  lh_status s = h.error_new(&h, LH_DATA_LOSS, str("data:idx"), str("fetch"), str("cut short"));
  EXPECT_EQ(h.error_code(s), LH_DATA_LOSS);
  EXPECT_EQ(text(h.error_message(s)), "cut short");
  const PluginError e = take(s);
  EXPECT_EQ(e.code, LH_DATA_LOSS);
  EXPECT_EQ(e.component, "data:idx");
  EXPECT_EQ(e.where, "fetch");
  EXPECT_EQ(e.message, "cut short");
  EXPECT_EQ(take(nullptr).code, LH_OK);
  h.error_free(make_status(LH_UNKNOWN, "a", "b", "c"));
  h.error_free(nullptr);
}

TEST(HostTable, MakesAnErrorWithoutMemory) {
  const lh_host& h = host_table();
  const std::string long_text(1000, 'x');
  no_memory = true;
  lh_status a = h.error_new(&h, LH_INTERNAL, str("c"), str("w"), str(long_text));
  lh_status b = h.error_new(&h, LH_INTERNAL, str("c"), str("w"), str(long_text));
  no_memory = false;
  EXPECT_EQ(h.error_code(a), LH_RESOURCE_EXHAUSTED);
  EXPECT_EQ(text(h.error_message(a)), "out of memory");
  h.error_free(a);
  EXPECT_EQ(take(b).message, "out of memory");
  EXPECT_EQ(text(h.error_message(b)), "out of memory");  // taking it did not empty it
}

TEST(HostTable, SendsLogLinesToTheRunsLogWithTheirComponent) {
  const TempDir dir;
  log_to_file(dir / "host.log");
  const lh_host& h = host_table();
  h.log(&h, LH_LOG_INFO, str("logger:csv"), str("slow disk"));
  h.log(&h, LH_LOG_DEBUG, {nullptr, 0}, str("detail"));
  h.log(&h, 99, str("x"), str("a level of a newer host"));
  log_to_file("");
  EXPECT_THAT(
      dir.read("host.log"),
      ::testing::AllOf(::testing::HasSubstr("info"), ::testing::HasSubstr("logger:csv: slow disk\n"),
                       ::testing::HasSubstr("detail\n"), ::testing::HasSubstr("a level of a newer host\n")));
}

TEST(HostTable, LooksForServicesInTheOrderTheyWereOffered) {
  static const int first = 1, second = 2;
  offer_services([](std::string_view id) -> const void* { return id == "a/0" ? &first : nullptr; });
  offer_services(
      [](std::string_view id) -> const void* { return id == "a/0" || id == "b/0" ? &second : nullptr; });
  const lh_host& h = host_table();
  EXPECT_EQ(h.get_service(&h, str("a/0")), &first);
  EXPECT_EQ(h.get_service(&h, str("b/0")), &second);
  EXPECT_EQ(h.get_service(&h, str("c/0")), nullptr);
  withdraw_services();
  EXPECT_EQ(h.get_service(&h, str("a/0")), nullptr);
}

namespace {

// What a collective would hand out: counts what is asked of it.
struct Recorder {
  int waits = 0, stream_waits = 0, destroyed = 0;
  int64_t timeout = 0;
};
lh_work_ops recorder_ops() {
  return {sizeof(lh_work_ops), 0,
          [](void* self, int64_t t) -> lh_status {
            auto& r = *static_cast<Recorder*>(self);
            ++r.waits;
            r.timeout = t;
            return nullptr;
          },
          [](void* self, lh_stream*) -> lh_status {
            ++static_cast<Recorder*>(self)->stream_waits;
            return nullptr;
          },
          [](void* self) { ++static_cast<Recorder*>(self)->destroyed; }};
}
const lh_work_v0& works() {
  const lh_host& h = host_table();
  return *static_cast<const lh_work_v0*>(h.get_service(&h, LH_STR(LH_WORK_SERVICE)));
}

}  // namespace

TEST(Work, CallsItsProducer) {
  Recorder r;
  const lh_work_ops ops = recorder_ops();
  lh_work* w = nullptr;
  ASSERT_EQ(works().wrap(&ops, &r, &w), nullptr);
  EXPECT_EQ(works().wait(w, 5), nullptr);
  EXPECT_EQ(r.timeout, 5);
  EXPECT_EQ(works().wait_stream(w, nullptr), nullptr);
  EXPECT_EQ(r.stream_waits, 1);
  works().release(w);
  EXPECT_EQ(r.waits, 1);  // dropping a work does not wait
  EXPECT_EQ(r.destroyed, 1);
}

TEST(Work, WithoutStreamOrDestroyIsWaitedForAndDropped) {
  Recorder r;
  lh_work_ops ops = recorder_ops();
  ops.size = LH_MEMBER_END(lh_work_ops, wait);  // an old producer
  lh_work* w = nullptr;
  ASSERT_EQ(works().wrap(&ops, &r, &w), nullptr);
  EXPECT_EQ(works().wait_stream(w, nullptr), nullptr);
  EXPECT_EQ(r.waits, 1);
  EXPECT_EQ(r.timeout, -1);
  works().release(w);
  EXPECT_EQ(r.destroyed, 0);
}

TEST(Work, ThatIsNoneIsDone) {
  EXPECT_EQ(works().wait(nullptr, -1), nullptr);
  EXPECT_EQ(works().wait_stream(nullptr, nullptr), nullptr);
  works().release(nullptr);
}

TEST(Work, OfABadProducerIsAnError) {
  Recorder r;
  lh_work_ops ops = recorder_ops();
  ops.wait = nullptr;
  lh_work* w = nullptr;
  PluginError e = take(works().wrap(&ops, &r, &w));
  EXPECT_EQ(e.code, LH_PLUGIN_FAULT);
  EXPECT_EQ(r.destroyed, 1);  // wrap takes self, also when it fails
  ops = recorder_ops();
  ops.wait = [](void*, int64_t) -> lh_status { throw std::runtime_error("boom"); };
  ASSERT_EQ(works().wrap(&ops, &r, &w), nullptr);
  e = take(works().wait(w, 0));
  EXPECT_EQ(e.code, LH_PLUGIN_FAULT);
  EXPECT_THAT(e.message, ::testing::HasSubstr("boom"));
  works().release(w);
}

TEST(Work, WithoutMemoryIsAnErrorAndReleasesItsProducer) {
  Recorder r;
  const lh_work_ops ops = recorder_ops();
  lh_work* w = nullptr;
  no_memory = true;
  const lh_status s = works().wrap(&ops, &r, &w);
  no_memory = false;
  EXPECT_EQ(take(s).code, LH_RESOURCE_EXHAUSTED);
  EXPECT_EQ(r.destroyed, 1);
}
