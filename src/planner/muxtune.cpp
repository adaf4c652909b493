#include "planner/muxtune.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>

#include "base/error.h"
#include "costmodel/collective_model.h"
#include "planner/alignment.h"
#include "planner/run_costs.h"
#include "planner/task_grouping.h"
#include "planner/task_load.h"

namespace braid::planner {
namespace {

using costmodel::MicrobatchLoad;
using costmodel::Pass;
using costmodel::StageShape;

/// Layouts that are laid out with their real microbatches: of few tasks nearly all, for Eq. 3's latencies know nothing
/// of packs, and are far off where microbatches are smaller than a chunk.
constexpr std::size_t kLeastLaidOut = 4, kMostLaidOut = 64, kTasksLaidOut = 512;
/// Up to so many hTasks every P is tried; beyond, every second, third, ... so that no more are.
constexpr std::int32_t kAllCounts = 32;

/// A partition into hTasks and a grouping into buckets, with the makespan that Eq. 3's latencies give.
struct Layout {
  std::vector<std::vector<TaskIndex>> htasks;
  std::vector<std::vector<std::int32_t>> buckets;
  Nanoseconds makespan = 0;
};

class MuxTuneSearch {
 public:
  MuxTuneSearch(const PolicyInput& input, const MuxTuneOptions& options)
      : input_(input), options_(options), shapes_(stage_shapes(input.deployment.front())) {
    const costmodel::Profile& profile = input.cost().profile();
    base_.deployment = input.deployment;
    base_.microbatches = input.microbatches;
    base_.storage = profile.storage();
    // Only a GPU has launches to share.
    base_.adapter_kernels =
        profile.device.empty() ? costmodel::AdapterKernels::separate : costmodel::AdapterKernels::side_by_side;
    if (!profile.device.empty()) slowdown_ = costmodel::overlap_slowdown(costmodel::device_of(profile.device));
    ranks_.resize(static_cast<std::size_t>(input.deployment.front().tp));
    std::iota(ranks_.begin(), ranks_.end(), 0);
    set_alignment();
    sort_tasks();
    find_longest_runs();
    if (!fits_alone()) return;
    costs_.emplace(input, base_, shapes_, tasks_, loads_);
    sync_time_ = sync_time();
    step_time_ = step_time();
  }

  std::optional<Arrangement> run() {
    std::size_t laid_out = std::clamp(kTasksLaidOut / tasks_.size(), kLeastLaidOut, kMostLaidOut);
    if (input_.most_laid_out > 0) laid_out = std::min(laid_out, input_.most_laid_out);
    const std::vector<Layout> layouts = best_layouts(laid_out);
    const std::vector<std::int64_t> sizes = chunk_sizes();
    std::optional<FixedPlan> best;
    Nanoseconds least = 0;
    for (const Layout& layout : layouts) {
      for (const std::int64_t size : sizes) {
        if (best && input_.hurries) break;
        FixedPlan fixed = base_;
        fixed.htasks = layout.htasks;
        fixed.buckets = layout.buckets;
        fixed.chunk_size = size;
        const std::optional<Nanoseconds> makespan = order_structured(input_, options_.order, fixed);
        if (!makespan) continue;
        laid_out_.push_back({fixed.htasks.size(), fixed.buckets.size(), fixed.chunk_size, *makespan});
        if (!best || *makespan < least) best = fixed, least = *makespan;
      }
    }
    if (!best) return std::nullopt;
    if (!options_.orchestration) {
      best->pipeline = PipelineTemplate::one_forward_one_backward;
      best->order.clear();
    } else if (!options_.drains) {
      make_stream(*best);
    }
    const bool may_fuse = options_.fusion != MuxTuneOptions::Fusion::off;
    return Arrangement{*best, reasons(*best, least, sizes), sizes, may_fuse};
  }

  /// The makespan of the best layout by Eq. 3's latencies.
  double sketch() {
    const std::vector<Layout> layouts = best_layouts(1);
    return layouts.empty() ? std::numeric_limits<double>::infinity() : seconds(layouts.front().makespan);
  }

 private:
  /// Buckets and their hTasks numbered as the template takes them, and no order but that: global batches end in the
  /// order of their hTasks.
  static void make_stream(FixedPlan& fixed) {
    std::vector<std::vector<std::int32_t>> buckets;
    std::vector<std::vector<TaskIndex>> htasks;
    std::vector<bool> seen(fixed.buckets.size(), false);
    for (const TemplateSlot& slot : fixed.order.front()) {
      const auto place = static_cast<std::size_t>(slot.bucket);
      if (seen[place]) continue;
      seen[place] = true;
      std::vector<std::int32_t>& bucket = buckets.emplace_back();
      for (const std::int32_t htask : fixed.buckets[place]) {
        bucket.push_back(static_cast<std::int32_t>(htasks.size()));
        htasks.push_back(fixed.htasks[static_cast<std::size_t>(htask)]);
      }
    }
    BRAID_CHECK(buckets.size() == fixed.buckets.size(), "{} of {} buckets are in the template", buckets.size(),
                fixed.buckets.size());
    fixed.buckets = std::move(buckets);
    fixed.htasks = std::move(htasks);
    fixed.pipeline = PipelineTemplate::stream;
    fixed.steps_per_window = kStreamedSteps;
    fixed.order.clear();
  }

  void set_alignment() {
    base_.padding = options_.pad_to;
    std::vector<std::int64_t> lengths;
    for (const workload::Task& task : input_.workload.tasks) lengths.push_back(task.max_length);
    const std::int64_t longest = *std::max_element(lengths.begin(), lengths.end());
    if (options_.pack_length > 0 && options_.pack_length < longest)
      throw error("packs of {} tokens hold no sample of max_length {}; give pack={} or more", options_.pack_length,
                  longest, pack_length_for(lengths, kChunkUnit));
    switch (options_.alignment) {
      case MuxTuneOptions::Alignment::zero_padding:
        base_.padding = Padding::longest;
        break;
      case MuxTuneOptions::Alignment::packed:
        base_.pack_length = options_.pack_length > 0 ? options_.pack_length : longest;
        break;
      case MuxTuneOptions::Alignment::chunks:
        base_.chunk_size = options_.chunk_size > 0 ? options_.chunk_size : chunk_size_for(lengths);
        check_chunk_size(base_.chunk_size);
        if (const std::int64_t whole = pack_length_for(lengths, kChunkUnit);
            base_.chunk_size > std::max(whole, kLeastChunk))
          throw error("chunks of {} tokens are longer than any sample; give at most {}", base_.chunk_size,
                      std::max(whole, kLeastChunk));
        if (options_.pack_length > 0) base_.pack_length = pack_length_for({&options_.pack_length, 1}, base_.chunk_size);
        base_.skips_padding = options_.skips_padding;
        break;
    }
  }

  /// Those that are tried; the first is the paper's. Chunks trade padding against key/value reuse and small products
  /// (Figure 13).
  std::vector<std::int64_t> chunk_sizes() const {
    std::vector<std::int64_t> sizes = {base_.chunk_size};
    if (base_.chunk_size == 0 || !options_.searches_chunk_size) return sizes;
    std::int64_t longest = 0;
    for (const workload::Task& task : input_.workload.tasks) longest = std::max(longest, task.max_length);
    for (std::int64_t size = kLeastChunk; size < 2 * longest; size *= 2) {
      const bool divides = base_.pack_length % size == 0;  // 0 does
      if (size != base_.chunk_size && divides) sizes.push_back(size);
    }
    return sizes;
  }

  /// One part of a task's global batch: packs of all tasks are dealt out together, so that in the mean it has what an
  /// even split gives, whole rows or not.
  MicrobatchLoad load_of(TaskIndex index) const {
    MicrobatchLoad load = task_load(input_, index, base_.padding, base_.adapter_kernels);
    if (options_.alignment == MuxTuneOptions::Alignment::zero_padding) return load;
    const auto rows = static_cast<std::int64_t>(load.sequences.size());
    const std::int64_t samples = input_.workload.tasks[static_cast<std::size_t>(index)].global_batch_size;
    const std::int64_t parts = input_.microbatches * static_cast<std::int64_t>(input_.deployment.size());
    const auto mean = [&](std::int64_t of_rows) { return (of_rows / rows * samples + parts - 1) / parts; };
    load.tokens = mean(load.tokens);
    load.scored = mean(load.scored);
    load.tasks.front().tokens = load.tokens;
    return load;
  }

  /// Ascending by tokens (§3.3); ties in the workload's order.
  void sort_tasks() {
    std::vector<std::pair<std::int64_t, TaskIndex>> order;
    for (TaskIndex task = 0; task < input_.task_count(); ++task) order.push_back({load_of(task).tokens, task});
    std::sort(order.begin(), order.end());
    for (const auto& [tokens, task] : order) {
      tasks_.push_back(task);
      loads_.push_back(load_of(task));
    }
  }

  /// Eq. 5, corrected: one microbatch of the run on every stage beside all that is always held (without orchestration
  /// as many as 1F1B has under way, for it knows no memory). More tasks never take less, so that it is asked for the
  /// longest run of each first task alone, which never ends before the last one's.
  void find_longest_runs() {
    const auto count = static_cast<std::int32_t>(tasks_.size());
    std::int32_t last = -1;
    // Mostly everything fits.
    if (run_fits(0, count - 1)) last = count - 1;
    for (std::int32_t first = 0; first < count; ++first) {
      last = std::max(last, first - 1);
      while (last + 1 < count && run_fits(first, last + 1)) ++last;
      longest_.push_back(last);
    }
  }

  bool fits(std::int32_t first, std::int32_t last) const { return last <= longest_[static_cast<std::size_t>(first)]; }

  /// Every task.
  bool fits_alone() const {
    for (std::size_t task = 0; task < longest_.size(); ++task) {
      if (longest_[task] < static_cast<std::int32_t>(task)) return false;
    }
    return true;
  }

  bool run_fits(std::int32_t first, std::int32_t last) const {
    if (input_.capacity <= 0) return true;
    const MicrobatchLoad run =
        merge(std::span(loads_).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(last - first + 1)));
    const std::vector<Bytes> budget = stash_budget(input_, base_.storage, {&run, 1});
    for (std::size_t s = 0; s < shapes_.size(); ++s) {
      if (options_.orchestration && s > 0 && shapes_[s] == shapes_[s - 1]) continue;  // with a budget alike, too
      const std::int64_t under_way = std::min(input_.microbatches, static_cast<std::int64_t>(shapes_.size() - s));
      const Bytes stash = costmodel::stash_bytes(input_.workload.backbone, shapes_[s], run, base_.storage);
      if ((options_.orchestration ? 1 : under_way) * stash > budget[s]) return false;
    }
    return true;
  }

  std::vector<FusedTasks> partitions() {
    const auto count = static_cast<std::int32_t>(tasks_.size());
    if (!fits_alone()) return {};
    if (options_.fusion == MuxTuneOptions::Fusion::off) {
      FusedTasks apart;
      for (std::int32_t task = 0; task < count; ++task) apart.htasks.push_back({task, task});
      return {apart};
    }
    FusionProblem problem;
    problem.tasks = count;
    problem.stages = static_cast<std::int32_t>(shapes_.size());
    problem.microbatches = input_.microbatches;
    problem.cut = [&](std::int32_t first, std::int32_t last) { return costs_->cut({first, last}); };
    problem.stage_seconds = [&](std::int32_t first, std::int32_t last, std::int32_t stage) {
      return costs_->seconds(static_cast<std::size_t>(stage), {first, last});
    };
    problem.fits = [&](std::int32_t first, std::int32_t last) { return fits(first, last); };
    const bool literal = options_.fusion == MuxTuneOptions::Fusion::literal;
    std::vector<FusedTasks> all = fuse_tasks(problem, literal ? FusionIncrement::literal : FusionIncrement::one_pass);
    if (!literal || all.empty()) return all;
    // As printed, F* alone decides.
    const auto least = std::min_element(all.begin(), all.end(),
                                        [](const FusedTasks& a, const FusedTasks& b) { return a.seconds < b.seconds; });
    return {*least};
  }

  /// The best layouts of all N and P, ascending by makespan; ties as they are tried. Those whose busiest stage alone
  /// takes longer than the worst that is kept are not simulated.
  std::vector<Layout> best_layouts(std::size_t count) {
    std::vector<FusedTasks> fused = partitions();
    std::stable_sort(fused.begin(), fused.end(), [&](const FusedTasks& a, const FusedTasks& b) {
      return busiest_stage_seconds(a) < busiest_stage_seconds(b);
    });
    std::vector<Layout> best;
    const auto hopeless = [&](double least) {
      return least > input_.sketch_limit || (best.size() == count && nanoseconds(least) >= best.back().makespan);
    };
    for (const FusedTasks& partition : fused) {
      if (hopeless(busiest_stage_seconds(partition))) break;
      for (const std::int32_t buckets : bucket_counts(partition)) {
        Layout layout;
        layout.buckets = group(partition, buckets);
        ++tried_;
        if (hopeless(busiest_stage_seconds(partition, layout.buckets))) continue;
        layout.makespan = nominal_makespan(partition, layout.buckets);
        if (hopeless(seconds(layout.makespan))) continue;
        layout.htasks = htasks_of(partition);
        const auto place = std::upper_bound(best.begin(), best.end(), layout,
                                            [](const Layout& a, const Layout& b) { return a.makespan < b.makespan; });
        best.insert(place, std::move(layout));
        if (best.size() > count) best.pop_back();
      }
    }
    return best;
  }

  /// Every P; of many hTasks about kAllCounts of them. Without shards nothing overlaps inside a clock: hTasks are by
  /// themselves then.
  std::vector<std::int32_t> bucket_counts(const FusedTasks& partition) const {
    const auto count = static_cast<std::int32_t>(partition.htasks.size());
    if (shapes_.front().tp == 1) return {count};
    std::vector<std::int32_t> counts;
    const std::int32_t step = std::max(1, (count + kAllCounts - 1) / kAllCounts);
    for (std::int32_t buckets = count; buckets >= 1; buckets -= step) counts.push_back(buckets);
    return counts;
  }

  std::vector<std::vector<std::int32_t>> group(const FusedTasks& partition, std::int32_t buckets) const {
    std::vector<double> first_stage;
    for (const TaskRun& run : partition.htasks) first_stage.push_back(costs_->forward_seconds(0, run));
    return group_htasks(first_stage, buckets).buckets;
  }

  std::vector<std::vector<TaskIndex>> htasks_of(const FusedTasks& partition) const {
    std::vector<std::vector<TaskIndex>> htasks;
    for (const TaskRun& run : partition.htasks) {
      std::vector<TaskIndex>& htask = htasks.emplace_back();
      for (std::int32_t t = run.first; t <= run.last; ++t) htask.push_back(tasks_[static_cast<std::size_t>(t)]);
      std::sort(htask.begin(), htask.end());
    }
    return htasks;
  }

  double busiest_stage_seconds(const FusedTasks& partition) const {
    double busiest = 0;
    for (std::size_t s = 0; s < shapes_.size(); ++s) {
      double busy = 0;
      for (const TaskRun& run : partition.htasks)
        busy += static_cast<double>(costs_->microbatches(run)) * costs_->seconds(s, run);
      busiest = std::max(busiest, busy);
    }
    return busiest;
  }

  /// What the template is no faster than: a stage's work; before it the way forward through the stages below of the
  /// bucket that goes first, the one with the longest clock; after it the shortest way back.
  double busiest_stage_seconds(const FusedTasks& partition, const std::vector<std::vector<std::int32_t>>& buckets) {
    double busiest = 0;
    std::vector<double> forward(buckets.size(), 0), backward(buckets.size(), 0);  // through the stages below
    std::size_t first = 0;
    for (std::size_t s = 0; s < shapes_.size(); ++s) {
      double busy = 0;
      const double filled = forward[first], drained = *std::min_element(backward.begin(), backward.end());
      for (std::size_t b = 0; b < buckets.size(); ++b) {
        const std::vector<TaskRun> runs = runs_of(partition, buckets[b]);
        const double up = clock_seconds(s, runs, Pass::forward), down = clock_seconds(s, runs, Pass::backward);
        busy += static_cast<double>(clocks_of(runs)) * (up + down);
        forward[b] += up, backward[b] += down;
      }
      busiest = std::max(busiest, filled + busy + drained);
      if (s == 0) first = static_cast<std::size_t>(std::max_element(forward.begin(), forward.end()) - forward.begin());
    }
    return busiest;
  }

  static std::vector<TaskRun> runs_of(const FusedTasks& partition, const std::vector<std::int32_t>& bucket) {
    std::vector<TaskRun> runs;
    for (const std::int32_t h : bucket) runs.push_back(partition.htasks[static_cast<std::size_t>(h)]);
    return runs;
  }

  /// Those with fewer microbatches than others stand in some of a bucket's clocks alone.
  std::int64_t clocks_of(std::span<const TaskRun> runs) const {
    std::int64_t clocks = 1;
    for (const TaskRun& run : runs) clocks = std::max(clocks, costs_->microbatches(run));
    return clocks;
  }

  /// A mean clock of a bucket: hTasks that have run out of microbatches leave the others to themselves.
  double clock_seconds(std::size_t stage, std::span<const TaskRun> runs, Pass pass) {
    if (runs.size() == 1) return together(stage, runs, pass);
    std::vector<TaskRun> left(runs.begin(), runs.end());
    std::stable_sort(left.begin(), left.end(), [&](const TaskRun& a, const TaskRun& b) {
      return costs_->microbatches(a) > costs_->microbatches(b);
    });
    double total = 0;
    const std::int64_t clocks = costs_->microbatches(left.front());
    for (std::int64_t done = 0; done < clocks;) {
      const std::int64_t until = costs_->microbatches(left.back());
      total += static_cast<double>(until - done) * together(stage, left, pass);
      done = until;
      while (!left.empty() && costs_->microbatches(left.back()) == until) left.pop_back();
    }
    return total / static_cast<double>(clocks);
  }

  /// One microbatch of each: collectives run beside the others' computation (which they slow down), as much of each as
  /// the others have, but for the first or last subgraph of the least, of which a layer has two.
  double together(std::size_t stage, std::span<const TaskRun> runs, Pass pass) {
    double compute = 0, communication = 0;
    double least_compute = std::numeric_limits<double>::max(), least_communication = least_compute;
    double most_both = 0;  // of one hTask
    for (const TaskRun& run : runs) {
      const double mine =
          pass == Pass::forward ? costs_->forward_seconds(stage, run) : costs_->backward_seconds(stage, run);
      const double sent = collective_seconds(stage, run, pass);
      compute += mine, communication += sent;
      least_compute = std::min(least_compute, mine);
      least_communication = std::min(least_communication, sent);
      most_both = std::max(most_both, mine + sent);
    }
    if (runs.size() == 1) return compute + communication;
    const double subgraphs = 2 * static_cast<double>(std::max<std::int64_t>(shapes_[stage].layers, 1));
    const double exposed = std::max(most_both - compute, least_communication / subgraphs);
    const double slowed = (1 - 1 / slowdown_) * std::max(0.0, communication - exposed);
    return std::max(compute + slowed + exposed, communication + least_compute / subgraphs);
  }

  double collective_seconds(std::size_t stage, const TaskRun& run, Pass pass) {
    if (shapes_[stage].tp == 1) return 0;
    MicrobatchLoad load;
    for (std::int32_t t = run.first; t <= run.last; ++t) {
      load.tokens += loads_[static_cast<std::size_t>(t)].tokens;
      load.scored += loads_[static_cast<std::size_t>(t)].scored;
    }
    load.tokens = std::max<std::int64_t>(1, std::llround(static_cast<double>(load.tokens) / costs_->cut(run)));
    load.scored = std::llround(static_cast<double>(load.scored) / costs_->cut(run));
    const auto like = std::find(shapes_.begin(), shapes_.end(), shapes_[stage]) - shapes_.begin();
    auto [known, is_new] = collectives_.try_emplace({like, load.tokens, load.scored, pass});
    if (is_new) known->second = input_.latency.collectives(shapes_[stage], ranks_, load, pass).seconds;
    return known->second;
  }

  Nanoseconds nominal_makespan(const FusedTasks& fused, const std::vector<std::vector<std::int32_t>>& buckets) {
    std::vector<PipelineJob> jobs;
    for (std::size_t b = 0; b < buckets.size(); ++b) {
      PipelineJob job;
      job.bucket = static_cast<std::int32_t>(b);
      const std::vector<TaskRun> runs = runs_of(fused, buckets[b]);
      for (std::size_t s = 0; s < shapes_.size(); ++s) {
        job.forward.push_back(nanoseconds(clock_seconds(s, runs, Pass::forward)));
        job.backward.push_back(nanoseconds(clock_seconds(s, runs, Pass::backward)));
        job.stash.push_back(0);
      }
      jobs.insert(jobs.end(), static_cast<std::size_t>(clocks_of(runs)), job);
    }
    const std::vector<Nanoseconds> messages(shapes_.size() - 1, message_time(jobs.size()));
    const Nanoseconds makespan = pipeline_makespan(jobs, static_cast<int>(shapes_.size()), {}, messages, {});
    return end_of_steps(makespan, static_cast<Nanoseconds>(buckets.size()));
  }

  /// Gradients are summed and applied task by task when their bucket has ended: for all but the last one beside other
  /// passes, save that a pipeline of one stage has no bubbles for the optimizer.
  Nanoseconds end_of_steps(Nanoseconds makespan, Nanoseconds buckets) const {
    const Nanoseconds earlier_sync = sync_time_ - sync_time_ / buckets,
                      earlier_step = step_time_ - step_time_ / buckets;
    const Nanoseconds passes = makespan + (shapes_.size() == 1 ? earlier_step : 0);
    const Nanoseconds last = std::max(sync_time_, step_time_) / buckets;
    return std::max(passes, earlier_sync) + last + std::min(sync_time_, step_time_) / input_.task_count();
  }

  /// A mean clock's message between the first two stages.
  Nanoseconds message_time(std::size_t clocks) const {
    if (shapes_.size() < 2) return 0;
    std::int64_t tokens = 0;
    for (const MicrobatchLoad& load : loads_) tokens += load.tokens;
    const std::array ends = {std::int32_t{0}, input_.deployment.front().tp};
    const Bytes bytes = tokens * input_.microbatches / static_cast<std::int64_t>(clocks) *
                        costmodel::message_bytes_per_token(input_.workload.backbone, base_.storage);
    return collective_time(costmodel::Operator::send_recv, ends, bytes);
  }

  /// What the replicas take to sum the first stage's adapter gradients of all tasks: one after another, beside compute.
  Nanoseconds sync_time() const {
    const std::int32_t tp = input_.deployment.front().tp, ranks = tp * input_.deployment.front().stages();
    const auto replicas = static_cast<std::int32_t>(input_.deployment.size());
    if (replicas < 2) return 0;
    std::vector<std::int32_t> holders;
    for (std::int32_t replica = 0; replica < replicas; ++replica) {
      for (std::int32_t t = 0; t < tp; ++t) holders.push_back(replica * ranks + t);
    }
    Nanoseconds total = 0;
    for (const workload::Task& task : input_.workload.tasks) {
      const Bytes bytes = static_cast<Bytes>(sizeof(float)) * shapes_.front().layers *
                          task.adapter.layer_parameters(input_.workload.backbone);
      total += collective_time(costmodel::Operator::all_reduce, holders, bytes);
    }
    return total;
  }

  /// What the first stage takes for all tasks' optimizer steps.
  Nanoseconds step_time() const {
    Nanoseconds total = 0;
    for (const workload::Task& task : input_.workload.tasks) {
      const std::int64_t parameters = shapes_.front().layers * task.adapter.layer_parameters(input_.workload.backbone);
      total += nanoseconds(
          input_.cost().estimate({costmodel::Operator::adamw, Pass::forward, {}, parameters, 0, 0, 1}).seconds);
    }
    return total;
  }

  Nanoseconds collective_time(costmodel::Operator op, std::span<const std::int32_t> ranks, Bytes bytes) const {
    const costmodel::CostModel& cost = input_.cost();
    if (bytes <= 0) return 0;
    return nanoseconds(cost.estimate({op, Pass::forward, cost.group_shape(op, ranks), bytes, 0, 0, 1}).seconds);
  }

  /// What was laid out with its real microbatches.
  struct LaidOut {
    std::size_t htasks = 0, buckets = 0;
    std::int64_t chunk_size = 0;
    Nanoseconds makespan = 0;
  };

  std::vector<std::string> reasons(const FixedPlan& fixed, Nanoseconds makespan,
                                   std::span<const std::int64_t> sizes) const {
    std::vector<std::string> lines;
    if (fixed.chunk_size > 0) {
      std::string why = ": the greatest power of two that divides every max_length, 64 or more";
      if (options_.chunk_size > 0) why = ", as asked for";
      if (options_.searches_chunk_size) why = fmt::format(": the fastest of {}", fmt::join(sizes, ", "));
      lines.push_back(fmt::format("chunks of {} tokens{}", fixed.chunk_size, why));
    }
    lines.push_back(
        fmt::format("{} tasks fused into {} hTasks in {} buckets: the fastest of {} layouts by Eq. 3, {} of "
                    "them with their real microbatches",
                    tasks_.size(), fixed.htasks.size(), fixed.buckets.size(), tried_, laid_out_.size()));
    const auto compare = [&](const std::string& what, auto count_of, auto among) {
      const LaidOut* next = nullptr;
      for (const LaidOut& other : laid_out_) {
        if (among(other) && (!next || other.makespan < next->makespan)) next = &other;
      }
      if (next)
        lines.push_back(fmt::format("the fastest with another number of {}, {}, takes {:.1f} % longer", what,
                                    count_of(*next), 100 * (seconds(next->makespan) / seconds(makespan) - 1)));
    };
    compare(
        "hTasks", [](const LaidOut& other) { return other.htasks; },
        [&](const LaidOut& other) { return other.htasks != fixed.htasks.size(); });
    compare(
        "buckets", [](const LaidOut& other) { return other.buckets; },
        [&](const LaidOut& other) {
          return other.htasks == fixed.htasks.size() && other.buckets != fixed.buckets.size();
        });
    compare(
        "tokens a chunk", [](const LaidOut& other) { return other.chunk_size; },
        [&](const LaidOut& other) { return other.chunk_size != fixed.chunk_size; });
    return lines;
  }

  const PolicyInput& input_;
  const MuxTuneOptions& options_;
  std::vector<StageShape> shapes_;
  FixedPlan base_;
  std::vector<TaskIndex> tasks_;       // sorted
  std::vector<MicrobatchLoad> loads_;  // of tasks_
  std::vector<std::int32_t> longest_;  // per first task, the last one of its longest run that fits
  std::optional<RunCosts> costs_;
  std::vector<std::int32_t> ranks_;  // of the first stage
  std::map<std::tuple<std::ptrdiff_t, std::int64_t, std::int64_t, Pass>, double> collectives_;
  double slowdown_ = 1;  // of computation beside a collective
  Nanoseconds sync_time_ = 0, step_time_ = 0;
  std::int64_t tried_ = 0;  // groupings
  std::vector<LaidOut> laid_out_;
};

}  // namespace

double sketch_muxtune(const PolicyInput& input, const MuxTuneOptions& options) {
  return MuxTuneSearch(input, options).sketch();
}

std::optional<Arrangement> arrange_muxtune(const PolicyInput& input, const MuxTuneOptions& options) {
  return MuxTuneSearch(input, options).run();
}

}  // namespace braid::planner
