// Fuzz target: any bytes given to the checkpointer "torch" give leaves or one error. Links the plugin's sources.
// Each input is tried twice: as a file, and as the pickle of a file whose checksums are right.
// Seeds: tests/golden/checkpoint/*.pt and *.ckpt, and the data.pkl inside each of them.
#include "file.hpp"
#include "zip_writer.hpp"

#include <lhost/sdk/plugin.hpp>

#include <string>
#include <string_view>

namespace {

volatile uint64_t seen;

// Touches every byte that a leaf lends, so that a sanitizer sees what a real visitor would.
lh_status read_leaf(void*, const lh_leaf* l) noexcept {
  const auto touch = [](const void* data, uint64_t size) {
    for (uint64_t i = 0; i < size; ++i) seen = seen + static_cast<const unsigned char*>(data)[i];
  };
  for (uint32_t i = 0; i < l->n_path; ++i) touch(l->path[i].ptr, l->path[i].len);
  if (l->kind == LH_LEAF_TENSOR) {
    uint64_t bytes = l->view.dtype.bits / 8u;
    for (int32_t d = 0; d < l->view.ndim; ++d) bytes *= static_cast<uint64_t>(l->view.shape[d]);
    touch(l->view.data, bytes);
  } else if (l->value.type == LH_T_STR) {
    touch(l->value.u.s.ptr, l->value.u.s.len);
  } else if (l->value.type == LH_T_LIST_INT || l->value.type == LH_T_LIST_FLOAT) {
    touch(l->value.u.li, 8 * uint64_t{l->value.n});
  } else if (l->value.type == LH_T_LIST_STR) {
    for (uint32_t i = 0; i < l->value.n; ++i) touch(l->value.u.ls[i].ptr, l->value.u.ls[i].len);
  }
  return nullptr;
}

void load(std::string_view file) {
  const lh_leaf_visitor visitor = {sizeof(lh_leaf_visitor), 0, nullptr, read_leaf};
  try {
    torch_file::load(file, visitor);
  } catch (const lhost::Error&) {  // the only exception that may leave
  }
}

std::string with_checksums(std::string_view pickle) {
  std::string file;
  const lh_sink sink = {sizeof(lh_sink), 0, &file, [](void* ctx, lh_bytes b) noexcept -> lh_status {
                          static_cast<std::string*>(ctx)->append(static_cast<const char*>(b.ptr), b.len);
                          return nullptr;
                        }};
  const std::string storage(64, 'x');
  torch_file::ZipWriter zip(sink);
  zip.add("archive/data.pkl", {pickle.data(), pickle.size()});
  size_t key = 0;
  for (const size_t size : {4, 8, 16, 24, 64})
    zip.add("archive/data/" + std::to_string(key++), {storage.data(), size});
  zip.finish();
  return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  load(input);
  load(with_checksums(input));
  return 0;
}
