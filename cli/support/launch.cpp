#include "cli/support/launch.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include <fcntl.h>
#include <omp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/date.h"
#include "base/error.h"
#include "base/notice.h"
#include "base/terminal.h"
#include "base/utf8.h"
#include "cli/command.h"
#include "cli/support/launcher_output.h"
#include "exec/ranks/communicator.h"

namespace braid::cli {
namespace {

volatile std::sig_atomic_t child = 0;
volatile std::sig_atomic_t times_told = 0;

/// mpirun passes SIGUSR1 and SIGUSR2 on to its ranks, which stand for SIGINT and SIGTERM there: those would end them.
/// Told again, all are ended at once.
void tell_ranks(int signal) {
  if (child <= 0) return;
  times_told = times_told + 1;
  ::kill(static_cast<pid_t>(child), times_told > 1 ? SIGTERM : signal == SIGTERM ? SIGUSR2 : SIGUSR1);
}

/// Ranks wait for one another: far more than there are cores leave a machine that answers nobody.
void check_ranks(int ranks, int cores) {
  constexpr int kAlways = 64, kEach = 16;
  const int most = std::max(kAlways, kEach * cores);
  if (ranks > most)
    throw error("{} ranks cannot run on this machine, whose cores are {}: give at most {} (--ranks)", ranks, cores,
                most);
}

std::vector<std::string> mpirun_words(int ranks) {
  const int cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  check_ranks(ranks, cores);
  std::vector<std::string> words = {"mpirun", "-n", std::to_string(ranks)};
  if (::geteuid() == 0) words.emplace_back("--allow-run-as-root");
  if (ranks > cores) {
    words.insert(words.end(), {"--oversubscribe", "--bind-to", "none"});
  } else {
    words.insert(words.end(), {"--map-by", fmt::format("slot:PE={}", cores / ranks), "--bind-to", "core"});
  }
  // Shared memory only: starting is ten times faster than with every transport looked at.
  words.insert(words.end(), {"--mca", "pml", "ob1", "--mca", "btl", "vader,self"});
  words.insert(words.end(), {"--mca", "orte_base_help_aggregate", "0"});
  return words;
}

/// Where the environment says which processors threads are bound to, OpenMP has bound this one to its own by now: a
/// process started anew would take that for all there is. Gives it back those of all threads.
void leave_own_place() {
  cpu_set_t processors;
  CPU_ZERO(&processors);
  for (int place = 0; place < omp_get_num_places(); ++place) {
    std::vector<int> ids(static_cast<std::size_t>(omp_get_place_num_procs(place)));
    omp_get_place_proc_ids(place, ids.data());
    for (const int id : ids) CPU_SET(static_cast<std::size_t>(id), &processors);
  }
  if (CPU_COUNT(&processors) > 0) ::sched_setaffinity(0, sizeof(processors), &processors);
}

void tell(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace

int launch_ranks(int ranks, const std::vector<std::string>& words) {
  std::vector<std::string> all = mpirun_words(ranks);
  all.push_back(std::filesystem::read_symlink("/proc/self/exe").string());
  all.insert(all.end(), words.begin(), words.end());
  std::vector<char*> arguments;
  for (std::string& word : all) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pass_date_on();
  ::setenv(kTerminalVariable, is_terminal(stdout) ? "1" : "", 1);
  ::setenv(kToldVariable, shortened(told_notices(), 1 << 16).c_str(), 1);
  int errors[2];  // what it writes to stderr
  if (::pipe2(errors, O_CLOEXEC) != 0) throw Failure(fmt::format("cannot make a pipe ({})", std::strerror(errno)));
  const pid_t pid = ::fork();
  if (pid < 0) throw Failure(fmt::format("cannot start a process ({})", std::strerror(errno)));
  if (pid == 0) {
    ::dup2(errors[1], STDERR_FILENO);
    // A group of its own: a terminal's Ctrl-C comes to us alone. Ranks do not outlive whoever started them.
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    ::execvp(arguments[0], arguments.data());
    ::_exit(127);
  }
  times_told = 0;
  child = pid;
  struct sigaction forward {
  }, before_interrupt{}, before_terminate{};
  forward.sa_handler = &tell_ranks;
  ::sigaction(SIGINT, &forward, &before_interrupt);
  ::sigaction(SIGTERM, &forward, &before_terminate);
  ::close(errors[1]);
  LauncherOutput output;
  char block[4096];
  for (ssize_t count = 0; (count = ::read(errors[0], block, sizeof block)) != 0;) {
    if (count < 0 && errno != EINTR) break;
    if (count > 0) tell(output.pass_on({block, static_cast<std::size_t>(count)}));
  }
  ::close(errors[0]);
  tell(output.rest());
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  child = 0;
  ::sigaction(SIGINT, &before_interrupt, nullptr);
  ::sigaction(SIGTERM, &before_terminate, nullptr);
  int code = WIFEXITED(status) ? WEXITSTATUS(status) : kFailure;
  if (times_told > 0 && code != kSuccess) code = kInterrupted;  // also of ranks that had not begun to listen
  if (code == 127)
    throw error("mpirun cannot be started; install it (Debian: openmpi-bin) or plan for one rank with --ranks 1");
  if (times_told == 0 && !output.ended().empty()) throw Failure(output.ended());
  return code;
}

void end_when_told() {
  if (exec::launched_ranks() == 0) return;
  for (const int signal : {SIGUSR1, SIGUSR2}) std::signal(signal, [](int) { std::_Exit(kInterrupted); });
}

void restart_with_sleeping_threads(char** arguments) {
  if (std::getenv("GOMP_SPINCOUNT") || std::getenv("OMP_WAIT_POLICY")) return;
  // About a tenth of a millisecond: longer than the next parallel region is away while there is work. With fewer it is
  // chance whether a small kernel has to wake its threads; with more, ranks that share cores with others hold them up.
  if (::setenv("GOMP_SPINCOUNT", "5000", 0) != 0) return;
  std::error_code unreadable;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", unreadable);
  leave_own_place();
  if (!unreadable) ::execv(program.c_str(), arguments);
  // Where that cannot be done, the process goes on as it is.
}

}  // namespace braid::cli
