// host/base/log.hpp - the run's log, on spdlog: warnings to the terminal, everything to <run folder>/host.log. [any]
#pragma once
#include <string>
#include <string_view>

namespace lhost {

enum class Level { debug, info, warning, error };
void log(Level, std::string_view message);
int log_verbosity();
void log_verbosity(int v);                  // 0: warnings on the terminal; 1: also info; 2: also debug
void log_to_file(const std::string& path);  // append; an empty path closes the file

}  // namespace lhost
