#pragma once

#include <csignal>
#include <map>
#include <thread>

#include <fcntl.h>
#include <sys/wait.h>

#include "base/node.h"
#include "base/steady_clock.h"
#include "cli/workspace.h"

namespace braid::cli::testing {

/// Runs that go on beside the test, in folder/run.
class BackgroundRun : public Workspace {
 protected:
  /// `braid train` with these words, which nobody waits for; what it says is in folder/log.
  pid_t start_training(const std::string& words) const {
    const std::string command = std::string(BRAID_PROGRAM) + " train --quiet --out " + path("run") + " " + words;
    const pid_t pid = ::fork();
    if (pid != 0) return pid;
    ::setpgid(0, 0);
    const int log = ::open(path("log").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    ::dup2(log, STDOUT_FILENO), ::dup2(log, STDERR_FILENO);
    ::execl("/bin/sh", "sh", "-c", ("exec " + command).c_str(), nullptr);
    ::_exit(127);
  }
  static int wait(pid_t pid) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    return status;
  }
  /// Whether it ends within so many seconds.
  static bool ends_within(pid_t pid, double seconds, int& status) {
    for (const SteadyClock::time_point began = SteadyClock::now(); seconds_since(began) < seconds;) {
      if (::waitpid(pid, &status, WNOHANG) == pid) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  }

  /// By task.
  std::map<std::string, std::string> adapters(const std::string& run) const {
    std::map<std::string, std::string> bytes;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(folder / run / "adapters", none)) {
      const std::filesystem::path file = entry.path() / "adapter_model.safetensors";
      if (std::filesystem::exists(file)) bytes[entry.path().filename()] = read_text(file);
    }
    return bytes;
  }
  /// Losses and norms by task and step; each step is told once.
  std::map<std::string, std::string> metrics(const std::string& run) const {
    std::map<std::string, std::string> told;
    std::istringstream text(read_text(folder / run / "metrics.jsonl"));
    for (std::string line; std::getline(text, line);) {
      const Node node = parse_json(line, "metrics.jsonl");
      if (!node.find("loss")) continue;
      const std::string step = node.string_at("task") + " " + std::to_string(node.integer_at("step"));
      EXPECT_FALSE(told.contains(step)) << step;
      told[step] = node.at("loss").text + " " + node.at("grad_norm").text;
    }
    return told;
  }
};

}  // namespace braid::cli::testing
