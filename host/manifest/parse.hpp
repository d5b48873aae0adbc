// host/manifest/parse.hpp - TOML text to nodes. parse.cpp is the only file that knows toml++.
#pragma once
#include "manifest/diagnostics.hpp"

#include <optional>

namespace lhost {

// texts[text] as a tree. A syntax error is one diagnostic (the parser stops there) and no tree.
std::optional<Node> parse_toml(int text, Origin, const Texts&, Diagnostics&);

// One value, such as the text of a default: 25, "x", [1, 2], { a = 1 }. Columns count from the value's first
// character. Nothing if it is not exactly one value; `why` then says what is wrong.
std::optional<Node> parse_value(std::string_view, std::string* why = nullptr);

}  // namespace lhost
