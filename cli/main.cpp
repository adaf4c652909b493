#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <thread>

#include <boost/program_options/errors.hpp>
#include <fmt/core.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/notice.h"
#include "base/terminal.h"
#include "cli/command.h"
#include "cli/support/launch.h"
#include "cli/support/versions.h"
#include "exec/ranks/communicator.h"
#include "kernels/device.h"
#include "kernels/process_memory.h"

namespace braid::cli {
namespace {

void print_usage() {
  fmt::print(
      "braid fine-tunes many PEFT tasks on one frozen backbone, and predicts what that takes.\n\nusage: braid COMMAND "
      "[options]\n\n");
  for (const Command& command : commands()) fmt::print("  {:10} {}\n", command.name, command.summary);
  fmt::print("\n`braid COMMAND --help` lists a command's options; `braid --version` says what this build has.\n");
}

void print_version() {
  fmt::print("braid {}\n", BRAID_VERSION);
  for (const std::string& library : library_versions()) fmt::print("  {}\n", library);
  fmt::print("  CUDA: {}\n",
             kernels::built_for_cuda() ? "in this build, loaded by --backend cuda" : "not in this build");
}

int dispatch(const std::vector<std::string>& words) {
  if (words.empty() || words[0] == "--help" || words[0] == "-h" || words[0] == "help") {
    print_usage();
    return words.empty() ? kBadInput : kSuccess;
  }
  if (words[0] == "--version") {
    print_version();
    return kSuccess;
  }
  std::vector<std::string> names;
  for (const Command& command : commands()) {
    if (words[0] == command.name) return command.run({words.begin() + 1, words.end()});
    names.emplace_back(command.name);
  }
  throw error("unknown command '{}'; commands: {}", words[0], fmt::join(names, ", "));
}

/// Ranks read the same files, so one of them tells what is to be told of these. And what looks like a terminal to them
/// is one where whoever launched them says so.
void behave_as_a_rank() {
  for (const char* variable : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"}) {
    const char* rank = std::getenv(variable);
    if (!rank) continue;
    if (std::string_view(rank) != "0") silence_notices();
    if (const char* terminal = std::getenv(kTerminalVariable); !terminal || !*terminal) ::setenv("NO_COLOR", "1", 1);
  }
}

/// Nor need ranks tell again what the process that launched them told.
void take_over_what_was_told() {
  if (const char* told = std::getenv(kToldVariable); told && exec::launched_ranks() > 0) take_for_told(told);
}

/// All ranks of a run mostly find the same fault and one line of it is enough: rank 0 has a moment's lead, and what it
/// tells ends the others.
int report(const char* message, int status) {
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  if (rank && std::string(rank) != "0") std::this_thread::sleep_for(std::chrono::milliseconds(500));
  // Where not even this can be written the status says it.
  std::fputs(fmt::format("{} {}\n", toned("error:", Tone::error, stderr), message_line(message)).c_str(), stderr);
  std::fflush(stderr);
  exec::abort_ranks(status);
  return status;
}

/// What was printed must have got out.
int flushed(int status) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
  throw Failure(fmt::format("standard output: {}", std::strerror(errno)));
}

int guarded(const std::vector<std::string>& words) {
  try {
    return flushed(dispatch(words));
  } catch (const RanksEnded& ended) {
    return ended.status;
  } catch (const Error& bad_input) {
    return report(bad_input.what(), kBadInput);
  } catch (const boost::program_options::error& bad_arguments) {
    return report(fmt::format("{}; see --help", bad_arguments.what()).c_str(), kBadInput);
  } catch (const std::bad_alloc&) {
    return report("out of memory; lower max_length, global_batch_size or the number of tasks", kFailure);
  } catch (const std::exception& failure) {
    return report(failure.what(), kFailure);
  }
}

}  // namespace
}  // namespace braid::cli

int main(int argc, char** argv) {
  braid::cli::restart_with_sleeping_threads(argv);
  braid::cli::end_when_told();
  braid::kernels::return_large_blocks();
  braid::cli::behave_as_a_rank();
  braid::cli::take_over_what_was_told();
  return braid::cli::guarded({argv + 1, argv + argc});
}
