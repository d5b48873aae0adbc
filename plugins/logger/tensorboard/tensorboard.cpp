// plugins/logger/tensorboard/tensorboard.cpp - logger "tensorboard": event files that TensorBoard reads.
// One tag a metric, step = global_step; hyper-parameters as a text summary.
//
// A resumed run cuts the last file back to the checkpoint, removes later ones and goes on in a new file.
// That begins with a session start at the first step not kept, so that a TensorBoard which is running drops
// what it had read.
#include <chrono>
#include <lhost/sdk/logger.hpp>

#include "event.pb.h"
#include "event_file.hpp"

namespace {

using lhost::tensorboard::Event;
using lhost::tensorboard::SessionLog;
using lhost::tensorboard::Summary;

struct Options {
  std::string dir = "tensorboard";
  static void describe(lhost::Describe<Options>& d) {
    d(&Options::dir, "dir", "folder for the event files, in the run's folder");
  }
};

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// TensorBoard shows text as Markdown: | ends a cell.
std::string markdown(lh_str text) {
  std::string s;
  for (const char c : lhost::view(text)) {
    if (c == '|' || c == '\\') s += '\\';
    s += c == '\n' ? ' ' : c;
  }
  return s;
}

class TensorBoard final : public lhost::Logger {
 public:
  static constexpr const char* summary = "event files for TensorBoard";
  explicit TensorBoard(const Options& o) : dir_(checked_name("dir", o.dir)) {}

  void save_state(const lhost::StateOut& s) override {
    files_.flush();
    s.put("file", files_.name());
    s.put("position", files_.position());
    s.put("last_step", last_step_);
  }
  void load_state(const lhost::StateIn& s) override {
    s.get("file", kept_file_);
    s.get("position", kept_position_);
    s.get("last_step", last_step_);
  }

  void open(const lh_run_info& run) override {
    const std::string folder = std::string(lhost::view(run.dir)) + "/" + dir_;
    files_.use(folder);
    const bool resumed = (run.flags & LH_RUN_RESUMED) != 0;
    if (!resumed && files_.any())
      throw lhost::Error(LH_ALREADY_EXISTS, folder +
                                                ": has event files already; does another logger of this run "
                                                "write there? Give one of them another dir");
    if (resumed && !kept_file_.empty() && !files_.cut_back(kept_file_, kept_position_))
      lhost::log(LH_LOG_WARN,
                 "the event file " + kept_file_ + " is gone; earlier records are not in " + dir_);
    files_.begin(static_cast<int64_t>(now()));
    begin_event(0, now()).set_file_version("brain.Event:2");
    write();
    if (!resumed) return;
    begin_event(last_step_ + 1, now()).mutable_session_log()->set_status(SessionLog::START);
    write();
  }

  void params(const lh_pair* pairs, uint64_t n) override {
    std::string table = "| hyper-parameter | value |\n| --- | --- |\n";
    for (uint64_t i = 0; i < n; ++i)
      table += "| " + markdown(pairs[i].key) + " | " + markdown(pairs[i].value) + " |\n";
    Summary::Value& value = *begin_event(last_step_ + 1, now()).mutable_summary()->add_value();
    value.set_tag("hyper_parameters/text_summary");
    value.mutable_metadata()->mutable_plugin_data()->set_plugin_name("text");
    value.mutable_tensor()->set_dtype(7);
    value.mutable_tensor()->mutable_tensor_shape();
    value.mutable_tensor()->add_string_val(table);
    write();
  }

  void record(const lh_record& r) override {
    Summary& out = *begin_event(r.global_step, 1e-9 * static_cast<double>(r.unix_time_ns)).mutable_summary();
    for (uint64_t i = 0; i < r.n_scalars; ++i) {
      Summary::Value& value = *out.add_value();
      value.set_tag(r.scalars[i].name.ptr, r.scalars[i].name.len);
      value.set_simple_value(static_cast<float>(r.scalars[i].value));
    }
    last_step_ = std::max(last_step_, r.global_step);
    write();
  }

  void flush() override { files_.flush(); }
  void close(lh_code, std::string_view) override { files_.close(); }

 private:
  // The one event, emptied: what it holds keeps its memory.
  Event& begin_event(int64_t step, double wall_time) {
    event_.Clear();
    event_.set_step(step);
    event_.set_wall_time(wall_time);
    return event_;
  }
  void write() {
    event_.SerializeToString(&bytes_);
    files_.write(bytes_);
  }

  const std::string dir_;
  std::string kept_file_;
  int64_t kept_position_ = 0, last_step_ = -1;
  EventFiles files_;
  Event event_;
  std::string bytes_;
};

}  // namespace

LHOST_LOGGER(TensorBoard, Options, "tensorboard", "0.1.0")
