#include <boost/program_options/value_semantic.hpp>
#include <fmt/core.h>

#include "base/error.h"
#include "base/file.h"
#include "cli/command.h"
#include "cli/support/results.h"
#include "cli/support/session.h"
#include "planner/plan/plan_change.h"

namespace braid::cli {

int run_plan(const std::vector<std::string>& words) {
  CommonFlags flags;
  CommandLine line("braid plan --workload FILE [options]", flags);
  line.add_planning("braid");
  line.add_threads();
  line.add_out("plan.json");
  bool explain = false;
  line.add().add_options()("explain", boost::program_options::bool_switch(&explain), "say why each decision was taken");
  line.add().add_options()(
      "dump-model", boost::program_options::value(&flags.dump_model),
      "folder for the policy's mixed-integer programs, as .lp and .mps: LobRA's deployment, and of "
      "the first window's steps the dispatch or the packing");
  line.add().add_options()(
      "solution", boost::program_options::value(&flags.solution),
      "of policy lobra: a .sol file of Gurobi, HiGHS or CBC for the program 'deployment', which the "
      "plan then has");
  std::string replaces;
  line.add().add_options()("replaces", boost::program_options::value(&replaces),
                           "plan that runs now, of the same backbone: say what the change to this one takes");
  line.later({"dump-model", "solution", "replaces"});
  if (!line.parse(words)) return kSuccess;
  for (const auto& [name, text] :
       {std::pair("dump-model", &flags.dump_model), std::pair("solution", &flags.solution)}) {
    if (line.given(name) && text->empty()) throw error("--{} is empty; give a path", name);
  }
  if (!flags.dump_model.empty()) check_output_folder(flags.dump_model, flags.overwrite);
  if (!flags.out.empty() && std::filesystem::exists(flags.out) && !flags.overwrite)
    throw error("{}: exists; give another file or --overwrite", flags.out);
  if (!flags.out.empty()) check_writable(flags.out);
  std::optional<planner::Plan> before;
  if (line.given("replaces")) before = planner::read_plan(replaces);
  planner::Plan plan = make_plan_from_flags(flags);
  std::string change;
  if (before) {
    change = planner::describe(planner::change_of(*before, plan));
    plan.reasons.push_back(fmt::format("in the place of {}: {}", replaces, change));
  }
  if (!flags.out.empty()) write_file(flags.out, planner::to_json(plan));
  if (flags.json) {
    fmt::print("{}", planner::to_json(plan));
  } else {
    print_plan(plan);
    if (before) fmt::print("  change              {}\n", change);
    for (const std::string& reason : plan.reasons) {
      if (explain) fmt::print("  {}\n", reason);
    }
  }
  return kSuccess;
}

}  // namespace braid::cli
