/* lhost/launcher.h - kind launcher/0.2: how ranks come to be, and who this process is. Draft.
 *
 * Runs before any device is touched and before LibTorch is loaded. Two sorts: one whose ranks are made by somebody else
 * (torchrun, SLURM, mpirun) only reads who this process is; one with `start` makes the ranks of this machine, and the
 * host supervises them: output, failure, signals, restarts. */
#ifndef LHOST_LAUNCHER_H
#define LHOST_LAUNCHER_H
#include "step.h"
#ifdef __cplusplus
extern "C" {
#endif

#define LH_LAUNCHER_KIND "launcher/0.2"

/* Component flags. FORKS: start() forks this process, which therefore loads LibTorch and all plugins once before
 * the first start, and starts no thread. */
enum { LH_LAUNCHER_FORKS = 1 };

typedef struct lh_launch_spec { /* what the manifest wants */
  uint32_t size, rsvd0;
  int64_t num_nodes;
  int64_t ranks_per_node; /* 0: trainer.devices = "auto" */
} lh_launch_spec;

typedef struct lh_rank_start { /* one rank to make */
  uint32_t size, rsvd0;
  const lh_env *env;
  const lh_str *argv; /* what the rank executes */
  uint64_t n_argv;
  const lh_str *environment; /* "NAME=value", to be added to this process's own */
  uint64_t n_environment;
  const int32_t
      *keep; /* file descriptors that the rank needs under the same numbers; all others close on exec */
  uint64_t n_keep;
  int32_t out_fd, err_fd;               /* become its stdout and stderr; stdin is /dev/null */
  int32_t (*main)(void *context) LH_NX; /* instead of argv, in a fork of this process: gives the exit code */
  void *context;
} lh_rank_start;

typedef struct lh_launcher lh_launcher;
typedef struct lh_launcher_v0 {
  LH_OBJECT(lh_launcher);
  /* 0..100: how sure is this launcher that this process is its own? Looks at the environment and the spec only. The
   * highest wins where the manifest names none; why: what it saw, lives as long as the launcher. [main] */
  int32_t (*detect)(lh_launcher *, const lh_launch_spec *, lh_str *why) LH_NX;
  /* Who this process is; with `start`: the world to make, rank and local_rank -1, master_port 0 if any will do.
   * An error if the environment cannot meet the spec. Texts live as long as the launcher. required; [main] */
  lh_status (*env)(lh_launcher *, const lh_launch_spec *, lh_env *out) LH_NX;
  /* Makes one rank of this machine and returns at once: local_rank 0 first, then upwards. Its process is a child of
   * this one and in a process group apart from this one's, alone or with the other ranks; it must die with the thread
   * that called start (PR_SET_PDEATHSIG), which lives until the last rank has ended. NULL: somebody else makes the
   * ranks, or there is only this one. [main] */
  lh_status (*start)(lh_launcher *, const lh_rank_start *, int64_t *out_pid) LH_NX;
} lh_launcher_v0;

#ifdef __cplusplus
}
#endif
#endif
