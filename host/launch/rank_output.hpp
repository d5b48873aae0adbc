// host/launch/rank_output.hpp - where a rank's output goes: rank 0 to this terminal, the others to rank_N.log, and with
// `tail` also line by line to the terminal. Written by the rank itself unless somebody has to read along. [main]
#pragma once
#include <cstdint>
#include <string>

namespace lhost {

class RankOutput {
 public:
  RankOutput(int64_t rank, const std::string& folder, bool tail);
  ~RankOutput();
  RankOutput(RankOutput&&) noexcept;
  RankOutput& operator=(RankOutput&&) = delete;

  int fd() const { return to_rank_; }    // -1: the rank keeps this process's stdout and stderr
  int read_fd() const { return pipe_; }  // to poll; -1: nothing to read
  void started();                        // the rank has its own descriptor now
  void pump();                           // what there is to read
  void finish();                         // the rank is gone: the last line, even without an end

  const std::string& path() const { return path_; }  // empty: the terminal
  std::string last_lines(size_t n) const;            // of what this rank wrote

 private:
  void show(std::string_view line) const;
  int64_t rank_ = 0, start_ = 0;  // where in the file this attempt begins
  std::string path_, partial_;
  int file_ = -1, to_rank_ = -1, pipe_ = -1;
};

}  // namespace lhost
