#include "cli/support/options.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <sstream>

#include <boost/program_options/parsers.hpp>
#include <boost/program_options/positional_options.hpp>
#include <boost/program_options/value_semantic.hpp>
#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/error.h"
#include "exec/ranks/communicator.h"
#include "planner/policies/registry.h"

namespace braid::cli {

namespace po = boost::program_options;

namespace {

/// Seconds, as "2", "2.5" or "2s".
po::typed_value<std::string>* seconds(const char* flag, double& target) {
  return po::value<std::string>()->notifier([flag, &target](std::string text) {
    if (text.ends_with('s')) text.pop_back();
    std::size_t read = 0;
    try {
      target = std::stod(text, &read);
    } catch (const std::exception&) {
      read = 0;
    }
    if (read != text.size() || text.empty() || !(target > 0 && target <= 86400))
      throw error("{} {} is not usable; give seconds, more than 0, as 2, 2.5 or 2s", flag, text);
  });
}

}  // namespace

planner::Overrides CommonFlags::overrides() const {
  const auto given = [](std::int64_t value) { return value == 0 ? std::nullopt : std::optional(value); };
  return {given(tp), given(pp), given(microbatches), planner::layer_split_of(layers)};
}

CommandLine::CommandLine(std::string usage, CommonFlags& flags)
    : usage_(std::move(usage)), flags_(flags), described_("options") {
  described_.add_options()("help", po::bool_switch(&flags_.help), "this text");
  described_.add_options()("json", po::bool_switch(&flags_.json), "results as JSON on stdout");
  described_.add_options()("quiet", po::bool_switch(&flags_.quiet), "no progress on stderr");
}

void CommandLine::add_planning(const std::string& default_policy) {
  plans_ = true;
  described_.add_options()("workload", po::value(&flags_.workload), "workload.yaml: backbone and tasks");
  described_.add_options()("cluster", po::value(&flags_.cluster),
                           "cluster.yaml; left out: this machine's cores, or its GPUs, a rank each");
  described_.add_options()("profile", po::value(&flags_.profile),
                           "profile file; left out: what plans use is measured, and kept for later ones");
  add_foreign_profile();
  add_profile_budget();
  described_.add_options()(
      "policy",
      po::value(&flags_.policy)
          ->default_value(default_policy, default_policy.find(',') == std::string::npos ? default_policy : "all"),
      "NAME[:option=value]...; `braid policies` lists them, `braid policies NAME` the options of one");
  described_.add_options()("plan-budget", seconds("--plan-budget", flags_.plan_budget_seconds),
                           "seconds after which policy braid searches no further, once it has a plan");
  described_.add_options()("tp", po::value(&flags_.tp), "tensor-parallel degree");
  described_.add_options()("pp", po::value(&flags_.pp), "pipeline stages");
  described_.add_options()(
      "layers", po::value(&flags_.layers)->default_value("even"),
      "even; balanced: fewer where the head or the embedding is, too; or the layers of each stage, "
      "such as 9,9,9,5");
  described_.add_options()("microbatches", po::value(&flags_.microbatches), "microbatches of each global batch");
  described_.add_options()("ranks", po::value(&flags_.ranks), "ranks of this machine, in place of the cluster's");
  add_preference();
  add_backend();
  later({"plan-budget", "layers", "microbatches"});
}

void CommandLine::add_foreign_profile() {
  described_.add_options()("foreign-profile", po::bool_switch(&flags_.foreign_profile),
                           "take --profile, or the plan's, though it was measured on another machine or with other "
                           "libraries");
  later({"foreign-profile"});
}

void CommandLine::add_preference() {
  described_.add_options()("prefer", po::value(&flags_.prefer)->default_value("memory"),
                           "memory: of the plans that take at most 1 % longer than the fastest the one with the least "
                           "memory, a tenth of the machine's left free; speed: the fastest, in all memory of a GPU");
}

void CommandLine::add_profile_budget() {
  described_.add_options()("profile-budget", seconds("--profile-budget", flags_.profile_budget)->default_value("60"),
                           "seconds that measuring this machine may take before planning");
  later({"profile-budget"});
}

void CommandLine::add_plan() {
  described_.add_options()("plan", po::value(&flags_.plan), "plan.json, in place of a workload and a policy");
}

void CommandLine::add_out(const std::string& what) {
  described_.add_options()("out", po::value(&flags_.out), what.c_str());
  described_.add_options()("overwrite", po::bool_switch(&flags_.overwrite), "replace what --out already holds");
}

void CommandLine::add_timeline() {
  described_.add_options()("timeline-out", po::value(&flags_.timeline_out),
                           "write a trace for Perfetto (ui.perfetto.dev) or Chrome");
  if (!described_.find_nothrow("overwrite", false))
    described_.add_options()("overwrite", po::bool_switch(&flags_.overwrite), "replace what --timeline-out names");
}

void CommandLine::add_threads() {
  described_.add_options()("threads", po::value(&flags_.threads), "worker threads a rank; left out: cores / ranks");
  later({"threads"});
}

void CommandLine::add_backend() {
  described_.add_options()(
      "backend", po::value(&flags_.backend),
      "what computes: cpu; cuda, a GPU a rank, activations in bf16; cuda-f32, to check by, or cuda-tf32, the same but "
      "for products rounded to tf32; or reference, whose kernels are slow, simple and read to be right; left out: cpu, "
      "or what the plan was made for");
}

void CommandLine::add_seed() {
  described_.add_options()("seed", po::value(&flags_.seed)->default_value(1), "of what is drawn at random");
}

void CommandLine::add_positional(const std::string& name, std::string& value) {
  positional_.push_back(name);
  hidden_.add_options()(name.c_str(), po::value(&value)->required(), "");
}

void CommandLine::add_positionals(const std::string& name, std::vector<std::string>& values) {
  repeated_ = name;
  hidden_.add_options()(name.c_str(), po::value(&values)->required(), "");
}

void CommandLine::add_optional_positional(const std::string& name, std::string& value) {
  positional_.push_back(name);
  hidden_.add_options()(name.c_str(), po::value(&value), "");
}

namespace {

/// By the option's name and what is said of it.
std::string argument_of(const po::option_description& option) {
  if (option.semantic()->max_tokens() == 0) return "";
  const std::string& name = option.long_name();
  static const std::set<std::string> kFiles = {"plan",  "workload",      "cluster",  "profile",  "timeline-out",
                                               "trace", "outages",       "solution", "replaces", "known",
                                               "check", "crossvalidate", "fit"};
  static const std::set<std::string> kNumbers = {"tp",   "pp",    "microbatches", "ranks",  "threads",
                                                 "seed", "seeds", "gpus",         "window", "instance-gpus"};
  if (kFiles.contains(name)) return "FILE";
  if (kNumbers.contains(name)) return "N";
  if (name == "out" || name == "dump-model") return option.description().starts_with("folder") ? "DIR" : "FILE";
  if (name == "policy" || name == "scheduler" || name == "backbone" || name == "placement" || name == "backend")
    return "NAME";
  if (name.ends_with("minutes") || name.ends_with("hours") || name.ends_with("seconds") || name.ends_with("budget"))
    return "TIME";
  return "VALUE";
}

/// Of "arg (=60)".
std::string default_of(const po::option_description& option) {
  const std::string name = option.semantic()->name();
  const std::size_t begin = name.find("(=");
  if (option.semantic()->max_tokens() == 0 || begin == std::string::npos) return "";
  const std::string text = name.substr(begin + 2, name.rfind(')') - begin - 2);
  double number = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), number);
  // As it was written, not as it is held.
  return wrong == std::errc() && end == text.data() + text.size() ? fmt::format("{}", number) : text;
}

std::size_t columns_of_terminal() {
  const char* columns = std::getenv("COLUMNS");
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const int told = columns ? std::atoi(columns) : 0;
  return told > 0 ? static_cast<std::size_t>(told) : 100;
}

}  // namespace

CommandHelp CommandLine::help() const {
  CommandHelp help;
  help.usage = usage_;
  std::istringstream words(usage_);
  std::string word;
  words >> word >> help.name;  // after the program's
  if (words >> word;
      std::ranges::all_of(word, [](char c) { return c == '-' || std::islower(static_cast<unsigned char>(c)); }) &&
      help.name == "trace")
    help.name += " " + word;
  for (const auto& option : described_.options()) {
    if (!has_json_ && option->long_name() == "json") continue;
    help.options.push_back({option->long_name(), argument_of(*option), default_of(*option), option->description(),
                            !later_.contains(option->long_name())});
  }
  return help;
}

bool CommandLine::parse(const std::vector<std::string>& words) {
  po::options_description all;
  all.add(described_).add(hidden_);
  all.add_options()("help-all", po::bool_switch(), "");
  po::positional_options_description positional;
  for (const std::string& name : positional_) positional.add(name.c_str(), 1);
  if (!repeated_.empty()) positional.add(repeated_.c_str(), -1);
  // No option but -h has one letter, and a negative number is no option.
  if (const auto json = std::ranges::find(words, "--json"); json != words.end() && !has_json_)
    throw error("--json is not an option of this command; leave it out");
  std::vector<std::string> spelled = words;
  std::ranges::replace(spelled, std::string("-h"), std::string("--help"));
  constexpr int kStyle = po::command_line_style::default_style & ~po::command_line_style::allow_short;
  po::store(po::command_line_parser(spelled).options(all).positional(positional).style(kStyle).run(), values_);
  if (const bool every = values_["help-all"].as<bool>(); every || values_["help"].as<bool>()) {
    if (HelpCatcher* catcher = HelpCatcher::active()) {
      catcher->caught = help();
    } else {
      fmt::print("{}", help_text(help(), every, columns_of_terminal()));
    }
    return false;
  }
  for (const auto& argument : hidden_.options()) {
    if (argument->semantic()->is_required() && values_.count(argument->long_name()) == 0)
      throw error("{} is missing; see --help", argument->long_name());
  }
  po::notify(values_);
  for (const auto& [name, number] :
       {std::pair("tp", flags_.tp), std::pair("pp", flags_.pp), std::pair("microbatches", flags_.microbatches),
        std::pair("ranks", flags_.ranks), std::pair("threads", flags_.threads)}) {
    if (given(name) && number < 1) throw error("--{} {} is not usable; give a number >= 1", name, number);
  }
  flags_.preference();
  constexpr std::int64_t kMostRanks = std::int64_t{1} << 30;
  if (flags_.ranks > kMostRanks) throw error("--ranks {} is not usable; give 1..{}", flags_.ranks, kMostRanks);
  if (flags_.seed < 0) throw error("--seed {} is not usable; give a number >= 0", flags_.seed);
  for (const auto& [name, text] : {std::pair("plan", &flags_.plan), std::pair("workload", &flags_.workload),
                                   std::pair("cluster", &flags_.cluster), std::pair("profile", &flags_.profile),
                                   std::pair("out", &flags_.out), std::pair("timeline-out", &flags_.timeline_out)}) {
    if (given(name) && text->empty()) throw error("--{} is empty; give a path", name);
  }
  if (given("plan")) {
    if (const std::optional<std::string> name = given_of_planning())
      throw error("--plan and --{} are both given; a plan has fixed that, plan anew to change it", *name);
    if (plans_ && given("profile-budget"))
      throw error("--profile-budget is of what is measured before planning; leave it out, as there is a plan");
  }
  for (const std::string* written : {&flags_.out, &flags_.timeline_out}) {
    for (const auto& [name, read] : {std::pair("plan", &flags_.plan), std::pair("workload", &flags_.workload),
                                     std::pair("cluster", &flags_.cluster), std::pair("profile", &flags_.profile)}) {
      std::error_code none;
      if (std::filesystem::equivalent(*written, *read, none) && std::filesystem::is_regular_file(*read, none))
        throw error("{}: is what --{} names, and would be written over; give another file", *written, name);
    }
  }
  if (given("timeline-out") && !flags_.overwrite && std::filesystem::exists(flags_.timeline_out) &&
      exec::launched_ranks() == 0)
    throw error("{}: exists; give another file or --overwrite", flags_.timeline_out);
  return true;
}

std::optional<std::string> CommandLine::given_of_planning() const {
  for (const char* name : {"workload", "cluster", "profile", "policy", "tp", "pp", "layers", "microbatches", "ranks",
                           "prefer", "plan-budget"})
    if (given(name)) return name;
  return std::nullopt;
}

bool CommandLine::given(const std::string& flag) const {
  return values_.count(flag) > 0 && !values_[flag].defaulted();
}

void check_output_folder(const std::filesystem::path& folder, bool overwrite) {
  if (!std::filesystem::exists(folder)) return;
  if (!std::filesystem::is_directory(folder)) throw error("{}: is a file; give a folder to write to", folder.string());
  if (!overwrite && !std::filesystem::is_empty(folder))
    throw error("{}: is not empty; give another folder or --overwrite", folder.string());
}

}  // namespace braid::cli
