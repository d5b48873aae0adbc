// walk.hpp - from the value graph of a checkpoint to leaves: dicts and lists become paths, lists of one plain type
// become one leaf. Walking twice gives the same leaves: once to check, once to deliver.
#pragma once
#include "value.hpp"
#include "zip_reader.hpp"

#include <lhost/checkpointer.h>

#include <string_view>
#include <vector>

namespace torch_file {

class Walk {
 public:
  // Items are shared, so a short pickle can name endlessly many. `text_budget`: bytes that paths and values may take
  // when all are written out; `copy_budget`: bytes of tensors that need a copy because they are views.
  Walk(const ZipReader& zip, uint64_t text_budget, uint64_t copy_budget)
      : zip_(zip), text_left_(text_budget), copies_left_(copy_budget) {}
  // visitor NULL: only check
  void run(const Value& root, const lh_leaf_visitor* visitor);

 private:
  void visit(const Value& v);
  void visit_dict(const Value& v);
  void visit_list(const Value& v);
  void visit_tensor(const Value& v);
  void enter(std::string_view key, const Value& v);
  void spend(uint64_t bytes);
  template <class F>
  void deliver_list(int32_t type, size_t n, F set);
  void deliver_value(const lh_value& value);
  void deliver_unknown(std::string_view what);
  void deliver(lh_leaf leaf);

  const ZipReader& zip_;
  uint64_t text_left_, copies_left_, path_bytes_ = 0;
  const lh_leaf_visitor* visitor_ = nullptr;
  std::vector<lh_str> path_;
};

}  // namespace torch_file
