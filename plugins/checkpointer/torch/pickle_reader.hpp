// pickle_reader.hpp - Python's pickle, protocols 2 to 5, read into plain values. Calls that torch.save writes for data
// (OrderedDict, torch.Size, _rebuild_tensor_v2 ...) become that data; all others become Value::Kind::unknown: nothing
// is ever imported or run. Any bytes are safe: memory is bounded by their number, no recursion. Throws lhost::Error.
#pragma once
#include "value.hpp"

#include <string_view>

namespace torch_file {

// The document lends texts of `bytes`.
Document read_pickle(std::string_view bytes);

// `function` applied to `arguments`, both as found in the pickle. Defined in pickle_calls.cpp.
Value* call(Document& document, const Value& function, const Value& arguments);

}  // namespace torch_file
