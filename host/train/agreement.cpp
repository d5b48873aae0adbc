// host/train/agreement.cpp - what all ranks must decide alike: to stop, and on which signal. In a step it rides with the
// gradients (program.cpp); here is what it means, and the same outside of steps.
#include "base/signals.hpp"
#include "train/trainer.hpp"

namespace lhost {

int Trainer::signal_seen() const { return ranks_.alone() ? pending_signal.load(std::memory_order_relaxed) : agreed_signal_; }

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
  agreed_signal_ = votes_[kTerm] > 0  ? SIGTERM
                   : votes_[kInt] > 0 ? SIGINT
                   : votes_[kHup] > 0 ? SIGHUP
                                      : 0;
}

void Trainer::agree() {
  if (ranks_.alone()) return;
  for (int v = 0; v < kVotes; ++v) votes_[v] = 0;
  put_wishes();
  ranks_.all_reduce(votes_tensor_, LH_REDUCE_SUM);
  read_wishes();
}

}  // namespace lhost
