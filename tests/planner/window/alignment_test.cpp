#include "planner/window/alignment.h"

#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "planner/alignment_cases.h"
#include "planner/verify/verify.h"

namespace braid::planner {
namespace {

using namespace testing;

/// What every alignment owes: each sample once, its tokens and losses in consecutive segments; good microbatches.
void check_samples(const Case& made, const Alignment& alignment) {
  std::map<SampleKey, std::int32_t> reached;
  std::map<SampleKey, bool> continues;  // as each sample's last segment so far says
  for_each_microbatch(alignment, [&](const AlignedGroup& group, const std::vector<Segment>& microbatch) {
    RC_ASSERT(group.part >= 0);
    RC_ASSERT(group.part < made.parts);
    RC_ASSERT(!microbatch.empty());
    std::set<TaskIndex> left;
    for (std::size_t i = 0; i < microbatch.size(); ++i) {
      const Segment& segment = microbatch[i];
      if (i > 0 && microbatch[i - 1].task != segment.task) RC_ASSERT(left.insert(microbatch[i - 1].task).second);
      RC_ASSERT(left.count(segment.task) == 0U);
      const SampleRow& row =
          made.tasks[static_cast<std::size_t>(segment.task)].at(static_cast<std::size_t>(segment.index));
      RC_ASSERT(row.global_batch == segment.global_batch);
      RC_ASSERT(row.sample == segment.sample);
      const bool carries = segment.begin == row.tokens && segment.padding > 0 && made.empty == EmptyChunks::computed;
      RC_ASSERT((segment.end > segment.begin || (segment.end == segment.begin && carries)));
      RC_ASSERT(segment.padding >= 0);
      std::int32_t& end = reached[key_of(segment)];
      RC_ASSERT(end == segment.begin);
      end = segment.end;
      std::int32_t scored = 0;
      for (std::int32_t at = segment.begin; at < segment.end; ++at)
        scored += at + 1 < row.tokens && at + 1 >= row.tokens - row.scored ? 1 : 0;
      RC_ASSERT(segment.scored == scored);
      const auto [before, is_first] = continues.try_emplace(key_of(segment), segment.continues);
      RC_ASSERT(is_first || before->second);
      before->second = segment.continues;
    }
  });
  for (const auto& [key, last] : continues) RC_ASSERT(!last);
  for (const auto& rows : made.tasks) {
    for (const SampleRow& row : rows) RC_ASSERT((reached[{row.task, row.index}]) == row.tokens);
  }
}

RC_GTEST_PROP(Alignment, EverySampleIsComputedOnceInConsecutiveSegments, ()) {
  const Case made = any_case();
  check_samples(made, made.chunks());
  check_samples(made, align_packed(made.tasks, made.pack_length, made.parts));
  check_samples(made, align_padded(made.tasks, made.parts));
}

RC_GTEST_PROP(Alignment, SumsAddUp, ()) {
  const Case made = any_case();
  const AlignmentTokens rows = sums_of(made);
  for (const Alignment& alignment :
       {made.chunks(), align_packed(made.tasks, made.pack_length, made.parts), align_padded(made.tasks, made.parts)}) {
    std::int64_t data = 0, all = 0, microbatches = 0;
    for_each_microbatch(alignment, [&](const AlignedGroup&, const std::vector<Segment>& microbatch) {
      for (const Segment& segment : microbatch) data += segment.tokens();
      all += computed(microbatch);
      ++microbatches;
    });
    RC_ASSERT(microbatches == alignment.microbatches());
    RC_ASSERT(data == alignment.tokens.data);
    RC_ASSERT(all == alignment.tokens.computed());
    RC_ASSERT(alignment.tokens.data == rows.data);
    RC_ASSERT(alignment.tokens.row_padding + alignment.tokens.skipped_padding == rows.row_padding);
    RC_ASSERT(alignment.tokens.chunk_padding >= 0);
    RC_ASSERT(alignment.tokens.skipped_padding >= 0);
    RC_ASSERT(alignment.tokens.skipped_padding == 0 || made.empty == EmptyChunks::skipped);
  }
  RC_ASSERT(align_packed(made.tasks, made.pack_length, made.parts).tokens == rows);
  RC_ASSERT(align_padded(made.tasks, made.parts).tokens == rows);
}

/// Where packs hold their rows, told from the packs alone: of each sample, its pack and its first token's place there.
std::map<SampleKey, std::pair<std::size_t, std::int64_t>> places_of(const std::vector<Pack>& packs) {
  std::map<SampleKey, std::pair<std::size_t, std::int64_t>> places;
  for (std::size_t p = 0; p < packs.size(); ++p) {
    std::int64_t offset = 0;
    for (const SampleRow& row : packs[p].rows) {
      places[{row.task, row.index}] = {p, offset};
      offset += row.padded;
    }
  }
  return places;
}

RC_GTEST_PROP(Alignment, AMicrobatchIsOneWholeChunkOfEachPackOfItsPart, ()) {
  const Case made = any_case();
  const std::vector<Pack> packs = made.packs();
  const auto places = places_of(packs);
  const Alignment alignment = made.chunks();
  RC_ASSERT(alignment.packs == static_cast<std::int64_t>(packs.size()));
  std::map<std::size_t, std::int64_t> part_of;
  std::set<std::pair<std::int64_t, std::int64_t>> seen;
  for_each_microbatch(alignment, [&](const AlignedGroup& group, const std::vector<Segment>& microbatch) {
    std::map<std::size_t, std::int64_t> tokens;
    std::set<std::int64_t> numbers;
    for (const Segment& segment : microbatch) {
      const auto [pack, offset] = places.at(key_of(segment));
      RC_ASSERT(part_of.emplace(pack, group.part).first->second == group.part);
      // An empty segment carries padding of some later chunk of its row.
      if (segment.tokens() > 0) {
        numbers.insert((offset + segment.begin) / made.chunk_size);
        numbers.insert((offset + segment.end - 1) / made.chunk_size);
      }
      tokens[pack] += segment.computed_tokens();
    }
    RC_ASSERT(numbers.size() <= 1U);
    RC_ASSERT(numbers.size() == 1U || made.empty == EmptyChunks::computed);
    if (!numbers.empty()) RC_ASSERT(seen.emplace(group.part, *numbers.begin()).second);
    for (const auto& [pack, count] : tokens) RC_ASSERT(count == made.chunk_size);
  });
}

RC_GTEST_PROP(Alignment, GroupsAreJoinedBySamplesAtEveryBorderAndAtNoOther, ()) {
  const Case made = any_case();
  const Alignment alignment = made.chunks();
  std::map<SampleKey, const AlignedGroup*> group_of;
  for (const AlignedGroup& group : alignment.groups) {
    RC_ASSERT(static_cast<std::int64_t>(group.chunks.size()) * made.chunk_size < made.pack_length + made.chunk_size);
    for (std::size_t k = 0; k < group.chunks.size(); ++k) {
      bool joined = false;
      for (const Segment& segment : group.chunks[k]) {
        RC_ASSERT(group_of.emplace(key_of(segment), &group).first->second == &group);
        if (k == 0) continue;
        for (const Segment& before : group.chunks[k - 1]) joined |= key_of(before) == key_of(segment);
      }
      RC_ASSERT(joined == (k > 0));
    }
  }
}

RC_GTEST_PROP(Alignment, PartsAreBalanced, ()) {
  const Case made = any_case();
  const Alignment alignment = made.chunks();
  const auto places = places_of(made.packs());
  std::map<std::int64_t, std::int64_t> parts;
  std::map<std::size_t, std::int64_t> weights;
  for_each_microbatch(alignment, [&](const AlignedGroup& group, const std::vector<Segment>& microbatch) {
    for (const Segment& segment : microbatch) {
      parts[group.part] += segment.computed_tokens();
      weights[places.at(key_of(segment)).first] += segment.computed_tokens();
    }
  });
  RC_ASSERT(static_cast<std::int64_t>(parts.size()) == std::min(made.parts, alignment.packs));
  std::int64_t most = 0, least = alignment.tokens.computed(), heaviest = 0;
  for (const auto& [part, tokens] : parts) most = std::max(most, tokens), least = std::min(least, tokens);
  for (const auto& [pack, tokens] : weights) heaviest = std::max(heaviest, tokens);
  RC_ASSERT(most - least <= heaviest);
}

/// The least that the busiest part computes, over all ways to deal.
std::int64_t best_busiest(const std::vector<std::int64_t>& weights, std::vector<std::int64_t>& parts,
                          std::size_t next) {
  if (next == weights.size()) return *std::max_element(parts.begin(), parts.end());
  std::int64_t best = std::numeric_limits<std::int64_t>::max();
  for (std::int64_t& part : parts) {
    part += weights[next];
    best = std::min(best, best_busiest(weights, parts, next + 1));
    part -= weights[next];
  }
  return best;
}

RC_GTEST_PROP(Alignment, TheBusiestPartIsWithinAThirdOfTheBest, ()) {
  Case made = any_case();
  made.parts = *rc::gen::inRange<std::int64_t>(1, 4);
  const std::vector<Pack> packs = made.packs();
  RC_PRE(packs.size() <= 9U && !packs.empty());
  std::vector<std::int64_t> weights;
  for (const Pack& pack : packs) weights.push_back(pack.tokens);
  const Alignment alignment = align_packed(made.tasks, made.pack_length, made.parts);
  std::int64_t busiest = 0;
  for_each_microbatch(alignment, [&](const AlignedGroup&, const std::vector<Segment>& microbatch) {
    busiest = std::max(busiest, computed(microbatch));
  });
  std::vector<std::int64_t> parts(static_cast<std::size_t>(made.parts), 0);
  // Graham 1969: (4/3 − 1/(3P)) times the best.
  RC_ASSERT(3 * made.parts * busiest <= (4 * made.parts - 1) * best_busiest(weights, parts, 0));
}

RC_GTEST_PROP(Alignment, ZeroPaddingGivesEachPartAnEqualRunOfEveryTasksSamples, ()) {
  const Case made = any_case();
  const Alignment alignment = align_padded(made.tasks, made.parts);
  std::int64_t last_part = -1;
  for (const AlignedGroup& group : alignment.groups) {
    RC_ASSERT(group.part > last_part);
    last_part = group.part;
    RC_ASSERT(group.chunks.size() == 1U);
    std::map<TaskIndex, std::vector<std::int32_t>> indices;
    for (const Segment& segment : group.chunks.front()) {
      indices[segment.task].push_back(segment.index);
      const SampleRow& row =
          made.tasks[static_cast<std::size_t>(segment.task)][static_cast<std::size_t>(segment.index)];
      RC_ASSERT(segment.computed_tokens() == row.padded);
      RC_ASSERT(segment.scored == row.scored);
    }
    for (const auto& [task, mine] : indices) {
      const auto size = static_cast<std::int64_t>(made.tasks[static_cast<std::size_t>(task)].size());
      RC_ASSERT(mine.front() == group.part * size / made.parts);
      RC_ASSERT(mine.back() == (group.part + 1) * size / made.parts - 1);
      RC_ASSERT(static_cast<std::int32_t>(mine.size()) == mine.back() - mine.front() + 1);
    }
  }
}

/// Groups one after the other on every stage: chunks forward in order, backward in reverse.
Schedule schedule_of(const Case& made, const Alignment& alignment) {
  Schedule schedule;
  schedule.replicas = {{1, {{0, 1}, {1, 2}}}};
  schedule.tasks.assign(made.tasks.size(), TaskRules{});
  for (std::size_t task = 0; task < made.tasks.size(); ++task)
    schedule.next_batch.push_back(10 + static_cast<std::int64_t>(task));
  schedule.bytes_per_token = 4;
  StageOrder order;
  MicrobatchId id = 0;
  for (const AlignedGroup& group : alignment.groups) {
    for (const std::vector<Segment>& segments : group.chunks) {
      order.push_back({Kind::forward, id});
      schedule.microbatches.push_back({id++, 0, segments});
    }
    for (std::size_t k = 0; k < group.chunks.size(); ++k)
      order.push_back({Kind::backward, id - 1 - static_cast<MicrobatchId>(k)});
  }
  schedule.orders = {{order, order}};
  return schedule;
}

RC_GTEST_PROP(Alignment, ProgramsOfChunkGroupsKeepAllRules, ()) {
  const Case made = any_case();
  const Alignment alignment = made.chunks();
  RC_PRE(!alignment.groups.empty());
  VerifyContext context;
  context.expected = [&](TaskIndex task, std::int64_t) {
    std::vector<ExpectedSample> samples;
    for (const SampleRow& row : made.tasks[static_cast<std::size_t>(task)]) samples.push_back({row.sample, row.tokens});
    return samples;
  };
  context.tasks.assign(made.tasks.size(), TaskRules{});
  context.memory.backbone = costmodel::builtin_backbone("tinyllama-1.1b");
  context.memory.adapters.assign(made.tasks.size(), costmodel::AdapterShape{8, 16, false, 0, {true, true, true, true}});
  const std::vector<Violation> violations = verify(lower(schedule_of(made, alignment)), context);
  for (const Violation& violation : violations) RC_LOG() << name(violation.rule) << ": " << violation.message << "\n";
  RC_ASSERT(violations.empty());
}

}  // namespace
}  // namespace braid::planner
