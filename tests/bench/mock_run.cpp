// mock_run.cpp - `lhost run` on the mock engine: the host's loop with next to no arithmetic in it, so that what a hook
// costs can be seen (C3).
//   mock_run <manifest> [overrides...]
#include <lhost/runtime.hpp>

#include <iostream>

int main(int argc, char** argv) {
  if (argc < 2) return std::cerr << "usage: mock_run <manifest> [overrides...]\n", 2;
  lhost::RunOptions o;
  o.manifest = argv[1];
  o.overrides.assign(argv + 2, argv + argc);
  o.prefix = LHOST_BENCH_PREFIX;
  o.engine = LHOST_TEST_MOCK "/lib/mock_engine.so";
  o.plugin_dirs = {LHOST_TEST_MOCK "/plugins"};
  const lhost::RunReport r = lhost::run_manifest(o);
  if (r.exit_code != 0) std::cerr << r.error << '\n';
  return r.exit_code;
}
