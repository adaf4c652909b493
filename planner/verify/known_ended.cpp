#include "planner/verify/known_ended.h"

#include <algorithm>

namespace braid::planner {

KnownEnded::KnownEnded(const StageProgram& stage) {
  Counts started{};
  std::array<std::size_t, kStreamCount> last{};
  for (std::size_t i = 0; i < stage.instructions.size(); ++i) {
    const auto stream = static_cast<std::size_t>(stage.instructions[i].stream);
    Counts& mine = known_.emplace_back();
    const auto take = [&](std::size_t earlier) {
      for (std::size_t s = 0; s < mine.size(); ++s) mine[s] = std::max(mine[s], known_[earlier][s]);
      mine[stream_[earlier]] = std::max(mine[stream_[earlier]], ordinal_[earlier] + 1);
    };
    if (started[stream] > 0) take(last[stream]);
    for (const InstructionId id : stage.waits_of(stage.instructions[i])) {
      if (id >= stage.first_id) take(static_cast<std::size_t>(id - stage.first_id));
    }
    stream_.push_back(stream);
    ordinal_.push_back(started[stream]++);
    last[stream] = i;
  }
}

}  // namespace braid::planner
