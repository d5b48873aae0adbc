// tests/host/manifest/host_keys_test.cpp - every host key: its default, and one wrong value.
#include "support.hpp"

#include <set>

namespace lhost {
namespace {

using testing::IsEmpty;

struct Key {
  const Schema& (*schema)();
  const char *key, *def, *good, *bad;  // def "": none
};
void PrintTo(const Key& k, std::ostream* out) { *out << k.key; }
const Schema& logger_part() { return host_part("logger"); }
const Schema& collective_part() { return host_part("collective"); }
const Schema& callback_part() { return host_part("callback"); }
const Schema& profiler_part() { return host_part("profiler"); }

const std::vector<Key> kKeys = {
    {root_keys, "schema", "1", "1", "2"},
    {run_keys, "name", "", "\"x\"", "\"\""},
    {run_keys, "dir", "\"/base/runs\"", "\"x\"", "\"\""},
    {run_keys, "seed", "42", "0", "-1"},
    {run_keys, "max_restarts", "0", "3", "-1"},
    {run_keys, "stages", "[\"fit\"]", "[\"validate\", \"test\", \"predict\", \"fit\"]", "[\"fit\", \"fit\"]"},
    {trainer_keys, "max_epochs", "", "-1", "-2"},
    {trainer_keys, "min_epochs", "", "0", "-1"},
    {trainer_keys, "max_steps", "-1", "10", "-2"},
    {trainer_keys, "min_steps", "", "0", "-1"},
    {trainer_keys, "limit_train_batches", "1.0", "10", "1.5"},
    {trainer_keys, "limit_val_batches", "1.0", "0.5", "-1"},
    {trainer_keys, "limit_test_batches", "1.0", "0", "true"},
    {trainer_keys, "limit_predict_batches", "1.0", "1", "[]"},
    {trainer_keys, "accumulate_grad_batches", "1", "4", "0"},
    {trainer_keys, "gradient_clip_val", "", "1", "0.0"},
    {trainer_keys, "gradient_clip_algorithm", "\"norm\"", "\"value\"", "\"nrom\""},
    {trainer_keys, "log_every_n_steps", "50", "0", "-1"},
    {trainer_keys, "check_val_every_n_epoch", "1", "2", "0"},
    {trainer_keys, "num_sanity_val_steps", "2", "-1", "-2"},
    {trainer_keys, "devices", "\"auto\"", "[0, 2]", "\"two\""},
    {trainer_keys, "num_nodes", "1", "2", "0"},
    {trainer_keys, "threads", "0", "2", "-1"},
    {trainer_keys, "sync_batchnorm", "false", "true", "1"},
    {trainer_keys, "flush_denormal", "true", "false", "0"},
    {resume_keys, "from", "", "\"last\"", "\"\""},
    {resume_keys, "strict", "true", "false", "\"no\""},
    {selection_keys, "use", "", "\"x\"", "\"\""},
    {selection_keys, "plugin", "", "\"x.so\"", "\"\""},
    {selection_keys, "version", "", "\"1.0\"", "1.0"},
    {selection_keys, "name", "", "\"x\"", "\"\""},
    {data_keys, "batch_size", "32", "1", "0"},
    {data_keys, "shuffle", "true", "false", "1"},
    {data_keys, "drop_last", "false", "true", "\"true\""},
    {data_keys, "split.train", "", "\"90%\"", "1.1"},
    {data_keys, "split.val", "", "0.1", "-0.1"},
    {data_keys, "threads", "0", "256", "257"},
    {scheduler_keys, "warmup", "0", "\"5%\"", "0.05"},
    {scheduler_keys, "interval", "\"epoch\"", "\"step\"", "\"steps\""},
    {scheduler_keys, "frequency", "1", "2", "0"},
    {checkpoint_keys, "dir", "\"checkpoints\"", "\"x\"", "\"\""},
    {checkpoint_keys, "filename", "\"{epoch}-{step}\"", "\"x\"", "\"\""},
    {checkpoint_keys, "monitor", "", "\"val_loss\"", "\"\""},
    {checkpoint_keys, "mode", "", "\"max\"", "\"maximum\""},
    {checkpoint_keys, "save_top_k", "1", "-1", "-2"},
    {checkpoint_keys, "save_last", "false", "\"link\"", "\"links\""},
    {checkpoint_keys, "every_n_epochs", "", "1", "0"},
    {checkpoint_keys, "every_n_steps", "", "1", "0"},
    {checkpoint_keys, "save_weights_only", "false", "true", "1"},
    {checkpoint_keys, "save_on_exception", "false", "true", "1"},
    {checkpoint_keys, "save_on_signal", "true", "false", "1"},
    {group_keys, "match", "", "'\\.bias$'", "'(a'"},
    {group_keys, "name", "", "\"x\"", "\"\""},
    {collective_part, "timeout", "\"10m\"", "\"90s\"", "\"0s\""},
    {collective_part, "connect_timeout", "\"5m\"", "\"00:01:00\"", "30"},
    {collective_part, "check", "false", "true", "\"yes\""},
    {logger_part, "on_error", "\"warn\"", "\"stop\"", "\"ignore\""},
    {callback_part, "on_error", "\"stop\"", "\"warn\"", "true"},
    {profiler_part, "on_error", "\"warn\"", "\"stop\"", "\"\""},
};

class HostKey : public testing::TestWithParam<Key> {
 protected:
  // key = literal in a table that is otherwise as it must be
  static Values check(const Key& k, const char* literal, Diagnostics& d) {
    const bool needs_match = std::string_view("name") == k.key && k.schema == group_keys;
    const Parsed p((needs_match ? std::string("match = \"x\"\n") : "") +
                   (literal ? std::string(k.key) + " = " + literal : ""));
    EXPECT_THAT(lines(p.problems), IsEmpty());
    return check_table(p.root, "t", k.schema(), p.texts, d);
  }
};

TEST_P(HostKey, HasItsDefault) {
  Diagnostics d;
  EXPECT_EQ(to_toml(check(GetParam(), nullptr, d).node(GetParam().key)), GetParam().def);
}

TEST_P(HostKey, TakesAGoodValue) {
  Diagnostics d;
  EXPECT_TRUE(check(GetParam(), GetParam().good, d).given(GetParam().key));
  EXPECT_THAT(lines(d), IsEmpty());
}

TEST_P(HostKey, RefusesABadValue) {
  Diagnostics d;
  check(GetParam(), GetParam().bad, d);
  ASSERT_EQ(d.list().size(), 1u);
  EXPECT_EQ(d.list()[0].key.rfind(std::string("t.") + GetParam().key, 0), 0u);
  EXPECT_GT(d.list()[0].source.line, 0);
}

INSTANTIATE_TEST_SUITE_P(Every, HostKey, testing::ValuesIn(kKeys));

TEST(HostKeys, AreAllInTheListAbove) {
  std::set<std::pair<const Schema*, std::string>> listed, all;
  for (const Key& k : kKeys) listed.insert({&k.schema(), k.key});
  std::vector<const Schema*> schemas = {&root_keys(),   &run_keys(),       &trainer_keys(),
                                        &resume_keys(), &selection_keys(), &group_keys()};
  for (const KindTable& t : kind_tables()) schemas.push_back(&host_part(t.kind));
  for (const Schema* schema : schemas) {
    for (const OptionSpec& spec : *schema) {
      if (spec.type != LH_T_NONE) all.insert({schema, spec.key});
      EXPECT_NE(spec.doc, "") << spec.key;
    }
  }
  EXPECT_EQ(listed, all);
}

TEST(HostKeys, KindsComeInTheOrderOfAssembly) {
  std::string order;
  for (const KindTable& t : kind_tables()) order += std::string(t.kind) + (t.list ? "[] " : " ");
  EXPECT_EQ(order,
            "accelerator launcher collective strategy precision model data optimizer scheduler callback[] "
            "logger[] profiler "
            "checkpointer[] ");
}

TEST(HostKeys, KnowEveryTable) {
  const KnownKeys known = host_known_keys();
  EXPECT_THAT(known.at("data"), testing::IsSupersetOf({"batch_size", "split.val", "use", "plugin"}));
  EXPECT_THAT(known.at("checkpoint"), testing::Contains("save_top_k"));
  EXPECT_THAT(known.at("optimizer.group"), testing::Contains("match"));
  EXPECT_THAT(known.at(""), testing::IsSupersetOf({"schema", "extends", "run", "checkpoint", "logger"}));
}

}  // namespace
}  // namespace lhost
