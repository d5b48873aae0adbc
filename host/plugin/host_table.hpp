// host/plugin/host_table.hpp - the host as plugins see it: errors, log, services. [any]
#pragma once
#include <lhost/abi.h>

#include <functional>
#include <string>
#include <string_view>

namespace lhost {

const lh_host& host_table();

// Services are looked for in the order in which they were offered: host/train offers its own, then the
// engine's.
using ServiceSource = std::function<const void*(std::string_view id)>;
void offer_services(ServiceSource);
void withdraw_services();  // tests only: forget all sources

// An error that came back over the boundary, taken over and freed.
struct PluginError {
  lh_code code = LH_OK;
  std::string component, where, message;
};
PluginError take(lh_status);
lh_status make_status(lh_code, std::string component, std::string where, std::string message);

}  // namespace lhost
