#include <boost/program_options/value_semantic.hpp>
#include <fmt/core.h>

#include "base/error.h"
#include "base/file.h"
#include "cli/command.h"
#include "cli/support/results.h"
#include "cli/support/session.h"

namespace braid::cli {

int run_plan(const std::vector<std::string>& words) {
  CommonFlags flags;
  CommandLine line("braid plan --workload FILE [options]", flags);
  line.add_planning("braid");
  line.add_threads();
  line.add_out("plan.json");
  bool explain = false;
  line.add().add_options()("explain", boost::program_options::bool_switch(&explain), "say why each decision was taken");
  if (!line.parse(words)) return kSuccess;
  if (!flags.out.empty() && std::filesystem::exists(flags.out) && !flags.overwrite)
    throw error("{}: exists; give another file or --overwrite", flags.out);
  if (!flags.out.empty()) check_writable(flags.out);
  const planner::Plan plan = make_plan_from_flags(flags);
  if (!flags.out.empty()) write_file(flags.out, planner::to_json(plan));
  if (flags.json) {
    fmt::print("{}", planner::to_json(plan));
  } else {
    print_plan(plan);
    for (const std::string& reason : plan.reasons) {
      if (explain) fmt::print("  {}\n", reason);
    }
  }
  return kSuccess;
}

}  // namespace braid::cli
