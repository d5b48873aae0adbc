#include "fakes.hpp"

using namespace lhost_test;

namespace {

struct ModelSummary : CallbackTest {
  static std::string table(const Options& options = {}) {
    CallbackUnderTest c("model_summary", options);
    c.hear(LH_STAGE_FIT, LH_ON_START);
    return fake().printed.empty() ? "" : fake().printed.at(0);
  }
};

TEST_F(ModelSummary, CountsParametersPerModule) {  // 64-128-64-10: 8320 + 8256 + 650
  fake().add_param("net.0.weight", {128, 64});
  fake().add_param("net.0.bias", {128});
  fake().add_param("net.2.weight", {64, 128});
  fake().add_param("net.2.bias", {64});
  fake().add_param("net.4.weight", {10, 64});
  fake().add_param("net.4.bias", {10});
  EXPECT_EQ(table({{"max_depth", int64_t{2}}}),
            "module  parameters  trainable      size\n"
            "net         17 226     17 226  67.3 KiB\n"
            "net.0        8 320      8 320  32.5 KiB\n"
            "net.2        8 256      8 256  32.2 KiB\n"
            "net.4          650        650   2.5 KiB\n"
            "total       17 226     17 226  67.3 KiB");
}
TEST_F(ModelSummary, ShowsOneLevelUnlessAskedForMore) {
  fake().add_param("net.0.weight", {4, 4});
  fake().add_param("head.weight", {4});
  EXPECT_EQ(table(),
            "module  parameters  trainable  size\n"
            "net             16         16  64 B\n"
            "head             4          4  16 B\n"
            "total           20         20  80 B");
}
TEST_F(ModelSummary, KeepsFrozenParametersAndBuffersApart) {  // B143: trainable 5, frozen 56, total 61
  fake().add_param("a.weight", {1, 4});
  fake().add_param("a.bias", {1});
  fake().add_param("b.0.weight", {8, 4}, 0);
  fake().add_param("b.0.bias", {8}, 0);
  fake().add_param("b.1.weight", {8}, 0);
  fake().add_param("b.1.bias", {8}, 0);
  fake().add_param("b.1.running_mean", {8}, LH_P_BUFFER);
  fake().add_param("b.1.running_var", {1024}, LH_P_BUFFER);
  EXPECT_EQ(table(),
            "module  parameters  trainable   size\n"
            "a                5          5   20 B\n"
            "b               56          0  224 B\n"
            "total           61          5  244 B\n"
            "and 4.0 KiB of buffers");
}
TEST_F(ModelSummary, CountsTiedWeightsOnce) {
  fake().add_param("embed.weight", {10, 4});
  fake().add_param("head.weight", {10, 4}, LH_P_ALIAS);
  EXPECT_EQ(table(),
            "module  parameters  trainable   size\n"
            "embed           40         40  160 B\n"
            "total           40         40  160 B");
}
TEST_F(ModelSummary, AParameterOfTheModelItselfHasItsOwnRow) {
  fake().add_param("scale", {1024, 1024, 2}, LH_P_TRAINABLE, 64);
  EXPECT_EQ(table({{"max_depth", int64_t{3}}}),
            "module  parameters  trainable      size\n"
            "scale    2 097 152  2 097 152  16.0 MiB\n"
            "total    2 097 152  2 097 152  16.0 MiB");
}
TEST_F(ModelSummary, IsSilentWhereTheTerminalIsOff) {
  fake().enabled = false;
  fake().add_param("scale", {1});
  EXPECT_EQ(table(), "");
}

}  // namespace
