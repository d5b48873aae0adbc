// host/kinds/components.hpp - all components of one run. Members are in the order of creation, so destruction is its
// exact reverse.
#pragma once
#include "kinds/component.hpp"

namespace lhost {

struct Components {
  Profiler profiler;  // may be empty
  std::vector<Logger> loggers;
  std::vector<Checkpointer> checkpointers;  // one per [[checkpoint]]
  Launcher launcher;
  Accelerator accelerator;
  Collective collective;  // empty with one rank
  Precision precision;
  Strategy strategy;
  Data data;
  Model model;
  Optimizer optimizer;  // empty when nothing is fitted
  Scheduler scheduler;  // may be empty
  std::vector<Callback> callbacks;
};

}  // namespace lhost
