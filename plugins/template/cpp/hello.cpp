// hello.cpp - a callback that tells when training has reached a number of epochs. Copy, rename, change.
#include <lhost/sdk/callback.hpp>

struct Options {
  int64_t every = 1;
  static void describe(lhost::Describe<Options>& d) {
    d(&Options::every, "every", "epochs between two messages")
        .min(1);  // checked by the host, with file and line
  }
};

struct Hello : lhost::Callback {
  static constexpr const char* summary = "says hello after some epochs";
  explicit Hello(const Options& o) : every(o.every) {}

  void on_train_epoch_end() override {  // a hook that is not overridden is never called
    const int64_t done = trainer().epoch() + 1;
    if (done % every == 0) terminal.print("hello from epoch " + std::to_string(done));
  }

  const int64_t every;
  lhost::Terminal terminal;
};
LHOST_CALLBACK(Hello, Options, "acme.hello", "1.0.0")
