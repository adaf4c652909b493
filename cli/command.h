#pragma once

#include <span>
#include <string>
#include <vector>

namespace braid::cli {

/// A subcommand: its words after the name in, the exit status out. Errors are thrown.
struct Command {
  const char* name;
  const char* summary;
  int (*run)(const std::vector<std::string>& words);
  std::span<const Command> actions = {};  ///< of a command whose first word names one
};
/// All that there are.
std::span<const Command> commands();
/// Of `braid trace`.
std::span<const Command> trace_actions();

int run_import(const std::vector<std::string>& words);
int run_init(const std::vector<std::string>& words);
int run_profile(const std::vector<std::string>& words);
int run_cluster(const std::vector<std::string>& words);
int run_compare(const std::vector<std::string>& words);
int run_plan(const std::vector<std::string>& words);
int run_report(const std::vector<std::string>& words);
int run_simulate(const std::vector<std::string>& words);
int run_train(const std::vector<std::string>& words);
int run_validate(const std::vector<std::string>& words);
int run_status(const std::vector<std::string>& words);
int run_task(const std::vector<std::string>& words);
int run_trace(const std::vector<std::string>& words);
int run_trace_formats(const std::vector<std::string>& words);
int run_policies(const std::vector<std::string>& words);
int run_schedulers(const std::vector<std::string>& words);
int run_gpus(const std::vector<std::string>& words);
int run_backbones(const std::vector<std::string>& words);
int run_completion(const std::vector<std::string>& words);
int run_man(const std::vector<std::string>& words);

inline constexpr int kSuccess = 0;
inline constexpr int kFailure = 1;
inline constexpr int kBadInput = 2;
inline constexpr int kInterrupted = 130;

}  // namespace braid::cli
