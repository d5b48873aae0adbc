// model_summary - a table of the model's modules and their parameters, printed when fit starts.
#include <lhost/params.h>
#include <lhost/sdk/callback.hpp>

#include <algorithm>

namespace {

struct Options {
  int64_t max_depth = 1;
  static void describe(lhost::Describe<Options>& d) {
    d(&Options::max_depth, "max_depth", "levels of modules to show").min(1);
  }
};

struct Row {
  std::string name;
  int64_t parameters = 0, trainable = 0, bytes = 0;
  void add(const lh_param_info& p) {
    parameters += p.numel;
    if (p.flags & LH_P_TRAINABLE) trainable += p.numel;
    bytes += p.numel * p.dtype.bits / 8;
  }
};

// 17226 -> "17 226"
std::string grouped(int64_t n) {
  std::string s = std::to_string(n);
  for (size_t at = s.size(); at > 3;) s.insert(at -= 3, 1, ' ');
  return s;
}
std::string size_text(int64_t bytes) {
  if (bytes < 1024) return std::to_string(bytes) + " B";
  char text[32];
  const double kib = static_cast<double>(bytes) / 1024;
  if (kib < 1024) std::snprintf(text, sizeof text, "%.1f KiB", kib);
  else std::snprintf(text, sizeof text, "%.1f MiB", kib / 1024);
  return text;
}

struct ModelSummary : lhost::Callback {
  static constexpr const char* summary = "prints the modules and their parameters when fit starts";
  explicit ModelSummary(const Options& o) : max_depth(o.max_depth) { params_.bind(LH_PARAMS_SERVICE); }

  void on_fit_start() override {
    if (!terminal_.enabled()) return;
    collect();
    terminal_.print(table());
  }

 private:
  void collect() {
    rows_.clear();
    total_ = {"total"};
    buffers_ = {};
    for (uint32_t i = 0; i < params_->count(run()); ++i) {
      lh_param_info p{};
      p.size = sizeof p;
      lhost::check(params_->info(run(), i, &p));
      if (p.flags & LH_P_ALIAS) continue;  // tied weights count once
      if (p.flags & LH_P_BUFFER) {
        buffers_.add(p);
        continue;
      }
      total_.add(p);
      const std::string name(lhost::view(p.name));
      size_t end = std::string::npos;  // "net.0.weight" belongs to "net" and to "net.0"
      int64_t depth = 0;
      for (size_t dot = name.find('.'); dot != name.npos && depth < max_depth;
           dot = name.find('.', dot + 1)) {
        row(name.substr(0, dot)).add(p);
        end = dot;
        ++depth;
      }
      if (end == std::string::npos) row(name).add(p);  // a parameter of the model itself
    }
  }
  Row& row(const std::string& name) {
    for (Row& r : rows_)
      if (r.name == name) return r;
    rows_.push_back({name});
    return rows_.back();
  }
  std::string table() const {
    std::vector<std::vector<std::string>> cells = {{"module", "parameters", "trainable", "size"}};
    auto add = [&](const Row& r) {
      cells.push_back({r.name, grouped(r.parameters), grouped(r.trainable), size_text(r.bytes)});
    };
    for (const Row& r : rows_) add(r);
    add(total_);
    std::string text;
    for (const auto& line : cells) {
      if (!text.empty()) text += '\n';
      for (size_t c = 0; c < line.size(); ++c) {
        size_t width = 0;
        for (const auto& other : cells) width = std::max(width, other[c].size());
        const std::string gap(width - line[c].size(), ' ');
        text += c == 0 ? line[c] + gap : "  " + gap + line[c];
      }
    }
    if (buffers_.bytes > 0) text += "\nand " + size_text(buffers_.bytes) + " of buffers";
    return text;
  }

  const int64_t max_depth;
  lhost::Service<lh_params_v0> params_;
  lhost::Terminal terminal_;
  std::vector<Row> rows_;
  Row total_, buffers_;
};

}  // namespace
LHOST_CALLBACK(ModelSummary, Options, "model_summary", "1.0.0")
