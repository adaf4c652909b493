#include "exec/measure.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <fstream>
#include <map>
#include <numbers>
#include <numeric>
#include <tuple>

#include "base/parallel.h"
#include "base/random.h"
#include "base/statistics.h"
#include "exec/optimizer.h"
#include "exec/pass_skew.h"
#include "exec/process_memory.h"
#include "exec/random_weights.h"
#include "exec/stage_model.h"
#include "kernels/versions.h"

namespace braid::exec {

using costmodel::Operator;
using costmodel::OperatorCall;
using costmodel::Pass;
using costmodel::Profile;
using costmodel::ProfileEntry;

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// All points are measured in turn, this many times over: what the machine does for others comes and goes within
/// seconds, and then blurs the median of many points a little in place of moving that of a few.
constexpr int kRounds = 4;
/// In one round. Medians over passes stay put from here on; longer passes are run fewer times, and warm up in the first
/// round alone, as each begins with as cold caches as it leaves.
constexpr int kFewestPasses = 2;
constexpr int kMostPasses = 10;
constexpr double kSecondsAPoint = 0.06;
/// Neighbours on a grid are this far apart.
constexpr double kGridStep = std::numbers::sqrt2;

struct Summary {
  double median = 0;
  double spread = 0;
};

Summary summarize(const std::vector<double>& samples) {
  const double middle = median(samples);
  return {middle, middle > 0 ? (quantile(samples, 0.75) - quantile(samples, 0.25)) / middle : 0};
}

/// One task's sequences of `context` tokens, all scored: a microbatch, or one for each of the chunks that they are cut
/// into.
std::vector<Batch> uniform_batches(const costmodel::BackboneShape& shape, std::int64_t tokens, std::int64_t context,
                                   std::int64_t chunk) {
  workload::Dataset dataset;
  RandomStream random(static_cast<std::uint64_t>(tokens));
  for (std::int64_t first = 0; first < tokens; first += context) {
    workload::Sample& sample = dataset.samples.emplace_back();
    for (std::int64_t i = 0; i < std::min(context, tokens - first); ++i)
      sample.append(static_cast<std::int32_t>(random.next_below(static_cast<std::uint64_t>(shape.vocabulary))), true);
  }
  std::vector<Batch> batches;
  for (std::int64_t begin = 0; begin < context; begin += chunk) {
    planner::Microbatch microbatch;
    for (std::size_t index = 0; index < dataset.samples.size(); ++index) {
      const auto length = static_cast<std::int64_t>(dataset.samples[index].tokens.size());
      if (begin >= length) continue;
      planner::Segment& segment = microbatch.segments.emplace_back();
      segment.index = static_cast<std::int32_t>(index);
      segment.sample = segment.index;
      segment.begin = static_cast<std::int32_t>(begin);
      segment.end = static_cast<std::int32_t>(std::min(begin + chunk, length));
    }
    batches.push_back(make_batch(microbatch, {&dataset, 1}));
  }
  return batches;
}

class Measuring {
 public:
  Measuring(const MeasureRequest& request, Communicator& communicator)
      : request_(request), communicator_(communicator), shape_(request.backbone) {
    // Two layers: the bottom one, whose input needs no gradient, and one like all others.
    shape_.layers = std::min<std::int64_t>(2, shape_.layers);
  }

  Profile run() {
    profile_.machine = machine_name();
    profile_.versions = kernels::library_versions();
    profile_.versions.push_back(mpi_version());
    profile_.versions.push_back(fmt::format("GCC {}", __VERSION__));
    profile_.threads = thread_count();
    profile_.corunning_ranks = communicator_.size();
    profile_.memory_bytes = static_cast<Bytes>(0.9 * static_cast<double>(physical_memory())) / communicator_.size();
    communicator_.barrier();
    profile_.peak_flops = measure_peak_flops();
    profile_.runtime_bytes = measure_runtime();
    measure_passes();
    measure_optimizer();
    if (communicator_.size() > 1) measure_messages();
    profile_.pass_skew = skew_.factor();
    write_entries();
    const std::time_t now = std::time(nullptr);
    char text[32];
    std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
    profile_.measured_at = text;
    return profile_;
  }

 private:
  struct Point {
    std::int64_t tokens = 0;
    std::int64_t context = 0;
    bool attends = false;     ///< one of attention's curve, and of no other
    std::int64_t chunk = 0;   ///< tokens that sequences are cut into; 0: they are not
    std::int64_t passes = 0;  ///< in one round; 0: not known yet
  };

  /// Token counts from one that is no round number: kernels have a ragged end on most microbatches, and so on these.
  std::vector<Point> token_grid() const {
    constexpr std::int64_t kUsualContext = 64;
    std::vector<Point> points;
    const double most = static_cast<double>(std::max<std::int64_t>(request_.most_tokens, 32));
    for (double tokens = 18.72; tokens < kGridStep * most; tokens *= kGridStep)
      points.push_back({std::llround(tokens), std::min<std::int64_t>(std::llround(tokens), kUsualContext), false});
    return points;
  }

  /// Contexts at one token count, in whole sequences: attention alone sees them, and no adapter does. Few short
  /// sequences by themselves take longer each, which no other batch does.
  std::vector<Point> context_grid() const {
    constexpr std::int64_t kTokens = 1024;
    std::vector<Point> points;
    for (double length = 8; length < 1.01 * kGridStep * static_cast<double>(request_.longest_context);
         length *= kGridStep) {
      const std::int64_t context = std::llround(length);
      points.push_back({context * std::max<std::int64_t>(1, kTokens / context), context, true});
    }
    return points;
  }

  /// Sequences of the longest context in chunks of 16, 32, 64, ... tokens, so that one point gives all prefixes.
  std::vector<Point> chunk_grid() const {
    constexpr std::int64_t kShortest = 16, kTokens = 64;
    std::vector<Point> points;
    for (std::int64_t chunk = kShortest; chunk < request_.longest_context; chunk *= 2) {
      const std::int64_t context = (request_.longest_context + chunk - 1) / chunk * chunk;
      points.push_back({context * std::max<std::int64_t>(1, kTokens / chunk), context, true, chunk});
    }
    return points;
  }

  /// What is measured with the k-th kind of adapter.
  std::vector<Point> points_of(std::size_t k) const {
    std::vector<Point> points = token_grid();
    if (k > 0) return points;
    for (const std::vector<Point>& grid : {context_grid(), chunk_grid()})
      points.insert(points.end(), grid.begin(), grid.end());
    return points;
  }

  /// One for each kind of adapter: modules, rank, whether it drops.
  std::vector<costmodel::AdapterShape> distinct_adapters() const {
    std::map<std::tuple<std::array<bool, costmodel::kModuleCount>, std::int64_t, bool>, costmodel::AdapterShape> kinds;
    for (const costmodel::AdapterShape& adapter : request_.adapters)
      kinds.insert({{adapter.targets, adapter.rank, adapter.dropout > 0}, adapter});
    std::vector<costmodel::AdapterShape> adapters;
    for (const auto& [kind, adapter] : kinds) adapters.push_back(adapter);
    return adapters;
  }

  /// What threads and libraries keep, after about as many shapes as a run meets: those of the whole grid are more.
  Bytes measure_runtime() {
    const Bytes before = resident_memory();
    {
      const planner::LayerRange layers{0, static_cast<std::int32_t>(shape_.layers)};
      Probe probe;
      BufferPool pool;
      StageModel model(shape_, layers, random_weights(shape_), pool, probe);
      std::vector<Point> grid = token_grid();
      const std::vector<costmodel::AdapterShape> kinds = distinct_adapters();
      for (std::size_t k = 0; k < kinds.size(); ++k) {
        std::vector<std::unique_ptr<Adapter>> adapters;
        adapters.push_back(std::make_unique<Adapter>(shape_, kinds[k], layers, 7));
        for (std::size_t i = 0; i < grid.size(); i += 2) measure_point(model, probe, adapters, k, grid[i]);
      }
    }
    if (communicator_.size() > 1) {
      const std::unique_ptr<CommunicatorGroup> group = group_of_all();
      for (const std::int64_t count : {std::int64_t{16}, kMebibyte}) measure_messages(*group, count);
    }
    samples_.clear();
    skew_ = {};
    return std::max<Bytes>(resident_memory() - before, 0);
  }

  void measure_passes() {
    const planner::LayerRange layers{0, static_cast<std::int32_t>(shape_.layers)};
    Probe probe;
    BufferPool pool;
    StageModel model(shape_, layers, random_weights(shape_), pool, probe);
    const std::vector<costmodel::AdapterShape> kinds = distinct_adapters();
    double work = 0, done = 0;
    std::vector<std::vector<Point>> points;  // by kind
    for (std::size_t k = 0; k < kinds.size(); ++k) {
      points.push_back(points_of(k));
      for (const Point& point : points[k]) work += kRounds * static_cast<double>(point.tokens + 256);
    }
    for (int round = 0; round < kRounds; ++round) {
      for (std::size_t k = 0; k < kinds.size(); ++k) {
        std::vector<std::unique_ptr<Adapter>> adapters;
        adapters.push_back(std::make_unique<Adapter>(shape_, kinds[k], layers, 7));
        for (Point& point : points[k]) {
          measure_point(model, probe, adapters, k, point);
          done += static_cast<double>(point.tokens + 256);
          if (request_.on_progress && communicator_.rank() == 0) request_.on_progress(done / work);
        }
      }
    }
  }

  /// `kind` of distinct_adapters() is what `adapters` holds.
  void measure_point(StageModel& model, Probe& probe, std::span<const std::unique_ptr<Adapter>> adapters,
                     std::size_t kind, Point& point) {
    const std::vector<Batch> batches =
        uniform_batches(shape_, point.tokens, point.context, point.chunk > 0 ? point.chunk : point.context);
    const auto count = static_cast<planner::MicrobatchId>(batches.size());
    const std::vector<std::uint64_t> seeds = {7};
    const std::vector<double> scale = {1.0 / static_cast<double>(point.tokens)};
    std::vector<TaskLoss> losses(1);
    communicator_.barrier();
    const Clock::time_point begin = Clock::now();
    const bool warms_up = point.passes != kFewestPasses;
    for (std::int64_t pass = warms_up ? 0 : 1; pass <= std::max<std::int64_t>(point.passes, 1); ++pass) {
      probe.recording = pass > 0;
      probe.records.clear();
      std::vector<Batch> copies = batches;
      const Clock::time_point start = Clock::now();
      for (planner::MicrobatchId id = 0; id < count; ++id)
        model.forward(id, std::move(copies[static_cast<std::size_t>(id)]), {}, adapters, seeds, scale, losses);
      const double forward = seconds_since(start);
      const std::size_t forwards = probe.records.size();
      const Clock::time_point turn = Clock::now();
      for (planner::MicrobatchId id = count; id-- > 0;) model.backward(id, {}, adapters, seeds);
      const double backward = seconds_since(turn);
      if (pass == 0) continue;
      // Decided on rank 0, so that all ranks keep each other company to the end.
      if (point.passes == 0) point.passes = agreed_passes(seconds_since(begin) / 2);
      const std::span<const Probe::Record> records = probe.records;
      keep({kind, point.tokens, Pass::forward}, records.first(forwards), forward, point);
      keep({kind, point.tokens, Pass::backward}, records.subspan(forwards), backward, point);
    }
    probe.recording = false;
  }

  std::int64_t agreed_passes(double seconds_a_pass) {
    const double affordable = kSecondsAPoint / std::max(seconds_a_pass, 1e-6);
    auto passes = static_cast<std::int64_t>(
        std::clamp(affordable, static_cast<double>(kFewestPasses), static_cast<double>(kMostPasses)));
    communicator_.broadcast(std::as_writable_bytes(std::span(&passes, 1)));
    return passes;
  }

  /// Tokens; of attention context and prefix.
  using Key = std::tuple<Operator, Pass, costmodel::OperatorShape, std::int64_t, std::int64_t, std::int64_t>;

  /// Of one pass: its operators' times, and what it took in all.
  void keep(const PassSkew::Kind& kind, std::span<const Probe::Record> records, double total, const Point& point) {
    std::vector<double> operators;
    for (const Probe::Record& record : records) {
      operators.push_back(record.seconds);
      const OperatorCall& call = record.call;
      const bool attends = call.op == Operator::attention;
      // Chunks that begin their samples are whole sequences, of which there are better measurements.
      if (attends != point.attends || (point.chunk > 0 && call.prefix == 0)) continue;
      const std::int64_t context = attends ? call.context : 0;
      samples_[{call.op, call.pass, call.shape, call.tokens, context, call.prefix}].push_back(record.seconds);
    }
    if (point.attends) return;
    const double rest = total - std::accumulate(operators.begin(), operators.end(), 0.0);
    samples_[{Operator::dispatch, kind.pass, {}, point.tokens, 0, 0}].push_back(std::max(0.0, rest));
    skew_.add(kind, operators, total);
  }

  /// Times `work` as often as a point is worth.
  template <typename Work>
  void time(const Key& key, const Work& work) {
    communicator_.barrier();
    for (int i = 0; i <= kMostPasses; ++i) {
      const Clock::time_point start = Clock::now();
      work();
      if (i > 0) samples_[key].push_back(seconds_since(start));
    }
  }

  void measure_optimizer() {
    for (int round = 0; round < kRounds; ++round) optimizer_round();
  }

  void optimizer_round() {
    std::int64_t largest = 0;
    for (const costmodel::AdapterShape& adapter : request_.adapters)
      largest = std::max(largest, adapter.layer_parameters(request_.backbone) * request_.backbone.layers);
    workload::Optimizer optimizer;
    // Adapters of one layer and of growing rank stand for any adapter: only the count of numbers matters.
    for (std::int64_t rank = 1;;
         rank = std::max<std::int64_t>(rank + 1, std::llround(kGridStep * static_cast<double>(rank)))) {
      costmodel::AdapterShape adapter_shape{rank, 1.0, false, 0.0, {true, true, true, true, true, true, true}};
      Adapter adapter(request_.backbone, adapter_shape, {0, 1}, 3);
      const auto numbers = static_cast<std::int64_t>(adapter.parameters().size());
      time({Operator::adamw, Pass::forward, {}, numbers, 0, 0}, [&] {
        squared_norms(adapter);
        take_step(optimizer, 0, 100, 1.0, adapter);
      });
      time({Operator::squared_norm, Pass::forward, {}, numbers, 0, 0}, [&] { squared_norms(adapter); });
      if (numbers >= largest) break;
    }
  }

  std::unique_ptr<CommunicatorGroup> group_of_all() const {
    std::vector<int> everyone(static_cast<std::size_t>(communicator_.size()));
    std::iota(everyone.begin(), everyone.end(), 0);
    return communicator_.make_group(everyone);
  }

  void measure_messages() {
    const std::unique_ptr<CommunicatorGroup> group = group_of_all();
    for (int round = 0; round < kRounds; ++round) {
      for (double bytes = 64; bytes <= 32 * kMebibyte; bytes *= kGridStep)
        measure_messages(*group, std::llround(bytes / sizeof(float)));
    }
  }

  void measure_messages(CommunicatorGroup& group, std::int64_t count) {
    const std::int64_t bytes = count * static_cast<std::int64_t>(sizeof(float));
    const auto finish = [](Request& request) {
      while (!request.done()) {
      }
    };
    std::vector<float> numbers(static_cast<std::size_t>(count), 1.0F);
    // Rank 0 and 1 play ball; half a round is one message.
    const Key key{Operator::send_recv, Pass::forward, {}, bytes, 0, 0};
    if (communicator_.rank() < 2) {
      const int other = 1 - communicator_.rank();
      for (int i = 0; i <= kMostPasses; ++i) {
        const Clock::time_point start = Clock::now();
        for (const bool mine : {communicator_.rank() == 0, communicator_.rank() == 1}) {
          const auto request = mine ? communicator_.send(numbers, other, 0) : communicator_.receive(numbers, other, 0);
          finish(*request);
        }
        if (i > 0) samples_[key].push_back(seconds_since(start) / 2);
      }
    }
    time({Operator::all_reduce, Pass::forward, {communicator_.size()}, bytes, 0, 0},
         [&] { finish(*group.all_reduce(numbers)); });
  }

  void write_entries() {
    for (const auto& [key, samples] : samples_) {
      const auto& [op, pass, shape, tokens, context, prefix] = key;
      const Summary summary = summarize(samples);
      ProfileEntry entry;
      entry.op = op;
      entry.pass = pass;
      entry.shape = shape;
      entry.tokens = tokens;
      entry.context = context;
      entry.prefix = prefix;
      entry.seconds = summary.median;
      entry.spread = summary.spread;
      entry.count = static_cast<std::int64_t>(samples.size());
      entry.source = "measured";
      profile_.entries.push_back(entry);
    }
  }

  const MeasureRequest& request_;
  Communicator& communicator_;
  costmodel::BackboneShape shape_;
  Profile profile_;
  std::map<Key, std::vector<double>> samples_;
  PassSkew skew_;
};

}  // namespace

Profile measure_profile(const MeasureRequest& request, Communicator& communicator) {
  check_family(request.backbone);
  return Measuring(request, communicator).run();
}

double measure_peak_flops() {
  constexpr std::int64_t kRows = 1024, kSide = 1024;
  const kernels::cpu::PackedLinear linear = random_linear(kSide, kSide, false, 5);
  const std::vector<float> x = random_numbers(kRows * kSide, 1.0, 6);
  std::vector<float> y(static_cast<std::size_t>(kRows * kSide));
  std::vector<double> samples;
  for (int i = 0; i < 12; ++i) {
    const Clock::time_point start = Clock::now();
    linear.forward({x.data(), kRows, kSide}, {y.data(), kRows, kSide});
    if (i > 1) samples.push_back(seconds_since(start));
  }
  return 2.0 * kRows * kSide * kSide / summarize(samples).median;
}

std::string machine_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

}  // namespace braid::exec
