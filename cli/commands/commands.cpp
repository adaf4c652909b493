#include "cli/command.h"

namespace braid::cli {

std::span<const Command> commands() {
  static const Command kCommands[] = {
      {"init", "write a working example: a tiny backbone, four datasets, a workload", &run_init},
      {"import", "a workload from training files of LLaMA-Factory, axolotl, mLoRA or LobRA", &run_import},
      {"profile", "measure operators and messages on this machine", &run_profile},
      {"plan", "workload + cluster + profile + policy: a plan with its predicted step time and memory", &run_plan},
      {"compare", "plans of many policies for one workload, in one table", &run_compare},
      {"simulate", "replay a plan", &run_simulate},
      {"train", "execute a plan: fine-tune its tasks and write their adapters", &run_train},
      {"status", "how a training run stands, from another shell", &run_status},
      {"task", "add, list, cancel, pause and resume tasks of a training run", &run_task},
      {"validate", "execute and replay a plan, and compare", &run_validate},
      {"report", "one HTML page, with pictures, of any results", &run_report},
      {"cluster", "replay a trace of jobs on a simulated cluster: schedulers, policies, what-ifs", &run_cluster},
      {"trace", "statistics, slices and generation of cluster traces", &run_trace, trace_actions()},
      {"policies", "what --policy may name, and each one's options", &run_policies},
      {"schedulers", "what `braid cluster --scheduler` may name", &run_schedulers},
      {"gpus", "what a cluster's gpu may name, with datasheets", &run_gpus},
      {"backbones", "built-in shapes, to plan without weights", &run_backbones},
      {"completion", "a script that completes words in bash or zsh", &run_completion},
      {"man", "manual pages, into a folder", &run_man},
  };
  return kCommands;
}

}  // namespace braid::cli
