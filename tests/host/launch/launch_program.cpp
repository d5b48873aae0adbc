// launch_program.cpp - for the tests of host/launch. As a user starts it, a supervisor of ranks that behave as told:
//   launch_program --launcher exec --ranks 3 --folder F [--tail] [--restarts 2] ... ok throw:boom exit:7
// the last behaviour holds for all further ranks. It prints "RESULT ..." and exits as the run does.
#include "base/failure.hpp"
#include "base/signals.hpp"
#include "launch/supervisor.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <thread>

namespace {

using namespace lhost;
using std::chrono::milliseconds;

struct Behaviour {
  std::string name, value;
  int64_t number() const { return std::atoll(value.c_str()); }
};
Behaviour behaviour(const std::vector<std::string>& list, int64_t rank) {
  const std::string& b = list[std::min(list.size() - 1, static_cast<size_t>(rank))];
  const size_t colon = b.find(':');
  return {b.substr(0, colon), colon == b.npos ? "" : b.substr(colon + 1)};
}

[[noreturn]] void for_ever() {
  for (;;) std::this_thread::sleep_for(milliseconds(1000));
}

int fail(RankPage page, lh_code code, int exit_code, const std::string& message) {
  page.fail({code, exit_code, 0, message, "model:fake", "training_step", "epoch 0, batch 17, step 3"});
  return exit_code;
}

// As the trainer does: a signal is seen at the end of a step.
int train(RankPage page, milliseconds save) {
  while (pending_signal == 0) std::this_thread::sleep_for(milliseconds(2));
  page.set_phase(RankPhase::saving);
  std::this_thread::sleep_for(save);
  std::puts("saved");
  page.set_phase(RankPhase::ended);
  return 128 + pending_signal;
}

std::string listens_at(int fd) {
  sockaddr_in6 a{};
  socklen_t n = sizeof a;
  if (fd < 0 || getsockname(fd, reinterpret_cast<sockaddr*>(&a), &n) != 0) return "nowhere";
  return std::to_string(ntohs(a.sin6_port));  // where sockaddr_in has it, too
}

void crash() {
  raise(SIGSEGV);  // NOLINT
}

int behave(RankBoot& boot, const Behaviour& b, const std::string& folder) {
  RankPage page = boot.pages.at(0);
  const auto say = [](const std::string& s) {
    std::fputs((s + "\n").c_str(), stdout);
    std::fflush(stdout);
  };
  page.set_phase(RankPhase::running);
  page.set_batch(17);
  page.set_global_step(3);
  page.set_operation(page.add_operation("model:fake (training_step)"));
  close(creat((folder + "/ready_" + std::to_string(boot.env.rank)).c_str(), 0600));
  const std::map<std::string, std::function<int()>> known = {
      {"ok", [&] { return page.set_phase(RankPhase::ended), 0; }},
      {"show",
       [&] {
         say("rank " + std::to_string(boot.env.rank) + " of " + std::to_string(boot.env.world_size) +
             " port " + std::to_string(boot.env.master_port) + " request " + boot.request + " omp " +
             (getenv("OMP_NUM_THREADS") ? getenv("OMP_NUM_THREADS") : "?") + " restart " +
             std::to_string(boot.env.restart) + " job " + boot.env.job + " addr " + boot.env.master_addr +
             " listens " + listens_at(boot.listen_fd));
         return page.set_phase(RankPhase::ended), 0;
       }},
      {"script", [&] { return std::system(b.value.c_str()) / 256; }},  // NOLINT
      {"slow",
       [&] {
         std::this_thread::sleep_for(milliseconds(b.number()));
         return page.set_phase(RankPhase::ended), 0;
       }},
      {"throw", [&] { return fail(page, LH_INTERNAL, 1, b.value); }},
      {"uncaught", [&]() -> int { throw std::logic_error(b.value); }},
      {"exit", [&] { return static_cast<int>(b.number()); }},
      {"crash", [&] { return crash(), 0; }},
      {"signal", [&] { return raise(static_cast<int>(b.number())), 0; }},
      {"hang", [&]() -> int { for_ever(); }},
      {"busy",
       [&] {
         for (volatile bool on = true; on;) continue;
         return 0;
       }},
      {"stop", [&] { return raise(SIGSTOP), 0; }},
      {"deaf", [&]() -> int { signal(SIGTERM, SIG_IGN), for_ever(); }},
      {"peer",
       [&] {
         std::this_thread::sleep_for(milliseconds(100));
         return fail(page, LH_PEER_LOST, 71, "connection reset by peer");
       }},
      {"deadline",
       [&] {
         std::this_thread::sleep_for(milliseconds(b.number()));
         return fail(page, LH_DEADLINE, 1, "waited 10 s in all_reduce");
       }},
      {"memory", [&] { return fail(page, LH_RESOURCE_EXHAUSTED, 3, "out of memory"); }},
      {"train", [&] { return train(page, milliseconds(b.number())); }},
      {"fails_when_told",
       [&] {
         while (pending_signal == 0) std::this_thread::sleep_for(milliseconds(2));
         return fail(page, LH_DATA_LOSS, 1, "no room for the last checkpoint");
       }},
      {"raise", [&]() -> int { throw Failure(Exit::environment, b.value); }},
      {"saves",
       [&] {
         page.set_phase(RankPhase::saving);
         std::this_thread::sleep_for(milliseconds(b.number()));
         say("saved");
         return fail(page, LH_PEER_LOST, 71, "connection reset by peer");
       }},
      {"loud",
       [&] {
         for (int64_t i = 0; i < b.number(); ++i) say("line " + std::to_string(i) + std::string(100, '.'));
         return page.set_phase(RankPhase::ended), 0;
       }},
      {"flaky",
       [&] {  // fails in the first n lives, each a step further
         if (boot.env.restart >= b.number()) return page.set_phase(RankPhase::ended), 0;
         page.set_global_step(10 + boot.env.restart);
         return fail(page, LH_INTERNAL, 1, "flaky");
       }},
      {"helper", [&] {  // leaves a process in the group, and one behind it
         if (fork() == 0) for_ever();
         return page.set_phase(RankPhase::ended), 0;
       }}};
  return known.at(b.name)();
}

Launcher load_launcher(const std::string& name, int64_t node_rank, int64_t port) {
  const LoadedPlugin& p = load_plugin(LHOST_TEST_PLUGINS "/launcher/" + name + ".so");
  const lh_component& c = p.components.at(0);
  std::vector<lh_value> values(c.n_options);
  for (uint32_t i = 0; i < c.n_options; ++i) {
    const std::string_view key = view(c.options[i].key);
    values[i].type = LH_T_NONE;
    if (key == "node_rank" && node_rank >= 0) values[i].type = LH_T_INT, values[i].u.i = node_rank;
    if (key == "master_port" && port > 0) values[i].type = LH_T_INT, values[i].u.i = port;
    if (key == "master_addr" && node_rank >= 0)
      values[i].type = LH_T_STR, values[i].u.s = LH_STR("127.0.0.1");
  }
  lh_create_args a{sizeof a, 0, values.data(), values.size(), nullptr, LH_STR("launcher")};
  Created created;
  created.identity = {"launcher", name, "launcher", "1", c.flags};
  check(c.create(p.originals.at(0), &a, &created.self, &created.table));
  return Launcher(created);
}

struct Arguments {
  std::map<std::string, std::string> flags;
  std::vector<std::string> behaviours;
  int64_t number(const char* flag, int64_t otherwise) const {
    const auto i = flags.find(flag);
    return i == flags.end() ? otherwise : std::atoll(i->second.c_str());
  }
};

int supervise_as_told(const Arguments& a, const char* self) {
  const std::string name = a.flags.count("--launcher") ? a.flags.at("--launcher") : "exec";
  Launcher launcher = load_launcher(name, a.number("--node", -1), a.number("--port", 0));
  const lh_launch_spec spec{sizeof spec, 0, a.number("--nodes", 1), a.number("--ranks", 2)};
  lh_env env{};
  env.size = sizeof env;
  check(launcher->env(launcher.self(), &spec, &env));
  SuperviseOptions o;
  o.launcher = &launcher;
  o.world = RankEnv(env);
  o.argv = {a.flags.count("--program") ? a.flags.at("--program") : self};
  o.argv.insert(o.argv.end(), a.behaviours.begin(), a.behaviours.end());
  o.argv.push_back(a.flags.at("--folder"));  // so that a test finds its processes
  o.rank_main = [&a](RankBoot& boot) {
    const SignalGuard guard;
    return behave(boot, behaviour(a.behaviours, boot.env.rank), a.flags.at("--folder"));
  };
  o.request = "bytes \x01\x02";
  o.log_folder = a.flags.at("--folder");
  o.tail_ranks = a.flags.count("--tail") != 0;
  o.patience = {milliseconds(a.number("--settle", 5000)), milliseconds(a.number("--saving", 3000)),
                milliseconds(a.number("--terminate", 300))};
  o.max_restarts = a.number("--restarts", 0);
  o.prepare = [](const SuperviseResult&, SuperviseOptions& next) {
    next.request += "!";
    return true;
  };
  const SuperviseResult r = supervise(o);
  std::string secondary;
  for (int64_t s : r.secondary) secondary += (secondary.empty() ? "" : ",") + std::to_string(s);
  std::printf("RESULT exit %d culprit %lld secondary [%s] restarts %lld asked %d\n", r.exit_code,
              static_cast<long long>(r.culprit), secondary.c_str(), static_cast<long long>(r.restarts),
              r.asked);
  return r.exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (auto boot = boot_rank()) {
      const SignalGuard guard;
      return behave(*boot, behaviour({argv + 1, argv + argc - 1}, boot->env.rank), argv[argc - 1]);
    }
    Arguments a;
    for (int i = 1; i < argc; ++i) {
      const std::string s = argv[i];
      if (s == "--tail") a.flags[s] = "1";
      else if (s.rfind("--", 0) == 0) a.flags[s] = argv[++i];
      else a.behaviours.push_back(s);
    }
    return supervise_as_told(a, argv[0]);
  } catch (const Failure& f) {
    std::cerr << "FAILURE " << f.what() << "\n";
    return static_cast<int>(f.code);
  } catch (const ComponentFailure& f) {
    std::cerr << "FAILURE " << f.component << " (" << f.where << "): " << f.what() << "\n";
    return 1;
  }
}
