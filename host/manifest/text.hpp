// host/manifest/text.hpp - lines and columns of the texts that make up a manifest. Columns count code points from 1.
#pragma once
#include "manifest/node.hpp"

namespace lhost {

bool valid_utf8(std::string_view);
int columns_in(std::string_view);                          // code points
size_t byte_of_column(std::string_view line, int column);  // size() when the column is past the end
std::string_view line_of(const Text&, int line);           // without its line break; empty past the end
std::string_view written(const Texts&, const Source&);     // what stands there; empty if not on one line

}  // namespace lhost
