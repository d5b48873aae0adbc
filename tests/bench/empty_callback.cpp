// A callback whose one hook does nothing: what declaring it costs (C3). Built twice: bench.hooked declares
// on_train_batch_end, bench.unhooked only on_fit_start.
#include <lhost/sdk/callback.hpp>

struct Empty : lhost::Callback {
  void BENCH_HOOK() override {}
};
LHOST_CALLBACK(Empty, lhost::NoOptions, BENCH_NAME, "1.0.0")
