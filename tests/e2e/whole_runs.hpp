// tests/e2e/whole_runs.hpp - several processes of lhost that are ranks of one run: how a test starts them by a script of
// bash, and what it looks at afterwards.
#pragma once
#include "e2e/checkpoint_file.hpp"
#include "support/shell.hpp"
#include "support/temp_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

namespace e2e {

struct WholeRuns : testing::Test {
  // Short, and with every time limit far below a test's own. A checkpoint of every epoch tells that training goes on.
  static constexpr const char* kManifest = R"(
extends = ")" LHOST_TEST_SOURCE R"(/configs/digits-ddp.toml"
[run]
name = "t"
stages = ["fit"]
[trainer]
max_epochs = 1
limit_train_batches = 6
num_sanity_val_steps = 0
[collective]
connect_timeout = "20s"
timeout = "3s"
[[checkpoint]]
use = "torch"
save_top_k = 0
save_last = true
)";

  // What a script has before its own lines. Variables of a launcher that this test itself may run under are no test's.
  std::string prelude() const {
    return "cd " + dir.path() + "\nexport LHOST_TEST_MARK=" + dir.path() +
           " OMP_NUM_THREADS=1\n"
           "for v in $(env | sed -n "
           "'s/^\\(\\(SLURM\\|OMPI\\|PMIX\\?\\|PET\\|KUBERNETES\\)_[^=]*\\)=.*/\\1/p') RANK "
           "WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE NODE_RANK MASTER_ADDR MASTER_PORT GLOO_SOCKET_IFNAME; do "
           "unset $v; done\n"
           "L='" LHOST_TEST_BIN
           "/lhost run t.toml'\n"
           "ends() { wait $1; echo \"process $2 ended with $?\"; }\n"
           "training() { for i in $(seq 200); do [ -e $1/t/version_0/checkpoints/last.ckpt ] && return; "
           "sleep 0.05; "
           "done; echo 'no training'; }\n";
  }
  // Bounded as a whole: what is still there after the time dies with the script.
  lhost_test::Outcome script(const std::string& lines, const std::string& before = "") {
    dir.write("t.toml", kManifest);
    const std::string file = dir.write("steps.sh", prelude() + lines);
    return lhost_test::shell("timeout -s KILL 60 " + before + " bash " + file + " 2>&1");
  }
  // The same run on one machine, its ranks made by lhost itself.
  void run_by_exec(int ranks) {
    const auto o = script("$L run.dir=exec launcher.use=exec -q trainer.devices=" + std::to_string(ranks));
    ASSERT_EQ(o.exit_code, 0) << o.output;
  }
  std::string run_folder(const std::string& runs, int version = 0) const {
    return dir / runs + "/t/version_" + std::to_string(version);
  }
  nlohmann::json result(const std::string& runs) const {
    std::ifstream in(run_folder(runs) + "/result.json");
    return nlohmann::json::parse(in);
  }

  void expect_same_weights(const std::string& runs, const std::string& expected_runs) const {
    const File found(run_folder(runs) + "/checkpoints/last.ckpt");
    const File expected(run_folder(expected_runs) + "/checkpoints/last.ckpt");
    size_t compared = 0;
    for (const char* part : {"state_dict", "optimizer"})
      for (const lhost::TreeLeaf* leaf : expected.below(part)) {
        const lhost::TreeLeaf* ours = found.find(leaf->path);
        ASSERT_TRUE(ours) << leaf->path.back();
        ASSERT_EQ(ours->shape, leaf->shape);
        EXPECT_EQ(std::memcmp(ours->data, leaf->data, elements(*leaf) * leaf->dtype.bits / 8u), 0)
            << part << " " << leaf->path[1];
        ++compared;
      }
    EXPECT_GT(compared, 6u);
  }

  std::vector<std::string> left_behind() const {
    std::vector<std::string> found;
    for (const auto& e : std::filesystem::directory_iterator("/proc")) {
      const std::string name = e.path().filename();
      if (name.find_first_not_of("0123456789") != name.npos) continue;
      std::ifstream in(e.path() / "environ");
      const std::string all((std::istreambuf_iterator<char>(in)), {});
      if (all.find("LHOST_TEST_MARK=" + dir.path()) != all.npos) found.push_back(name);
    }
    return found;
  }
  void expect_nothing_left() const {
    for (int i = 0; i < 50 && !left_behind().empty(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_THAT(left_behind(), testing::IsEmpty());
  }

  lhost_test::TempDir dir;
};

}  // namespace e2e
