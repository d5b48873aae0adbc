// single - this process is the only rank.
#include <lhost/sdk/launcher.hpp>

struct Single : lhost::Launcher {
  static constexpr const char* summary = "this process is the only rank";
  int32_t detect(const lh_launch_spec& spec, std::string& why) override {
    if (spec.num_nodes != 1 || spec.ranks_per_node > 1) return 0;
    why = "one device on one machine";
    return 20;
  }
  void env(const lh_launch_spec& spec, lh_env& out) override {
    if (spec.num_nodes != 1 || spec.ranks_per_node > 1)
      throw lhost::Error(
          LH_INVALID_ARGUMENT,
          "found " + std::to_string(spec.num_nodes) + " node(s) with " + std::to_string(spec.ranks_per_node) +
              " rank(s) each, but the launcher \"single\" makes one rank; leave launcher.use out, or set "
              "trainer.devices = 1 and trainer.num_nodes = 1");
    const uint32_t size = out.size;
    out = {};
    out.size = size;
    out.world_size = out.local_world_size = out.num_nodes = 1;
    out.master_addr = lhost::str("localhost");
  }
};
LHOST_LAUNCHER(Single, lhost::NoOptions, "single", "1.0.0")
