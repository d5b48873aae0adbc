#include "base/text.hpp"
#include "cli/doctor.hpp"

#include <unistd.h>

#include <algorithm>
#include <iterator>

namespace lhost::doctor {
namespace {

struct Known {
  const char *name, *effect;
};
constexpr const char* kPlace = "this process's place in a run whose ranks another program has made";
constexpr Known kKnown[] = {
    {"LHOST_LIBTORCH", "the LibTorch that is used"},
    {"LHOST_PLUGIN_PATH", "folders in which plugins are looked for first"},
    {"RANK", kPlace},
    {"WORLD_SIZE", "how many ranks there are"},
    {"LOCAL_RANK", kPlace},
    {"LOCAL_WORLD_SIZE", "how many ranks this machine has"},
    {"GROUP_RANK", kPlace},
    {"GROUP_WORLD_SIZE", "how many machines there are"},
    {"MASTER_ADDR", "where ranks of several machines meet"},
    {"MASTER_PORT",
     "the port on which ranks meet, also on one machine; of two runs at once the second fails"},
    {"NODE_RANK", "which machine this is, where trainer.num_nodes > 1"},
    {"OMP_NUM_THREADS", "not used: set trainer.threads"},
    {"MKL_NUM_THREADS", "not used: set trainer.threads"},
    {"GLOO_SOCKET_IFNAME", "the network interface between ranks, unless collective.interface names one"},
    {"JOB_COMPLETION_INDEX", "this pod's place in an indexed Job"},
    {"TORCHELASTIC_RUN_ID", "the name of this run"},
    {"TORCHELASTIC_RESTART_COUNT", "how often this run was started again"},
    {"SLURM_JOB_ID", "chooses the port on which ranks meet, unless MASTER_PORT does"},
    {"SLURM_STEP_ID", "tells a step of srun from an allocation alone"},
    {"SLURM_PROCID", kPlace},
    {"SLURM_NTASKS", "how many ranks a step has"},
    {"SLURM_JOB_NODELIST", "the first machine is where ranks meet, unless MASTER_ADDR says another"},
    {"OMPI_COMM_WORLD_RANK", kPlace},
    {"OMPI_COMM_WORLD_SIZE", "how many ranks there are"},
    {"PMI_RANK", kPlace},
    {"PMI_SIZE", "how many ranks there are"},
    {"PMIX_RANK", kPlace},
};
// More of the same, of which the value is enough.
constexpr const char* kPrefixes[] = {"LHOST_", "SLURM_", "OMPI_COMM_WORLD_", "PMI_",
                                     "PMIX_",  "PET_",   "TORCHELASTIC_",    "MPI_LOCAL"};
constexpr const char* kSecret = "LHOST_SET";  // overrides, whose values may be
constexpr size_t kLongest = 60, kMore = 6;

std::string short_value(const std::string& v) {
  return v.size() > kLongest ? v.substr(0, kLongest) + "..." : v;
}
bool has(const Variables& v, const char* name) {  // launchers take an empty one as not set
  const auto at = v.find(name);
  return at != v.end() && !at->second.empty();
}
std::string value(const Variables& v, const char* name) { return has(v, name) ? v.at(name) : std::string(); }

// Who has made this process, as far as its variables tell; launchers decide the same way.
struct Maker {
  const char *who, *rank, *size;
  std::vector<const char*> needs;
};
const std::vector<Maker>& makers() {
  static const std::vector<Maker> list = {
      {"torchrun or the like",
       "RANK",
       "WORLD_SIZE",
       {"TORCHELASTIC_RUN_ID", "RANK", "WORLD_SIZE", "LOCAL_RANK"}},
      {"srun", "SLURM_PROCID", "SLURM_NTASKS", {"SLURM_STEP_ID", "SLURM_PROCID", "SLURM_NTASKS"}},
      {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", {"OMPI_COMM_WORLD_RANK"}},
      {"mpirun", "PMI_RANK", "PMI_SIZE", {"PMI_RANK"}},
      {"mpirun", "PMIX_RANK", "PMIX_SIZE", {"PMIX_RANK"}},
      {"a launcher", "RANK", "WORLD_SIZE", {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}},
  };
  return list;
}
std::string names(const std::vector<const char*>& list) {
  return join(std::vector<std::string>(list.begin(), list.end()), ", ");
}

Lines place(const Variables& v) {
  for (const Maker& m : makers()) {
    if (!std::all_of(m.needs.begin(), m.needs.end(), [&](const char* n) { return has(v, n); })) continue;
    const std::string size = value(v, m.size);
    return {{"", names(m.needs) + (m.needs.size() > 1 ? " are" : " is") + " set, as by " + m.who +
                     ": launcher.use = \"auto\" makes this process rank " + value(v, m.rank) +
                     (size.empty() ? "" : " of " + size + (size == "1" ? "" : " and waits for all of them")) +
                     "; for a run of its own unset " + (m.needs.size() > 1 ? "them" : "it")}};
  }
  Lines out;
  const std::vector<const char*> four = {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"};
  if (has(v, "RANK") || has(v, "WORLD_SIZE")) {
    std::vector<const char*> missing;
    std::copy_if(four.begin(), four.end(), std::back_inserter(missing),
                 [&](const char* n) { return !has(v, n); });
    out.push_back({"", "launcher.use = \"auto\" goes by RANK and WORLD_SIZE only where all of " +
                           names(four) + " are set, and there is no " + names(missing) +
                           ": unset what is left over from another run"});
  }
  if (has(v, "SLURM_JOB_ID"))
    out.push_back(
        {"",
         "an allocation, but no step: one process makes ranks here; start with srun for one on each task"});
  return out;
}

Lines interface_named(const Variables& v, const std::vector<Interface>& all) {
  const std::string text = value(v, "GLOO_SOCKET_IFNAME"), name = text.substr(0, text.find(','));
  if (name.empty() || all.empty()) return {};
  for (const Interface& i : all)
    if (i.name == name && i.up) return {};
  std::vector<std::string> there;
  for (const Interface& i : all)
    if (i.up) there.push_back(i.name);
  return {{"environment",
           "GLOO_SOCKET_IFNAME names " + name + ", which is no interface that is up: " + join(there, ", "),
           true}};
}

// Of the same families: one line, so that a Slurm job's forty variables do not fill the screen.
Lines others(const Variables& v, bool first) {
  std::vector<std::string> more;
  for (const auto& [name, text] : v) {
    const bool known = name == kSecret || std::any_of(std::begin(kKnown), std::end(kKnown),
                                                      [&, &n = name](const Known& k) { return n == k.name; });
    const bool family = std::any_of(
        std::begin(kPrefixes), std::end(kPrefixes),
        [&, &n = name](const char* p) { return n.compare(0, std::string_view(p).size(), p) == 0; });
    if (family && !known && !text.empty()) more.push_back(name);
  }
  if (more.empty()) return {};
  const size_t left = more.size() > kMore ? more.size() - kMore : 0;
  more.resize(more.size() - left);
  return {{first ? "environment" : "",
           "also " + join(more, ", ") + (left ? " and " + std::to_string(left) + " more" : "")}};
}

}  // namespace

Variables environment() {
  Variables out;
  for (char** e = environ; e && *e; ++e) {
    const std::string text = *e;
    if (const size_t equals = text.find('='); equals != text.npos)
      out[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return out;
}

Lines environment(const Variables& v, const std::vector<Interface>& all) {
  Lines out;
  const auto add = [&](const Lines& more) { out.insert(out.end(), more.begin(), more.end()); };
  const auto label = [&] { return out.empty() ? "environment" : ""; };
  for (const Known& k : kKnown)
    if (has(v, k.name))
      out.push_back({label(), std::string(k.name) + "=" + short_value(v.at(k.name)) + "  " + k.effect});
  if (has(v, kSecret))
    out.push_back({label(), std::string(kSecret) + " is set: lhost plan MANIFEST shows what it changes"});
  add(others(v, out.empty()));
  if (out.empty()) return {{"environment", "no variable is set that a run or a launcher would read"}};
  add(place(v));
  add(interface_named(v, all));
  return out;
}

}  // namespace lhost::doctor
