// tests/abi/sdk_test.cpp - the SDK against a host that counts what it hands out.
#include <lhost/sdk/optimizer.hpp>

#include <gmock/gmock.h>

struct lh_error {
  lh_code code;
  std::string component, where, message;
};

namespace {

int errors_alive = 0;

lh_status new_error(const lh_host*, lh_code code, lh_str component, lh_str where, lh_str message) {
  ++errors_alive;
  return new lh_error{code, std::string(lhost::view(component)), std::string(lhost::view(where)),
                      std::string(lhost::view(message))};
}

const lh_host kHost = {sizeof(lh_host),
                       LH_ABI_MAJOR,
                       LH_ABI_MINOR,
                       0,
                       LH_STR("test"),
                       LH_STR("0"),
                       nullptr,
                       new_error,
                       [](const lh_error* e) { return e->code; },
                       [](const lh_error* e) { return lhost::str(e->message); },
                       [](lh_error* e) {
                         --errors_alive;
                         delete e;
                       },
                       [](const lh_host*, int32_t, lh_str, lh_str) {},
                       [](const lh_host*, lh_str) -> const void* {
                         static const lh_fused_v0 fused{sizeof(lh_fused_v0), 0, nullptr, nullptr};
                         return &fused;
                       }};

lh_status failing(const char* message) {
  return new_error(&kHost, LH_NOT_FOUND, lhost::str("host"), lhost::str("find"), lhost::str(message));
}

struct Sdk : testing::Test {
  Sdk() {
    lhost::host = &kHost;
    errors_alive = 0;
  }
  ~Sdk() override { EXPECT_EQ(errors_alive, 0) << "an error was neither passed on nor freed"; }
};

TEST_F(Sdk, AnErrorOfTheHostPassesUnchanged) {
  lh_status given = failing("no such thing");
  lh_status s = lhost::guard("step", [&] { lhost::check(given); });
  EXPECT_EQ(s, given);
  EXPECT_EQ(s->where, "find");
  kHost.error_free(s);
}

TEST_F(Sdk, AnErrorOfTheHostMayBeCaughtAndDropped) {
  lh_status s = lhost::guard("step", [] {
    try {
      lhost::check(failing("no such thing"));
    } catch (const lhost::StatusError& e) {
      EXPECT_STREQ(e.what(), "no such thing");
      EXPECT_EQ(e.code(), LH_NOT_FOUND);
    }
  });
  EXPECT_EQ(s, nullptr);
}

TEST_F(Sdk, WhatIsThrownBecomesAStatusWithItsPlace) {
  lh_status s = lhost::guard("step", [] { throw lhost::Error(LH_DATA_LOSS, "cut short"); });
  EXPECT_EQ(s->code, LH_DATA_LOSS);
  EXPECT_EQ(s->where, "step");
  EXPECT_EQ(s->message, "cut short");
  kHost.error_free(s);
}

struct Options {
  bool fails = false;
  static void describe(lhost::Describe<Options>& d) { d(&Options::fails, "fails", "slots() throws"); }
};
struct Momentum : lhost::Optimizer {
  static constexpr const char* summary = "a sum of past gradients";
  explicit Momentum(const Options& o) : fails(o.fails) {}
  std::vector<lh_slot> slots() override {
    if (fails) throw std::invalid_argument("slots are out");
    return {like_param("sum")};
  }
  void step(const lh_opt_group&) override {}
  bool fails;
};

const lh_plugin& plugin() {
  const lh_plugin* p =
      lhost::detail::single_plugin<lhost::OptimizerKind, Momentum, Options>("momentum", "1", 0);
  EXPECT_EQ(p->init(&kHost), nullptr);
  return *p;
}
lh_status create(bool fails, void** self, const void** table) {
  lh_value value{};
  value.type = LH_T_BOOL;
  value.u.b = fails;
  const lh_create_args args{sizeof(lh_create_args), 0, &value, 1, nullptr, {nullptr, 0}};
  return plugin().components->create(plugin().components, &args, self, table);
}

TEST_F(Sdk, AComponentSaysWhatItIs) {
  EXPECT_EQ(lhost::view(plugin().components->summary), "a sum of past gradients");
}

TEST_F(Sdk, TheSlotsOfAnOptimizerAreAskedWhereAnErrorHasAWay) {
  void* self = nullptr;
  const void* table = nullptr;
  ASSERT_EQ(create(false, &self, &table), nullptr);
  const auto* t = static_cast<const lh_optimizer_v0*>(table);
  const lh_slot* slots = nullptr;
  ASSERT_EQ(t->slots(static_cast<lh_optimizer*>(self), &slots), 1u);
  EXPECT_EQ(lhost::view(slots[0].name), "sum");
  t->destroy(static_cast<lh_optimizer*>(self));

  lh_status s = create(true, &self, &table);
  ASSERT_NE(s, nullptr);
  EXPECT_EQ(s->message, "slots are out");
  EXPECT_EQ(s->where, "create");
  kHost.error_free(s);
}

}  // namespace
