#include "train/checkpoint_keeper.hpp"

#include "base/failure.hpp"
#include "base/files.hpp"
#include "base/log.hpp"
#include "base/text.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>

namespace lhost {
namespace fs = std::filesystem;
namespace {

struct Field {
  std::string name, format;  // format: "02d", ".2f" or empty
};

// Calls text(piece) and field(f) for the parts of a pattern.
template <class OnText, class OnField>
void parse_pattern(const std::string& pattern, OnText text, OnField field) {
  const auto refuse = [&](const std::string& why) {
    throw Failure(Exit::usage, "the file name pattern \"" + pattern + "\" " + why +
                                   "; expected for example {epoch:02d}-{val_loss:.2f}");
  };
  size_t at = 0;
  while (at < pattern.size()) {
    const size_t open = pattern.find_first_of("{}", at);
    text(pattern.substr(at, open - at));
    if (open == pattern.npos) return;
    const size_t close = pattern.find('}', open);
    if (pattern[open] == '}' || close == pattern.npos) refuse("has an unbalanced brace");
    const std::string inside = pattern.substr(open + 1, close - open - 1);
    const size_t colon = inside.find(':');
    Field f{inside.substr(0, colon), colon == inside.npos ? "" : inside.substr(colon + 1)};
    if (f.name.empty()) refuse("has a field without a name");
    const bool letter_ok =
        f.format.empty() || std::string_view("dfeg").find(f.format.back()) != std::string_view::npos;
    const std::string digits = f.format.empty() ? "" : f.format.substr(0, f.format.size() - 1);
    if (!letter_ok || digits.size() > 5 || digits.find_first_not_of("0123456789.") != digits.npos ||
        std::count(digits.begin(), digits.end(), '.') > 1)
      refuse("has the format \"" + f.format + "\" that is not known");
    field(f);
    at = close + 1;
  }
}

std::string formatted(const Field& f, double v) {
  char b[400];
  if (f.format.empty())
    return std::floor(v) == v && std::abs(v) < 1e15 ? std::to_string(static_cast<int64_t>(v)) : exact(v);
  const std::string digits = f.format.substr(0, f.format.size() - 1);
  if (f.format.back() == 'd' && std::abs(v) < 9e18)
    std::snprintf(b, sizeof b, ("%" + digits + "lld").c_str(), static_cast<long long>(v));
  else
    std::snprintf(b, sizeof b, ("%" + digits + (f.format.back() == 'd' ? 'f' : f.format.back())).c_str(), v);
  return b;
}

}  // namespace

void check_filename_pattern(const std::string& pattern) {
  parse_pattern(
      pattern, [](const std::string&) {}, [](const Field&) {});
}

std::string expand_filename(const std::string& pattern, int64_t epoch, int64_t step,
                            const std::vector<KnownMetric>& metrics) {
  std::string out;
  parse_pattern(
      pattern, [&](const std::string& t) { out += t; },
      [&](const Field& f) {
        double v = std::nan("");
        if (f.name == "epoch") v = static_cast<double>(epoch);
        else if (f.name == "step") v = static_cast<double>(step);
        else
          for (const KnownMetric& m : metrics)
            if (m.name == f.name) v = m.value;
        std::string name = f.name;
        std::replace(name.begin(), name.end(), '/', '_');
        out += name + "=" + formatted(f, v);
      });
  return out;
}

CheckpointKeeper::CheckpointKeeper(const CheckpointPolicy& policy, std::string run_folder, std::string suffix,
                                   Write write)
    : policy_(policy),
      run_folder_(std::move(run_folder)),
      suffix_(std::move(suffix)),
      write_(std::move(write)) {
  remove_leftovers(absolute(policy_.dir));
}

bool CheckpointKeeper::better(double a, double b) const {
  if (std::isnan(a)) return false;
  if (std::isnan(b)) return true;
  return policy_.larger_is_better ? a > b : a < b;
}

std::optional<double> CheckpointKeeper::monitored(const Moment& m) const {
  if (policy_.monitor.empty()) return std::nullopt;
  double v = 0;
  if (m.metrics->find(policy_.monitor, v)) return v;
  std::vector<std::string> names;
  for (const KnownMetric& k : m.metrics->known()) names.push_back(k.name);
  throw Failure(Exit::failed,
                policy_.instance + ".monitor: no metric \"" + policy_.monitor +
                    "\" was logged so far; there are: " + (names.empty() ? "none" : join(names, ", ")));
}

std::string CheckpointKeeper::free_name(const std::string& stem, const std::string& displaced) const {
  const std::string base = policy_.dir + "/" + stem;
  std::string name = base + suffix_;
  std::error_code ec;
  for (int v = 1; name != displaced && fs::exists(absolute(name), ec); ++v)
    name = base + "-v" + std::to_string(v) + suffix_;
  return name;
}

void CheckpointKeeper::at_epoch_end(const Moment& m) {
  if (policy_.every_n_steps) return;
  if ((m.epoch + 1) % policy_.every_n_epochs.value_or(1) == 0)
    save(m, policy_.monitor.empty() || m.validated);
}
void CheckpointKeeper::at_step(const Moment& m) {
  if (!policy_.every_n_steps || m.step % *policy_.every_n_steps != 0) return;
  double last = 0;  // between two validations the last value ranks; before the first there is none
  save(m, policy_.monitor.empty() || m.validated || m.metrics->find(policy_.monitor, last));
}

void CheckpointKeeper::save(const Moment& m, bool ranks) {
  std::string newest;
  if (policy_.save_top_k != 0 && ranks) {
    const std::optional<double> value = monitored(m);
    const auto k = static_cast<size_t>(policy_.save_top_k);
    const bool full = policy_.save_top_k > 0 && kept_.size() >= k;
    const bool wanted = !full || !value || std::any_of(kept_.begin(), kept_.end(), [&](const Kept& x) {
      return better(*value, x.value.value_or(std::nan("")));
    });
    if (wanted) {
      // the file that goes may be written over: a fixed name stays as it is
      newest = free_name(expand_filename(policy_.filename, m.epoch, m.step, m.metrics->known()),
                         full ? worst()->file : "");
      make_folders(fs::path(absolute(newest)).parent_path());
      writing_ = Kept{newest, value, m.epoch};
      try {
        write_(absolute(newest), policy_.weights_only);
      } catch (...) {
        writing_.reset();
        throw;
      }
      keep(*std::exchange(writing_, std::nullopt));
    }
  }
  if (policy_.save_last != CheckpointPolicy::Last::no) write_last(newest);
}

void CheckpointKeeper::keep(Kept k) {
  last_ = k.file;
  std::erase_if(kept_, [&](const Kept& x) { return x.file == k.file; });
  kept_.push_back(std::move(k));
  // more than one too many after a run that was killed before it could remove
  while (policy_.save_top_k > 0 && kept_.size() > static_cast<size_t>(policy_.save_top_k)) remove_worst();
}

std::vector<CheckpointKeeper::Kept>::const_iterator CheckpointKeeper::worst() const {
  auto worst = kept_.begin();  // without a monitor: the oldest
  if (!policy_.monitor.empty())
    for (auto i = kept_.begin() + 1; i != kept_.end(); ++i)
      // of equals the newer one goes, so the older stays
      if (!better(i->value.value_or(std::nan("")), worst->value.value_or(std::nan("")))) worst = i;
  return worst;
}

void CheckpointKeeper::remove_worst() {
  const auto worst = this->worst();
  std::error_code ec;
  fs::remove(absolute(worst->file), ec);
  if (ec)
    log(Level::warning, "cannot remove the old checkpoint " + absolute(worst->file) + ": " + ec.message());
  kept_.erase(worst);
}

void CheckpointKeeper::write_last(const std::string& newest) {
  const std::string file = policy_.dir + "/last" + suffix_;
  if (policy_.save_last == CheckpointPolicy::Last::link && !newest.empty()) {
    const std::string temporary = absolute(file) + ".lhost-tmp-" + std::to_string(getpid());
    std::error_code ec;
    fs::remove(temporary, ec);
    fs::create_symlink(newest.substr(policy_.dir.size() + 1), temporary, ec);
    if (!ec) fs::rename(temporary, absolute(file), ec);
    if (ec) throw Failure(Exit::environment, "cannot make the link " + absolute(file) + ": " + ec.message());
  } else {
    make_folders(absolute(policy_.dir));
    write_(absolute(file), policy_.weights_only);
  }
  last_ = file;
}

void CheckpointKeeper::now(const Moment&, const std::string& stem) {
  const std::string file = policy_.dir + "/" + stem + suffix_;
  make_folders(absolute(policy_.dir));
  write_(absolute(file), false);
  last_ = file;
}

std::vector<CheckpointKeeper::Kept> CheckpointKeeper::all() const {
  std::vector<Kept> list = kept_;
  if (!writing_) return list;
  std::erase_if(list, [&](const Kept& x) { return x.file == writing_->file; });
  list.push_back(*writing_);
  return list;
}

std::optional<CheckpointKeeper::Kept> CheckpointKeeper::best() const {
  const std::vector<Kept> list = all();
  if (list.empty()) return std::nullopt;
  const Kept* best = &list.back();
  if (!policy_.monitor.empty()) {
    best = &list.front();
    for (const Kept& k : list)
      if (better(k.value.value_or(std::nan("")), best->value.value_or(std::nan("")))) best = &k;
  }
  return *best;
}

void CheckpointKeeper::save_state(CheckpointTree& tree, const TreePath& prefix) const {
  const std::vector<Kept> list = all();
  for (size_t i = 0; i < list.size(); ++i) {
    const auto at = [&](const char* key) {
      TreePath p = prefix;
      p.insert(p.end(), {std::to_string(i), key});
      return p;
    };
    tree.put(at("file"), list[i].file);
    tree.put(at("epoch"), list[i].epoch);
    if (list[i].value) tree.put(at("value"), *list[i].value);
  }
}

// A file that this policy may have written, and may remove: the name comes from a checkpoint, which may come from anywhere.
bool CheckpointKeeper::belongs_here(const std::string& file) const {
  const fs::path path(file);
  const bool inside = path.is_relative() && path.lexically_normal() == path &&
                      file.rfind(policy_.dir + "/", 0) == 0 && file.find("..") == std::string::npos &&
                      path.extension() == suffix_;
  std::error_code ec;
  return inside && fs::is_regular_file(absolute(file), ec);
}

void CheckpointKeeper::load_state(const CheckpointTree& tree, const TreePath& prefix) {
  kept_.clear();
  for (const std::string& i : tree.children(prefix)) {
    const auto at = [&](const char* key) {
      TreePath p = prefix;
      p.insert(p.end(), {i, key});
      return p;
    };
    Kept k{tree.text(at("file"), ""), std::nullopt, tree.integer(at("epoch"), 0)};
    if (tree.find(at("value"))) k.value = tree.number(at("value"), 0);
    if (belongs_here(k.file)) kept_.push_back(std::move(k));  // others were removed by hand
  }
}

}  // namespace lhost
