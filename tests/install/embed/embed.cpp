// A program that has the host inside: embed <installation> <manifest>. Prints the run's outcome and test accuracy.
#include <lhost/runtime.hpp>

#include <iostream>

int main(int argc, char** argv) {
  if (argc != 3) return 64;
  lhost::RunOptions options;
  options.prefix = argv[1];
  options.manifest = argv[2];
  const lhost::RunReport report = lhost::run_manifest(options);
  std::cout << report.outcome << ' ' << report.metrics.count("test_acc") << report.error << '\n';
  return report.exit_code;
}
