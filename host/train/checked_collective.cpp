#include "train/checked_collective.hpp"

#include <cstring>

namespace lhost {
namespace {

constexpr int64_t kLine = 160;  // bytes of one description

std::string dtype_name(lh_dtype d) {
  const char* code = d.code == LH_DT_FLOAT    ? "float"
                     : d.code == LH_DT_BFLOAT ? "bfloat"
                     : d.code == LH_DT_UINT   ? "uint"
                                              : "int";
  return code + std::to_string(d.bits);
}

const char* reduction_name(int32_t op) {
  static const char* names[] = {" sum", " avg", " max", " min"};
  return op >= 0 && op < 4 ? names[op] : " unknown";
}

}  // namespace

struct CheckedCollective::Slots {
  static CheckedCollective& of(lh_collective* c) { return *reinterpret_cast<CheckedCollective*>(c); }

  template <lh_collective_fn lh_collective_v0::*slot>
  static lh_status call(lh_collective* c, const lh_collective_args* a, lh_work** out) {
    CheckedCollective& self = of(c);
    if (lh_status s = answer("collective.check", [&] { self.compare(name<slot>(), *a); })) return s;
    return (self.inner_.table().*slot)(self.inner_.self(), a, out);
  }
  template <lh_collective_fn lh_collective_v0::*slot>
  static lh_status pass(lh_collective* c, const lh_collective_args* a, lh_work** out) {
    CheckedCollective& self = of(c);
    return (self.inner_.table().*slot)(self.inner_.self(), a, out);
  }
  template <lh_collective_fn lh_collective_v0::*slot>
  static const char* name() {
    using V = lh_collective_v0;
    return slot == &V::all_reduce       ? "all_reduce"
           : slot == &V::reduce         ? "reduce"
           : slot == &V::broadcast      ? "broadcast"
           : slot == &V::all_gather     ? "all_gather"
           : slot == &V::gather         ? "gather"
           : slot == &V::reduce_scatter ? "reduce_scatter"
           : slot == &V::scatter        ? "scatter"
           : slot == &V::all_to_all     ? "all_to_all"
                                        : "barrier";
  }
  static lh_status group(lh_collective* c, const int64_t* ranks, uint64_t n, lh_process_group** out) {
    CheckedCollective& self = of(c);
    if (lh_status s = self.inner_->group(self.inner_.self(), ranks, n, out)) return s;
    if (*out) self.groups_.emplace_back(*out, static_cast<int64_t>(n));
    return nullptr;
  }
  static void group_free(lh_collective* c, lh_process_group* g) {
    CheckedCollective& self = of(c);
    std::erase_if(self.groups_, [&](const auto& x) { return x.first == g; });
    self.inner_->group_free(self.inner_.self(), g);
  }
  static void abort(lh_collective* c, lh_code why) {
    if (of(c).inner_->abort) of(c).inner_->abort(of(c).inner_.self(), why);
  }
};

CheckedCollective::CheckedCollective(const Engine& engine, lh_run* run, const Collective& inner,
                                     int64_t world_size)
    : engine_(engine), run_(run), inner_(inner), world_size_(world_size) {
  using V = lh_collective_v0;
  const V& t = inner.table();
  table_.size = sizeof table_;
  table_.destroy = [](lh_collective*) {};
  if (t.group) table_.group = Slots::group;
  if (t.group_free) table_.group_free = Slots::group_free;
#define CHECKED(slot) \
  if (t.slot) table_.slot = Slots::call<&V::slot>
  CHECKED(all_reduce);
  CHECKED(reduce);
  CHECKED(broadcast);
  CHECKED(all_gather);
  CHECKED(gather);
  CHECKED(reduce_scatter);
  CHECKED(scatter);
  CHECKED(all_to_all);
  CHECKED(barrier);
#undef CHECKED
  if (t.send) table_.send = Slots::pass<&V::send>;  // two ranks, two different operations
  if (t.recv) table_.recv = Slots::pass<&V::recv>;
  table_.abort = Slots::abort;
  const int64_t line[] = {kLine}, lines[] = {kLine * world_size};
  check(engine.tensor.empty(run, {LH_DEVICE_CPU, 0}, {LH_DT_UINT, 8, 1}, line, 1, LH_EMPTY_ZEROED, &mine_));
  check(engine.tensor.empty(run, {LH_DEVICE_CPU, 0}, {LH_DT_UINT, 8, 1}, lines, 1, LH_EMPTY_ZEROED, &all_));
}

CheckedCollective::~CheckedCollective() {
  engine_.tensor.release(mine_);
  engine_.tensor.release(all_);
}

int64_t CheckedCollective::members(const lh_process_group* g) const {
  for (const auto& [group, n] : groups_)
    if (group == g) return n;
  return world_size_;
}

std::string CheckedCollective::describe(const char* operation, const lh_collective_args& a) const {
  std::string s = operation;
  const bool reduces = s.find("reduce") != s.npos;
  if (reduces) s += reduction_name(a.op);
  // a root may give only one of the two tensors, and only it
  const bool by_out = s == "broadcast" || s == "scatter";
  lh_tensor* t = by_out ? a.out : a.in;
  lh_view v{};
  if (t) {
    check(engine_.tensor.view(t, &v));
    int64_t n = 1;
    for (int32_t d = 0; d < v.ndim; ++d) n *= v.shape[d];
    s += " of " + std::to_string(n) + " " + dtype_name(v.dtype);
  }
  if (s.rfind("broadcast", 0) == 0 || s.rfind("reduce ", 0) == 0 || s.rfind("gather", 0) == 0 ||
      s.rfind("scatter", 0) == 0)
    s += ", root " + std::to_string(a.root);
  return s.substr(0, kLine - 1);
}

void CheckedCollective::compare(const char* operation, const lh_collective_args& a) {
  ++calls_;
  const std::string mine = describe(operation, a);
  const int64_t n = members(a.group);
  lh_view v{}, everyone{};
  check(engine_.tensor.view(mine_, &v));
  check(engine_.tensor.view(all_, &everyone));
  std::memset(v.data, 0, kLine);
  std::memcpy(v.data, mine.data(), mine.size());
  lh_tensor* part = nullptr;
  check(engine_.tensor.narrow(all_, 0, kLine * n, &part));
  const lh_collective_args g{sizeof g, 0, a.group, mine_, part, 0, nullptr, a.timeout_ns};
  lh_work* work = nullptr;
  lh_status s = inner_->all_gather(inner_.self(), &g, &work);
  if (!s) s = answer("collective.check", [&] { finish(work); });
  engine_.tensor.release(part);
  check(s);
  const auto* lines = static_cast<const char*>(everyone.data);
  for (int64_t r = 1; r < n; ++r) {
    const std::string first = lines, other = lines + r * kLine;
    if (first == other) continue;
    throw ComponentFailure(PluginError{LH_FAILED_PRECONDITION, "collective", "check",
                                       "the ranks do not do the same: call " + std::to_string(calls_) +
                                           " is " + first + " on rank 0 and " + other + " on rank " +
                                           std::to_string(r) + (a.group ? " of the group" : "") +
                                           "; every rank must make the same calls in the same order"});
  }
}

}  // namespace lhost
