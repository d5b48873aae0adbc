// host/train/trainer.hpp - one run: its components, the compiled step, the loop, evaluation, checkpoints.
//
// The step is compiled once: flat arrays of (function, who) that hold only what is declared. A hook that nobody
// declared is no entry and costs nothing. All members are used by the one thread that drives the run; loggers and data
// threads have their own objects (LogWriter, Feed).
//
// With several ranks each has a Trainer, and all make the same calls: what they must agree on (to stop, that a batch is
// skipped, the mean of the loss) is summed once per optimizer step with the gradients; rank 0 alone writes files and
// decides about checkpoints, the others follow.
#pragma once
#include "kinds/components.hpp"
#include "train/checkpoint_keeper.hpp"
#include "train/feed.hpp"
#include "train/log_writer.hpp"
#include "train/order.hpp"
#include "train/ranks.hpp"
#include "train/result.hpp"
#include "train/run_folder.hpp"
#include "train/run_state.hpp"
#include "train/schedule.hpp"
#include "train/watch.hpp"

#include <chrono>
#include <optional>

namespace lhost {

class Trainer {
 public:
  // The run's folder exists; everything else is opened here or in run(), in the order of host/README.md. What it holds of
  // an earlier life (`continues`) stays as it is until the checkpoint is loaded.
  Trainer(const Engine&, RunHandle&, Ranks&, Components&, const Settings&, const Watch&,
          std::string run_folder, const std::string& resume_file, bool continues);
  ~Trainer();
  Trainer(const Trainer&) = delete;

  // All stages. Returns what happened; failures are in it, not thrown. Writes result.json and closes everything.
  RunResult run();
  bool abandoned() const { return log_writer_.abandoned(); }

 private:
  friend struct Steps;  // the functions of the compiled programs, program.cpp
  struct Op {
    lh_status (*run)(Trainer&);
    const char* who;
    int32_t shown = 0;  // its number in the watched page
  };
  using Program = std::vector<Op>;
  struct Listener {
    lh_status (*call)(void* table_owner, int32_t event);
    void* owner;
    size_t callback;  // index, or kModel
    Op op;            // names it
  };
  static constexpr size_t kModel = static_cast<size_t>(-1);
  struct Interrupted {};  // a signal was seen; thrown and caught inside this class
  // What is summed over the ranks with every optimizer step.
  enum Vote {
    kStop,
    kInt,
    kTerm,
    kHup,
    kSkippedRows,
    kWeight,
    kLoss,
    kLossWeight,
    kGradients,
    kSkips,
    kVotes
  };

  // ---- setup.cpp
  void set_up();
  void make_votes();
  uint32_t device_index() const;
  uint64_t rank_seed() const;
  void describe_data();
  void check_split(int32_t split) const;
  void lay_out_model();
  void make_groups();
  void make_schedule();
  void subscribe();
  void open_loggers(const CheckpointTree* resumed);
  void print_header() const;
  Feed& feed(int32_t split);
  FeedOptions feed_options(int32_t split) const;
  int64_t stage_batches(int32_t split) const;  // of one pass, limit_*_batches applied

  // ---- program.cpp
  void compile();
  void compile_micro();
  void compile_sync();
  void compile_window();
  void compile_evaluation();
  void add(Program&, bool declared, const char* who, lh_status (*)(Trainer&), const char* shown = nullptr);
  void run_program(const Program& p) {
    for (const Op& op : p) {
      current_ = &op;
      watch_.page.set_operation(op.shown);
      if (lh_status s = op.run(*this)) [[unlikely]]
        raise(s);
    }
    current_ = nullptr;
  }
  void emit(int32_t event);  // model first, then callbacks in order
  lh_status tell(const Listener&, int32_t event);
  void emit_model(int32_t event);
  void emit_callbacks(int32_t event);
  bool heard(int32_t event) const { return !listeners_[event].empty(); }

  // ---- loop.cpp
  void fit();
  bool finished() const;
  bool minima_met() const;
  void train_epoch();
  bool train_batches();  // false: the epoch was cut short
  void begin_window();
  bool finish_window();
  bool window_makes_a_step() const;
  void warn_of_divergence();
  void apply_schedule();
  void post_record(std::vector<Scalar>);
  void profile(int32_t span, bool begin);

  // ---- agreement.cpp
  void put_wishes();   // into the votes: to stop, signals that this process got
  void read_wishes();  // what all ranks together want
  void agree();        // outside of steps
  void check_same_everywhere();
  bool stopping() const { return ranks_.alone() ? state_.stop : agreed_stop_; }
  int signal_seen() const;
  void poll_signal() const {
    if (signal_seen()) [[unlikely]]
      throw Interrupted();
  }
  // ---- evaluate.cpp
  bool can_validate() const;
  void evaluate(int32_t stage, int64_t batch_limit, bool sanity);
  void pass(int32_t stage, int64_t batch_limit, bool sanity);
  void sanity_check();
  std::string load_saved_weights();  // of a checkpoint of this fit; says which

  // ---- checkpointing.cpp
  void fill(CheckpointTree&, bool weights_only);
  void fill_random(CheckpointTree&);
  void fill_states(CheckpointTree&);
  // Rank 0 decides what is saved and writes it; the others give what only they have.
  void save_point(const std::function<void(CheckpointKeeper&)>&);
  bool may_save_at(int64_t global_step) const;
  void write_checkpoint(size_t policy, const std::string& path, bool weights_only);
  void write_index() const;
  CheckpointKeeper::Moment moment();
  void restore(const CheckpointTree&);
  void restore_weights(const CheckpointTree&);
  void restore_optimizer(const CheckpointTree&);  // restore_optimizer.cpp
  std::vector<int64_t> python_numbers(const CheckpointTree&, const TreePath& groups) const;
  void restore_progress(const CheckpointTree&);
  void restore_counters(const CheckpointTree&);
  void restore_rates(const CheckpointTree&);
  void restore_metrics(const CheckpointTree&);
  void restore_position(const CheckpointTree&);

  // ---- trainer.cpp
  void run_stages();
  void finish();
  void run_stage(int32_t stage);
  void note_failure(const std::exception_ptr&);
  void tell_failure(const std::string& who, lh_code code);
  void show_place();  // in the watched page
  void interrupt();
  std::string place() const;
  static std::string shown(const std::string& path);  // relative to the current folder when it lies below

  const Engine& engine_;
  RunHandle& handle_;
  RunState& state_;
  Ranks& ranks_;
  Components& c_;
  const Settings& set_;
  Watch watch_;
  std::string run_folder_, resume_file_;
  LogWriter log_writer_;
  RunResult result_;

  // data
  struct SplitData {
    int32_t source = 0;  // the component's split that holds the samples: a val split may be cut from train
    lh_split info{};
    std::vector<int64_t> samples;
    std::unique_ptr<Feed> feed;
  };
  SplitData splits_[4];
  lh_policy policy_{};
  lh_topology topology_{sizeof(lh_topology), 0, 0, 1};

  // model and optimizer
  std::vector<lh_param_info> params_;
  std::vector<lh_slot> slots_;
  std::vector<std::vector<uint32_t>> members_;  // parameters of each group
  std::vector<std::vector<double>>
      hyper_;  // live hyper-parameters of each group; addresses are lent to the engine
  size_t lr_index_ = 0;
  std::unique_ptr<Schedule> schedule_;
  std::vector<std::unique_ptr<CheckpointKeeper>> keepers_;

  // the step
  std::vector<Listener> listeners_[64];
  std::vector<std::string> hook_names_;
  Program micro_, sync_, window_, evaluation_[4];
  const Op* current_ = nullptr;  // the call in progress: whom an exception that leaves a plugin is blamed on
  std::string failed_place_;     // of a failure in an evaluation, whose counters are put back on its way out
  lh_step_out out_{sizeof(lh_step_out), 0, nullptr, 0};
  double seed_ = 1, loss_scale_ = 1, window_scale_ = 1;
  double window_rows_ = 0, window_weight_ = 0, window_skipped_ = 0;
  int window_mode_ = 0;  // 0 not known yet, 1 rows, 2 weights given by the model
  bool window_has_gradient_ = false;
  uint32_t loss_metric_ = 0;
  uint64_t profile_mask_ = 0;

  // the ranks' agreement
  lh_tensor* votes_tensor_ = nullptr;
  double* votes_ = nullptr;  // its numbers, by Vote
  bool agreed_stop_ = false, saving_alone_ = false;
  int agreed_signal_ = 0;

  // the loop
  int32_t stage_ = kFit;
  int64_t epoch_batches_ = 0;
  int64_t boundary_batch_ = 0, boundary_samples_ = 0;  // at the last optimizer step: what a checkpoint stores
  bool epoch_done_ = false;                            // a checkpoint written now starts with the next epoch
  bool validated_ = false;
  bool diverged_ = false;  // said once
  bool fitting_ = false;   // only then weights, optimizer and counters belong together, and may be saved
  bool restored_ = false, mid_epoch_ = false;
  bool owns_folder_;                // from here on what is written into the folder is about this run
  std::vector<char> restored_rng_;  // put in place after on_fit_start, which may draw random numbers
  std::chrono::steady_clock::time_point started_;
};

}  // namespace lhost
