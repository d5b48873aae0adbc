// 64-true - parameters, inputs and gradients in float64.
#include <lhost/sdk/precision.hpp>

struct True64 : lhost::Precision {
  static constexpr const char* summary = "parameters, inputs and gradients in float64";
  void policy(lh_policy& out) override { out.param = out.input = out.reduce = {LH_DT_FLOAT, 64, 1}; }
};
LHOST_PRECISION(True64, lhost::NoOptions, "64-true", "1.0.0")
