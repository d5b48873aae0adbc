// host/train/checkpoint_keeper.hpp - one [[checkpoint]] policy: when to save, under which name, which files stay.
//
// Exactly the files that the rules promise exist. A file is deleted only after the new one is complete. Ties: the older
// file stays unless the new one is strictly better; NaN is worse than anything and never displaces a finite value.
#pragma once
#include "train/checkpoint_tree.hpp"
#include "train/metrics.hpp"
#include "train/settings.hpp"

#include <functional>
#include <optional>

namespace lhost {

// "{epoch:02d}-{val_loss:.2f}" -> "epoch=03-val_loss=0.32", as PyTorch Lightning does. Unknown names give nan; a "/" in a
// metric's name becomes "_". Throws Failure(Exit::usage) for a pattern that cannot be read (unbalanced brace, unknown
// format); check_filename_pattern does only that.
std::string expand_filename(const std::string& pattern, int64_t epoch, int64_t step,
                            const std::vector<KnownMetric>&);
void check_filename_pattern(const std::string& pattern);

class CheckpointKeeper {
 public:
  using Write = std::function<void(const std::string& path, bool weights_only)>;
  CheckpointKeeper(const CheckpointPolicy&, std::string run_folder, std::string suffix, Write);

  struct Moment {
    int64_t epoch, step;
    Metrics* metrics;
    bool validated;  // a validation ran in this epoch, or there is none in this run
  };
  void at_epoch_end(const Moment&);
  void at_step(const Moment&);
  void now(const Moment&,
           const std::string& stem);  // a signal or an exception: <stem>.ckpt, outside the ranking
  const CheckpointPolicy& policy() const { return policy_; }

  struct Kept {
    std::string file;  // relative to the run's folder
    std::optional<double> value;
    int64_t epoch = 0;
  };
  std::optional<Kept> best() const;                  // of those that are kept, the one being written included
  const std::string& last() const { return last_; }  // newest complete file, relative; empty = none

  void save_state(CheckpointTree&, const TreePath& prefix) const;
  void load_state(const CheckpointTree&, const TreePath& prefix);

 private:
  bool better(double a, double b) const;
  std::optional<double> monitored(const Moment&) const;
  void save(const Moment&, bool ranks);  // false: no candidate for the best k
  std::string free_name(const std::string& stem, const std::string& displaced) const;
  void keep(Kept);
  std::vector<Kept>::const_iterator worst() const;  // of those that are kept
  void remove_worst();
  std::vector<Kept> all() const;
  bool belongs_here(const std::string& file) const;
  void write_last(const std::string& newest);
  std::string absolute(const std::string& file) const { return run_folder_ + "/" + file; }

  CheckpointPolicy policy_;
  std::string run_folder_, suffix_;
  Write write_;
  std::vector<Kept> kept_;       // oldest first
  std::optional<Kept> writing_;  // belongs to the state that the file being written holds
  std::string last_;
};

}  // namespace lhost
