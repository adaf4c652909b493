#pragma once

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "planner/streams.h"
#include "planner/verify/verify.h"

// Ways to break a Program on purpose.
namespace braid::planner::testing {

/// Checks that the Program breaks `rule` with a message that holds `words`.
inline void expect_rejected(const Program& program, Rule rule, const std::string& words, const VerifyContext& context) {
  const std::vector<Violation> violations = verify(program, context);
  const bool found = std::any_of(violations.begin(), violations.end(), [&](const Violation& violation) {
    return violation.rule == rule && violation.message.find(words) != std::string::npos;
  });
  EXPECT_TRUE(found) << "wanted " << name(rule) << " '" << words << "', got:\n" << messages_of(violations);
}

/// Rebuilds a stage's list, leaving entries out or changing their places; ids follow.
inline void reorder(StageProgram& stage, const std::vector<std::size_t>& places) {
  StageProgram changed = stage;
  changed.instructions.clear();
  changed.waits.clear();
  changed.parts.clear();
  std::vector<InstructionId> renamed(stage.instructions.size(), kNone);
  for (const std::size_t place : places) {
    std::vector<InstructionId> waits;
    for (const InstructionId id : stage.waits_of(stage.instructions[place])) {
      const InstructionId now = renamed[static_cast<std::size_t>(id - stage.first_id)];
      if (now != kNone) waits.push_back(now);
    }
    renamed[place] = changed.append(stage.instructions[place], waits, stage.parts_of(stage.instructions[place]));
  }
  stage = changed;
}

inline std::vector<std::size_t> all_places(const StageProgram& stage) {
  std::vector<std::size_t> places(stage.instructions.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  return places;
}

inline std::size_t find(const StageProgram& stage, Kind kind, int occurrence = 0) {
  for (std::size_t i = 0; i < stage.instructions.size(); ++i) {
    if (stage.instructions[i].kind == kind && occurrence-- == 0) return i;
  }
  ADD_FAILURE() << "no " << name(kind);
  return 0;
}

inline void remove(StageProgram& stage, std::size_t place) {
  std::vector<std::size_t> places = all_places(stage);
  places.erase(places.begin() + static_cast<std::ptrdiff_t>(place));
  reorder(stage, places);
}

}  // namespace braid::planner::testing
