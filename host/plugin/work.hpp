// host/plugin/work.hpp - service "lhost.work/0": completions, whoever produces them (lhost/tensor.h). [any]
#pragma once
#include <lhost/tensor.h>

namespace lhost {

const lh_work_v0& work_service();

}  // namespace lhost
