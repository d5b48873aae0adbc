#include "launch/rank_env.hpp"

#include "base/failure.hpp"

#include <charconv>
#include <cstdlib>
#include <string_view>

namespace lhost {
namespace {

struct EnvNumber {
  const char* name;
  int64_t RankEnv::*member;
};
constexpr EnvNumber kEnvNumbers[] = {{"WORLD_SIZE", &RankEnv::world_size},
                                     {"RANK", &RankEnv::rank},
                                     {"LOCAL_WORLD_SIZE", &RankEnv::local_world_size},
                                     {"LOCAL_RANK", &RankEnv::local_rank},
                                     {"LHOST_NUM_NODES", &RankEnv::num_nodes},
                                     {"NODE_RANK", &RankEnv::node_rank},
                                     {"MASTER_PORT", &RankEnv::master_port},
                                     {"LHOST_RESTART", &RankEnv::restart}};

std::string variable_of_rank(const char* name) {
  const char* v = std::getenv(name);
  if (!v)
    throw Failure(Exit::internal,
                  std::string("this process was started as a rank, but ") + name + " is not set");
  return v;
}

std::string owned(lh_str s) { return s.ptr ? std::string(s.ptr, static_cast<size_t>(s.len)) : std::string(); }

}  // namespace

RankEnv::RankEnv(const lh_env& e)
    : world_size(e.world_size),
      rank(e.rank),
      local_world_size(e.local_world_size),
      local_rank(e.local_rank),
      num_nodes(e.num_nodes),
      node_rank(e.node_rank),
      master_addr(owned(e.master_addr)),
      master_port(e.master_port),
      job(owned(e.job)),
      restart(e.restart) {}

lh_env RankEnv::table() const {
  lh_env e{};
  e.size = sizeof e;
  e.world_size = world_size;
  e.rank = rank;
  e.local_world_size = local_world_size;
  e.local_rank = local_rank;
  e.num_nodes = num_nodes;
  e.node_rank = node_rank;
  e.master_addr = {master_addr.data(), master_addr.size()};
  e.master_port = master_port;
  e.job = {job.data(), job.size()};
  e.restart = restart;
  return e;
}

std::vector<std::string> RankEnv::variables() const {
  std::vector<std::string> list;
  for (const EnvNumber& n : kEnvNumbers)
    list.push_back(std::string(n.name) + "=" + std::to_string(this->*n.member));
  list.push_back("MASTER_ADDR=" + master_addr);
  list.push_back("LHOST_JOB=" + job);
  return list;
}

RankEnv RankEnv::from_variables() {
  RankEnv e;
  for (const EnvNumber& n : kEnvNumbers) {
    const std::string t = variable_of_rank(n.name);
    const auto [end, error] = std::from_chars(t.data(), t.data() + t.size(), e.*n.member);
    if (error != std::errc() || end != t.data() + t.size())
      throw Failure(Exit::internal, std::string("this process was started as a rank, but ") + n.name + "=" +
                                        t + " is no number");
  }
  e.master_addr = variable_of_rank("MASTER_ADDR");
  e.job = variable_of_rank("LHOST_JOB");
  return e;
}

}  // namespace lhost
