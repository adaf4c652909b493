#pragma once

#include <filesystem>
#include <functional>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <boost/program_options/options_description.hpp>
#include <boost/program_options/variables_map.hpp>

#include "cli/support/help.h"
#include "planner/search/make_plan.h"

namespace braid::cli {

/// The flags that mean the same everywhere; a command shows those it has.
struct CommonFlags {
  std::string workload, cluster, profile, policy, plan, out, timeline_out;
  std::string layers = "even", prefer = "memory";
  std::string backend;  ///< empty: not given
  std::string kernels = "faster";
  std::int64_t seed = 1;
  std::int64_t threads = 0;                                  ///< 0: cores / ranks
  std::int64_t tp = 0, pp = 0, microbatches = 0, ranks = 0;  ///< 0: not given
  std::string dump_model, solution;                          ///< a folder for models, a solver's .sol file
  double profile_budget = 60;                                ///< seconds that measuring may take before planning
  double plan_budget_seconds = 0;                            ///< of policy braid; 0: not limited
  bool foreign_profile = false;                              ///< a profile of another machine will do
  std::vector<std::string> passed_on;                        ///< words for the ranks that this process launches
  bool json = false, quiet = false, overwrite = false, help = false;

  planner::Overrides overrides() const;
  planner::Preference preference() const { return planner::preference_of(prefer); }
};

/// A command's flags: parses words, prints --help.
class CommandLine {
 public:
  CommandLine(std::string usage, CommonFlags& flags);

  boost::program_options::options_description& add() { return described_; }
  /// Options that --help leaves to --help-all.
  void later(std::initializer_list<std::string_view> names) { later_.insert(names.begin(), names.end()); }
  /// --workload, --cluster, --profile, --policy, --tp, --pp, --layers, --microbatches, --ranks, --foreign-profile,
  /// --prefer, --profile-budget.
  void add_planning(const std::string& default_policy);
  /// --foreign-profile.
  void add_foreign_profile();
  /// --prefer.
  void add_preference();
  /// --profile-budget.
  void add_profile_budget();
  void add_plan();
  void add_out(const std::string& what);
  void add_timeline();
  void add_threads();
  /// --backend.
  void add_backend();
  void add_seed();
  /// One word without a flag, named `name`; again: the one after it.
  void add_positional(const std::string& name, std::string& value);
  /// Which may be left out; after those that may not.
  void add_optional_positional(const std::string& name, std::string& value);

  /// For commands whose output is a script or files: takes --json away.
  void without_json() { has_json_ = false; }
  /// Words without a flag, at least one, as many as there are.
  void add_positionals(const std::string& name, std::vector<std::string>& values);

  /// False when --help or --help-all was asked for and told. Throws boost::program_options::error.
  bool parse(const std::vector<std::string>& words);
  /// Whether the words that were parsed have the flag.
  bool given(const std::string& flag) const;
  /// One that they have of those by which a plan is made, and which it has fixed then.
  std::optional<std::string> given_of_planning() const;

 private:
  CommandHelp help() const;

  std::string usage_;
  CommonFlags& flags_;
  std::set<std::string, std::less<>> later_;
  boost::program_options::options_description described_;
  boost::program_options::options_description hidden_;
  bool plans_ = false;  // where no plan is given
  std::vector<std::string> positional_;
  bool has_json_ = true;
  std::string repeated_;  // of those the one that may come again
  boost::program_options::variables_map values_;
};

/// Refuses a folder that holds something unless `overwrite`; makes none.
void check_output_folder(const std::filesystem::path& folder, bool overwrite);

}  // namespace braid::cli
