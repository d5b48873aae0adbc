// kubernetes - a pod is this rank: of a PyTorchJob (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT by the operator), or of
// an indexed Job (JOB_COMPLETION_INDEX). An operator that was told of several processes per pod counts pods in RANK and
// WORLD_SIZE and means torchrun to make the ranks: as a place this would be wrong, so it is an error.
#include "../common/placed.hpp"

using namespace lhost_launcher;

namespace {

struct KubernetesOptions {
  std::optional<int64_t> world_size, master_port;
  std::string master_addr;
  static void describe(lhost::Describe<KubernetesOptions>& d) {
    d(&KubernetesOptions::world_size, "world_size", "pods of an indexed Job; else WORLD_SIZE").min(1);
    d(&KubernetesOptions::master_addr, "master_addr", "name of the pod with index 0; else MASTER_ADDR");
    d(&KubernetesOptions::master_port, "master_port",
      "port of the pod with index 0; else MASTER_PORT, else 29500")
        .range(1, 65535);
  }
};

constexpr const char* kOperator = "the training operator";

}  // namespace

struct Kubernetes : PlacedLauncher {
  static constexpr const char* summary = "a pod of Kubernetes is this rank";
  explicit Kubernetes(const KubernetesOptions& o) : o_(o) {}

  int32_t detect(const lh_launch_spec&, std::string& why) override {
    if (!v_.has("KUBERNETES_SERVICE_HOST")) return 0;
    if (v_.all({"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"})) {
      why = "KUBERNETES_SERVICE_HOST, RANK and WORLD_SIZE are set";
      return 75;
    }
    if (!v_.has("JOB_COMPLETION_INDEX") || !(o_.world_size || v_.has("WORLD_SIZE"))) return 0;
    why = "KUBERNETES_SERVICE_HOST and JOB_COMPLETION_INDEX are set, and the size is known";
    return 75;
  }

 private:
  std::string seen() const {
    return v_.shown({"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "PET_NNODES",
                     "PET_NPROC_PER_NODE", "PET_NODE_RANK", "JOB_COMPLETION_INDEX"});
  }
  // "auto", "gpu" and "cpu" are torchrun's to decide.
  int64_t ranks_per_pod() const {
    const std::string t = v_.text("PET_NPROC_PER_NODE");
    if (t == "auto" || t == "gpu" || t == "cpu") return 1;
    return v_.number("PET_NPROC_PER_NODE").value_or(1);
  }

  std::optional<int64_t> number_of_pods() const {
    if (v_.text("PET_NNODES").find(':') != std::string::npos) return std::nullopt;  // "1:4", an elastic job
    return v_.number("PET_NNODES");
  }

  // One process in each pod: a rank is a pod. LOCAL_* stand there if an entry script has made more.
  Placed place(const lh_launch_spec& spec) const override {
    Placed p = v_.has("RANK") ? by_operator(spec) : by_index();
    p.job = "kubernetes-" + p.master_addr + ":" + std::to_string(p.master_port);
    if (p.master_addr.empty())
      refuse("MASTER_ADDR is not set (" + seen() +
             "); set launcher.master_addr to the name of the pod with index 0");
    check_place(p, spec, seen());
    check_same(p.rank, p.node_rank * p.local_world_size + p.local_rank, seen(),
               "RANK is not pod times ranks per pod plus local rank");
    return p;
  }

  Placed by_operator(const lh_launch_spec& spec) const {
    Placed p;
    p.world_size = v_.required("WORLD_SIZE", kOperator);
    p.rank = v_.required("RANK", kOperator);
    p.local_world_size = v_.number("LOCAL_WORLD_SIZE").value_or(1);
    const int64_t each = ranks_per_pod(), here = p.local_world_size, wished = spec.ranks_per_node;
    const auto pods = number_of_pods();
    if (here == 1 && (each > 1 || (pods && *pods == p.world_size && wished > 1)))
      refuse("found " + seen() + (wished > 1 ? ", trainer.devices = " + std::to_string(wished) : "") +
             ": the variables count pods, and several ranks in each would have the same number; start lhost "
             "with "
             "torchrun in the pod, or set launcher.use = \"exec\" with launcher.node_rank and "
             "trainer.num_nodes");
    if (pods && *pods * here != p.world_size)
      refuse("found " + seen() + ": " + std::to_string(*pods) + " pods with " + std::to_string(here) +
             " rank(s) each are not " + std::to_string(p.world_size) +
             " ranks; start equally many in every pod");
    if (p.local_world_size < 1) refuse("found " + seen() + ": a pod needs at least one rank");
    p.num_nodes = std::max<int64_t>(1, p.world_size / p.local_world_size);
    p.local_rank =
        v_.number("LOCAL_RANK").value_or(p.local_world_size == 1 ? 0 : p.rank % p.local_world_size);
    p.node_rank = p.rank / p.local_world_size;
    if (const auto node = v_.number("PET_NODE_RANK"))
      check_same(*node, p.node_rank, seen(), "unset what is left over from another launcher");
    if (const auto index = v_.number("JOB_COMPLETION_INDEX"); index && !pods)
      check_same(*index, p.node_rank, seen(), "unset what is left over from another launcher");
    p.master_addr = v_.text("MASTER_ADDR");
    p.master_port = v_.required("MASTER_PORT", kOperator);
    return p;
  }

  Placed by_index() const {
    Placed p;
    p.rank = p.node_rank = v_.required("JOB_COMPLETION_INDEX", "an indexed Job");
    const auto size = v_.number("WORLD_SIZE");
    if (!o_.world_size && !size)
      refuse("found " + seen() +
             ", but nothing that says how many pods there are; set launcher.world_size or WORLD_SIZE "
             "to the Job's completions");
    if (o_.world_size && size)
      check_same(*o_.world_size, *size, seen() + " and launcher.world_size",
                 "give the Job's completions once");
    p.world_size = p.num_nodes = o_.world_size ? *o_.world_size : *size;
    p.master_addr = o_.master_addr.empty() ? v_.text("MASTER_ADDR") : o_.master_addr;
    const auto port = v_.number("MASTER_PORT");
    p.master_port = o_.master_port ? *o_.master_port : port.value_or(29500);
    return p;
  }

  KubernetesOptions o_;
};
LHOST_LAUNCHER(Kubernetes, KubernetesOptions, "kubernetes", "1.0.0")
