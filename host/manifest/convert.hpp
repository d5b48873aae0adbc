// host/manifest/convert.hpp - one value of the manifest against its option: type, range, units. check.cpp and values
// of lists come here; convert.cpp has the types of plugins, host_types.cpp those of host keys, expect.cpp the words.
#pragma once
#include "manifest/option.hpp"

#include <optional>

namespace lhost {

// A checked value; owns what its lh_value will point to once Values keeps it.
struct Plain {
  lh_value value{};
  Node node;  // as it goes into the resolved manifest
  std::string text;
  std::vector<int64_t> ints;
  std::vector<double> floats;
  std::vector<std::string> strings;
};

// A least or greatest value.
struct Bound {
  bool set = false, open = false;
  bool whole = false;  // `i` is exact
  int64_t i = 0;
  double f = 0;
  std::string shown;  // as messages say it
};
Bound bound_of(const OptionSpec&, const std::string& literal);

std::string expectation(const OptionSpec&);                       // "a number > 0"
std::string found(const Node&, const OptionSpec&, const Texts&);  // "the string \"1e-3\""
std::string hint(const Node&, const OptionSpec&, const std::string& key,
                 const Texts&);  // "remove the quotes" or ""

class Conversion {
 public:
  // `out` NULL: only whether it fits.
  Conversion(const OptionSpec& spec, const std::string& key, const Texts& texts, Diagnostics* out)
      : spec_(spec), key_(key), texts_(texts), out_(out) {}
  std::optional<Plain> run(const Node&);

 private:
  bool dispatch(const Node&);
  bool boolean(const Node&);
  bool integer(const Node&);
  bool floating(const Node&);
  bool string(const Node&);
  bool path(const Node&);
  bool choice(const Node&);
  bool united(const Node&, std::optional<int64_t> (*parse)(std::string_view));
  bool share(const Node&);
  bool cadence(const Node&);
  bool list(const Node&, int32_t element_type);
  // host_types.cpp
  bool limit(const Node&);
  bool devices(const Node&);
  bool warmup(const Node&);
  bool save_last(const Node&);
  bool regex(const Node&);

  bool in_range(int64_t) const;
  bool in_range(double) const;
  bool count_or_share(const Node&, double most);
  bool fail(const Node&);  // found, expected, hint
  bool fail(Source, const std::string& key, std::string message);

  const OptionSpec& spec_;
  const std::string& key_;
  const Texts& texts_;
  Diagnostics* out_;
  Plain plain_;
};

}  // namespace lhost
