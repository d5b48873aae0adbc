// host/manifest/host_keys.hpp - the schemas of the host's own keys, one per table. The only list of them.
#pragma once
#include "manifest/option.hpp"

namespace lhost {

const Schema& root_keys();        // schema, extends and the names of all tables
const Schema& run_keys();         // [run]
const Schema& trainer_keys();     // [trainer]
const Schema& resume_keys();      // [resume]
const Schema& selection_keys();   // use, plugin, version, on_error, name: in every component's table
const Schema& data_keys();        // the host's part of [data]
const Schema& scheduler_keys();   // the host's part of [scheduler]
const Schema& checkpoint_keys();  // the policy part of [[checkpoint]]
const Schema& group_keys();       // the host's part of [[optimizer.group]]: match, name

// Kinds with one table ([model]) and kinds with a list of tables ([[logger]]), in the order of assembly.
struct KindTable {
  const char* kind;   // "checkpointer"
  const char* table;  // "checkpoint"
  bool list;
};
const std::vector<KindTable>& kind_tables();
const Schema& host_part(
    std::string_view kind);  // the host's keys in that kind's table, selection_keys() apart

KnownKeys host_known_keys();  // all of the above by table, to which the components' options are added

// Rules that tie several keys together (min_epochs > max_epochs, mode without monitor...).
void check_together(const Values& run, const Values& trainer, Diagnostics&);
void check_data(const Values& data, Diagnostics&);  // data_keys(): split
void check_checkpoints(const std::vector<const Values*>& policies,
                       Diagnostics&);              // checkpoint_keys(), in order
bool monitor_wants_max(const Values& checkpoint);  // mode, or what the monitor's name says (..._acc)

}  // namespace lhost
