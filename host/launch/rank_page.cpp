#include "launch/rank_page.hpp"

#include "base/failure.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

namespace lhost {
namespace {

[[noreturn]] void no_rank_page(const char* doing, int error) {
  throw Failure(Exit::environment,
                std::string("cannot ") + doing +
                    " the memory that ranks and their supervisor share: " + std::strerror(error));
}

// Cut at a character's border, so that what is read is UTF-8 again.
void put_text(char* field, size_t capacity, std::string_view text) noexcept {
  size_t n = std::min(text.size(), capacity - 1);
  if (n < text.size())
    while (n > 0 && (static_cast<unsigned char>(text[n]) & 0xC0) == 0x80) --n;
  std::memcpy(field, text.data(), n);
  field[n] = '\0';
}
std::string take_text(const char* field, size_t capacity) { return {field, strnlen(field, capacity)}; }

void* map_pages(size_t bytes, int fd, off_t offset) {
  const int flags = fd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, fd, offset);
  if (memory == MAP_FAILED) no_rank_page("map", errno);
  return memory;
}

}  // namespace

const char* phase_name(RankPhase p) {
  static const char* names[] = {"starting", "meeting the others", "running", "saving", "ending", "ended"};
  return names[static_cast<int32_t>(p)];
}

int32_t RankPage::add_operation(std::string_view name) noexcept {
  char text[sizeof page_->operations[0]];
  put_text(text, sizeof text, name);
  const int32_t n = page_->n_operations.load(std::memory_order_relaxed);
  for (int32_t i = 1; i <= n; ++i)
    if (std::strcmp(page_->operations[i], text) == 0) return i;
  if (n + 1 >= detail::kOperations) return 0;
  std::memcpy(page_->operations[n + 1], text, sizeof text);
  page_->n_operations.store(n + 1, std::memory_order_release);
  return n + 1;
}

bool RankPage::fail(const RankFailure& f) noexcept {
  int32_t none = 0;
  if (!page_->failed.compare_exchange_strong(none, 1)) return false;
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  page_->code = f.code;
  page_->exit_code = f.exit_code;
  page_->time_ns = t.tv_sec * 1000000000LL + t.tv_nsec;
  put_text(page_->component, sizeof page_->component, f.component);
  put_text(page_->where, sizeof page_->where, f.where);
  put_text(page_->place, sizeof page_->place, f.place);
  put_text(page_->message, sizeof page_->message, f.message);
  page_->failed.store(2, std::memory_order_release);
  return true;
}

RankState RankPage::read() const {
  const auto get = [](const auto& a) { return a.load(std::memory_order_relaxed); };
  RankState s;
  s.phase = static_cast<RankPhase>(std::clamp(get(page_->phase), 0, static_cast<int32_t>(RankPhase::ended)));
  s.stage = std::clamp(get(page_->stage), LH_STAGE_FIT + 0, LH_STAGE_PREDICT + 0);
  s.epoch = get(page_->epoch);
  s.batch = get(page_->batch);
  s.global_step = get(page_->global_step);
  const int32_t n = page_->n_operations.load(std::memory_order_acquire), o = get(page_->operation);
  if (o > 0 && o <= n && o < detail::kOperations)
    s.operation = take_text(page_->operations[o], sizeof page_->operations[o]);
  if (page_->failed.load(std::memory_order_acquire) != 2) return s;
  RankFailure& f = s.failure.emplace();
  f.code = page_->code;
  f.exit_code = page_->exit_code;
  f.time_ns = page_->time_ns;
  f.component = take_text(page_->component, sizeof page_->component);
  f.where = take_text(page_->where, sizeof page_->where);
  f.place = take_text(page_->place, sizeof page_->place);
  f.message = take_text(page_->message, sizeof page_->message);
  return s;
}

RankPages RankPages::create(int64_t ranks) {
  const size_t bytes = static_cast<size_t>(ranks) * detail::kRankPageBytes;
  const int fd = memfd_create("lhost-ranks", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) no_rank_page("make", errno);
  RankPages pages(nullptr, 0, fd);
  if (ftruncate(fd, static_cast<off_t>(bytes)) != 0) no_rank_page("make", errno);
  // No rank can take it away from under the supervisor.
  if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) no_rank_page("seal", errno);
  pages.memory_ = map_pages(bytes, fd, 0);
  pages.bytes_ = bytes;
  return pages;
}

RankPages RankPages::attach(int fd, int64_t index) {
  RankPages pages(nullptr, 0, fd);
  const auto page = static_cast<int64_t>(detail::kRankPageBytes);
  struct stat s {};
  if (fstat(fd, &s) != 0) no_rank_page("find", errno);
  if (index < 0 || s.st_size < (index + 1) * page || s.st_size % page != 0)
    throw Failure(Exit::environment, "the memory that this rank shares with its supervisor has " +
                                         std::to_string(s.st_size) + " bytes, expected a page of " +
                                         std::to_string(page) +
                                         " for each rank; was lhost replaced while it ran?");
  pages.memory_ = map_pages(detail::kRankPageBytes, fd, index * page);
  pages.bytes_ = detail::kRankPageBytes;
  return pages;
}

RankPages RankPages::alone() {
  return {map_pages(detail::kRankPageBytes, -1, 0), detail::kRankPageBytes, -1};
}

RankPages::~RankPages() {
  if (memory_) munmap(memory_, bytes_);
  if (fd_ >= 0) close(fd_);
}

RankPage RankPages::at(int64_t i) const {
  if (i < 0 || static_cast<size_t>(i + 1) * detail::kRankPageBytes > bytes_)
    throw Failure(Exit::internal, "no page " + std::to_string(i) + " among the ranks of this machine");
  return RankPage(reinterpret_cast<detail::RankLayout*>(static_cast<char*>(memory_) +
                                                        static_cast<size_t>(i) * detail::kRankPageBytes));
}

}  // namespace lhost
