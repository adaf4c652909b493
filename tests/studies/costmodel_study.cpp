// Holds the analytic cost model against figures measured elsewhere. Prints the files of results/costmodel that
// scripts/costmodel.sh writes.
#include <cstdio>
#include <exception>
#include <span>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "base/error.h"
#include "studies/costmodel/crossvalidate.h"
#include "studies/costmodel/measured_steps.h"
#include "studies/costmodel/papers.h"

namespace {

constexpr const char* kUsage =
    "usage: costmodel_study papers [--json]      what papers report of operators and memory, and what the model says\n"
    "       costmodel_study crossvalidate TABLE  fits part of a table measured elsewhere (Vidur's operators or\n"
    "                                            collectives, LobRA's layers or capacities), predicts the rest\n"
    "       costmodel_study steps TABLE GPU|PROFILE  steps measured by scripts/gpu/measure_layers.py, predicted\n";

/// False for words that are none of the usage's.
bool run(std::span<const std::string_view> words) {
  using namespace braid::costmodel::studies;
  const std::string_view what = words.empty() ? "" : words[0];
  const bool json = words.size() == 2 && words[1] == "--json";
  if (what == "papers" && (words.size() == 1 || json)) {
    print_papers(json);
  } else if (what == "crossvalidate" && words.size() == 2) {
    crossvalidate(words[1]);
  } else if (what == "steps" && words.size() == 3) {
    print_measured_steps(words[1], std::string(words[2]));
  } else {
    return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::vector<std::string_view> words(argv + 1, argv + argc);
    if (run(words)) return 0;
    fmt::print(stderr, "{}", kUsage);
    return 2;
  } catch (const braid::Error& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 2;
  } catch (const std::exception& fault) {
    fmt::print(stderr, "error: {}\n", fault.what());
    return 1;
  }
}
