// host/manifest/overrides.hpp - KEY=VALUE and KEY+=VALUE from the command line and LHOST_SET.
#pragma once
#include "manifest/diagnostics.hpp"

namespace lhost {

// Apply texts[text].content[begin, end) to the tree. Problems point into that text.
void apply_override(Node& root, int text, size_t begin, size_t end, Origin, const Texts&, Diagnostics&);

// Begin and end of the items of an LHOST_SET: split at ";", but not inside quotes or brackets.
std::vector<std::pair<size_t, size_t>> split_items(std::string_view);

}  // namespace lhost
