#include "exchange.hpp"

#include <algorithm>
#include <cstring>

namespace lhost_gloo {
namespace {

using lhost_collective::Call;
using lhost_collective::Kind;

// A part is reduced, and handed on, while its next pieces are still on their way; smaller ones cost more than they save.
constexpr size_t kPiece = 1024 * 1024;
constexpr size_t kAlign = 64;

void copy(void* to, const void* from, size_t bytes) {
  if (to != from && bytes) std::memcpy(to, from, bytes);
}

}  // namespace

// A small sum in one exchange has half the latency of two.
bool is_one_step(const Call& c) {
  return (c.kind != Kind::all_reduce && c.kind != Kind::reduce) || c.bytes() <= kSmall;
}

template <class F>
void Exchange::others(F f) const {
  const size_t n = group_->size();
  for (size_t i = 1; i < n; ++i) f((group_->me + i) % n);
}

void Exchange::send(size_t r, int tag, const void* data, size_t bytes) {
  if (bytes) messages_.push_back(batch_->send(group_->ranks[r], group_->tag + tag, data, bytes));
}
size_t Exchange::recv(size_t r, int tag, void* data, size_t bytes) {
  if (!bytes) return SIZE_MAX;
  messages_.push_back(batch_->recv(group_->ranks[r], group_->tag + tag, data, bytes));
  return messages_.back();
}

char* Exchange::scratch(size_t bytes) {
  if (bytes > scratch_bytes_) {
    scratch_.reset(new char[bytes + kAlign]);
    scratch_bytes_ = bytes;
  }
  const auto address = reinterpret_cast<uintptr_t>(scratch_.get());
  return scratch_.get() + (kAlign - address % kAlign) % kAlign;
}

void Exchange::clear() noexcept {
  batch_->clear();
  messages_.clear();
  pieces_.clear();
}

// What rank r adds up. The parts of an all_reduce are equal but for the end.
Exchange::Part Exchange::part(size_t r) const {
  const size_t bytes = call_.bytes();
  if (call_.kind == Kind::reduce_scatter) return {r * bytes, bytes};
  const size_t n = group_->size(), each = ((bytes + n - 1) / n + kAlign - 1) / kAlign * kAlign;
  const size_t start = std::min(r * each, bytes);
  return {start, std::min(each, bytes - start)};
}

void Exchange::begin(const Group& group, const Call& call) {
  group_ = &group;
  call_ = call;
  const size_t bytes = call.bytes();
  const bool root = call.root == static_cast<int32_t>(group.me);
  const auto at = static_cast<size_t>(std::max(call.root, 0));
  switch (call.kind) {
    case Kind::all_reduce:
    case Kind::reduce:
      return is_one_step(call_) ? begin_whole() : begin_parts();
    case Kind::reduce_scatter:
      return begin_parts();
    case Kind::broadcast:
      if (root) others([&](size_t r) { send(r, 0, call_.in, bytes); });
      else recv(at, 0, call_.out, bytes);
      return;
    case Kind::all_gather:
      others([&](size_t r) { recv(r, 0, call_.out + r * bytes, bytes); });
      return others([&](size_t r) { send(r, 0, call_.in, bytes); });
    case Kind::gather:
      if (root) others([&](size_t r) { recv(r, 0, call_.out + r * bytes, bytes); });
      else send(at, 0, call_.in, bytes);
      return;
    case Kind::scatter:
      if (root) others([&](size_t r) { send(r, 0, call_.in + r * bytes, bytes); });
      else recv(at, 0, call_.out, bytes);
      return;
    case Kind::all_to_all:
      return begin_all_to_all();
    case Kind::send:
      return send(at, kPairTag, call_.in, bytes);
    case Kind::recv:
      recv(at, kPairTag, call_.out, bytes);
      return;
    case Kind::barrier: {
      char* token = scratch(group.size());
      others([&](size_t r) { recv(r, 0, token + r, 1); });
      return others([&](size_t r) { send(r, 0, token + group_->me, 1); });
    }
  }
}

void Exchange::begin_whole() {
  const size_t bytes = call_.bytes();
  if (call_.kind == Kind::reduce && call_.root != static_cast<int32_t>(group_->me))
    return send(static_cast<size_t>(call_.root), 0, call_.in, bytes);
  char* memory = scratch(group_->size() * bytes);
  pieces_.push_back({0, bytes, std::vector<size_t>(group_->size(), SIZE_MAX)});
  others([&](size_t r) { pieces_[0].arrivals[r] = recv(r, 0, memory + r * bytes, bytes); });
  if (call_.kind == Kind::all_reduce) others([&](size_t r) { send(r, 0, call_.in, bytes); });
}

// The second receives can be posted at once, also where in is out: what rank r hands on depends on what it was sent, so
// that has left.
void Exchange::begin_parts() {
  const Part mine = part(group_->me);
  char* memory = scratch((group_->size() + 1) * mine.bytes);
  for (size_t start = 0; start < mine.bytes; start += kPiece) {
    const size_t bytes = std::min(kPiece, mine.bytes - start);
    pieces_.push_back({start, bytes, std::vector<size_t>(group_->size(), SIZE_MAX)});
    others(
        [&](size_t r) { pieces_.back().arrivals[r] = recv(r, 0, memory + r * mine.bytes + start, bytes); });
  }
  const bool gathers = call_.kind == Kind::all_reduce || call_.root == static_cast<int32_t>(group_->me);
  others([&](size_t r) {
    const Part theirs = part(r);
    for (size_t start = 0; start < theirs.bytes; start += kPiece) {
      const size_t at = theirs.start + start, bytes = std::min(kPiece, theirs.bytes - start);
      if (gathers) recv(r, 1, call_.out + at, bytes);
      send(r, 0, call_.in + at, bytes);
    }
  });
}

void Exchange::begin_all_to_all() {
  const size_t bytes = call_.bytes();
  char* to = call_.in == call_.out ? scratch(group_->size() * bytes) : call_.out;
  others([&](size_t r) { recv(r, 0, to + r * bytes, bytes); });
  others([&](size_t r) { send(r, 0, call_.in + r * bytes, bytes); });
}

void Exchange::finish_all() {
  for (const size_t m : messages_) batch_->wait(m);
}

void Exchange::finish() {
  const size_t bytes = call_.bytes(), me = group_->me;
  if (!pieces_.empty()) {
    if (call_.kind != Kind::reduce_scatter && is_one_step(call_)) finish_whole();
    else finish_parts();
  }
  finish_all();
  switch (call_.kind) {
    case Kind::broadcast:
      if (call_.in) copy(call_.out, call_.in, bytes);
      break;
    case Kind::all_gather:
      copy(call_.out + me * bytes, call_.in, bytes);
      break;
    case Kind::gather:
      if (call_.out) copy(call_.out + me * bytes, call_.in, bytes);
      break;
    case Kind::scatter:
      if (call_.in) copy(call_.out, call_.in + me * bytes, bytes);
      break;
    case Kind::all_to_all:
      if (call_.in == call_.out) {
        const char* from = scratch(group_->size() * bytes);
        others([&](size_t r) { copy(call_.out + r * bytes, from + r * bytes, bytes); });
      } else {
        copy(call_.out + me * bytes, call_.in + me * bytes, bytes);
      }
      break;
    default:
      break;
  }
}

void Exchange::reduce_from(const std::vector<const void*>& sources, void* out, size_t bytes) const {
  lhost_collective::reduce(call_.dtype, call_.op, sources.data(), sources.size(), out,
                           bytes / size_of(call_.dtype));
}

void Exchange::finish_whole() {
  const size_t bytes = call_.bytes();
  const char* memory = scratch(group_->size() * bytes);
  finish_all();  // the sends too: out may be in
  sources_.resize(group_->size());
  for (size_t r = 0; r < group_->size(); ++r) sources_[r] = r == group_->me ? call_.in : memory + r * bytes;
  reduce_from(sources_, call_.out, bytes);
}

void Exchange::finish_parts() {
  const size_t n = group_->size();
  const Part mine = part(group_->me);
  char* memory = scratch((n + 1) * mine.bytes);
  const bool root = call_.root == static_cast<int32_t>(group_->me);
  char* out = call_.kind == Kind::reduce_scatter       ? call_.out
              : call_.kind == Kind::all_reduce || root ? call_.out + mine.start
                                                       : memory + n * mine.bytes;
  sources_.resize(n);
  for (const Piece& p : pieces_) {
    for (size_t r = 0; r < n; ++r) {
      if (r != group_->me) batch_->wait(p.arrivals[r]);
      sources_[r] = r == group_->me ? call_.in + mine.start + p.start : memory + r * mine.bytes + p.start;
    }
    reduce_from(sources_, out + p.start, p.bytes);
    if (call_.kind == Kind::all_reduce) others([&](size_t r) { send(r, 1, out + p.start, p.bytes); });
    else if (call_.kind == Kind::reduce && !root)
      send(static_cast<size_t>(call_.root), 1, out + p.start, p.bytes);
  }
}

}  // namespace lhost_gloo
