#include "sim/replay.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "base/error.h"

namespace braid::sim {
namespace {

using planner::Clocks;
using planner::Instruction;
using planner::Program;
using planner::StageProgram;

constexpr Nanoseconds kUnknown = std::numeric_limits<Nanoseconds>::min();
constexpr std::uint32_t kEnd = std::numeric_limits<std::uint32_t>::max();

struct Span {
  Nanoseconds start = kUnknown;
  Nanoseconds end = kUnknown;
};

/// One stage's way through its list: each stream walks the entries that are its own.
struct StageState {
  std::array<std::uint32_t, planner::kStreamCount> head{};
  std::array<Nanoseconds, planner::kStreamCount> free{};
  std::vector<std::uint32_t> next;  // the next entry of the same stream
  std::vector<Span> spans;
  bool queued = false;
};

struct ChannelState {
  std::vector<Nanoseconds> arrivals;
  std::vector<Nanoseconds> taken;  // per message how long its send took; 0 where that was in an earlier slice
  std::size_t received = 0;
};

/// Members come to a group's meetings in order; those who came to the next one wait for the rest.
struct GroupState {
  struct Arrival {
    std::uint32_t stage = 0;
    std::uint32_t position = 0;
  };
  std::vector<Arrival> waiting;
  Nanoseconds ready = kUnknown;
  Nanoseconds duration = 0;
};

class Replay {
 public:
  Replay(const Program& program, const planner::Durations& durations, const Clocks* clocks)
      : program_(program), durations_(durations), clocks_(clocks) {}

  planner::Timeline run() {
    prepare();
    for (std::uint32_t stage = 0; stage < states_.size(); ++stage) wake(stage);
    while (!ready_.empty()) {
      const std::uint32_t stage = ready_.back();
      ready_.pop_back();
      states_[stage].queued = false;
      while (advance(stage)) {
      }
    }
    check_all_ran();
    return timeline();
  }

  Clocks clocks_after() const {
    Clocks clocks;
    for (std::size_t s = 0; s < states_.size(); ++s) {
      clocks.streams.emplace_back(states_[s].free.begin(), states_[s].free.end());
      std::vector<Clocks::Ended>& awaited = clocks.awaited.emplace_back();
      for (const planner::Awaited& entry : program_.after.stages[s].awaited)
        awaited.push_back({entry.id, end_of(s, entry.id)});
    }
    for (const ChannelState& channel : channels_) {
      clocks.messages.emplace_back(channel.arrivals.begin() + static_cast<std::ptrdiff_t>(channel.received),
                                   channel.arrivals.end());
    }
    return clocks;
  }

 private:
  void prepare() {
    const bool fresh = !clocks_ || clocks_->streams.empty();
    BRAID_CHECK(durations_.stages.size() == program_.stages.size(), "durations for {} stages of {}",
                durations_.stages.size(), program_.stages.size());
    states_.resize(program_.stages.size());
    for (std::size_t s = 0; s < states_.size(); ++s) {
      StageState& state = states_[s];
      const std::vector<Instruction>& instructions = program_.stages[s].instructions;
      BRAID_CHECK(durations_.stages[s].size() == instructions.size(), "stage {}: {} durations for {} instructions", s,
                  durations_.stages[s].size(), instructions.size());
      state.next.resize(instructions.size());
      state.spans.resize(instructions.size());
      state.head.fill(kEnd);
      for (std::size_t i = instructions.size(); i-- > 0;) {
        std::uint32_t& head = state.head[static_cast<std::size_t>(instructions[i].stream)];
        state.next[i] = head;
        head = static_cast<std::uint32_t>(i);
      }
      if (!fresh) std::copy(clocks_->streams[s].begin(), clocks_->streams[s].end(), state.free.begin());
    }
    channels_.resize(program_.channels.size());
    for (std::size_t c = 0; c < channels_.size(); ++c) {
      channels_[c].arrivals =
          fresh ? std::vector<Nanoseconds>(program_.before.messages[c].size(), 0) : clocks_->messages[c];
      channels_[c].taken.assign(channels_[c].arrivals.size(), 0);
    }
    groups_.resize(program_.groups.size());
  }

  void wake(std::uint32_t stage) {
    if (states_[stage].queued) return;
    states_[stage].queued = true;
    ready_.push_back(stage);
  }

  /// Runs what the heads of the stage's streams allow; true when something ran.
  bool advance(std::uint32_t stage) {
    StageState& state = states_[stage];
    bool ran = false;
    for (std::size_t stream = 0; stream < planner::kStreamCount; ++stream) {
      while (state.head[stream] != kEnd && try_run(stage, state.head[stream])) ran = true;
    }
    return ran;
  }

  bool try_run(std::uint32_t stage, std::uint32_t position) {
    StageState& state = states_[stage];
    const StageProgram& program = program_.stages[stage];
    const Instruction& instruction = program.instructions[position];
    Nanoseconds ready = state.free[static_cast<std::size_t>(instruction.stream)];
    for (const planner::InstructionId id : program.waits_of(instruction)) {
      const Nanoseconds end = end_of(stage, id);
      if (end == kUnknown) return false;
      ready = std::max(ready, end);
    }
    const Nanoseconds duration = durations_.stages[stage][position];
    if (planner::is_recv(instruction.kind)) {
      ChannelState& channel = channels_[static_cast<std::size_t>(instruction.channel)];
      if (channel.received == channel.arrivals.size()) return false;
      const std::size_t message = channel.received++;
      const Nanoseconds blocked = instruction.stream == planner::Stream::compute ? channel.taken[message] : 0;
      finish(stage, position, ready, std::max(ready + blocked, channel.arrivals[message]));
    } else if (planner::is_grouped(instruction.kind)) {
      meet(stage, position, ready, duration);
    } else {
      finish(stage, position, ready, ready + duration);
      if (planner::is_send(instruction.kind)) {
        const auto channel = static_cast<std::size_t>(instruction.channel);
        channels_[channel].arrivals.push_back(ready + duration);
        channels_[channel].taken.push_back(duration);
        wake(static_cast<std::uint32_t>(program_.channels[channel].to));
      }
    }
    return true;
  }

  /// The head of the stream has come to its group. It stays `kEnd` until the last member comes.
  void meet(std::uint32_t stage, std::uint32_t position, Nanoseconds ready, Nanoseconds duration) {
    const Instruction& instruction = program_.stages[stage].instructions[position];
    const auto index = static_cast<std::size_t>(instruction.group);
    GroupState& group = groups_[index];
    group.waiting.push_back({stage, position});
    group.ready = std::max(group.ready, ready);
    group.duration = std::max(group.duration, duration);
    states_[stage].head[static_cast<std::size_t>(instruction.stream)] = kEnd;
    if (group.waiting.size() < program_.groups[index].stages.size()) return;
    const GroupState met = std::exchange(group, GroupState{});
    for (const GroupState::Arrival& member : met.waiting) {
      finish(member.stage, member.position, met.ready, met.ready + met.duration);
      wake(member.stage);
    }
  }

  void finish(std::uint32_t stage, std::uint32_t position, Nanoseconds start, Nanoseconds end) {
    StageState& state = states_[stage];
    const auto stream = static_cast<std::size_t>(program_.stages[stage].instructions[position].stream);
    state.spans[position] = {start, end};
    state.free[stream] = end;
    state.head[stream] = state.next[position];
  }

  Nanoseconds end_of(std::size_t stage, planner::InstructionId id) const {
    const planner::InstructionId first = program_.stages[stage].first_id;
    if (id >= first) return states_[stage].spans[static_cast<std::size_t>(id - first)].end;
    if (!clocks_ || clocks_->awaited.empty()) return 0;
    const std::vector<Clocks::Ended>& awaited = clocks_->awaited[stage];
    const auto found =
        std::find_if(awaited.begin(), awaited.end(), [&](const Clocks::Ended& ended) { return ended.id == id; });
    BRAID_CHECK(found != awaited.end(), "stage {} waits for instruction {}, which the clocks do not know", stage, id);
    return found->end;
  }

  void check_all_ran() const {
    for (std::size_t s = 0; s < states_.size(); ++s) {
      for (std::size_t i = 0; i < states_[s].spans.size(); ++i) {
        BRAID_CHECK(states_[s].spans[i].end != kUnknown, "stage {} never gets past {} at place {}", s,
                    planner::name(program_.stages[s].instructions[i].kind), i);
      }
    }
  }

  planner::Timeline timeline() const {
    planner::Timeline result;
    std::size_t count = 0;
    for (const StageProgram& stage : program_.stages) count += stage.instructions.size() * stage.ranks.size();
    result.events.reserve(count);
    for (std::size_t s = 0; s < states_.size(); ++s) {
      const StageProgram& stage = program_.stages[s];
      for (const std::int32_t rank : stage.ranks) {
        for (std::size_t i = 0; i < stage.instructions.size(); ++i) {
          const Instruction& instruction = stage.instructions[i];
          result.events.push_back({rank, static_cast<planner::StageIndex>(s), instruction.stream, instruction.kind,
                                   stage.first_id + static_cast<planner::InstructionId>(i), states_[s].spans[i].start,
                                   states_[s].spans[i].end});
        }
      }
    }
    return result;
  }

  const Program& program_;
  const planner::Durations& durations_;
  const Clocks* clocks_;
  std::vector<StageState> states_;
  std::vector<ChannelState> channels_;
  std::vector<GroupState> groups_;
  std::vector<std::uint32_t> ready_;
};

}  // namespace

planner::Timeline replay(const Program& program, const planner::Durations& durations, Clocks* clocks) {
  Replay replay(program, durations, clocks);
  planner::Timeline timeline = replay.run();
  if (clocks) *clocks = replay.clocks_after();
  return timeline;
}

}  // namespace braid::sim
