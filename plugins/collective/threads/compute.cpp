#include "hub.hpp"

#include <cstring>

namespace lhost_threads {
namespace {

using lhost_collective::Kind;

void copy(char* to, const char* from, size_t bytes) {
  if (to != from && bytes) std::memcpy(to, from, bytes);
}

// Part `r` of every rank's input (all of it if `parts` is false), reduced.
void reduce_part(const Meeting& m, size_t r, bool parts, char* out) {
  const Call& any = m.calls[0];
  std::vector<const void*> sources;
  for (const Call& c : m.calls) sources.push_back(c.in + (parts ? r * any.bytes() : 0));
  lhost_collective::reduce(any.dtype, any.op, sources.data(), sources.size(), out, any.count);
}

void all_to_all(Meeting& m) {
  const size_t bytes = m.calls[0].bytes(), n = m.calls.size();
  std::vector<char> kept(n * n * bytes);  // in may be out
  for (size_t from = 0; from < n; ++from) copy(kept.data() + from * n * bytes, m.calls[from].in, n * bytes);
  for (size_t to = 0; to < n; ++to)
    for (size_t from = 0; from < n; ++from)
      copy(m.calls[to].out + from * bytes, kept.data() + (from * n + to) * bytes, bytes);
}

bool sends(Kind k) { return k == Kind::send; }

}  // namespace

std::string mismatch(const Meeting& m) {
  const Call& a = m.calls[0];
  const bool pair = sends(a.kind) || a.kind == Kind::recv;
  for (size_t r = 1; r < m.calls.size(); ++r) {
    const Call& b = m.calls[r];
    const bool same = a.kind == b.kind && a.root == b.root && (!a.reduces() || a.op == b.op);
    if (a.dtype == b.dtype && a.count == b.count && (pair || same)) continue;
    return "ranks do not agree: rank " + std::to_string(m.ranks[0]) + " has " + describe(a) + ", rank " +
           std::to_string(m.ranks[r]) + " has " + describe(b) +
           (pair ? "" : ", each as call " + std::to_string(m.number) + " of the group");
  }
  return {};
}

void compute(Meeting& m) {
  const Call& any = m.calls[0];
  const size_t bytes = any.bytes(), n = m.calls.size(),
               root = any.root < 0 ? 0 : static_cast<size_t>(any.root);
  switch (any.kind) {
    case Kind::all_reduce:
    case Kind::reduce: {
      std::vector<char> sum(bytes);
      reduce_part(m, 0, false, sum.data());
      for (const Call& c : m.calls)
        if (c.out) copy(c.out, sum.data(), bytes);
      return;
    }
    case Kind::reduce_scatter:
      for (size_t r = 0; r < n; ++r) reduce_part(m, r, true, m.calls[r].out);
      return;
    case Kind::broadcast:
      for (const Call& c : m.calls) copy(c.out, m.calls[root].in, bytes);
      return;
    case Kind::all_gather:
    case Kind::gather:
      for (const Call& c : m.calls)
        for (size_t r = 0; c.out && r < n; ++r) copy(c.out + r * bytes, m.calls[r].in, bytes);
      return;
    case Kind::scatter:
      for (size_t r = 0; r < n; ++r) copy(m.calls[r].out, m.calls[root].in + r * bytes, bytes);
      return;
    case Kind::all_to_all:
      return all_to_all(m);
    case Kind::send:
      return copy(m.calls[1].out, m.calls[0].in, bytes);
    case Kind::recv:
    case Kind::barrier:
      return;
  }
}

}  // namespace lhost_threads
