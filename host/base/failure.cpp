#include "base/failure.hpp"

namespace lhost {

const char* exit_code_table() {
  return "  0    done\n"
         "  1    failed in training: the model, the data or a plugin reported an error\n"
         "  2    the manifest or the command line is wrong; nothing was started\n"
         "  3    the environment: device, LibTorch, permission, disk, memory\n"
         "  4    a plugin was refused or crashed\n"
         "  70   internal error of lhost\n"
         "  71   another rank failed first (a rank's own code, never the run's)\n"
         "  75   stopped at a time limit or for a requeue\n"
         "  129  hung up: the terminal is gone (SIGHUP)\n"
         "  130  interrupted (SIGINT)\n"
         "  143  terminated (SIGTERM)\n"
         "A signal is seen at the end of a step, and a checkpoint saved; a second one ends the process at "
         "once.\n";
}

}  // namespace lhost
