// What the engine adopts, how it lays it out, and the values that pass through its tables.
#include "engine/support.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>

#include <fstream>
#include <iterator>

namespace lhost_test {
namespace {

constexpr uint32_t kDdp = LH_FULL_PERSISTENT | LH_SHARD_ALIAS | LH_GRAD_FLAT;
constexpr uint32_t kFsdp = LH_FULL_TRANSIENT | LH_SHARD_SEPARATE | LH_GRAD_FLAT | LH_GRAD_TRANSIENT;

lh_view view_of(const at::Tensor& t, lh_dtype d) {
  lh_view v{};
  v.data = t.mutable_data_ptr();
  v.device = {LH_DEVICE_CPU, 0};
  v.ndim = static_cast<int32_t>(t.dim());
  v.dtype = d;
  v.shape = const_cast<int64_t*>(t.sizes().data());
  return v;
}
constexpr lh_dtype kF32{LH_DT_FLOAT, 32, 1}, kF64{LH_DT_FLOAT, 64, 1}, kU8{LH_DT_UINT, 8, 1};

// 0 w [3,5], 1 bias [3], 2 tied = w, 3 mean (buffer), 4 count (buffer, int64), 5 frozen [2], 6 last [2,3]
class Adopted : public testing::Test {
 protected:
  Adopted() {
    auto w = at::randn({3, 5}).requires_grad_();
    model.entries = {{"w", w},
                     {"bias", at::randn({3}).requires_grad_()},
                     {"tied", w, 0, LH_P_ALIAS, 0},
                     {"mean", at::ones({4}), 0, LH_P_BUFFER},
                     {"count", at::zeros({}, at::kLong), 0, LH_P_BUFFER},
                     {"frozen", at::randn({2})},
                     {"last", at::randn({2, 3}).requires_grad_(), 1}};
    model.units = {{"", 0, {0, 1, 5}}, {"block", 0, {6}}};
  }
  lh_param_info info(uint32_t i) {
    lh_param_info o{};
    o.size = sizeof o;
    call(e.params->info(&e.run, i, &o));
    return o;
  }
  lh_flat_info flat_info(uint32_t g) {
    lh_flat_info o{};
    o.size = sizeof o;
    call(e.params->flat_info(&e.run, g, &o));
    return o;
  }
  at::Tensor loss() {
    const auto& m = model.entries;
    return (at::ones({2, 5}, m[0].tensor.options().requires_grad(false)).matmul(m[0].tensor.t()) +
            m[1].tensor)
        .matmul(m[6].tensor.t())
        .mean();
  }
  lh_model model;
  EngineRun e;
};

TEST_F(Adopted, ListsParametersAliasesAndBuffersInOrder) {
  e.adopt(model);
  ASSERT_EQ(e.params->count(&e.run), 7u);
  const uint32_t flags[] = {LH_P_TRAINABLE, LH_P_TRAINABLE, LH_P_ALIAS, LH_P_BUFFER, LH_P_BUFFER, 0,
                            LH_P_TRAINABLE};
  for (uint32_t i = 0; i < 7; ++i) {
    const auto o = info(i);
    EXPECT_EQ(o.index, i);
    EXPECT_EQ(text(o.name), model.entries[i].name);
    EXPECT_EQ(o.flags, flags[i]) << i;
    EXPECT_EQ(o.alias_of, i == 2 ? 0u : i);
    EXPECT_EQ(o.numel, model.entries[i].tensor.numel());
    EXPECT_TRUE(tensor(e.params->tensor(&e.run, i)).is_same(model.entries[i].tensor));
  }
  EXPECT_EQ(info(0).ndim, 2);
  EXPECT_EQ(info(0).shape[1], 5);
  EXPECT_EQ(info(4).dtype.code, LH_DT_INT);
  EXPECT_EQ(info(6).unit, 1u);
  EXPECT_EQ(e.params->tensor(&e.run, 7), nullptr);
  lh_param_info o{};
  EXPECT_EQ(failed(e.params->info(&e.run, 7, &o)).message, "found parameter 7; there are 7");
  ASSERT_EQ(e.params->unit_count(&e.run), 2u);
  lh_unit_info u{};
  call(e.params->unit_info(&e.run, 1, &u));
  EXPECT_EQ(text(u.name), "block");
  ASSERT_EQ(u.n_params, 1u);
  EXPECT_EQ(u.params[0], 6u);
}

TEST_F(Adopted, PolicyCastsParametersAndFloatingBuffers) {
  const lh_policy p{sizeof p, kF64, {}, {}};
  e.adopt(model, &p);
  const at::Tensor before = model.entries[2].tensor;
  for (uint32_t i : {0u, 1u, 2u, 3u, 5u, 6u}) {
    EXPECT_EQ(model.entries[i].tensor.scalar_type(), at::kDouble) << i;
    EXPECT_EQ(info(i).dtype.bits, 64);
  }
  EXPECT_EQ(model.entries[4].tensor.scalar_type(), at::kLong);
  e.ready({0, 1, 6});
  e.backward(loss());
  EXPECT_EQ(model.entries[0].tensor.grad().scalar_type(), at::kDouble);
}

TEST_F(Adopted, TiedWeightsCountOnce) {
  e.adopt(model);
  e.ready({0, 1, 6});
  e.backward(model.entries[0].tensor.sum() + model.entries[2].tensor.sum());
  lh_tensor* sum = nullptr;
  call(engine()->grad_square_sum(&e.run, &sum));
  EXPECT_NEAR(tensor(sum).item().toDouble(), 15 * 4.0, 1e-5);  // 15 elements, each with gradient 2
  EXPECT_EQ(e.tensors->list_size(e.group().params), 1u);
}

TEST_F(Adopted, FaultsOfTheModelAreNamed) {
  const auto message = [](lh_model m) {
    if (m.units.empty()) m.units.push_back({""});
    EngineRun other;
    return failed(engine()->adopt_model(&other.run, &model_table(), &m, nullptr)).message;
  };
  const auto w = at::randn({2}).requires_grad_();
  EXPECT_EQ(message({{{"w", w, 3}}}), "parameter \"w\" is in unit 3 of 1");
  EXPECT_EQ(message({{{"w", w, 0, LH_P_ALIAS, 0}}}),
            "parameter \"w\" is an alias of parameter 0; expected one that comes before it");
  EXPECT_EQ(message({{{"w", w * 2}}}),
            "parameter \"w\" is the result of an operation, not a leaf: register a detached tensor");
  EXPECT_EQ(message({{{"w", at::Tensor()}}}), "parameter \"w\" has no tensor");
  EXPECT_EQ(message({{{"w", w}}, {{"", 0, {1}}}}), "unit \"\" lists parameter 1 of 1");
  EXPECT_EQ(message({{{"w", w}}, {{"", 0}, {"a", 1}}}),
            "unit \"a\" has parent 1; expected a unit that comes before it");
}

TEST_F(Adopted, FlatGroupHoldsParametersAtCacheLines) {
  e.adopt(model);
  const auto w = model.entries[0].tensor.detach().clone();
  call(e.flat(kDdp, {0, 1, 6}));
  e.ready({0, 1, 6});
  EXPECT_TRUE(model.entries[0].tensor.equal(w));
  const auto f = flat_info(0);
  EXPECT_EQ(f.numel, 16 * 3);  // 15, 3 and 6 float32 in lines of 16
  EXPECT_EQ(f.padded, f.numel);
  const auto& full = tensor(e.params->full(&e.run, 0));
  for (uint32_t i : {0u, 1u, 6u}) {
    const auto& t = model.entries[i].tensor;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(t.const_data_ptr()) % 64, 0u);
    EXPECT_EQ(t.storage().unsafeGetStorageImpl(), full.storage().unsafeGetStorageImpl());
  }
  e.backward(loss());
  e.backward(loss());
  const auto& grads = tensor(e.params->full_grad(&e.run, 0));
  EXPECT_EQ(grads.count_nonzero().item().toLong(), 15 + 3 + 6);
  EXPECT_EQ(model.entries[1].tensor.grad().const_data_ptr(),
            static_cast<const float*>(grads.const_data_ptr()) + 16);
  EXPECT_TRUE(tensor(e.params->shard_grad(&e.run, 0)).equal(grads));
  e.drop();
  EXPECT_FALSE(model.entries[1].tensor.grad().defined()) << "the next window's first overwrites the place";
  call(engine()->backward(&e.run, nullptr, 0));
  EXPECT_EQ(grads.count_nonzero().item().toLong(), 0) << "a window without backward gives zeros";
}

TEST_F(Adopted, ShardsStartAtCacheLinesAndCutEvenly) {
  e.adopt(model);
  call(e.flat(kDdp, {0, 1, 6}, 5, 3));
  e.ready({0, 1, 6}, {{sizeof(lh_slot), LH_SLOT_LIKE_PARAM, LH_STR("m"), {}, 0}});
  const auto f = flat_info(0);
  EXPECT_EQ(f.padded, 16 * 5);
  EXPECT_EQ(f.lo, 16 * 3);
  EXPECT_EQ(f.hi, 16 * 4);
  EXPECT_EQ(engine()->slot(&e.run, 0, 0), nullptr);  // lies in another rank's shard
}

TEST_F(Adopted, TransientGroupIsFreedAndAllocatedUnderItsViews) {
  e.adopt(model);
  call(e.flat(kFsdp, {0, 1, 6}));
  e.ready({0, 1, 6});
  const at::Tensor w = model.entries[0].tensor;
  const auto values = w.detach().clone();
  auto& full = tensor(e.params->full(&e.run, 0));
  call(e.params->full_free(&e.run, 0));
  lh_view v{};
  call(e.tensors->view(e.params->full(&e.run, 0), &v));
  EXPECT_EQ(v.data, nullptr);
  EXPECT_EQ(full.storage().nbytes(), 0u);
  EXPECT_EQ(failed(e.ops->fill(e.params->full(&e.run, 0), 1)).message,
            "the tensor's memory is freed (a transient flat group); allocate it first");
  lh_tensor* out = nullptr;
  EXPECT_EQ(failed(engine()->to_host(handle(w), &out)).code, LH_FAILED_PRECONDITION);
  call(e.params->full_alloc(&e.run, 0));
  call(e.ops->copy(e.params->full(&e.run, 0), e.params->shard(&e.run, 0)));
  EXPECT_TRUE(w.equal(values));

  EXPECT_FALSE(w.grad().defined());
  call(e.params->grad_alloc(&e.run, 0));
  e.backward(loss());
  const auto total = tensor(e.params->full_grad(&e.run, 0)).abs().sum().item().toDouble();
  EXPECT_GT(total, 0);
  call(e.ops->copy(e.params->shard_grad(&e.run, 0), e.params->full_grad(&e.run, 0)));
  call(e.params->grad_free(&e.run, 0));
  EXPECT_FALSE(w.grad().defined());
  EXPECT_EQ(e.tensors->list_size(e.group().grads), 3u);  // the shard keeps what was reduced
  e.drop();
  EXPECT_EQ(tensor(e.params->shard_grad(&e.run, 0)).abs().sum().item().toDouble(), 0);
}

TEST_F(Adopted, PersistentGroupCannotBeFreed) {
  e.adopt(model);
  call(e.flat(kDdp, {0}));
  e.ready();
  EXPECT_EQ(failed(e.params->full_free(&e.run, 0)).message,
            "flat group 0 was planned without LH_FULL_TRANSIENT: its memory is always there");
  EXPECT_EQ(failed(e.params->grad_free(&e.run, 1)).message, "found flat group 1; there are 1");
  EXPECT_EQ(e.params->full(&e.run, 1), nullptr);
}

TEST_F(Adopted, WrongPlansAreRefusedWithoutTrace) {
  e.adopt(model);
  EXPECT_EQ(failed(e.flat(kDdp, {7})).message,
            "found parameter index 7; the model has 7 parameters and buffers");
  for (uint32_t i : {2u, 3u, 5u})
    EXPECT_NE(failed(e.flat(kDdp, {0, i})).message.find("\"" + model.entries[i].name + "\" is not trainable"),
              std::string::npos);
  EXPECT_EQ(failed(e.flat(kDdp, {0, 0})).message, "parameter \"w\" is listed twice in one flat group");
  for (const uint32_t layout : {0u, kDdp | LH_FULL_TRANSIENT, kDdp & ~uint32_t{LH_SHARD_ALIAS},
                                uint32_t{LH_FULL_TRANSIENT | LH_SHARD_ALIAS | LH_GRAD_FLAT},
                                uint32_t{LH_FULL_PERSISTENT | LH_SHARD_ALIAS | LH_GRAD_TRANSIENT},
                                uint32_t{LH_FULL_PERSISTENT | LH_SHARD_SEPARATE}})
    EXPECT_EQ(failed(e.flat(layout, {0})).code, LH_INVALID_ARGUMENT) << layout;
  EXPECT_EQ(failed(e.flat(kDdp, {0}, 2, 2)).code, LH_INVALID_ARGUMENT);
  EXPECT_EQ(failed(e.flat(kDdp, {})).code, LH_INVALID_ARGUMENT);
  call(e.flat(kDdp, {0}));
  EXPECT_EQ(failed(e.flat(kDdp, {0})).message, "parameter \"w\" is already in flat group 0");
  e.ready();
  EXPECT_EQ(e.params->group_count(&e.run), 1u);
}

TEST_F(Adopted, MixedDtypesDoNotShareAGroup) {
  model.entries[1].tensor = at::randn({3}, at::kDouble).requires_grad_();
  e.adopt(model);
  EXPECT_EQ(failed(e.flat(kDdp, {0, 1})).message,
            "parameter \"bias\" is Double and \"w\" is Float; a flat group has one dtype");
}

class Values : public testing::Test {
 protected:
  EngineRun e;
};

TEST_F(Values, ScalarReadsEveryDtypeOnTheCpu) {
  for (const auto type :
       {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kLong, at::kInt, at::kByte, at::kBool}) {
    double out = 0;
    lh_bool ready = 0;
    const auto t = at::ones({1, 1}, type);
    call(engine()->scalar(handle(t), &out, &ready));
    EXPECT_EQ(out, 1.0);
    EXPECT_EQ(ready, 1u);
  }
  double out = 0;
  lh_bool ready = 0;
  const auto t = at::ones({3, 2});
  EXPECT_EQ(failed(engine()->scalar(handle(t), &out, &ready)).message,
            "log: expected one element, found shape [3, 2]; take its mean() or sum()");
  const at::Tensor none;
  EXPECT_EQ(failed(engine()->scalar(handle(none), &out, &ready)).code, LH_INVALID_ARGUMENT);
}

TEST_F(Values, AssignCastsAndWantsTheSameShape) {
  auto dst = at::zeros({2, 3}).requires_grad_();
  const auto src = at::arange(6, at::kDouble).view({2, 3});
  auto v = view_of(src, kF64);
  call(engine()->assign(handle(dst), &v));
  EXPECT_TRUE(dst.detach().equal(src.to(at::kFloat)));
  const auto turned = src.t();
  v = view_of(turned, kF64);
  EXPECT_EQ(failed(engine()->assign(handle(dst), &v)).message, "found shape [3, 2], expected [2, 3]");
  int64_t strides[] = {1, 2};  // the same memory read column by column
  v = view_of(src, kF64);
  v.strides = strides;
  call(engine()->assign(handle(dst), &v));
  EXPECT_EQ(dst[0][1].item().toDouble(), 2);
}

TEST_F(Values, ToHostIsTheTensorItselfOrAContiguousCopy) {
  const auto t = at::arange(6).view({2, 3}), turned = t.t();
  lh_tensor *same = nullptr, *copy = nullptr;
  call(engine()->to_host(handle(t), &same));
  call(engine()->to_host(handle(turned), &copy));
  EXPECT_EQ(tensor(same).const_data_ptr(), t.const_data_ptr());
  EXPECT_TRUE(tensor(copy).is_contiguous());
  EXPECT_TRUE(tensor(copy).equal(turned));
  e.tensors->release(same);
  e.tensors->release(copy);
}

TEST_F(Values, GeneratorStateGoesOutAndIn) {
  lh_tensor* saved = nullptr;
  call(engine()->rng_save(&e.run, &saved));
  EXPECT_EQ(tensor(saved).numel(), 5056);  // as torch.get_rng_state()
  const auto first = at::rand({5});
  auto v = view_of(tensor(saved), kU8);
  call(engine()->rng_load(&e.run, &v));
  EXPECT_TRUE(at::rand({5}).equal(first));
  const auto cut = at::zeros({100}, at::kByte);
  v = view_of(cut, kU8);
  EXPECT_EQ(failed(engine()->rng_load(&e.run, &v)).message,
            "found a generator state of Byte [100], expected 5056 bytes");
  e.tensors->release(saved);
}

TEST_F(Values, SeedDecides) {
  EngineRun a(5);
  const auto x = at::rand({3});
  EngineRun b(5);
  EXPECT_TRUE(at::rand({3}).equal(x));
}

TEST_F(Values, DenormalsAreFlushedInEveryThread) {
  const auto product = [](lh_bool flush) {
    EngineRun off;
    const lh_engine_config c{sizeof c, 2, 1, flush, 0};
    lh_run run{};
    call(engine()->run_new(&host(), &run, &c));
    // long enough for both threads: every element would be 1e-40
    const auto sum = (at::full({1 << 20}, 1e-20f) * 1e-20f).count_nonzero().item().toLong();
    engine()->run_free(&run);
    return sum;
  };
  EXPECT_EQ(product(0), 1 << 20);
  EXPECT_EQ(product(1), 0);
}

TEST_F(Values, NumberOfThreadsIsChecked) {
  lh_run run{};
  const lh_engine_config c{sizeof c, 0, 1, 1, 0};
  EXPECT_EQ(failed(engine()->run_new(&host(), &run, &c)).message, "found 0 threads, expected at least 1");
}

TEST_F(Values, KeptBatchIsNotUnique) {
  const int64_t shape[] = {4, 2};
  lh_tensor* batch = nullptr;
  call(e.tensors->empty(&e.run, {LH_DEVICE_CPU, 0}, kF32, shape, 2, LH_EMPTY_ZEROED, &batch));
  EXPECT_EQ(tensor(batch).abs().sum().item().toDouble(), 0);
  EXPECT_EQ(e.tensors->unique(batch), 1u);
  {
    const at::Tensor kept = tensor(batch);
    EXPECT_EQ(e.tensors->unique(batch), 0u);
  }
  {
    const at::Tensor row = tensor(batch)[0];
    EXPECT_EQ(e.tensors->unique(batch), 0u);
  }
  {
    const auto graph = (at::ones({2, 1}).requires_grad_() * 1);
    const auto y = tensor(batch).matmul(graph);  // autograd saved it
    EXPECT_EQ(e.tensors->unique(batch), 0u);
  }
  lh_tensor *again = nullptr, *rows = nullptr;
  call(e.tensors->retain(batch, &again));
  EXPECT_EQ(e.tensors->unique(batch), 0u);
  e.tensors->release(again);
  call(e.tensors->narrow(batch, 1, 3, &rows));
  EXPECT_EQ(e.tensors->unique(batch), 0u);
  lh_view v{};
  call(e.tensors->view(rows, &v));
  EXPECT_EQ(v.shape[0], 3);
  EXPECT_EQ(v.data, static_cast<float*>(tensor(batch).mutable_data_ptr()) + 2);
  EXPECT_EQ(v.dtype.bits, 32);
  e.tensors->release(rows);
  EXPECT_EQ(e.tensors->unique(batch), 1u);
  EXPECT_EQ(failed(e.tensors->narrow(batch, 2, 3, &rows)).message, "found rows [2, 2 + 3); the tensor has 4");
  e.tensors->release(batch);
  e.tensors->release(nullptr);
}

TEST_F(Values, TensorsThatCannotBeMadeAreRefused) {
  const int64_t shape[] = {4};
  lh_tensor* out = nullptr;
  const lh_device cpu{LH_DEVICE_CPU, 0};
  EXPECT_EQ(failed(e.tensors->empty(&e.run, {LH_DEVICE_CUDA, 0}, kF32, shape, 1, 0, &out)).code,
            LH_UNIMPLEMENTED);
  EXPECT_EQ(failed(e.tensors->empty(&e.run, cpu, {9, 32, 1}, shape, 1, 0, &out)).code, LH_INVALID_ARGUMENT);
  EXPECT_EQ(failed(e.tensors->empty(&e.run, cpu, kF32, shape, 1, LH_EMPTY_PINNED, &out)).code,
            LH_UNIMPLEMENTED);
  const int64_t huge[] = {int64_t{1} << 50};
  EXPECT_EQ(failed(e.tensors->empty(&e.run, cpu, kF32, huge, 1, 0, &out)).code, LH_RESOURCE_EXHAUSTED);
}

TEST_F(Values, ArithmeticLeavesNoGraphAndWorksOnParameters) {
  auto y = at::full({3}, 2.0).requires_grad_();
  const auto x = at::full({3}, 5.0);
  call(e.ops->axpby(handle(y), 3, handle(x), 0.5));
  call(e.ops->scale(handle(y), 2));
  EXPECT_EQ(y[0].item().toDouble(), 32);  // (3 * 5 + 0.5 * 2) * 2
  call(e.ops->fill(handle(y), 7));
  EXPECT_EQ(y[2].item().toDouble(), 7);
  call(e.ops->copy(handle(y), handle(x)));
  EXPECT_EQ(y[1].item().toDouble(), 5);
  EXPECT_TRUE(y.is_leaf());
  const auto other = at::zeros({2});
  EXPECT_EQ(failed(e.ops->copy(handle(y), handle(other))).message, "found shape [2], expected [3]");
  double out = 0;
  const auto one = at::full({1}, 4.0);
  call(e.ops->to_host(handle(one), &out));
  EXPECT_EQ(out, 4);
}

std::string bytes_of_engine() {
  std::ifstream file(LHOST_TEST_PLUGINS "/../../liblhost_engine.so", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(SharedObject, NoteSaysWhichLibTorchWithoutLoading) {
  const std::string bytes = bytes_of_engine();
  const size_t at = bytes.find(std::string("lhost-engine") + '\0');
  ASSERT_NE(at, std::string::npos);
  lh_elf_note note;
  std::memcpy(&note, bytes.data() + at - offsetof(lh_elf_note, desc) - offsetof(lh_note_v1, name),
              sizeof note);
  EXPECT_STREQ(note.name, LH_NOTE_OWNER);
  EXPECT_EQ(note.type, LH_NOTE_TYPE);
  EXPECT_EQ(note.desc.torch, text(engine()->version));
  EXPECT_STREQ(note.desc.components, "engine/0:libtorch");
}

TEST(SharedObject, IsNoPlugin) {
  engine();
  void* library = dlopen(LHOST_TEST_PLUGINS "/../../liblhost_engine.so", RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(library, nullptr);
  EXPECT_NE(dlsym(library, LH_ENGINE_ENTRY), nullptr);
  EXPECT_EQ(dlsym(library, "lh_plugin_v1"), nullptr);
}

TEST(Services, UnknownOnesAreNotOffered) {
  EXPECT_EQ(engine()->get_service(LH_STR("lhost.tensor/9")), nullptr);
  EXPECT_EQ(text(engine()->version).substr(0, 4), "2.11");
}

}  // namespace
}  // namespace lhost_test
