#include "report/report.h"

#include <sstream>

#include <boost/program_options/value_semantic.hpp>
#include <fmt/core.h>

#include "base/error.h"
#include "base/file.h"
#include "cli/command.h"
#include "cli/support/replayed.h"
#include "cli/support/session.h"
#include "cli/support/versions.h"
#include "planner/plan/plan_hashes.h"

namespace braid::cli {
namespace {

/// Of a run's first windows: enough to see how they follow one another.
constexpr std::int64_t kWindows = 3;

/// Data that is not there, or is other data by now, is no reason to show nothing.
std::string predicted_trace(const std::filesystem::path& file, std::string& why) {
  try {
    const planner::Plan plan = planner::read_plan(file);
    planner::check_data_hashes(plan);
    const Data data = load_data(plan.workload, false);
    std::ostringstream trace;
    write_replay(plan, planner::input_of(plan, data.samples), 0, kWindows, task_names(plan.workload), trace);
    return trace.str();
  } catch (const Error& error) {
    why = error.what();
    return "";
  }
}

/// A page may take the place of another, but not of what it is made of.
void check_not_read(const std::filesystem::path& out, const std::vector<std::string>& paths) {
  std::error_code none;
  for (const std::string& path : paths) {
    const bool within = std::filesystem::is_directory(path, none) && out.extension() != ".html" &&
                        std::filesystem::exists(out) &&
                        std::filesystem::absolute(out).lexically_normal().string().starts_with(
                            (std::filesystem::absolute(path) / "").lexically_normal().string());
    if (within || std::filesystem::equivalent(out, path, none))
      throw error("{}: is what the report is made of, and would be written over; give another file", out.string());
  }
}

}  // namespace

int run_report(const std::vector<std::string>& words) {
  CommonFlags flags;
  CommandLine line(
      "braid report PATH... [--out FILE]\nPATH is a plan, a timeline, what `validate --out` or `compare --out` wrote, "
      "the folder of a\n"
      "training run or of a cluster study, or a folder that holds such",
      flags);
  std::vector<std::string> paths;
  std::string title = "braid";
  line.add_positionals("PATH", paths);
  line.add_out("the page (default: report.html)");
  line.add().add_options()("title", boost::program_options::value(&title)->default_value(title),
                           "what stands above it");
  if (!line.parse(words)) return kSuccess;
  const std::filesystem::path out = flags.out.empty() ? "report.html" : flags.out;
  if (std::filesystem::exists(out) && !flags.overwrite)
    throw error("{}: exists; give another file or --overwrite", out.string());
  check_not_read(out, paths);
  report::Foot foot{"braid report", library_versions(), {}};
  foot.versions.insert(foot.versions.begin(), fmt::format("braid {}", BRAID_VERSION));
  for (const std::string& word : words) foot.command += " " + word;
  const std::vector<report::Section> sections = report::make_sections({paths.begin(), paths.end()}, {&predicted_trace});
  write_file(out, report::to_html(title, sections, foot));
  if (flags.json) {
    fmt::print("{{\"page\": \"{}\", \"sections\": {}}}\n", out.string(), sections.size());
  } else if (!flags.quiet) {
    fmt::print("{}: {} result{}; open it in a browser\n", out.string(), sections.size(),
               sections.size() == 1 ? "" : "s");
  }
  return kSuccess;
}

}  // namespace braid::cli
