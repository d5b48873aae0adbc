// host/plugin/kinds.hpp - the kinds that this host knows, each with the one revision it speaks.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lhost {

const std::vector<std::string_view>& known_kinds();      // "strategy", sorted
std::string_view known_revision(std::string_view kind);  // "0.1", or empty: a kind this host does not know
std::pair<std::string, std::string> split_kind(std::string_view kind_and_revision);  // "strategy/0.1"

}  // namespace lhost
