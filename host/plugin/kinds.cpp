#include "plugin/kinds.hpp"

#include <lhost/accelerator.h>
#include <lhost/callback.h>
#include <lhost/checkpointer.h>
#include <lhost/collective.h>
#include <lhost/data.h>
#include <lhost/launcher.h>
#include <lhost/logger.h>
#include <lhost/model.h>
#include <lhost/optimizer.h>
#include <lhost/precision.h>
#include <lhost/profiler.h>
#include <lhost/scheduler.h>
#include <lhost/strategy.h>

namespace lhost {
namespace {

constexpr std::string_view kKinds[] = {
    LH_ACCELERATOR_KIND, LH_CALLBACK_KIND,  LH_CHECKPOINTER_KIND, LH_COLLECTIVE_KIND, LH_DATA_KIND,
    LH_LAUNCHER_KIND,    LH_LOGGER_KIND,    LH_MODEL_KIND,        LH_OPTIMIZER_KIND,  LH_PRECISION_KIND,
    LH_PROFILER_KIND,    LH_SCHEDULER_KIND, LH_STRATEGY_KIND};

}  // namespace

const std::vector<std::string_view>& known_kinds() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> list;
    for (std::string_view k : kKinds) list.push_back(k.substr(0, k.find('/')));
    return list;
  }();
  return names;
}

std::string_view known_revision(std::string_view kind) {
  for (std::string_view k : kKinds) {
    const size_t slash = k.find('/');
    if (k.substr(0, slash) == kind) return k.substr(slash + 1);
  }
  return {};
}

std::pair<std::string, std::string> split_kind(std::string_view text) {
  const size_t slash = text.find('/');
  if (slash == text.npos) return {std::string(text), {}};
  return {std::string(text.substr(0, slash)), std::string(text.substr(slash + 1))};
}

}  // namespace lhost
