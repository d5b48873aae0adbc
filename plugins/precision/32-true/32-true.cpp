// 32-true - parameters, inputs and gradients in float32.
#include <lhost/sdk/precision.hpp>

struct True32 : lhost::Precision {
  static constexpr const char* summary = "parameters, inputs and gradients in float32";
  void policy(lh_policy& out) override { out.param = out.input = out.reduce = {LH_DT_FLOAT, 32, 1}; }
};
LHOST_PRECISION(True32, lhost::NoOptions, "32-true", "1.0.0")
