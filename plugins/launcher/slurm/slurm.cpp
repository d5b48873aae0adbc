// slurm - srun has made this rank. Only inside a step: an allocation alone (salloc, sbatch without srun) has the same
// variables, but one process, and there the ranks are for somebody else to make.
#include "../common/placed.hpp"

using namespace lhost_launcher;

namespace {

// The first of "node[001-004,9],other": "node001".
std::string first_host(const std::string& list) {
  const size_t open = list.find('['), comma = list.find(',');
  if (open == list.npos || comma < open) return list.substr(0, comma);
  const size_t close = list.find(']', open), end = list.find_first_of("-,]", open);
  if (close == list.npos || end == open + 1)
    refuse("found SLURM_JOB_NODELIST=" + list + ", expected a list such as node[001-004,9]");
  std::string host = list.substr(0, open) + list.substr(open + 1, end - open - 1);
  const std::string rest = list.substr(close + 1);  // of one name: up to a comma, perhaps with more brackets
  return rest.empty() || rest[0] == ',' ? host : host + first_host(rest);
}

struct TasksOnNodes {
  int64_t nodes = 0, tasks = 0;
  std::vector<int64_t> counts;  // different ones, in order
};
// "2(x3),1": three nodes with two, one with one.
TasksOnNodes tasks_on_nodes(const char* name, const std::string& text) {
  TasksOnNodes t;
  const auto number = [&](size_t& at) {
    int64_t n = 0;
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), n);
    if (error != std::errc() || n < 1 || n > 1000000)
      refuse("found " + std::string(name) + "=" + text + ", expected numbers such as 2(x3),1");
    at = static_cast<size_t>(end - text.data());
    return n;
  };
  for (size_t at = 0; at < text.size(); ++at) {
    const int64_t tasks = number(at);
    int64_t times = 1;
    if (text.compare(at, 2, "(x") == 0) {
      at += 2;
      times = number(at);
      if (text.compare(at, 1, ")") == 0) ++at;
    }
    t.nodes += times;
    t.tasks += times * tasks;
    t.counts.push_back(tasks);
    if (at < text.size() && text[at] != ',')
      refuse("found " + std::string(name) + "=" + text + ", expected numbers such as 2(x3),1");
  }
  return t;
}

// mpirun starts its helpers by a step of its own, whose variables its ranks then have.
bool is_helper_of_mpirun(const Variables& v) {
  for (const auto& [rank, size] :
       {std::pair("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), {"PMI_RANK", "PMI_SIZE"}})
    if (v.all({rank, size}) &&
        (v.text(rank) != v.text("SLURM_PROCID") || v.text(size) != v.text("SLURM_NTASKS")))
      return true;
  return false;
}

// Steps that Slurm makes for itself: the shell of salloc, the batch script, what it runs beside them.
bool is_step(const std::string& id) {
  return !id.empty() && id != "4294967290" && id != "4294967291" && id != "4294967292";
}

bool is_interactive(const Variables& v) {
  for (const char* name : {"bash", "sh", "zsh", "interactive"})
    if (v.text("SLURM_JOB_NAME") == name) return true;
  return false;
}

}  // namespace

struct Slurm : PlacedLauncher {
  static constexpr const char* summary = "srun has made this rank";
  using PlacedLauncher::PlacedLauncher;

  int32_t detect(const lh_launch_spec&, std::string& why) override {
    if (!v_.all({"SLURM_PROCID", "SLURM_NTASKS"}) || !is_step(step()) || is_interactive(v_) ||
        is_helper_of_mpirun(v_))
      return 0;
    why = "SLURM_STEP_ID, SLURM_PROCID and SLURM_NTASKS are set";
    return 80;
  }

 private:
  std::string step() const {
    return v_.has("SLURM_STEP_ID") ? v_.text("SLURM_STEP_ID") : v_.text("SLURM_STEPID");
  }

  // Ranks on this node, from whichever variable there is; all must be equal.
  int64_t ranks_here(const Placed& p, const std::string& seen) const {
    for (const char* name : {"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"}) {
      if (!v_.has(name)) continue;
      const TasksOnNodes t = tasks_on_nodes(name, v_.text(name));
      if (t.nodes != p.num_nodes || t.tasks != p.world_size) {
        if (name == std::string("SLURM_TASKS_PER_NODE"))
          break;  // of the allocation, of which a step may be a part
        refuse("found " + seen + ": " + std::to_string(t.tasks) + " tasks on " + std::to_string(t.nodes) +
               " node(s) are not SLURM_NTASKS on SLURM_NNODES; start with srun --ntasks-per-node");
      }
      if (std::adjacent_find(t.counts.begin(), t.counts.end(), std::not_equal_to<>()) != t.counts.end())
        refuse("found " + seen + ": not equally many tasks on every node; start with srun --ntasks-per-node");
      return t.counts.at(0);
    }
    if (p.world_size % p.num_nodes != 0)
      refuse("found " + seen + ": " + std::to_string(p.world_size) + " tasks do not divide by " +
             std::to_string(p.num_nodes) + " nodes; start with srun --ntasks-per-node");
    return p.world_size / p.num_nodes;
  }

  Placed place(const lh_launch_spec& spec) const override {
    const std::string seen = v_.shown({"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_NODEID",
                                       "SLURM_NNODES", "SLURM_NTASKS_PER_NODE", "SLURM_TASKS_PER_NODE",
                                       "SLURM_STEP_NUM_NODES", "SLURM_STEP_TASKS_PER_NODE"});
    if (!is_step(step()))
      refuse("SLURM_STEP_ID names no step of srun: this is an allocation, not a step (" + seen +
             "); start with srun, or leave launcher.use out");
    Placed p;
    p.world_size = v_.required("SLURM_NTASKS", "srun");
    p.rank = v_.required("SLURM_PROCID", "srun");
    p.local_rank = v_.required("SLURM_LOCALID", "srun");
    p.node_rank = v_.required("SLURM_NODEID", "srun");
    const auto step_nodes = v_.number("SLURM_STEP_NUM_NODES");
    p.num_nodes = step_nodes ? *step_nodes : v_.required("SLURM_NNODES", "srun");
    if (p.world_size < 1 || p.num_nodes < 1) refuse("found " + seen + ": a world needs at least one rank");
    p.local_world_size = ranks_here(p, seen);
    // --ntasks-per-node is what was wished for: of several nodes srun may have taken fewer
    if (const auto wished = v_.number("SLURM_NTASKS_PER_NODE"))
      check_same(*wished, p.local_world_size, seen,
                 "give srun --nodes and --ntasks-per-node, and leave --ntasks out");
    set_meeting(p);
    check_place(p, spec, seen);
    p.restart = v_.number("SLURM_RESTART_COUNT").value_or(0);
    return p;
  }

  void set_meeting(Placed& p) const {
    const char* who = "Slurm";
    const int64_t id = v_.has("SLURM_JOB_ID") ? *v_.number("SLURM_JOB_ID") : v_.required("SLURM_JOBID", who);
    p.job = "slurm-" + std::to_string(id) + "-" + step();
    const auto port = v_.number("MASTER_PORT");
    p.master_port = port ? *port : 15000 + id % 20000;
    std::string list = v_.text("SLURM_STEP_NODELIST");
    if (list.empty())
      list = v_.has("SLURM_JOB_NODELIST") ? v_.text("SLURM_JOB_NODELIST") : v_.text("SLURM_NODELIST");
    if (p.num_nodes == 1) p.master_addr = "127.0.0.1";
    else if (v_.has("MASTER_ADDR")) p.master_addr = v_.text("MASTER_ADDR");
    else if (!list.empty()) p.master_addr = first_host(list);
    else
      refuse("SLURM_JOB_NODELIST is not set, so rank 0 cannot be found; set MASTER_ADDR to the first node");
  }
};
LHOST_LAUNCHER(Slurm, lhost::NoOptions, "slurm", "1.0.0")
