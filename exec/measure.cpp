#include "exec/measure.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <fstream>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>

#include "base/parallel.h"
#include "base/statistics.h"
#include "base/steady_clock.h"
#include "exec/measured_points.h"
#include "exec/measured_samples.h"
#include "exec/optimizer.h"
#include "exec/pass_skew.h"
#include "exec/probed_backbone.h"
#include "exec/process_memory.h"
#include "exec/random_weights.h"
#include "exec/reference_pass.h"
#include "kernels/versions.h"

namespace braid::exec {

using costmodel::Operator;
using costmodel::OperatorCall;
using costmodel::Pass;
using costmodel::Profile;

namespace {

/// All points are measured in turn, this many times over, with a reference pass after each: what the machine does for
/// others comes and goes within seconds. Times are told at the pace that it had in the median, and are those of moments
/// that were near it.
constexpr int kRounds = 5;
/// In one round. Medians over passes stay put from here on; longer passes are run fewer times, and warm up in the first
/// round alone, as each begins with as cold caches as it leaves.
constexpr int kFewestPasses = 1;
constexpr int kMostPasses = 6;
constexpr double kSecondsAPoint = 0.04;

class Measuring {
 public:
  Measuring(const MeasureRequest& request, Communicator& communicator)
      : request_(request), communicator_(communicator) {}

  Profile run() {
    profile_.machine = machine_name();
    profile_.versions = kernels::library_versions();
    profile_.versions.push_back(mpi_version());
    profile_.versions.push_back(fmt::format("GCC {}", __VERSION__));
    profile_.threads = thread_count();
    profile_.corunning_ranks = communicator_.size();
    profile_.memory_bytes = static_cast<Bytes>(0.9 * static_cast<double>(physical_memory())) / communicator_.size();
    communicator_.barrier();
    measure_runtime();
    profile_.peak_flops = measure_peak_flops();
    measure_passes();
    measure_optimizer();
    if (communicator_.size() > 1) measure_messages();
    profile_.reference_pass_seconds = samples_.reference_seconds();
    profile_.pass_skew = samples_.pass_skew();
    profile_.entries = samples_.entries();
    const std::time_t now = std::time(nullptr);
    char text[32];
    std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
    profile_.measured_at = text;
    return profile_;
  }

 private:
  /// What is measured with the k-th kind of adapter.
  std::vector<MeasuredPoint> points_of(std::size_t k) const {
    std::vector<MeasuredPoint> points = token_points(request_.most_tokens);
    if (k > 0) return points;
    for (const auto& more : {context_points(request_.longest_context), chunk_points(request_.longest_context)})
      points.insert(points.end(), more.begin(), more.end());
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

  /// What threads and libraries keep. Before all else, so that nothing is there yet that a run's ranks lack.
  void measure_runtime() {
    const Bytes before = resident_memory();
    {
      ProbedBackbone backbone(request_.backbone, layers());
      backbone.compile_layers();
      const Bytes without_head = resident_memory();
      backbone.compile_head();
      profile_.head_runtime_bytes = std::max<Bytes>(resident_memory() - without_head, 0);
      // Scratch is as large as the largest pass needs.
      MeasuredPoint largest = token_points(request_.most_tokens).back();
      const std::vector<costmodel::AdapterShape> kinds = distinct_adapters();
      for (std::size_t k = 0; k < kinds.size(); ++k) {
        backbone.set_adapter(kinds[k]);
        measure_point(backbone, k, largest);
      }
    }
    if (communicator_.size() > 1) {
      const std::unique_ptr<CommunicatorGroup> group = group_of_all();
      for (const std::int64_t count : {std::int64_t{16}, kMebibyte}) measure_messages(*group, count);
    }
    samples_.clear();
    return_free_memory();
    profile_.runtime_bytes = std::max<Bytes>(resident_memory() - before - profile_.head_runtime_bytes, 0);
  }

  void measure_passes() {
    ProbedBackbone backbone(request_.backbone, layers());
    take_reference();
    const std::vector<costmodel::AdapterShape> kinds = distinct_adapters();
    double work = 0, done = 0;
    std::vector<std::vector<MeasuredPoint>> points;  // by kind
    for (std::size_t k = 0; k < kinds.size(); ++k) {
      points.push_back(points_of(k));
      for (const MeasuredPoint& point : points[k]) work += kRounds * static_cast<double>(point.tokens + 256);
    }
    for (int round = 0; round < kRounds; ++round) {
      for (std::size_t k = 0; k < kinds.size(); ++k) {
        backbone.set_adapter(kinds[k]);
        for (MeasuredPoint& point : points[k]) {
          measure_point(backbone, k, point);
          take_reference();
          done += static_cast<double>(point.tokens + 256);
          if (request_.on_progress && communicator_.rank() == 0) request_.on_progress(done / work);
        }
      }
    }
  }

  /// As a rank of a run has, so that weights and activations leave as much room in caches; but no more than fill them,
  /// and two at least: the bottom one and one like all others.
  std::int64_t layers() const {
    constexpr Bytes kBeyondCaches = 256 * kMebibyte;
    const costmodel::BackboneShape& backbone = request_.backbone;
    const std::int64_t of_rank = (backbone.layers + communicator_.size() - 1) / communicator_.size();
    const Bytes layer = backbone.layer_parameters() * static_cast<Bytes>(sizeof(float));
    return std::max<std::int64_t>(2, std::min(of_rank, kBeyondCaches / layer));
  }

  void take_reference() {
    if (!reference_) reference_.emplace(request_.backbone);
    samples_.add_reference(reference_->seconds(communicator_));
  }

  /// `kind` of distinct_adapters() is what the backbone has.
  void measure_point(ProbedBackbone& backbone, std::size_t kind, MeasuredPoint& point) {
    const std::vector<Batch> batches =
        uniform_batches(request_.backbone, point.tokens, point.context, point.chunk > 0 ? point.chunk : point.context);
    communicator_.barrier();
    const SteadyClock::time_point begin = SteadyClock::now();
    const bool warms_up = point.passes != kFewestPasses;
    for (std::int64_t pass = warms_up ? 0 : 1; pass <= std::max<std::int64_t>(point.passes, 1); ++pass) {
      const ProbedBackbone::Passes passes = backbone.run(batches, pass > 0);
      if (pass == 0) continue;
      // Decided on rank 0, so that all ranks keep each other company to the end.
      if (point.passes == 0) point.passes = agreed_passes(seconds_since(begin) / 2);
      keep({kind, point.tokens, Pass::forward}, passes.forward, passes.forward_seconds, point);
      keep({kind, point.tokens, Pass::backward}, passes.backward, passes.backward_seconds, point);
    }
  }

  std::int64_t agreed_passes(double seconds_a_pass) {
    const double affordable = kSecondsAPoint / std::max(seconds_a_pass, 1e-6);
    auto passes = static_cast<std::int64_t>(
        std::clamp(affordable, static_cast<double>(kFewestPasses), static_cast<double>(kMostPasses)));
    communicator_.broadcast(std::as_writable_bytes(std::span(&passes, 1)));
    return passes;
  }

  /// Of one pass: its operators' times, and what it took in all.
  void keep(const PassSkew::Kind& kind, std::span<const Probe::Record> records, double total,
            const MeasuredPoint& point) {
    std::vector<double> operators;
    for (const Probe::Record& record : records) {
      operators.push_back(record.seconds);
      const OperatorCall& call = record.call;
      const bool attends = call.op == Operator::attention;
      // Chunks that begin their samples are whole sequences, of which there are better measurements.
      if (attends != point.attends || (point.chunk > 0 && call.prefix == 0)) continue;
      const std::int64_t context = attends ? call.context : 0;
      samples_.add({call.op, call.pass, call.shape, call.tokens, context, call.prefix}, record.seconds);
    }
    if (point.attends) return;
    const double rest = total - std::accumulate(operators.begin(), operators.end(), 0.0);
    samples_.add({Operator::dispatch, kind.pass, {}, point.tokens, 0, 0}, std::max(0.0, rest));
    samples_.add_pass(kind, std::move(operators), total);
  }

  /// Times `work` as often as a point is worth.
  template <typename Work>
  void time(const MeasuredSamples::Key& key, const Work& work) {
    communicator_.barrier();
    for (int i = 0; i <= kMostPasses; ++i) {
      const SteadyClock::time_point start = SteadyClock::now();
      work();
      if (i > 0) samples_.add(key, seconds_since(start));
    }
  }

  void measure_optimizer() {
    for (int round = 0; round < kRounds; ++round) {
      optimizer_round();
      take_reference();
    }
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
      take_reference();
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
    const MeasuredSamples::Key key{Operator::send_recv, Pass::forward, {}, bytes, 0, 0};
    if (communicator_.rank() < 2) {
      const int other = 1 - communicator_.rank();
      for (int i = 0; i <= kMostPasses; ++i) {
        const SteadyClock::time_point start = SteadyClock::now();
        for (const bool mine : {communicator_.rank() == 0, communicator_.rank() == 1}) {
          const auto request = mine ? communicator_.send(numbers, other, 0) : communicator_.receive(numbers, other, 0);
          finish(*request);
        }
        if (i > 0) samples_.add(key, seconds_since(start) / 2);
      }
    }
    time({Operator::all_reduce, Pass::forward, {communicator_.size()}, bytes, 0, 0},
         [&] { finish(*group.all_reduce(numbers)); });
  }

  const MeasureRequest& request_;
  Communicator& communicator_;
  Profile profile_;
  std::optional<ReferencePass> reference_;
  MeasuredSamples samples_;
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
    const SteadyClock::time_point start = SteadyClock::now();
    linear.forward({x.data(), kRows, kSide}, {y.data(), kRows, kSide});
    if (i > 1) samples.push_back(seconds_since(start));
  }
  return 2.0 * kRows * kSide * kSide / median(samples);
}

std::string machine_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

}  // namespace braid::exec
