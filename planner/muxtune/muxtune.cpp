#include "planner/muxtune/muxtune.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "planner/muxtune/layout_sketch.h"
#include "planner/muxtune/sorted_parts.h"
#include "planner/muxtune/task_grouping.h"
#include "planner/window/alignment.h"

namespace braid::planner {
namespace {

std::string counted(std::size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

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
    base_.batching.microbatches = input.microbatches;
    base_.storage = profile.storage();
    base_.schedule.launch_rule = options.launch;
    // Only a GPU has launches to share.
    base_.adapter_kernels =
        profile.device.empty() ? costmodel::AdapterKernels::separate : costmodel::AdapterKernels::side_by_side;
    set_alignment();
    parts_ = sorted_parts(input, base_);
    fitting_.emplace(input, base_.storage, shapes_, parts_.loads, options.orchestration);
    if (!fitting_->fit_alone()) return;
    costs_.emplace(input, base_, shapes_, parts_.tasks, parts_.loads);
    sketch_.emplace(input, base_, shapes_, parts_.loads, *costs_);
  }

  std::optional<Arrangement> run() {
    const std::size_t some = std::clamp(kTasksLaidOut / parts_.tasks.size(), kLeastLaidOut, kMostLaidOut);
    const std::vector<Layout> layouts =
        best_layouts(options_.lays_out_all ? std::numeric_limits<std::size_t>::max() : some);
    const std::vector<std::int64_t> sizes = chunk_sizes();
    std::optional<FixedPlan> best;
    Nanoseconds least = 0;
    FixedPlan fixed = base_;
    for (const Layout& layout : layouts) {
      for (const std::int64_t size : sizes) {
        if (best && input_.hurries) break;
        fixed.htasks = layout.htasks;
        fixed.buckets = layout.buckets;
        fixed.batching.chunk_size = size;
        // Reasons tell of all, the fastest must be known alone.
        const Nanoseconds limit = best && input_.silent ? least : std::numeric_limits<Nanoseconds>::max();
        const std::optional<Nanoseconds> makespan =
            order_structured(input_, options_.order, laid_out_before(), fixed, limit);
        if (!makespan) continue;
        laid_out_.push_back({fixed.htasks.size(), fixed.buckets.size(), fixed.batching.chunk_size, *makespan});
        if (!best || *makespan < least) best = fixed, least = *makespan;
      }
    }
    if (!best) return std::nullopt;
    if (!options_.orchestration) {
      best->schedule.pipeline = PipelineTemplate::one_forward_one_backward;
      best->schedule.order.clear();
    } else if (!options_.drains) {
      make_stream(*best);
    }
    const bool may_fuse = options_.fusion != MuxTuneOptions::Fusion::off;
    return Arrangement{*best, reasons(*best, least, sizes), sizes, may_fuse};
  }

  /// The makespan of the best layout by Eq. 3's latencies.
  Sketch sketch() {
    const std::vector<Layout> layouts = best_layouts(1);
    Sketch sketch;
    if (!layouts.empty()) sketch.seconds = seconds(layouts.front().makespan);
    sketch.short_of_memory = !fitting_->fits(0, static_cast<std::int32_t>(parts_.tasks.size()) - 1);
    return sketch;
  }

 private:
  /// Buckets and their hTasks numbered as the template takes them, and no order but that: global batches end in the
  /// order of their hTasks.
  static void make_stream(FixedPlan& fixed) {
    std::vector<std::vector<std::int32_t>> buckets;
    std::vector<std::vector<TaskIndex>> htasks;
    std::vector<bool> seen(fixed.buckets.size(), false);
    for (const TemplateSlot& slot : fixed.schedule.order.front()) {
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
    fixed.schedule.pipeline = PipelineTemplate::stream;
    fixed.schedule.order.clear();
  }

  LaidOutBuckets& laid_out_before() { return input_.laid_out ? *input_.laid_out : laid_out_here_; }

  void set_alignment() {
    base_.batching.padding = options_.pad_to;
    std::vector<std::int64_t> lengths;
    for (const workload::Task& task : input_.workload.tasks) lengths.push_back(task.sample_tokens());
    const std::int64_t longest = *std::max_element(lengths.begin(), lengths.end());
    if (options_.pack_length > 0 && options_.pack_length < longest)
      throw error("packs of {} tokens hold no sample of max_length {}; give pack={} or more", options_.pack_length,
                  longest, pack_length_for(lengths, kChunkUnit));
    switch (options_.alignment) {
      case MuxTuneOptions::Alignment::zero_padding:
        base_.batching.padding = Padding::longest;
        break;
      case MuxTuneOptions::Alignment::packed:
        base_.batching.pack_length = options_.pack_length > 0 ? options_.pack_length : longest;
        break;
      case MuxTuneOptions::Alignment::chunks:
        base_.batching.chunk_size = options_.chunk_size > 0 ? options_.chunk_size : chunk_size_for(lengths);
        check_chunk_size(base_.batching.chunk_size);
        if (const std::int64_t whole = pack_length_for(lengths, kChunkUnit);
            base_.batching.chunk_size > std::max(whole, kLeastChunk))
          throw error("chunks of {} tokens are longer than any sample; give at most {}", base_.batching.chunk_size,
                      std::max(whole, kLeastChunk));
        if (options_.pack_length > 0)
          base_.batching.pack_length = pack_length_for({&options_.pack_length, 1}, base_.batching.chunk_size);
        base_.batching.skips_padding = options_.skips_padding;
        break;
    }
  }

  /// Those that are tried; the first is the paper's. Chunks trade padding against key/value reuse and small products
  /// (Figure 13).
  std::vector<std::int64_t> chunk_sizes() const {
    std::vector<std::int64_t> sizes = {base_.batching.chunk_size};
    if (base_.batching.chunk_size == 0 || !options_.searches_chunk_size) return sizes;
    std::int64_t longest = 0;
    for (const workload::Task& task : input_.workload.tasks) longest = std::max(longest, task.sample_tokens());
    for (std::int64_t size = kLeastChunk; size < 2 * longest; size *= 2) {
      const bool divides = base_.batching.pack_length % size == 0;  // 0 does
      if (size != base_.batching.chunk_size && divides) sizes.push_back(size);
    }
    return sizes;
  }

  std::vector<FusedTasks> partitions() {
    const auto count = static_cast<std::int32_t>(parts_.tasks.size());
    if (!fitting_->fit_alone()) return {};
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
    problem.fits = [&](std::int32_t first, std::int32_t last) { return fitting_->fits(first, last); };
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
    const std::vector<FusedTasks> fused = partitions();
    std::vector<std::pair<double, const FusedTasks*>> by_bound;
    for (const FusedTasks& partition : fused)
      by_bound.emplace_back(sketch_->busiest_stage_seconds(partition), &partition);
    std::stable_sort(by_bound.begin(), by_bound.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<Layout> best;
    const auto hopeless = [&](double least) {
      return least > input_.sketch_limit || (best.size() == count && nanoseconds(least) >= best.back().makespan);
    };
    for (const auto& [bound, partition] : by_bound) {
      if (hopeless(bound)) break;
      TaskGroupings groupings = groupings_of(*partition);
      for (const std::int32_t buckets : bucket_counts(*partition)) {
        Layout layout;
        layout.buckets = groupings.into(buckets).buckets;
        ++tried_;
        const std::vector<LayoutSketch::BucketClocks> clocks = sketch_->clocks(*partition, layout.buckets);
        if (hopeless(sketch_->busiest_stage_seconds(clocks))) continue;
        layout.makespan = sketch_->step(clocks);
        if (hopeless(seconds(layout.makespan))) continue;
        layout.htasks = htasks_of(*partition);
        const auto place = std::upper_bound(best.begin(), best.end(), layout,
                                            [](const Layout& a, const Layout& b) { return a.makespan < b.makespan; });
        best.insert(place, std::move(layout));
        if (best.size() > count) best.pop_back();
      }
    }
    return best;
  }

  /// Every P; of many hTasks about kAllCounts of them.
  std::vector<std::int32_t> bucket_counts(const FusedTasks& partition) const {
    const auto count = static_cast<std::int32_t>(partition.htasks.size());
    std::vector<std::int32_t> counts;
    const std::int32_t step = options_.lays_out_all ? 1 : std::max(1, (count + kAllCounts - 1) / kAllCounts);
    for (std::int32_t buckets = count; buckets >= 1; buckets -= step) counts.push_back(buckets);
    return counts;
  }

  TaskGroupings groupings_of(const FusedTasks& partition) const {
    std::vector<double> first_stage;
    for (const TaskRun& run : partition.htasks) first_stage.push_back(costs_->forward_seconds(0, run));
    return TaskGroupings(std::move(first_stage));
  }

  std::vector<std::vector<TaskIndex>> htasks_of(const FusedTasks& partition) const {
    std::vector<std::vector<TaskIndex>> htasks;
    for (const TaskRun& run : partition.htasks) {
      std::vector<TaskIndex>& htask = htasks.emplace_back();
      for (std::int32_t t = run.first; t <= run.last; ++t) htask.push_back(parts_.tasks[static_cast<std::size_t>(t)]);
      std::sort(htask.begin(), htask.end());
    }
    return htasks;
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
    if (fixed.batching.chunk_size > 0) {
      std::string why = ": the greatest power of two that divides every max_length, 64 or more";
      if (options_.chunk_size > 0) why = ", as asked for";
      if (options_.searches_chunk_size) why = fmt::format(": the fastest of {}", fmt::join(sizes, ", "));
      lines.push_back(fmt::format("chunks of {} tokens{}", fixed.batching.chunk_size, why));
    }
    lines.push_back(
        fmt::format("{} fused into {} in {}: the fastest of {} by Eq. 3, {} of them with their real microbatches",
                    counted(parts_.tasks.size(), "task"), counted(fixed.htasks.size(), "hTask"),
                    counted(fixed.buckets.size(), "bucket"), counted(static_cast<std::size_t>(tried_), "layout"),
                    laid_out_.size()));
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
        [&](const LaidOut& other) { return other.chunk_size != fixed.batching.chunk_size; });
    return lines;
  }

  const PolicyInput& input_;
  const MuxTuneOptions& options_;
  std::vector<costmodel::StageShape> shapes_;
  FixedPlan base_;
  SortedParts parts_;
  std::optional<FittingRuns> fitting_;
  std::optional<RunCosts> costs_;       // where every task fits by itself
  std::optional<LayoutSketch> sketch_;  // likewise
  LaidOutBuckets laid_out_here_;
  std::int64_t tried_ = 0;  // groupings
  std::vector<LaidOut> laid_out_;
};

}  // namespace

Sketch sketch_muxtune(const PolicyInput& input, const MuxTuneOptions& options) {
  return MuxTuneSearch(input, options).sketch();
}

std::optional<Arrangement> arrange_muxtune(const PolicyInput& input, const MuxTuneOptions& options) {
  return MuxTuneSearch(input, options).run();
}

}  // namespace braid::planner
