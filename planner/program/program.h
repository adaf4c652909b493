#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "costmodel/work/recompute.h"

namespace braid::planner {

using InstructionId = std::int64_t;  ///< of one stage; never reused along a stream of Programs
using MicrobatchId = std::int64_t;   ///< of the whole instance; never reused
using TaskIndex = std::int32_t;      ///< into the workload's tasks
using StageIndex = std::int32_t;     ///< into Program::stages
using ChannelIndex = std::int32_t;
using GroupIndex = std::int32_t;

inline constexpr std::int32_t kNone = -1;

/// Decoder layers [first, last).
struct LayerRange {
  std::int32_t first = 0;
  std::int32_t last = 0;
  std::int32_t count() const { return last - first; }
  bool operator==(const LayerRange&) const = default;
};

/// Tokens [begin, end) of one sample in one microbatch. With begin > 0 it reads the keys and values that earlier
/// segments of that sample stored.
struct Segment {
  TaskIndex task = 0;
  std::int64_t global_batch = 0;  ///< which of the task's global batches, from 0: one step each
  std::int32_t index = 0;         ///< the sample's place in that global batch
  std::int64_t sample = 0;        ///< the sample's number in the dataset
  std::int32_t chosen = 0;  ///< of a pair: tokens of the chosen sequence, before the rejected one; 0: one sequence
  std::int32_t begin = 0;
  std::int32_t end = 0;
  std::int32_t padding = 0;  ///< tokens after `end` that kernels process for nothing
  std::int32_t scored = 0;   ///< tokens of [begin, end) whose prediction has a loss
  bool continues = false;    ///< a later segment of the sample reads its keys and values

  std::int32_t tokens() const { return end - begin; }
  std::int32_t computed_tokens() const { return tokens() + padding; }
  bool operator==(const Segment&) const = default;
};

/// What a segment has of one of its sample's sequences: tokens [begin, end) of it, and padding.
struct SequencePart {
  std::int32_t sequence = 0;  ///< of a pair: 0 the chosen one, 1 the rejected one
  std::int32_t begin = 0;
  std::int32_t end = 0;
  std::int32_t padding = 0;
  bool continues = false;  ///< a later segment has more of it
};

/// The parts of a segment, in order: one, or two where it reaches from a pair's chosen sequence into its rejected one.
template <typename Visit>
void for_each_sequence(const Segment& segment, const Visit& visit) {
  const std::int32_t border = segment.chosen;
  if (border == 0) {
    visit(SequencePart{0, segment.begin, segment.end, segment.padding, segment.continues});
    return;
  }
  const bool reaches_over = segment.end > border;
  if (segment.begin < border)
    visit(SequencePart{0, segment.begin, std::min(segment.end, border), reaches_over ? 0 : segment.padding,
                       segment.continues && segment.end < border});
  if (reaches_over || segment.begin >= border)
    visit(
        SequencePart{1, std::max(segment.begin - border, 0), segment.end - border, segment.padding, segment.continues});
}

/// Segments that go through the pipeline of one replica together; those of one task stand together.
struct Microbatch {
  MicrobatchId id = 0;
  std::int32_t replica = 0;
  std::vector<Segment> segments;

  std::int64_t computed_tokens() const;
  bool operator==(const Microbatch&) const = default;
};

enum class Kind : std::uint8_t {
  forward,
  backward,
  send_activation,
  send_gradient,
  recv_activation,
  recv_gradient,
  sync_adapter,
  reduce_norm,
  step
};
inline constexpr int kKindCount = 9;

/// An instruction waits for the one before it in its stream.
enum class Stream : std::uint8_t { compute, send, recv, sync };
inline constexpr int kStreamCount = 4;

std::string_view name(Kind kind);
std::string_view name(Stream stream);

inline bool is_send(Kind kind) {
  return kind == Kind::send_activation || kind == Kind::send_gradient;
}
inline bool is_recv(Kind kind) {
  return kind == Kind::recv_activation || kind == Kind::recv_gradient;
}
/// Ranks meet in a group: nobody leaves before the last has come.
inline bool is_grouped(Kind kind) {
  return kind == Kind::sync_adapter || kind == Kind::reduce_norm;
}

/// A run of a pool of the stage.
struct PoolRange {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  bool operator==(const PoolRange&) const = default;
};

/// What a Forward or Backward computes: one microbatch through a range of the stage's subgraphs, a Forward upwards and
/// a Backward downwards.
struct Part {
  MicrobatchId microbatch = 0;
  std::int32_t first_subgraph = 0;
  std::int32_t last_subgraph = 1;
  bool operator==(const Part&) const = default;
};

/// One entry of a stage's list. Which fields mean something depends on the kind; see the table in the design.
struct Instruction {
  Kind kind = Kind::forward;
  Stream stream = Stream::compute;
  TaskIndex task = kNone;             ///< sync_adapter, reduce_norm, step
  std::int64_t global_batch = kNone;  ///< sync_adapter, reduce_norm, step
  MicrobatchId microbatch = kNone;    ///< sends and receives
  ChannelIndex channel = kNone;       ///< sends and receives
  GroupIndex group = kNone;           ///< sync_adapter, reduce_norm
  LayerRange layers;                  ///< sync_adapter
  Bytes bytes = 0;                    ///< a message's or a meeting's payload on each rank
  PoolRange waits;                    ///< into StageProgram::waits
  PoolRange parts;                    ///< into StageProgram::parts; forward and backward
  std::int32_t subgraph = 0;          ///< sends and receives of interleaved stages: which one made or takes it
  bool operator==(const Instruction&) const = default;
};

/// What one stage of one replica runs: all its tensor-parallel ranks alike.
struct StageProgram {
  std::int32_t replica = 0;
  std::int32_t stage = 0;  ///< within the replica
  /// One run of layers; several where stages are interleaved: each is a subgraph, between which a microbatch goes
  /// through the other stages.
  std::vector<LayerRange> layers;
  bool has_embedding = false;  ///< below its first layer
  bool has_head = false;       ///< above its last layer
  std::vector<std::int32_t> ranks;
  std::int32_t subgraphs = 1;      ///< that its layers are cut into
  costmodel::Recompute recompute;  ///< of all its layers, those of the lowest run first
  bool sequence_parallel = false;  ///< its ranks share the tokens between products

  InstructionId first_id = 0;  ///< the id of instructions[0]; the rest count on
  std::vector<Instruction> instructions;
  std::vector<InstructionId> waits;
  std::vector<Part> parts;

  std::span<const InstructionId> waits_of(const Instruction& instruction) const {
    return {waits.data() + instruction.waits.first, instruction.waits.count};
  }
  std::span<const Part> parts_of(const Instruction& instruction) const {
    return {parts.data() + instruction.parts.first, instruction.parts.count};
  }
  /// True for the part that takes a microbatch's input, or gives its result.
  bool begins(Kind pass, const Part& part) const {
    return pass == Kind::forward ? part.first_subgraph == 0 : part.last_subgraph == subgraphs;
  }
  bool ends(Kind pass, const Part& part) const {
    return pass == Kind::forward ? part.last_subgraph == subgraphs : part.first_subgraph == 0;
  }
  bool interleaves() const { return layers.size() > 1; }
  /// True for the part that takes a message, or whose result is sent on.
  bool receives(Kind pass, const Part& part) const {
    const bool end_of_backbone = pass == Kind::forward ? has_embedding : has_head;
    return begins(pass, part) ? !end_of_backbone : interleaves();
  }
  bool sends(Kind pass, const Part& part) const {
    const bool end_of_backbone = pass == Kind::forward ? has_head : has_embedding;
    return ends(pass, part) ? !end_of_backbone : interleaves();
  }
  std::int64_t layer_count() const;
  /// Whether all these layers are its own.
  bool holds(LayerRange range) const;

  /// Appends and returns the id. Waits must name earlier instructions, of this slice or of an earlier one.
  InstructionId append(Instruction instruction, std::span<const InstructionId> waited,
                       std::span<const Part> computed = {});
  bool operator==(const StageProgram&) const = default;
};

/// "replica 0 stage 2", for messages.
std::string describe(const StageProgram& stage);

/// A one-way path between two stages; messages come out as they went in.
struct Channel {
  StageIndex from = 0;
  StageIndex to = 0;
  bool operator==(const Channel&) const = default;
};

/// Stages (all ranks of each) that meet in collectives, issued in the same order by all.
struct Group {
  std::vector<StageIndex> stages;
  bool operator==(const Group&) const = default;
};

/// Tokens [begin, end) of a sample of some global batch.
struct SamplePiece {
  std::int32_t index = 0;
  std::int32_t begin = 0;
  std::int32_t end = 0;
  auto operator<=>(const SamplePiece&) const = default;
};

/// A global batch of which some samples have gone backward on a stage and the Step has not yet come.
struct PartialGradient {
  TaskIndex task = 0;
  std::int64_t global_batch = 0;
  std::vector<SamplePiece> samples;  ///< what is in, ascending
  bool operator==(const PartialGradient&) const = default;
};

/// An instruction before a cut that instructions after it wait for, and what it did.
struct Awaited {
  InstructionId id = 0;
  Kind kind = Kind::forward;
  std::vector<MicrobatchId> microbatches;  ///< that it computed, or the one it carried
  ChannelIndex channel = kNone;
  TaskIndex task = kNone;
  std::int64_t global_batch = kNone;
  LayerRange layers;
  bool operator==(const Awaited&) const = default;
};

/// Keys and values that later chunks of a sample, or chunks on their way back, still read.
struct StoredKeys {
  TaskIndex task = 0;
  std::int64_t global_batch = 0;
  std::int32_t index = 0;
  std::int32_t tokens = 0;
  auto operator<=>(const StoredKeys&) const = default;
};

/// What is under way on one stage where a stream of Programs is cut.
struct StageBoundary {
  std::vector<MicrobatchId> live;          ///< forward begun here, backward not ended; ascending
  std::vector<PartialGradient> gradients;  ///< ascending by task, then global batch
  std::vector<StoredKeys> keys;            ///< of samples cut into chunks; ascending
  std::vector<Awaited> awaited;            ///< ascending by id
  std::vector<std::int64_t> next_batch;    ///< per task: the global batch whose Step comes next
  bool operator==(const StageBoundary&) const = default;
};

/// The cut between two slices of a stream. The clocks that go with it are the replay's (`Clocks`).
struct Boundary {
  std::vector<StageBoundary> stages;
  std::vector<std::vector<MicrobatchId>> messages;  ///< per channel, sent and not yet received, oldest first
  bool operator==(const Boundary&) const = default;
};

/// A slice of the endless schedule of an instance: what every stage of every replica runs.
struct Program {
  std::vector<StageProgram> stages;
  std::vector<Channel> channels;
  std::vector<Group> groups;
  std::vector<Microbatch> microbatches;  ///< ascending by id; all that instructions or boundaries name
  std::int32_t task_count = 0;
  /// Sends and receives stand in the compute stream, so that neither end of a message computes meanwhile.
  bool blocking_messages = false;
  Boundary before;
  Boundary after;

  /// The microbatch of that id, which must be there.
  const Microbatch& microbatch(MicrobatchId id) const;
  std::size_t instruction_count() const;
  bool operator==(const Program&) const = default;
};

/// What an instruction does, as a boundary after it says.
Awaited describe_awaited(const StageProgram& stage, std::size_t position);
/// The entry of that id; null when there is none.
const Awaited* find_awaited(const StageBoundary& boundary, InstructionId id);

/// A boundary with nothing under way, every task about to take its first step.
Boundary empty_boundary(const Program& program);
/// Whether nothing is under way.
bool is_empty(const Boundary& boundary);

}  // namespace braid::planner
