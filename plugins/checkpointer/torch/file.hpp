// file.hpp - leaves to the bytes of a torch file and back; torch.cpp makes them the component. One file at a time, no
// state between calls. Throws lhost::Error, or the status of the sink or visitor unchanged.
#pragma once
#include <lhost/checkpointer.h>

#include <cstdint>
#include <string_view>

namespace torch_file {

// Deeper nesting is refused both ways. Real checkpoints have fewer than ten levels.
constexpr int kMostLevels = 100;

// Nothing goes out before all leaves are found to be right.
void save(const lh_leaf* leaves, uint64_t n, const lh_sink& sink);

// No leaf is delivered before the whole file is found to be right.
void load(std::string_view file, const lh_leaf_visitor& visitor);

}  // namespace torch_file
