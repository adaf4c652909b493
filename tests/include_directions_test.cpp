#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

/// Which source folder may include which. A folder of sources that is not here has no place yet: give it a row.
namespace braid {
namespace {

using Folders = std::map<std::string, std::set<std::string>>;

const Folders kMayInclude = {
    {"base", {}},
    {"costmodel", {"base"}},
    {"workload", {"base", "costmodel"}},
    {"planner", {"base", "costmodel", "workload"}},
    {"traces", {"base", "costmodel", "workload"}},
    {"sim", {"base", "costmodel", "workload", "planner", "traces"}},
    {"kernels", {"base", "costmodel"}},
    {"exec", {"base", "costmodel", "workload", "planner", "kernels"}},
    {"report", {"base"}},
    {"cli", {"base", "costmodel", "workload", "planner", "traces", "sim", "kernels", "exec", "report"}},
};

/// Folders beside them that hold no sources of the program.
const std::set<std::string> kHoldNoSources = {"build", "cmake", "docs", "quickstart", "results", "scripts", "tests"};

/// The rooms of planner/, likewise. What a file of one includes of planner/ is of a room.
const Folders kPlannerMayInclude = {
    {"program", {}},
    {"milp", {}},
    {"dispatch", {"milp"}},
    {"bins", {"milp"}},
    {"verify", {"program"}},
    {"latency", {"program"}},
    {"plan", {"program", "bins", "dispatch", "latency"}},
    {"window", {"program", "bins", "dispatch", "verify", "latency", "plan"}},
    {"bound", {"latency", "plan", "window"}},
    {"muxtune", {"program", "latency", "plan", "window"}},
    {"lobra", {"program", "milp", "dispatch", "latency", "plan", "window"}},
    {"lorafusion", {"program", "bins", "latency", "plan", "window"}},
    {"policies", {"program", "plan", "window", "muxtune", "lobra", "lorafusion"}},
    {"search", {"program", "milp", "dispatch", "bins", "plan", "window", "bound", "muxtune", "policies"}},
    {"estimator", {"plan", "window", "muxtune", "search"}},
};

bool is_source(const std::filesystem::path& path) {
  static const std::set<std::string> kExtensions = {".h", ".cpp", ".cu", ".cuh", ".inc"};
  return kExtensions.contains(path.extension());
}

/// What a line includes, with the quotation mark or bracket before it; empty when it is no #include.
std::string_view included_in(std::string_view line) {
  const auto skip = [&](std::string_view word) {
    line.remove_prefix(std::min(line.size(), line.find_first_not_of(" \t")));
    const bool there = line.starts_with(word);
    if (there) line.remove_prefix(word.size());
    return there;
  };
  if (!skip("#") || !skip("include")) return {};
  skip("");
  if (!line.starts_with('"') && !line.starts_with('<')) return {};
  return line.substr(0, line.find_first_of("\">", 1));
}

/// The second of a path's parts where another follows it; empty where it is the last.
std::string room_of(const std::filesystem::path& path) {
  auto part = std::next(path.begin());
  return part == path.end() || std::next(part) == path.end() ? "" : part->string();
}

/// What only a device's own kernels may know.
bool is_of_a_device(const std::string& included) {
  return included.starts_with("kernels/cpu/") || included.starts_with("kernels/reference/") ||
         included.starts_with("kernels/cuda/");
}

/// What `content`, a file of `folder` and there of `room`, includes against the tables, one line each: "FILE:LINE:
/// ...".
std::vector<std::string> violations_in(const std::string& file, const std::string& folder, const std::string& room,
                                       std::istream& content) {
  std::vector<std::string> violations;
  std::string text;
  for (int line = 1; std::getline(content, text); ++line) {
    const std::string_view found = included_in(text);
    if (found.empty()) continue;
    const std::string included(found.substr(1));
    const std::string target = included.substr(0, included.find('/'));
    if (found[0] == '<' && !kMayInclude.contains(target)) continue;  // a library's
    const auto say = [&](const std::string& what) {
      violations.push_back(file + ":" + std::to_string(line) + ": " + what);
    };
    if (target == included || !kMayInclude.contains(target)) {
      say("\"" + included + "\" begins with no folder of sources");
    } else if (target != folder && !kMayInclude.at(folder).contains(target)) {
      say(folder + " may not include " + target);
    } else if (folder != "kernels" && is_of_a_device(included)) {
      say(folder + " may not include " + included + ", which is of one device");
    } else if (folder == "planner" && target == folder && kPlannerMayInclude.contains(room)) {
      const std::string other = room_of(included);
      if (other != room && !kPlannerMayInclude.at(room).contains(other)) {
        say("planner/" + room + " may not include " + included);
      }
    }
  }
  return violations;
}

std::vector<std::string> violations_under(const std::filesystem::path& source) {
  std::vector<std::string> violations;
  for (auto at = std::filesystem::recursive_directory_iterator(source); const auto& entry : at) {
    const std::filesystem::path path = std::filesystem::relative(entry.path(), source);
    const std::string folder = *path.begin();
    if (path == folder && entry.is_directory()) {
      if (kHoldNoSources.contains(folder) || folder.starts_with('.')) {
        at.disable_recursion_pending();
        continue;
      }
      if (!kMayInclude.contains(folder)) violations.push_back(folder + ": a folder without a row in this test's table");
    }
    if (!entry.is_regular_file() || !is_source(path)) continue;
    if (path == folder) {
      violations.push_back(folder + ": a source file outside any folder");
    } else if (kMayInclude.contains(folder)) {
      const std::string room = room_of(path);
      if (folder == "planner" && !kPlannerMayInclude.contains(room)) {
        violations.push_back(path.string() + ": a source file outside any room of this test's table");
      }
      std::ifstream content(entry.path());
      const auto found = violations_in(path, folder, room, content);
      violations.insert(violations.end(), found.begin(), found.end());
    }
  }
  std::sort(violations.begin(), violations.end());
  return violations;
}

TEST(IncludeDirections, TheTablesHaveNoCycles) {
  for (const Folders* table : {&kMayInclude, &kPlannerMayInclude}) {
    std::set<std::string> placed;
    while (placed.size() < table->size()) {
      const std::size_t before = placed.size();
      for (const auto& [folder, targets] : *table) {
        if (std::includes(placed.begin(), placed.end(), targets.begin(), targets.end())) placed.insert(folder);
      }
      ASSERT_GT(placed.size(), before) << "folders that include each other in a ring";
    }
  }
}

TEST(IncludeDirections, SourcesKeepToTheTable) {
  const std::filesystem::path source = BRAID_SOURCE_DIR;
  ASSERT_TRUE(std::filesystem::exists(source / "base" / "error.h")) << "looking in the wrong place";
  for (const std::string& violation : violations_under(source)) ADD_FAILURE() << violation;
}

/// A tree of its own, spoilt in every way that the test above must catch.
TEST(IncludeDirections, TheScannerCatchesWhatIsWrong) {
  const std::filesystem::path root =
      std::filesystem::temp_directory_path() / ("braid_include_directions_test." + std::to_string(::getpid()));
  std::filesystem::remove_all(root);
  const auto write = [&](const std::string& name, const std::string& content) {
    std::filesystem::create_directories((root / name).parent_path());
    std::ofstream(root / name) << content;
  };
  write("base/good.h", "#include <vector>\n#include \"base/error.h\"\n// #include \"sim/replay.h\"\n");
  write("base/bad.h", "#pragma once\n#include \"costmodel/profile.h\"\n");
  write("sim/bad.cpp", "  #  include \"exec/runner.h\"  // why not\n#include \"planner/plan/plan.h\"\n");
  write("exec/deep/bad.cu", "#include \"sim/replay.h\"\n#include \"kernels/cpu/rows.h\"\n");
  write("kernels/bad.inc", "#include \"rows.h\"\n#include \"../base/error.h\"\n");
  write("tests/any.cpp", "#include \"exec/runner.h\"\n#include \"shell.h\"\n");
  write("cli/good.cpp", "#include \"sim/replay.h\"\n#include \"exec/runner.h\"\n#include \"cli/command.h\"\n");
  write("planner/bad.h", "#include <cli/command.h>\n");
  write("planner/program/bad.h", "#include \"planner/program/good.h\"\n#include \"planner/plan/plan.h\"\n");
  write("planner/search/good.cpp", "#include \"planner/plan/plan.h\"\n#include \"base/error.h\"\n");
  write("sim/notes.md", "#include \"exec/runner.h\"\n");
  write("extra/thing.h", "#include \"base/error.h\"\n");
  write("loose.cpp", "");
  EXPECT_EQ(violations_under(root),
            (std::vector<std::string>{
                "base/bad.h:2: base may not include costmodel",
                "exec/deep/bad.cu:1: exec may not include sim",
                "exec/deep/bad.cu:2: exec may not include kernels/cpu/rows.h, which is of one device",
                "extra: a folder without a row in this test's table",
                "kernels/bad.inc:1: \"rows.h\" begins with no folder of sources",
                "kernels/bad.inc:2: \"../base/error.h\" begins with no folder of sources",

                "loose.cpp: a source file outside any folder",
                "planner/bad.h: a source file outside any room of this test's table",
                "planner/bad.h:1: planner may not include cli",
                "planner/program/bad.h:2: planner/program may not include planner/plan/plan.h",
                "sim/bad.cpp:1: sim may not include exec",
            }));
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace braid
