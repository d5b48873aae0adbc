// tests/fuzz/manifest_fuzz.cpp - libFuzzer: any bytes as a manifest, as LHOST_SET and as an override, against the
// host's schemas. Whatever they are, there are diagnostics or values; what is printed again reads back the same.
#include "manifest/host_keys.hpp"
#include "manifest/overrides.hpp"
#include "manifest/parse.hpp"

#include <cstdlib>

using namespace lhost;

namespace {

// Only the tables that are there: defaults do not depend on the input.
void check_all(const Node& root, const Texts& texts, Diagnostics& d) {
  static const KnownKeys everything = host_known_keys();
  auto check = [&](const std::string& path, const Schema& schema) {
    const Node* table = root.at_path(path);
    if (!table) return Values();
    report_unknown(*table, path, {&schema, &selection_keys()}, everything, d);
    return check_table(*table, path, schema, texts, d);
  };
  report_unknown(root, "", {&root_keys()}, everything, d);
  const Values run = check("run", run_keys()), trainer = check("trainer", trainer_keys());
  if (!run.list().empty() && !trainer.list().empty()) check_together(run, trainer, d);
  check("resume", resume_keys());
  check("optimizer.group[0]", group_keys());
  for (const KindTable& t : kind_tables()) {
    const std::string path = std::string(t.table) + (t.list ? "[0]" : "");
    check(path, selection_keys());
    const Values host = check(path, host_part(t.kind));
    if (host.list().empty()) continue;
    if (std::string_view(t.kind) == "data") check_data(host, d);
    if (std::string_view(t.kind) == "checkpointer") check_checkpoints({&host, &host}, d);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const Texts texts = {{"fuzz.toml", "/", bytes}};
  Diagnostics d;
  Node root;
  root.type = Node::Type::table;
  if (auto parsed = parse_toml(0, Origin::file, texts, d)) {
    root = std::move(*parsed);
    Diagnostics again;
    const std::string document = to_toml_document(root);
    const Texts printed = {{"again.toml", "/", document}};
    const auto back = parse_toml(0, Origin::file, printed, again);
    if (!back || to_toml_document(*back) != document) std::abort();
  }
  for (const auto& [begin, end] : split_items(bytes)) {
    apply_override(root, 0, begin, end, Origin::environment, texts, d);
  }
  check_all(root, texts, d);
  d.render(texts, size % 2 == 0);
  return 0;
}
