// host/train/watch.hpp - where a rank shows what it does, and who says how it failed.
#pragma once
#include "launch/rank_page.hpp"

namespace lhost {

struct Watch {
  RankPage page;            // of a process without a supervisor: nobody reads it
  bool supervised = false;  // another process reads the page, and prints the one report of a failed run
  Watch() : page(nobodys()) {}
  Watch(RankPage p, bool s) : page(p), supervised(s) {}

 private:
  static RankPage nobodys() {
    static const RankPages own = RankPages::alone();
    return own.at(0);
  }
};

}  // namespace lhost
