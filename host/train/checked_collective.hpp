// host/train/checked_collective.hpp - [collective] check = true: before each operation all ranks of its group tell each
// other what they are about to do; if that differs, every rank gets an error that names both. Off, it does not exist.
#pragma once
#include "kinds/component.hpp"
#include "train/engine.hpp"

#include <string>

namespace lhost {

class CheckedCollective {
 public:
  CheckedCollective(const Engine&, lh_run*, const Collective&, int64_t world_size);
  ~CheckedCollective();
  CheckedCollective(const CheckedCollective&) = delete;
  const lh_collective_v0& table() const { return table_; }
  lh_collective* self() { return reinterpret_cast<lh_collective*>(this); }

 private:
  struct Slots;  // the functions of table_
  void compare(const char* operation, const lh_collective_args&);
  std::string describe(const char* operation, const lh_collective_args&) const;
  int64_t members(const lh_process_group*) const;

  const Engine& engine_;
  lh_run* run_;
  const Collective& inner_;
  int64_t world_size_, calls_ = 0;
  lh_tensor *mine_ = nullptr, *all_ = nullptr;
  std::vector<std::pair<lh_process_group*, int64_t>> groups_;  // and how many ranks they have
  lh_collective_v0 table_{};
};

}  // namespace lhost
