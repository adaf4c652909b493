#pragma once

#include <string>
#include <vector>

namespace braid::cli {

/// A subcommand: its words after the name in, the exit status out. Errors are thrown.
struct Command {
  const char* name;
  const char* summary;
  int (*run)(const std::vector<std::string>& words);
};

int run_init(const std::vector<std::string>& words);
int run_profile(const std::vector<std::string>& words);
int run_cluster(const std::vector<std::string>& words);
int run_compare(const std::vector<std::string>& words);
int run_plan(const std::vector<std::string>& words);
int run_simulate(const std::vector<std::string>& words);
int run_train(const std::vector<std::string>& words);
int run_validate(const std::vector<std::string>& words);
int run_status(const std::vector<std::string>& words);
int run_task(const std::vector<std::string>& words);
int run_trace(const std::vector<std::string>& words);

inline constexpr int kSuccess = 0;
inline constexpr int kFailure = 1;
inline constexpr int kBadInput = 2;
inline constexpr int kInterrupted = 130;

}  // namespace braid::cli
