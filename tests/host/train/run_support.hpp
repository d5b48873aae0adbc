// tests/host/train/run_support.hpp - whole runs on the mock engine: a manifest with overrides goes in; the report, the
// run folder, the records of the jsonl logger and the events that the recorder heard come out.
#pragma once
#include "lhost/runtime.hpp"
#include "support/temp_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "train/result.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace run_test {

struct Event {  // one line of the recorder
  std::string name;
  int64_t step = 0, epoch = 0, batch = 0, samples = 0;
  std::string micro;  // "0/2"
  double lr = 0;
  bool sanity = false;
  std::string failure, checkpoint;
  std::map<std::string, double> metrics;
};

struct Record {  // one line of metrics.jsonl
  std::string stage;
  int64_t step = 0, epoch = 0, samples = 0;
  std::map<std::string, double> values;
};

// The leaves of a checkpoint: keys joined by "/", values as exact text, tensors as dtype, shape and bytes.
using Tree = std::map<std::string, std::string>;
Tree tree_of(const std::string& file);
Tree below(const Tree&, const std::string& prefix);       // "state_dict/"
std::vector<double> weights_of(const std::string& file);  // linear.weight, then linear.bias
void write_state_dict(const std::string& file, const std::map<std::string, std::vector<float>>& flat);

struct Outcome {
  lhost::RunReport report;
  std::vector<Event> events;
  std::vector<Record> records;

  std::vector<Event> all(const std::string& event) const;
  std::vector<std::string> names() const;                                           // of the events, in order
  std::vector<std::string> files(const std::string& folder = "checkpoints") const;  // sorted
  std::string read(const std::string& file) const;                                  // in the run folder
  std::string result(const std::string& pointer) const;  // of result.json: "/stages/fit/epochs"
  std::vector<std::string> log_lines(const std::string& holding) const;  // of host.log, the text only
  std::vector<double> weights() const { return weights_of(report.run_folder + "/checkpoints/last.ckpt"); }
  Tree tree(const std::string& file = "last.ckpt") const {
    return tree_of(report.run_folder + "/checkpoints/" + file);
  }
  std::vector<Record> of_stage(const std::string& stage) const;
  std::vector<double> series(const std::string& metric) const;  // over all records
};

class Run : public testing::Test {
 protected:
  Run();
  using Overrides = std::vector<std::string>;
  Outcome run(const Overrides& = {});
  Outcome done(const Overrides& = {});                     // and it must end well
  static std::string meddler(const std::string& options);  // a [[callback]] as an override
  bool started() const;                                    // is there any run folder?
  static void read(Outcome&, const std::string& events);   // records and events of the run folder

  lhost_test::TempDir folder;
  std::string manifest;  // a small regression: y = w x + b on two features, labels 0 and 1
};

// The same run on several ranks: each is a thread with a trainer of its own, they meet in the collective "threads".
// Rank 0's records and events are read; `ranks` has what each rank came to.
class RanksRun : public Run {
 protected:
  struct RanksOutcome : Outcome {
    std::vector<lhost::RunResult> ranks;
  };
  RanksOutcome run_on(int ranks, Overrides = {});
  RanksOutcome done_on(int ranks, Overrides = {});  // and every rank must end well
  Overrides other_on_rank_1;                        // what only that rank's manifest says
};

// The same regression by hand, in double: labels i mod 2, x[j] = ((i + j) mod 5) / 4, mean of squares.
struct ByHand {
  double w[2] = {0.1, 0.2}, b = 0;
  struct Gradient {
    double w[2] = {0, 0}, b = 0, loss = 0;
  };
  Gradient gradient(int64_t first, int64_t n) const;  // of the mean over samples first .. first + n - 1
  void step(const Gradient&, double lr);
  std::vector<double> weights() const { return {w[0], w[1], b}; }
};

void expect_near(const std::vector<double>& found, const std::vector<double>& expected,
                 double relative = 1e-6);

}  // namespace run_test
