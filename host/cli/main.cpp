// host/cli/main.cpp - the command line: what it accepts, its help, and how errors leave the program.
#include "assembly/launch.hpp"
#include "base/failure.hpp"
#include "base/log.hpp"
#include "base/terminal.hpp"
#include "base/text.hpp"
#include "cli/commands.hpp"
#include "kinds/component.hpp"
#include "manifest/diagnostics.hpp"
#include "plugin/describe.hpp"
#include "plugin/host_table.hpp"

#include <CLI/CLI.hpp>

#include <fcntl.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iostream>

namespace lhost {
namespace {

struct CommandLine {
  RunCommand run;
  std::string colour = "auto", kind, what, topic;
  bool quiet = false;
  int verbose = 0;
  bool runs = false;  // stages
  int (*command)(const CommandLine&) = nullptr;
};

// An unset variable in a script must not turn into "from the start".
CLI::Validator not_empty() {
  return {
      [](std::string& s) { return s.empty() ? "found an empty text, expected last, best or a file" : ""; },
      ""};
}

void add_manifest(CLI::App* app, CommandLine& c) {
  app->add_option("manifest", c.run.manifest, "the TOML file that describes the run; - reads standard input")
      ->required();
  app->add_option("overrides", c.run.overrides,
                  "KEY=VALUE: trainer.max_epochs=3 precision.use=64-true 'logger+={use=\"csv\"}'");
  app->add_option("--plugin-dir", c.run.plugin_dirs,
                  "search this folder for plugins before all others (repeatable)")
      ->allow_extra_args(false);
}

void add_commands(CLI::App& app, CommandLine& c) {
  auto* run = app.add_subcommand("run", "run the stages of a manifest: fit, then what [run] stages says");
  add_manifest(run, c);
  run->add_option("--resume", c.run.resume,
                  "go on from last, best, auto (last if there is one) or a checkpoint file")
      ->check(not_empty());
  run->add_flag("--tail-ranks", c.run.tail_ranks, "show what all ranks print, not only rank 0");
  run->footer(
      "Examples:\n  lhost run configs/digits.toml\n  lhost run configs/digits.toml trainer.max_epochs=3 "
      "optimizer.lr=3e-4\n"
      "  lhost run configs/digits.toml --resume last\n");
  run->callback([&c] {
    c.runs = true;
    c.command = [](const CommandLine& x) { return run_command(x.run); };
  });
  for (const char* stage : {"validate", "test"}) {
    auto* sub = app.add_subcommand(stage, std::string(stage) == "test"
                                              ? "measure a checkpoint on the test data"
                                              : "measure a checkpoint on the validation data");
    add_manifest(sub, c);
    sub->add_option("--checkpoint", c.run.checkpoint,
                    "last, best or a checkpoint file; without it the initial weights are used")
        ->check(not_empty());
    sub->footer(std::string("Example:\n  lhost ") + stage + " configs/digits.toml --checkpoint best\n");
    sub->callback([&c, stage] {
      c.runs = true;
      c.run.stage = stage;
      c.command = [](const CommandLine& x) { return run_command(x.run); };
    });
  }
  auto* plan =
      app.add_subcommand("plan", "show what a run would do and where each value comes from; start nothing");
  add_manifest(plan, c);
  plan->footer("Example:\n  lhost plan configs/digits.toml optimizer.lr=0.01\n");
  plan->callback([&c] { c.command = [](const CommandLine& x) { return plan_command(x.run); }; });
}

void add_questions(CLI::App& app, CommandLine& c) {
  auto* list = app.add_subcommand("list", "list the installed components");
  list->add_option("kind", c.kind, "only this kind: strategy, logger, model...");
  list->add_option("--plugin-dir", c.run.plugin_dirs, "search this folder before all others (repeatable)")
      ->allow_extra_args(false);
  list->footer("Example:\n  lhost list logger\n");
  list->callback(
      [&c] { c.command = [](const CommandLine& x) { return list_command(x.run.plugin_dirs, x.kind); }; });
  auto* inspect = app.add_subcommand("inspect", "show the options of a component, or the keys of a table");
  inspect
      ->add_option("what", c.what,
                   "a name (adamw), kind/name (optimizer/adamw), a file (./x.so), a table (trainer)")
      ->required();
  inspect->add_option("--plugin-dir", c.run.plugin_dirs, "search this folder before all others (repeatable)")
      ->allow_extra_args(false);
  inspect->footer(
      "Examples:\n  lhost inspect adamw\n  lhost inspect ./build/mymodel.so\n  lhost inspect checkpoint\n");
  inspect->callback(
      [&c] { c.command = [](const CommandLine& x) { return inspect_command(x.run.plugin_dirs, x.what); }; });
  auto* doctor = app.add_subcommand("doctor", "check this machine and this installation");
  doctor->add_option("--plugin-dir", c.run.plugin_dirs, "search this folder before all others (repeatable)")
      ->allow_extra_args(false);
  doctor->callback(
      [&c] { c.command = [](const CommandLine& x) { return doctor_command(x.run.plugin_dirs); }; });
  auto* version = app.add_subcommand("version", "print the versions of lhost, its plugin ABI and LibTorch");
  version->callback([&c] { c.command = [](const CommandLine&) { return version_command(); }; });
  auto* help = app.add_subcommand("help", "help on a command, or on: exit-codes");
  help->add_option("topic", c.topic, "a command or exit-codes");
}

void add_globals(CLI::App& app, CommandLine& c) {
  app.add_option("--color", c.colour, "auto, always or never; NO_COLOR is honoured")
      ->check(CLI::IsMember({"auto", "always", "never"}));
  app.add_flag("-q,--quiet", c.quiet, "print errors and warnings only");
  app.add_flag("-v,--verbose", c.verbose, "say more; twice: everything");
  app.fallthrough();
}

std::string help_of(const CLI::App& app, const std::string& name) {
  return app.get_formatter()->make_help(&app, name, CLI::AppFormatMode::Normal);
}

const CLI::App* find_command(const CLI::App& app, const std::string& name) {
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
    if (sub->get_name() == name) return sub;
  return nullptr;
}

[[noreturn]] void refuse_command(const CLI::App& app, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(sub->get_name());
  const std::string close = closest(word, names);
  throw Failure(Exit::usage, "no command \"" + word + "\"" +
                                 (close.empty() ? "" : "; did you mean \"" + close + "\"?") + " (" +
                                 join(names, ", ") + ")");
}

int show_help(const CLI::App& app, const std::string& topic) {
  std::string text = exit_code_table();
  if (topic.empty()) text = help_of(app, "lhost");
  else if (topic != "exit-codes") {
    const CLI::App* sub = find_command(app, topic);
    if (!sub) refuse_command(app, topic);
    text = help_of(*sub, "lhost " + topic);
  }
  std::cout << text;
  return 0;
}

void configure(const CommandLine& c) {
  TerminalOptions o;
  o.quiet = c.quiet;
  o.colour = c.colour == "always"  ? TerminalOptions::Colour::always
             : c.colour == "never" ? TerminalOptions::Colour::never
                                   : TerminalOptions::Colour::automatic;
  Terminal::get().configure(o);
  log_verbosity(c.quiet ? 0 : c.verbose);
}

// For commands that are about what they print; a run is about its folder.
int printed(int code) {
  std::cout.flush();
  if ((Terminal::get().written() && std::cout) || code != 0) return code;
  throw Failure(Exit::environment, "standard output cannot be written; is the disk full?");
}

int main_of(int argc, char** argv) {
  if (argc >= 2 && std::string(argv[1]) == "__describe") return describe_child_main({argv + 2, argv + argc});
  if (std::optional<RankBoot> boot = boot_rank()) return executed_rank(*boot);
  CommandLine c;
  CLI::App app{"lhost trains LibTorch models from a TOML manifest.", "lhost"};
  app.set_version_flag("--version", "lhost " LHOST_VERSION);
  app.require_subcommand(0, 1);
  app.footer("lhost help COMMAND explains a command, lhost help exit-codes the exit codes.\n");
  add_globals(app, c);
  add_commands(app, c);
  add_questions(app, c);
  for (int i = 1; i < argc; ++i) {  // CLI11 would call a misspelt command an argument that was not expected
    const std::string word = argv[i];
    if (word == "--color") ++i;
    else if (word[0] == '-') continue;
    else if (!find_command(app, word)) refuse_command(app, word);
    else break;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return printed(app.exit(e));  // --help, --version
    const auto used = app.get_subcommands();
    std::cerr << "error: " << e.what() << "\nlhost help"
              << (used.empty() ? "" : " " + used.front()->get_name()) << " shows what is accepted\n";
    return static_cast<int>(Exit::usage);
  }
  configure(c);
  if (!c.command) return printed(show_help(app, c.topic));
  return c.runs ? c.command(c) : printed(c.command(c));
}

}  // namespace
}  // namespace lhost

int main(int argc, char** argv) {
  for (int fd : {0, 1, 2})  // else a file of the run would get the number, and what is printed
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0)
      return static_cast<int>(lhost::Exit::environment);
  signal(SIGXFSZ, SIG_IGN);  // a file over the limit is an error of that write
  int code = 0;
  try {
    code = lhost::main_of(argc, argv);
  } catch (const lhost::Failure& f) {
    const std::string text = f.what();
    const bool marked =
        text.find("error:") != text.npos && text.find('\n') != text.npos;  // diagnostics carry their own
    lhost::Terminal& t = lhost::Terminal::get();
    t.error(marked || text.rfind("error:", 0) == 0 ? text
                                                   : lhost::red("error:", t.error_colour()) + " " + text);
    code = static_cast<int>(f.code);
  } catch (const lhost::ComponentFailure& f) {
    lhost::Terminal& t = lhost::Terminal::get();
    t.error(lhost::red("error:", t.error_colour()) + " " + f.component + " (" + f.where + "): " + f.what());
    code = static_cast<int>(lhost::Exit::failed);
  } catch (const std::exception& e) {
    std::cerr << "internal error: " << e.what()
              << "\nThis is a fault of lhost; please report it with the command you used.\n";
    code = static_cast<int>(lhost::Exit::internal);
  }
  std::fflush(nullptr);
  std::_Exit(code);  // LibTorch's static destructors have nothing to do that is worth 100 ms
}
