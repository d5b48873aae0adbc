// host/train/agreement.cpp - what all ranks must decide alike: to stop, and on which signal. In a step it rides with the
// gradients (program.cpp); here is what it means, and the same outside of steps.
#include "base/failure.hpp"
#include "base/signals.hpp"
#include "base/text.hpp"
#include "train/trainer.hpp"

#include <set>

namespace lhost {

int Trainer::signal_seen() const {
  return ranks_.alone() ? pending_signal.load(std::memory_order_relaxed) : agreed_signal_;
}

void Trainer::put_wishes() {
  const int sig = pending_signal;
  votes_[kStop] = state_.stop ? 1 : 0;
  votes_[kInt] = sig == SIGINT ? 1 : 0;
  votes_[kTerm] = sig == SIGTERM ? 1 : 0;
  votes_[kHup] = sig == SIGHUP ? 1 : 0;
}

void Trainer::read_wishes() {
  if (votes_[kStop] > 0) {
    agreed_stop_ = true;
    if (!state_.stop) state_.stop_reason = "another rank asked to";
    state_.stop = true;
  }
  if (agreed_signal_) return;
  agreed_signal_ = votes_[kTerm] > 0 ? SIGTERM : votes_[kInt] > 0 ? SIGINT : votes_[kHup] > 0 ? SIGHUP : 0;
}

void Trainer::agree() {
  if (ranks_.alone()) return;
  for (int v = 0; v < kVotes; ++v) votes_[v] = 0;
  put_wishes();
  ranks_.all_reduce(votes_tensor_, LH_REDUCE_SUM);
  read_wishes();
}

namespace {

// What the run computes, in the words of the manifest. The rest can differ from machine to machine: folders, interfaces,
// the place of the data, how many devices and cores there are.
bool computes(const std::string& table, const std::string& key) {
  static const std::set<std::string> tables = {"trainer", "strategy",  "precision",
                                               "model",   "optimizer", "scheduler"};
  const size_t start = table.find_first_not_of('[');
  const std::string name = table.substr(start, table.find_first_of(".]", start) - start);
  if (name == "run") return key == "seed";
  if (name == "trainer" && (key == "devices" || key == "threads")) return false;
  return tables.count(name) > 0;
}

std::string settings_alike(const std::string& manifest) {
  std::string out, table = "[]";
  for (const std::string& line : split(manifest, '\n')) {
    if (line.empty()) continue;
    if (line[0] == '[') table = line;
    else if (computes(table, line.substr(0, line.find(' ')))) out += table + " " + line + "\n";
  }
  return out;
}

std::string describe_param(const lh_param_info& p) {
  std::string s = "the model's \"" + std::string(view(p.name)) + "\" with shape [";
  for (int32_t d = 0; d < p.ndim; ++d) s += (d ? ", " : "") + std::to_string(p.shape[d]);
  return s + "], dtype " + std::to_string(p.dtype.code) + ":" + std::to_string(p.dtype.bits) + ", kind " +
         std::to_string(p.flags);
}

std::string line_of(const std::string& text, size_t n) {
  const std::vector<std::string> lines = split(text, '\n');
  return n < lines.size() && !lines[n].empty() ? lines[n] : "nothing more";
}

}  // namespace

// Versions, settings and the model's parameters: what differs would end as a hang, or as an average of unlike things.
void Trainer::check_same_everywhere() {
  if (ranks_.alone()) return;
  std::string mine = "lhost " + set_.host_version + "\n" + std::string(view(engine_->name)) + " " +
                     std::string(view(engine_->version)) + "\n";
  const auto add = [&](const auto& c) {
    if (c) mine += c.identity().kind + ":" + c.identity().name + " " + c.identity().version + "\n";
  };
  add(c_.accelerator), add(c_.collective), add(c_.precision), add(c_.strategy), add(c_.data), add(c_.model);
  add(c_.optimizer), add(c_.scheduler);
  mine += settings_alike(set_.manifest);
  for (const lh_param_info& p : params_) mine += describe_param(p) + "\n";
  const std::vector<std::string> all = ranks_.gather(mine);
  for (size_t r = 1; r < all.size(); ++r) {
    if (all[r] == all[0]) continue;
    size_t n = 0;
    while (line_of(all[0], n) == line_of(all[r], n)) ++n;
    throw Failure(Exit::failed, "the ranks are not of one run: rank 0 has " + line_of(all[0], n) + ", rank " +
                                    std::to_string(r) + " has " + line_of(all[r], n) +
                                    "; use the same installation and manifest everywhere");
  }
}

}  // namespace lhost
