// host/manifest/merge.hpp - one layer of a manifest over another.
#pragma once
#include "manifest/host_keys.hpp"

namespace lhost {

// Tables merge, everything else is replaced. `place` is the tables' own place, "" at the root: a kind's table that
// selects another component loses the lower one's options.
void merge_tables(Node& lower, Node upper, const std::string& place);

// What a selection (`use`, `plugin`) different from the one in `table` leaves of it: the host's keys, and what was
// written in a layer not below `layer`.
void drop_options_of_other(Node& table, const Node& selection, const KindTable&, Origin layer);

const KindTable* kind_table(std::string_view table);  // by its name in the manifest, or NULL

}  // namespace lhost
