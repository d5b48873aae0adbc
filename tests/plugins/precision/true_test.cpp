#include "support/component.hpp"

#include <lhost/precision.h>

using namespace lhost_test;

namespace {

TEST(TruePrecision, EverythingHasTheNamedWidth) {
  for (const auto& [name, bits] : {std::pair("32-true", 32), std::pair("64-true", 64)}) {
    const Component<lh_precision, lh_precision_v0> p("precision", name);
    lh_policy policy{};
    policy.size = sizeof policy;
    call(p->policy(p.self, &policy));
    EXPECT_EQ(policy.size, sizeof policy);
    for (const lh_dtype& d : {policy.param, policy.input, policy.reduce}) {
      EXPECT_EQ(d.code, LH_DT_FLOAT);
      EXPECT_EQ(d.bits, bits);
      EXPECT_EQ(d.lanes, 1);
    }
  }
}
TEST(TruePrecision, CostsNothingInTheStep) {
  for (const char* name : {"32-true", "64-true"}) {
    const Component<lh_precision, lh_precision_v0> p("precision", name);
    EXPECT_EQ(p->enter, nullptr);
    EXPECT_EQ(p->leave, nullptr);
    EXPECT_EQ(p->loss_scale, nullptr);
    EXPECT_EQ(p->update, nullptr);
  }
}

}  // namespace
