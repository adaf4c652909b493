#include "exec/profiling/measure.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <thread>
#include <tuple>

#include "base/notice.h"
#include "base/parallel.h"
#include "base/statistics.h"
#include "base/steady_clock.h"
#include "costmodel/profile/cost_model.h"
#include "exec/example/random_weights.h"
#include "exec/profiling/measured_device.h"
#include "exec/profiling/measured_kernels.h"
#include "exec/profiling/measured_messages.h"
#include "exec/profiling/probed_backbone.h"
#include "exec/profiling/reference_pass.h"

namespace braid::exec {

using costmodel::Operator;
using costmodel::OperatorCall;
using costmodel::Pass;
using costmodel::Profile;
using costmodel::ProfileEntry;

namespace {

constexpr double kSecondsAPoint = 0.04;
/// A pass that takes less is run once more before it is timed, each time; others only where no larger one ran before.
constexpr double kShortPass = 0.02;
/// A reference pass follows what took longer; what the machine does for others comes and goes within seconds.
constexpr double kSecondsAReference = 0.2;
/// Of the budget what a GPU's choice of kernels may take.
constexpr double kShareOfKernels = 0.2;
/// Optimizer steps and messages are measured so many times over.
constexpr int kRounds = 3;

class Measuring {
 public:
  Measuring(const MeasureRequest& request, Communicator& communicator, kernels::Device& device)
      : request_(request),
        devices_(device.has_groups() && communicator.size() > 1 ? make_device_communicator(communicator, device)
                                                                : nullptr),
        communicator_(devices_ ? *devices_ : communicator),
        device_(device) {
    if (request.known) profile_ = *request.known;
  }

  Profile run() {
    choose_kernels();
    if (!request_.known) describe_machine();
    take_reference();
    if (!knows(Operator::adamw, most_parameters())) measure_optimizer();
    const bool gathers = !communicator_.shares_memory() || knows(Operator::all_gather, 1);
    if (communicator_.size() > 1 && !(knows(Operator::send_recv, 1) && gathers)) measure_messages();
    if (!device_.host_memory() && !knows(Operator::launch, 1)) measure_gpu(device_, samples_);
    while (measure_next()) {
    }
    const std::time_t now = std::time(nullptr);
    char text[32];
    std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
    profile_ = told();
    profile_.measured_at = text;
    return profile_;
  }

 private:
  double elapsed() const { return seconds_since(began_); }

  void choose_kernels() {
    if (!request_.known) profile_.kernels = request_.kernels ? *request_.kernels : faster_kernels();
    device_.choose_kernels(profile_.kernels);
    device_.trim();
  }
  std::vector<costmodel::KernelChoice> faster_kernels() {
    const KernelTrial trial{request_.backbone, request_.adapters, request_.weights,
                            kShareOfKernels * request_.budget_seconds};
    const KernelTrialResult found = try_kernels(trial, communicator_, device_);
    if (communicator_.rank() == 0) std::ranges::for_each(found.notes, notice);
    return found.choices;
  }

  void describe_machine() {
    profile_.machine = device_.machine();
    profile_.backend = request_.backend;
    profile_.dtype = request_.weights;
    profile_.versions = machine_versions(device_);
    profile_.threads = thread_count();
    profile_.corunning_ranks = communicator_.size();
    profile_.cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    profile_.memory_bytes =
        static_cast<Bytes>((1 - costmodel::kFreeMemoryShare) * static_cast<double>(device_.memory())) /
        ranks_of_device();
    communicator_.barrier();
    measure_runtime();
    profile_.peak_flops = measure_peak_flops(device_);
  }

  /// What threads and libraries keep. Before all else but the choice of kernels, so that nothing is there yet that a
  /// run's ranks lack.
  void measure_runtime() {
    const Bytes before = device_.host_memory() ? device_.held() : 0;
    {
      ProbedBackbone backbone(request_.backbone, probed_layers(request_.backbone, communicator_.size()), device_, 1,
                              request_.weights);
      backbone.compile_layers();
      const Bytes without_head = device_.held();
      backbone.compile_head();
      profile_.head_runtime_bytes = std::max<Bytes>(device_.held() - without_head, 0);
      backbone.set_adapters(request_.adapters);
      // Second kernels keep memory, too, once they have run.
      std::int64_t tokens = 512, context = 64;
      for (const costmodel::KernelChoice& choice : profile_.kernels) {
        tokens = std::max(tokens, choice.from);
        if (choice.op == Operator::attention) context = std::max(context, choice.from);
      }
      for (std::size_t task = 0; task < request_.adapters.size(); ++task)
        backbone.run(uniform_point(static_cast<planner::TaskIndex>(task), tokens, context, 0, context), false);
      for (const costmodel::KernelChoice& choice : profile_.kernels) {
        if (choice.op != Operator::launch) continue;
        const std::int64_t few = std::min(tokens, choice.to);
        for (int time = 0; time < 2; ++time)  // the first goes without
          backbone.run(uniform_point(0, few, std::min(few, context), 0, std::min(few, context)), false);
      }
    }
    if (communicator_.size() > 1) touch_messages(communicator_, device_);
    samples_.clear();
    device_.trim();
    profile_.runtime_bytes = std::max<Bytes>(device_.held() - before - profile_.head_runtime_bytes, 0);
  }

  /// What is known by now: entries measured now in place of older ones, at the older ones' pace.
  Profile told() const {
    Profile told = profile_;
    const double now = samples_.reference_seconds();
    if (told.reference_pass_seconds <= 0) told.reference_pass_seconds = now;
    const double pace = told.reference_pass_seconds / now;
    std::map<MeasuredSamples::Key, ProfileEntry> entries;
    const auto put = [&](const ProfileEntry& entry) {
      entries[{entry.op, entry.pass, entry.shape, entry.tokens, entry.context, entry.prefix}] = entry;
    };
    for (const ProfileEntry& entry : told.entries) put(entry);
    for (ProfileEntry entry : samples_.entries()) {
      entry.seconds *= pace;
      entry.dtype = name(profile_.dtype);
      put(entry);
    }
    told.entries.clear();
    for (const auto& [key, entry] : entries) told.entries.push_back(entry);
    if (const std::optional<double> skew = pass_skew(told, pace)) told.pass_skew = *skew;
    return told;
  }

  /// What whole passes took over what their operators are predicted to: what holds an operator up now and then no
  /// median knows of, and sequences of many lengths may attend otherwise than those of one.
  std::optional<double> pass_skew(Profile operators, double pace) const {
    if (points_.empty()) return std::nullopt;
    operators.pass_skew = 1;
    const costmodel::CostModel cost(std::move(operators));
    std::vector<double> of_all, of_plans;
    for (const auto& [key, seconds] : samples_.passes()) {
      const auto& [place, pass] = key;
      const MeasuredPoint& point = points_[place];
      const costmodel::StageShape stage{layers_of(point), true, true};
      const double predicted =
          cost.estimate(calls_of(point, request_.backbone, stage, request_.adapters, pass, cost.storage())).seconds;
      of_all.push_back(seconds * pace / predicted);
      if (!point.needed && !point.attends) of_plans.push_back(of_all.back());
    }
    if (of_all.empty()) return std::nullopt;
    return median(of_plans.empty() ? of_all : of_plans);
  }

  /// False when rank 0 has nothing more to ask for.
  bool measure_next() {
    std::string bytes;
    if (communicator_.rank() == 0) bytes = to_bytes(request_.next(told(), request_.budget_seconds - elapsed()));
    const std::vector<MeasuredPoint> points = points_from_bytes(share(std::move(bytes)));
    bool measured = false;
    for (const MeasuredPoint& point : points) {
      if (!point.needed && !agree(elapsed() < request_.budget_seconds)) break;
      measure_point(place_of(point));
      measured = true;
    }
    return measured;
  }

  /// Rank 0's bytes on every rank.
  std::string share(std::string bytes) {
    auto size = std::ssize(bytes);
    communicator_.broadcast(std::as_writable_bytes(std::span(&size, 1)));
    bytes.resize(static_cast<std::size_t>(size));
    communicator_.broadcast(std::as_writable_bytes(std::span(bytes)));
    return bytes;
  }

  /// What rank 0 says, so that all ranks keep each other company to the end.
  template <typename T>
  T agree(T value) {
    std::int64_t number = value;
    communicator_.broadcast(std::as_writable_bytes(std::span(&number, 1)));
    return static_cast<T>(number);
  }

  std::size_t place_of(const MeasuredPoint& point) {
    const auto place = static_cast<std::size_t>(std::find(points_.begin(), points_.end(), point) - points_.begin());
    if (place == points_.size()) points_.push_back(point);
    return place;
  }

  ProbedBackbone& backbone_of(const MeasuredPoint& point) {
    const ProbedPart part{layers_of(point), point.tp};
    std::unique_ptr<ProbedBackbone>& backbone = backbones_[part];
    if (!backbone) {
      // Of those with fewer layers than usual one is kept, which takes little.
      const std::int64_t usual = probed_layers(request_.backbone, communicator_.size());
      std::erase_if(backbones_, [&](const auto& one) { return one.first != part && one.first.first != usual; });
      backbones_[part] =
          std::make_unique<ProbedBackbone>(request_.backbone, part.first, device_, part.second, request_.weights);
      backbones_[part]->set_adapters(request_.adapters);
    }
    return *backbones_[part];
  }
  std::int64_t layers_of(const MeasuredPoint& point) const {
    const std::int64_t usual = probed_layers(request_.backbone, communicator_.size());
    return point.layers > 0 ? std::min<std::int64_t>(point.layers, usual) : usual;
  }

  void measure_point(std::size_t place) {
    const MeasuredPoint point = points_[place];
    if (request_.on_progress && communicator_.rank() == 0)
      request_.on_progress({fmt::format("{} tokens through {} layers", point.tokens(), layers_of(point)),
                            measured_points_, elapsed(), request_.budget_seconds});
    ProbedBackbone& backbone = backbone_of(point);
    std::int64_t& warm = warm_[{layers_of(point), point.tp}];
    communicator_.barrier();
    // Memory is touched, and products are made, by the largest pass so far.
    if (agree(warm < point.tokens() || last_pass_[place] < kShortPass)) {
      const ProbedBackbone::Passes passes = backbone.run(point, false);
      last_pass_[place] = passes.forward_seconds + passes.backward_seconds;
      warm = std::max(warm, point.tokens());
    }
    std::int64_t passes = 1;
    for (std::int64_t pass = 0; pass < passes; ++pass) {
      const ProbedBackbone::Passes timed = backbone.run(point, true);
      const double seconds = timed.forward_seconds + timed.backward_seconds;
      last_pass_[place] = seconds;
      if (pass == 0)
        passes = agree(std::clamp(static_cast<std::int64_t>(kSecondsAPoint / std::max(seconds, 1e-6)), std::int64_t{1},
                                  kMostPasses));
      keep({place, Pass::forward}, timed.forward, timed.forward_seconds);
      keep({place, Pass::backward}, timed.backward, timed.backward_seconds);
    }
    ++measured_points_;
    if (agree(elapsed() - last_reference_ > kSecondsAReference)) take_reference();
  }

  /// Of one pass: its operators' times, and what it took in all.
  void keep(const MeasuredSamples::PassKey& key, std::span<const Probe::Record> records, double total) {
    const MeasuredPoint& point = points_[key.first];
    double rest = total;
    for (const Probe::Record& record : records) {
      rest -= record.seconds;
      const OperatorCall& call = record.call;
      const bool attends = call.op == Operator::attention;
      if (attends && !point.attends) continue;
      const std::int64_t context = attends ? call.context : 0;
      samples_.add({call.op, call.pass, call.shape, call.tokens, context, call.prefix}, record.seconds);
    }
    samples_.add_pass(key, total);
    // What a pass does beside its operators it does layer by layer.
    const auto microbatches = static_cast<double>(point.microbatches.size());
    const std::int64_t of_rank = (request_.backbone.layers + communicator_.size() - 1) / communicator_.size();
    const double layers = static_cast<double>(of_rank) / static_cast<double>(layers_of(point));
    const auto tokens = static_cast<std::int64_t>(std::llround(static_cast<double>(point.tokens()) / microbatches));
    samples_.add({Operator::dispatch, key.second, {}, tokens, 0, 0}, std::max(0.0, rest) * layers / microbatches);
  }

  void take_reference() {
    if (!reference_) reference_.emplace(request_.backbone, device_);
    do samples_.add_reference(reference_->seconds(communicator_));
    while (samples_.references() < 2);
    last_reference_ = elapsed();
  }

  bool knows(Operator op, std::int64_t amount) const {
    return std::any_of(profile_.entries.begin(), profile_.entries.end(),
                       [&](const ProfileEntry& entry) { return entry.op == op && entry.tokens >= amount; });
  }

  std::int64_t most_parameters() const {
    std::int64_t most = 0;
    for (const costmodel::AdapterShape& adapter : request_.adapters)
      most = std::max(most, adapter.layer_parameters(request_.backbone) * request_.backbone.layers);
    return most;
  }

  void measure_optimizer() {
    for (int round = 0; round < kRounds; ++round) {
      communicator_.barrier();
      measure_optimizers(request_.backbone, most_parameters(), device_, samples_);
      take_reference();
    }
  }

  void measure_messages() {
    Messages messages(communicator_, device_);
    for (int round = 0; round < kRounds; ++round) {
      messages.measure(samples_);
      take_reference();
    }
  }

  /// That share the device's memory: a GPU is one rank's.
  int ranks_of_device() const { return device_.host_memory() ? communicator_.size() : 1; }

  const MeasureRequest& request_;
  std::unique_ptr<Communicator> devices_;  // where the devices tell each other their numbers
  Communicator& communicator_;
  kernels::Device& device_;
  const SteadyClock::time_point began_ = SteadyClock::now();
  Profile profile_;
  std::optional<ReferencePass> reference_;
  double last_reference_ = 0;  // when one ended
  MeasuredSamples samples_;
  std::vector<MeasuredPoint> points_;                        // that were asked for, each once
  std::map<std::size_t, double> last_pass_;                  // seconds of a point's last pass
  using ProbedPart = std::pair<std::int64_t, std::int32_t>;  // how many layers, and how many shards
  std::map<ProbedPart, std::unique_ptr<ProbedBackbone>> backbones_;
  std::map<ProbedPart, std::int64_t> warm_;  // tokens of the largest pass so far
  std::int64_t measured_points_ = 0;
};

}  // namespace

Profile measure_profile(const MeasureRequest& request, Communicator& communicator, kernels::Device& device) {
  return Measuring(request, communicator, device).run();
}

std::int64_t probed_layers(const costmodel::BackboneShape& backbone, std::int64_t ranks) {
  constexpr Bytes kBeyondCaches = 256 * kMebibyte;
  const std::int64_t of_rank = (backbone.layers + ranks - 1) / ranks;
  const Bytes layer = backbone.layer_parameters() * static_cast<Bytes>(sizeof(float));
  return std::min(backbone.layers, std::max<std::int64_t>(2, std::min(of_rank, kBeyondCaches / layer)));
}

std::vector<std::string> machine_versions(const kernels::Device& device) {
  std::vector<std::string> versions = device.library_versions();
  versions.push_back(mpi_version());
  versions.push_back(fmt::format("GCC {}", __VERSION__));
  return versions;
}

}  // namespace braid::exec
