#include "planner/window/bin_batcher.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>

#include "base/error.h"
#include "planner/program/batch_key.h"
#include "planner/program/orders.h"

namespace braid::planner {
namespace {

/// What an hTask computes in a round.
struct StepOfHTask {
  std::int32_t htask = 0;
  std::int64_t round = 0;
  std::vector<SampleRow> rows;  // that no microbatch has yet
  std::set<TaskIndex> begun;    // tasks of which one has
};

struct WaitingRound {
  std::int64_t window = 0;
  std::int64_t part = 0;  // of the run, of kMergedRounds rounds
  std::vector<WindowStep> steps;
  std::vector<StepOfHTask> htasks;
};

/// A microbatch before its rows are in order.
struct FilledBin {
  MicrobatchId id = 0;
  std::int64_t place = 0;  // in the stream: replicas have one each at about the same time
  std::vector<SampleRow> rows;
};

class BinBatcher final : public Batcher {
 public:
  BinBatcher(const FixedPlan& fixed, const WindowInput& input, std::function<void(const PackedStep&)> on_packed)
      : fixed_(fixed),
        bins_(*fixed.batching.bins),
        input_(input),
        on_packed_(std::move(on_packed)),
        busy_(fixed.deployment.size(), 0),
        entered_(fixed.deployment.size()) {}

  void push(std::int64_t window, std::vector<WindowStep> round) override {
    WaitingRound& waiting = rounds_.emplace_back();
    waiting.window = window;
    waiting.part = (window * fixed_.schedule.steps_per_window + round.front().round) / kMergedRounds;
    for (const WindowStep& step : round) {
      if (waiting.htasks.empty() || waiting.htasks.back().htask != step.htask)
        waiting.htasks.push_back({step.htask, step.round, {}, {}});
      append_rows(step, waiting.htasks.back().rows);
    }
    waiting.steps = std::move(round);
  }

  void end() override { ended_ = true; }

  std::optional<Round> pull() override {
    const bool decided = rounds_.size() > 1 || ended_ || !bins_.merges;
    if (rounds_.empty() || !decided) return std::nullopt;
    WaitingRound& waiting = rounds_.front();
    if (waiting.part != part_) forget();
    part_ = waiting.part;
    Round round{waiting.window, std::move(waiting.steps), {}};
    for (std::size_t h = 0; h < waiting.htasks.size(); ++h)
      round.htasks.push_back(lay_out(waiting.window, waiting.htasks[h], next_after(h)));
    rounds_.pop_front();
    return round;
  }

  /// What was begun of a step is ended.
  void stop(TaskIndex task) override {
    for (WaitingRound& waiting : rounds_) {
      bool ends = false;
      for (StepOfHTask& step : waiting.htasks) {
        if (step.begun.contains(task)) ends = true;
      }
      if (ends) continue;
      for (StepOfHTask& step : waiting.htasks)
        std::erase_if(step.rows, [&](const SampleRow& row) { return row.task == task; });
      std::erase_if(waiting.steps, [&](const WindowStep& step) { return step.task == task; });
    }
  }

 private:
  void append_rows(const WindowStep& step, std::vector<SampleRow>& rows) const {
    const std::int64_t drawn = input_.endless() ? step.global_batch % input_.cycle : step.global_batch;
    const std::vector<SampleRow> more =
        rows_of(step.task, step.global_batch, input_.samples.global_batch(step.task, drawn), 0);
    rows.insert(rows.end(), more.begin(), more.end());
  }

  /// What enters after an hTask of the first round; nullptr: nothing, or nothing that is known.
  StepOfHTask* next_after(std::size_t htask) {
    if (!bins_.merges) return nullptr;
    if (htask + 1 < rounds_.front().htasks.size()) return &rounds_.front().htasks[htask + 1];
    if (rounds_.size() < 2 || rounds_[1].htasks.empty()) return nullptr;
    WaitingRound& next = rounds_[1];
    return next.part != rounds_.front().part ? nullptr : &next.htasks.front();
  }

  HTaskRound lay_out(std::int64_t window, StepOfHTask& step, StepOfHTask* next) {
    std::vector<std::vector<FilledBin>> of_replica;
    for (std::size_t replica = 0; const std::vector<SampleRow>& rows : dealt(step.rows))
      of_replica.push_back(packed(rows, replica++));
    // Ids ascend from place to place in the stream, replica by replica.
    std::size_t most = 0;
    for (const std::vector<FilledBin>& mine : of_replica) most = std::max(most, mine.size());
    for (std::size_t place = 0; place < most; ++place, ++places_) {
      for (std::size_t replica = 0; replica < of_replica.size(); ++replica) {
        if (place >= of_replica[replica].size()) continue;
        FilledBin& bin = of_replica[replica][place];
        bin.id = ids_.next(window)++;
        bin.place = places_;
        entered_[replica].push_back(places_);
        remember(bin.rows, places_);
      }
    }
    HTaskRound laid{step.htask, step.round, {}};
    for (std::size_t replica = 0; replica < of_replica.size(); ++replica) {
      std::vector<FilledBin>& mine = of_replica[replica];
      if (next && !mine.empty()) fill_up(mine.back(), replica, *next);
      std::vector<ChunkGroup>& groups = laid.groups.emplace_back();
      for (FilledBin& bin : mine)
        groups.push_back({{bin.id, static_cast<std::int32_t>(replica), segments_of(std::move(bin.rows))}});
    }
    return laid;
  }

  BinRules rules_of(std::size_t replica) const { return {bins_.capacity_of(replica), bins_.multiple}; }

  bool holds(std::size_t replica, const SampleRow& row) const {
    const bool fits = row.tokens <= bins_.capacity_of(replica) / bins_.multiple * bins_.multiple;
    if (!bins_.unlike) return fits;
    const TokenBins::Unlike& unlike = *bins_.unlike;
    const auto intervals = static_cast<std::size_t>((row.tokens + unlike.interval - 1) / unlike.interval);
    return fits && intervals <= unlike.speeds[static_cast<std::size_t>(unlike.speed_of[replica])].full.size();
  }

  static std::vector<BinItem> items_of(std::span<const SampleRow> rows) {
    std::vector<BinItem> items;
    for (const SampleRow& row : rows) items.push_back({row.task, row.tokens});
    return items;
  }

  std::vector<FilledBin> packed(const std::vector<SampleRow>& rows, std::size_t replica) const {
    std::vector<FilledBin> filled;
    PackedStep step{items_of(rows), rules_of(replica), {}};
    step.packing = pack_bins(step.items, step.rules, bins_.search);
    // Ranks that lay the same step out must not differ.
    if (step.packing.truncated)
      throw Failure("the packing of a step was not solved in time; plan with packing=searched");
    if (on_packed_) on_packed_(step);
    for (const Bin& bin : step.packing.bins) {
      FilledBin& one = filled.emplace_back();
      for (const std::int32_t place : bin) one.rows.push_back(rows[static_cast<std::size_t>(place)]);
    }
    return filled;
  }

  /// The longest first, each to the replica of those that hold it which is done with it and all that it had so far
  /// first.
  std::vector<std::vector<SampleRow>> dealt(std::vector<SampleRow> rows) {
    std::vector<std::vector<SampleRow>> of_replica(fixed_.deployment.size());
    std::stable_sort(rows.begin(), rows.end(),
                     [](const SampleRow& a, const SampleRow& b) { return a.tokens > b.tokens; });
    for (const SampleRow& row : rows) {
      std::size_t first = of_replica.size();
      double done = 0;
      for (std::size_t replica = 0; replica < of_replica.size(); ++replica) {
        if (!holds(replica, row)) continue;
        const double here = busy_[replica] + bins_.cost_of(replica, row.tokens);
        if (first < of_replica.size() && here >= done) continue;
        first = replica;
        done = here;
      }
      if (first == of_replica.size())
        throw error(
            "task '{}': sample {} has {} tokens, more than the {} of a microbatch of the plan; plan again, or lower "
            "its max_length",
            input_.workload.tasks[static_cast<std::size_t>(row.task)].name, row.sample, row.tokens, bins_.capacity);
      busy_[first] = done;
      of_replica[first].push_back(row);
    }
    return of_replica;
  }

  void remember(std::span<const SampleRow> rows, std::int64_t place) {
    for (const SampleRow& row : rows) {
      std::int64_t& last = last_.try_emplace({row.task, row.global_batch}, place).first->second;
      last = std::max(last, place);
    }
  }

  void fill_up(FilledBin& bin, std::size_t replica, StepOfHTask& next) {
    std::vector<bool> may_enter;
    std::map<TaskIndex, bool> known;
    for (const SampleRow& row : next.rows) {
      const auto [may, fresh] = known.try_emplace(row.task, false);
      if (fresh) may->second = stalls_nobody({row.task, row.global_batch - 1}, bin.place, replica);
      may_enter.push_back(may->second && holds(replica, row));
    }
    const Bin entering = best_filling(items_of(next.rows), rules_of(replica), items_of(bin.rows), may_enter);
    std::vector<SampleRow> entered;
    for (auto place = entering.rbegin(); place != entering.rend(); ++place) {
      const auto row = next.rows.begin() + *place;
      entered.insert(entered.begin(), *row);
      busy_[replica] += bins_.cost_of(replica, row->tokens);
      next.begun.insert(row->task);
      next.rows.erase(row);
    }
    remember(entered, bin.place);
    bin.rows.insert(bin.rows.end(), entered.begin(), entered.end());
  }

  /// Whether as many microbatches lie between the last one of a batch and this one as may be under way on the first
  /// stage.
  bool stalls_nobody(const BatchKey& before, std::int64_t place, std::size_t replica) const {
    const auto last = last_.find(before);
    if (last == last_.end()) return true;
    if (last->second >= place) return false;
    const std::vector<std::int64_t>& entered = entered_[replica];
    const auto between = std::lower_bound(entered.begin(), entered.end(), place) -
                         std::upper_bound(entered.begin(), entered.end(), last->second);
    return between + 1 >= most_under_way(fixed_.deployment[replica].stages(), fixed_.schedule.transfer_share);
  }

  /// So that a window can be laid out without all that came before.
  void forget() {
    places_ = 0;
    last_.clear();
    busy_.assign(busy_.size(), 0);
    for (std::vector<std::int64_t>& entered : entered_) entered.clear();
  }

  /// Those of a task together, in the order of the data, the last one padded.
  std::vector<Segment> segments_of(std::vector<SampleRow> rows) const {
    std::stable_sort(rows.begin(), rows.end(), [](const SampleRow& a, const SampleRow& b) { return a.task < b.task; });
    std::vector<Segment> segments;
    std::int64_t of_task = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const SampleRow& row = rows[i];
      Segment& segment = segments.emplace_back();
      segment.task = row.task;
      segment.global_batch = row.global_batch;
      segment.index = row.index;
      segment.sample = row.sample;
      segment.chosen = row.chosen;
      segment.end = row.tokens;
      segment.scored = std::min(row.scored, row.tokens - 1);
      of_task += row.tokens;
      if (i + 1 < rows.size() && rows[i + 1].task == row.task) continue;
      segment.padding = static_cast<std::int32_t>((bins_.multiple - of_task % bins_.multiple) % bins_.multiple);
      of_task = 0;
    }
    return segments;
  }

  const FixedPlan& fixed_;
  const TokenBins& bins_;
  const WindowInput& input_;
  std::function<void(const PackedStep&)> on_packed_;
  std::deque<WaitingRound> rounds_;
  bool ended_ = false;
  MicrobatchIds ids_;
  std::vector<double> busy_;                        // per replica, with all rows so far
  std::int64_t part_ = 0;                           // that the last round was of
  std::int64_t places_ = 0;                         // of the stream so far
  std::vector<std::vector<std::int64_t>> entered_;  // per replica the places where it has a microbatch
  std::map<BatchKey, std::int64_t> last_;           // of batches the last place so far
};

}  // namespace

std::int64_t first_laid_out_for(const FixedPlan& fixed, std::int64_t window) {
  return window * fixed.schedule.steps_per_window / kMergedRounds * kMergedRounds / fixed.schedule.steps_per_window;
}

std::unique_ptr<Batcher> make_bin_batcher(const FixedPlan& fixed, const WindowInput& input,
                                          std::function<void(const PackedStep&)> on_packed) {
  return std::make_unique<BinBatcher>(fixed, input, std::move(on_packed));
}

}  // namespace braid::planner
