// host/plugin/description_json.hpp - a description as JSON: what the child prints and the cache keeps.
#pragma once
#include "plugin/describe.hpp"

#include <nlohmann/json.hpp>

namespace lhost {

nlohmann::json to_json(const PluginDescription&);
PluginDescription description_from_json(const nlohmann::json&);  // throws nlohmann::json::exception
std::string one_line(const nlohmann::json&);                     // whatever bytes the texts hold

}  // namespace lhost
