// host/manifest/option.hpp - option schemas and checked values: one mechanism for host keys and for components.
// The same types as lh_option and lh_value (lhost/abi.h), owning their texts.
#pragma once
#include "manifest/diagnostics.hpp"

#include <lhost/abi.h>

#include <deque>
#include <map>

namespace lhost {

// Types of host keys only, beside LH_T_*. The lh_value is filled as said; `type` in it is the type here.
enum HostType : int32_t {
  T_LIMIT = 100,      // 10 batches: n = 0, u.i | 0.25 or "25%" of them: n = 1, u.f
  T_DEVICES = 101,    // "auto": n = 0 | 2 (becomes 0, 1) or [0, 2]: n and u.li
  T_WARMUP = 102,     // 100 ticks: n = 0, u.i | "5%" of all: n = 1, u.f
  T_SAVE_LAST = 103,  // false, true, "link": u.i = 0, 1, 2
  T_REGEX = 104       // a regular expression (ECMAScript); u.s
};

// min and max: TOML literals, inclusive; ">0" and "<1", with or without the quotes of a TOML string, are exclusive. In
// lists they hold per element. Choices also serve LIST_STR: each element is one of them, none twice.
// LH_T_NONE: a table that others check; the key is known, its value is not looked at.
struct OptionSpec {
  std::string key;  // may be dotted: "train.images"
  int32_t type = LH_T_NONE;
  uint32_t flags = 0;                           // LH_O_*
  std::string doc, def, min, max, replaced_by;  // def, min, max: TOML literals, empty = none
  std::vector<std::string> choices;
  uint32_t min_len = 0;  // lists: least number of elements; strings: least length
};
using Schema = std::vector<OptionSpec>;
Schema schema_of(const lh_option* options, uint32_t n, uint32_t stride);

// The values of one table after checking: as C values for create(), by key for the host, as nodes for `plan`.
// Moves, never copies: the C values point into it.
class Values {
 public:
  Values() = default;
  Values(Values&&) = default;
  Values& operator=(Values&&) = default;
  Values(const Values&) = delete;
  Values& operator=(const Values&) = delete;
  const std::vector<lh_value>& list() const { return values_; }  // parallel to the schema
  const lh_value& operator[](std::string_view key) const;  // throws std::out_of_range: a bug of the host
  bool given(std::string_view key) const;                  // the user wrote it (not a default)
  bool has(std::string_view key) const { return (*this)[key].type != LH_T_NONE; }
  int64_t integer(std::string_view key) const { return (*this)[key].u.i; }
  double number(std::string_view key) const { return (*this)[key].u.f; }
  bool flag(std::string_view key) const { return (*this)[key].u.b != 0; }
  std::string text(std::string_view key) const;
  Source source(std::string_view key) const;     // of the value; Origin::component_default for defaults
  const Node& node(std::string_view key) const;  // the value as it stands in the resolved manifest
  const Schema& schema() const { return schema_; }

 private:
  friend Values check_table(const Node&, const std::string&, const Schema&, const Texts&, Diagnostics&);
  size_t index(std::string_view key) const;
  void keep(struct Plain&&);  // convert.hpp
  Schema schema_;
  std::vector<lh_value> values_;
  std::vector<Node> nodes_;
  std::vector<bool> given_;
  std::deque<std::string> strings_;  // addresses stay: values_ point here
  std::deque<std::vector<int64_t>> ints_;
  std::deque<std::vector<double>> floats_;
  std::deque<std::vector<lh_str>> string_lists_;
};

// Check every value of `table` that `schema` knows; `prefix` is the table's place ("optimizer", "logger[0]").
// Type, range, choices, units, required, deprecated; paths become absolute. Unknown keys are not its business.
// A value that is refused is replaced by the default, so that checking can go on.
Values check_table(const Node& table, const std::string& prefix, const Schema& schema, const Texts&,
                   Diagnostics&);

// Every key of `table` that none of the schemas has gets an "unknown key" diagnostic. `everything`: all keys of the
// whole manifest by table, for "did you mean" in other tables. A name with a space is a component ("strategy ddp").
using KnownKeys = std::map<std::string, std::vector<std::string>>;  // "trainer" -> keys
void report_unknown(const Node& table, const std::string& prefix, const std::vector<const Schema*>& known,
                    const KnownKeys& everything, Diagnostics&);

}  // namespace lhost
