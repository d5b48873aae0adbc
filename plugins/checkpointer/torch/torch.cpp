// The checkpointer "torch": the files of Python's torch.save and torch.load.
#include "file.hpp"

#include <lhost/sdk/checkpointer.hpp>

namespace {

class TorchCheckpointer : public lhost::Checkpointer {
 public:
  static constexpr const char* summary = "files that torch.load reads and torch.save writes";
  const char* suffix() noexcept override { return ".ckpt"; }
  void save(const lh_leaf* leaves, uint64_t n, const lh_sink& sink) override {
    torch_file::save(leaves, n, sink);
  }
  void load(lh_bytes file, const lh_leaf_visitor& visitor) override {
    torch_file::load({static_cast<const char*>(file.ptr), file.len}, visitor);
  }
};

}  // namespace

LHOST_CHECKPOINTER(TorchCheckpointer, lhost::NoOptions, "torch", "0.1.0")
