#include "planner/window/unit_stream.h"

#include "base/error.h"
#include "planner/window/pipeline_units.h"

namespace braid::planner {
namespace {

std::int64_t computed_tokens(const ChunkGroup& group) {
  std::int64_t tokens = 0;
  for (const Microbatch& microbatch : group) tokens += microbatch.computed_tokens();
  return tokens;
}

}  // namespace

bool streams(const FixedPlan& fixed) {
  return fixed.pipeline == PipelineTemplate::lora_1f1b || fixed.pipeline == PipelineTemplate::lora_gpipe ||
         fixed.pipeline == PipelineTemplate::stream;
}

UnitStream::UnitStream(const FixedPlan& fixed) : fixed_(fixed) {
  BRAID_CHECK(streams(fixed) && fixed.deployment.size() == 1, "a stream of {} replicas", fixed.deployment.size());
}

void UnitStream::push(std::span<const HTaskRound> round) {
  // By hTask or bucket, in order.
  std::vector<Line> lines =
      fixed_.pipeline == PipelineTemplate::stream ? lines_of_buckets(round) : lines_of_htasks(round);
  if (!pipeline_) {
    double work = 0, count = 0;
    for (const auto& [line, units] : lines) {
      for (const Unit& unit : units) work += static_cast<double>(unit.work), ++count;
    }
    if (count == 0) return;
    const auto mode =
        fixed_.pipeline == PipelineTemplate::lora_gpipe ? LoraPipeline::gpipe : LoraPipeline::one_forward_one_backward;
    pipeline_.emplace(fixed_.deployment.front().stages(), mode, fixed_.transfer_share, work / count);
  }
  for (auto& [line, units] : lines) {
    const auto before = last_.find(line);
    const std::int32_t gate = before == last_.end() ? kNone : before->second;
    for (Unit& unit : units) {
      last_[line] = pushed_;
      pipeline_->push({pushed_, unit.work, gate});
      units_.emplace(pushed_++, std::move(unit.unit));
    }
  }
}

void UnitStream::end() {
  if (pipeline_) pipeline_->end();
}

std::vector<StageOrder> UnitStream::advance() {
  if (!pipeline_) return {};
  const std::vector<StageOrder> places = pipeline_->advance();
  std::vector<StageOrder> orders(places.size());
  for (std::size_t stage = 0; stage < places.size(); ++stage) {
    for (const ComputeSlot& slot : places[stage]) append_unit(slot, units_.at(slot.microbatch), orders[stage]);
  }
  for (const ComputeSlot& slot : places.front()) {
    if (slot.kind == Kind::backward) units_.erase(slot.microbatch);
  }
  return orders;
}

std::vector<UnitStream::Line> UnitStream::lines_of_htasks(std::span<const HTaskRound> round) const {
  std::vector<Line> lines;
  for (const HTaskRound& htask : round) {
    std::vector<Unit>& units = lines.emplace_back(htask.htask, std::vector<Unit>{}).second;
    const std::vector<ChunkGroup>& groups = htask.groups.front();
    std::vector<PipelineUnit> passing = units_of(groups);
    for (std::size_t g = 0; g < groups.size(); ++g)
      units.push_back({std::move(passing[g]), computed_tokens(groups[g])});
  }
  return lines;
}

std::vector<UnitStream::Line> UnitStream::lines_of_buckets(std::span<const HTaskRound> round) const {
  std::map<MicrobatchId, std::int64_t> tokens;
  for (const Microbatch& microbatch : microbatches_of(round)) tokens[microbatch.id] = microbatch.computed_tokens();
  std::vector<Line> lines;
  for (std::vector<PipelineUnit>& clocks : clocks_of(fixed_, round, 0)) {
    std::vector<Unit>& units = lines.emplace_back(static_cast<std::int32_t>(lines.size()), std::vector<Unit>{}).second;
    for (PipelineUnit& clock : clocks) {
      std::int64_t work = 0;
      for (const std::vector<MicrobatchId>& chunk : clock.chunks) {
        for (const MicrobatchId id : chunk) work += tokens.at(id);
      }
      units.push_back({std::move(clock), work});
    }
  }
  return lines;
}

}  // namespace braid::planner
