// Any text gives a manifest or errors, and what the host writes back as TOML is read again as the same.
#include "manifest/host_keys.hpp"
#include "manifest/parse.hpp"

#include <cstdlib>

using namespace lhost;

static void check(const Node& root, const Texts& texts, Diagnostics& diagnostics) {
  const KnownKeys everything = host_known_keys();
  const std::pair<const char*, const Schema*> tables[] = {
      {"run", &run_keys()}, {"trainer", &trainer_keys()}, {"data", &data_keys()}, {"scheduler", &scheduler_keys()}};
  for (const auto& [name, schema] : tables) {
    const Node* table = root.find(name);
    if (!table || !table->is_table()) continue;
    check_table(*table, name, *schema, texts, diagnostics);
    report_unknown(*table, name, {schema}, everything, diagnostics);
  }
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Texts texts = {{"fuzz.toml", "/", std::string(reinterpret_cast<const char*>(data), size)}};
  Diagnostics diagnostics;
  if (const auto root = parse_toml(0, Origin::file, texts, diagnostics)) {
    check(*root, texts, diagnostics);
    const Texts again = {{"again.toml", "/", to_toml_document(*root)}};
    Diagnostics none;
    const auto reread = parse_toml(0, Origin::file, again, none);
    if (!reread || to_toml_document(*reread) != again[0].content) std::abort();
  }
  (void)diagnostics.render(texts, false);
  (void)parse_value(texts[0].content);
  return 0;
}
