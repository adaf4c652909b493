#pragma once

#include <cstdio>
#include <string>

#include <sys/wait.h>

/// What the tests of programs share.
namespace braid {

struct Outcome {
  int status = 0;
  std::string text;  ///< stdout and stderr
};

/// Runs a shell command.
inline Outcome run_shell(const std::string& command) {
  Outcome outcome;
  FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  char block[4096];
  while (const std::size_t count = std::fread(block, 1, sizeof block, pipe)) outcome.text.append(block, count);
  const int status = ::pclose(pipe);
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

}  // namespace braid
