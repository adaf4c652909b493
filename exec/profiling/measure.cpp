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

#include "base/parallel.h"
#include "base/statistics.h"
#include "base/steady_clock.h"
#include "costmodel/profile/cost_model.h"
#include "exec/example/random_weights.h"
#include "exec/optimizer.h"
#include "exec/profiling/measured_samples.h"
#include "exec/profiling/probed_backbone.h"
#include "exec/profiling/reference_pass.h"

namespace braid::exec {

using costmodel::Operator;
using costmodel::OperatorCall;
using costmodel::Pass;
using costmodel::Profile;
using costmodel::ProfileEntry;

namespace {

/// In one round. Medians over passes stay put from here on; longer passes are run fewer times.
constexpr std::int64_t kMostPasses = 6;
constexpr double kSecondsAPoint = 0.04;
/// A pass that takes less is run once more before it is timed, each time; others only where no larger one ran before.
constexpr double kShortPass = 0.02;
/// A reference pass follows what took longer; what the machine does for others comes and goes within seconds.
constexpr double kSecondsAReference = 0.2;
/// Optimizer steps and messages are measured so many times over.
constexpr int kRounds = 3;
/// Neighbouring sizes of those are this far apart.
constexpr double kGridStep = 2;

/// What the device takes for what `work` calls on it.
template <typename Work>
double seconds_of(kernels::Device& device, const Work& work) {
  const std::unique_ptr<kernels::Event> begun = device.record();
  work();
  const std::unique_ptr<kernels::Event> ended = device.record();
  device.wait();
  return seconds_between(*begun->ended(), *ended->ended());
}

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
    if (!request_.known) describe_machine();
    take_reference();
    if (!knows(Operator::adamw, most_parameters())) measure_optimizer();
    const bool gathers = !device_.host_memory() || knows(Operator::all_gather, 1);
    if (communicator_.size() > 1 && !(knows(Operator::send_recv, 1) && gathers)) measure_messages();
    if (!device_.host_memory() && !knows(Operator::launch, 1)) measure_gpu();
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

  /// What threads and libraries keep. Before all else, so that nothing is there yet that a run's ranks lack.
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
      constexpr std::int64_t kTokens = 512, kContext = 64;
      for (std::size_t task = 0; task < request_.adapters.size(); ++task)
        backbone.run(uniform_point(static_cast<planner::TaskIndex>(task), kTokens, kContext, 0, kContext), false);
    }
    if (communicator_.size() > 1) {
      const std::unique_ptr<CommunicatorGroup> all = group_of(communicator_.size());
      for (const std::int64_t count : {std::int64_t{16}, kMebibyte}) {
        measure_message(count);
        measure_sum(all.get(), communicator_.size(), count);
      }
    }
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

  /// Times `work` as often as a size is worth.
  template <typename Work>
  void time(const MeasuredSamples::Key& key, const Work& work) {
    communicator_.barrier();
    for (std::int64_t i = 0; i <= kMostPasses; ++i) {
      const double seconds = seconds_of(device_, work);
      if (i > 0) samples_.add(key, seconds);
    }
  }

  void measure_optimizer() {
    for (int round = 0; round < kRounds; ++round) {
      optimizer_round();
      take_reference();
    }
  }

  void optimizer_round() {
    const std::int64_t largest = most_parameters();
    workload::Optimizer optimizer;
    BufferPool pool(device_);
    std::vector<double> sums;
    // Adapters of one layer and of growing rank stand for any adapter: only the count of numbers matters.
    for (std::int64_t rank = 1;; rank = std::llround(kGridStep * static_cast<double>(rank))) {
      costmodel::AdapterShape adapter_shape{rank, 1.0, false, 0.0, {true, true, true, true, true, true, true}};
      Adapter adapter(request_.backbone, adapter_shape, planner::LayerRange{0, 1}, 3);
      adapter.move_to(device_);
      const auto numbers = static_cast<std::int64_t>(adapter.parameters().size());
      time({Operator::adamw, Pass::forward, {}, numbers, 0, 0}, [&] {
        squared_norms(adapter, pool, sums);
        take_step(optimizer, 0, 100, 1.0, adapter, device_.kernels());
      });
      time({Operator::squared_norm, Pass::forward, {}, numbers, 0, 0}, [&] { squared_norms(adapter, pool, sums); });
      if (numbers >= largest) break;
    }
  }

  /// What its datasheet's figures are held against (costmodel/profile/profile_fit).
  void measure_gpu() {
    BufferPool pool(device_);
    for (Bytes bytes = 128 << 10; bytes <= Bytes{256} << 20; bytes *= 2) {
      const auto numbers = bytes / 2 / static_cast<Bytes>(sizeof(float));
      const Buffer from = pool.take_f32(numbers), to = pool.take_f32(numbers);
      device_.kernels().fill(1, from.row());
      time({Operator::copy, Pass::forward, {}, bytes, 0, 0}, [&] { device_.kernels().copy(from.row(), to.row()); });
    }
    constexpr int kCalls = 100;
    const Buffer little = pool.take_f32(1);
    for (std::int64_t i = 0; i <= kMostPasses; ++i) {
      device_.wait();
      const SteadyClock::time_point start = SteadyClock::now();
      for (int call = 0; call < kCalls; ++call) device_.kernels().fill(0, little.row());
      const double seconds = seconds_since(start) / kCalls;
      if (i > 0) samples_.add({Operator::launch, Pass::forward, {}, 1, 0, 0}, seconds);
    }
  }

  /// Of `size` ranks each, as many as there are; null for ranks that are left over.
  std::unique_ptr<CommunicatorGroup> group_of(int size) const {
    std::unique_ptr<CommunicatorGroup> mine;
    for (int first = 0; first + size <= communicator_.size(); first += size) {
      std::vector<int> ranks(static_cast<std::size_t>(size));
      std::iota(ranks.begin(), ranks.end(), first);
      if (auto group = communicator_.make_group(ranks)) mine = std::move(group);
    }
    return mine;
  }

  /// Shards and replicas meet in groups of these sizes.
  std::vector<int> group_sizes() const {
    constexpr int kAll = 8;
    std::vector<int> sizes;
    for (int size = 2; size <= communicator_.size(); ++size) {
      const bool power = (size & (size - 1)) == 0;
      if (size <= kAll || power || size == communicator_.size()) sizes.push_back(size);
    }
    return sizes;
  }

  void measure_messages() {
    std::map<int, std::unique_ptr<CommunicatorGroup>> groups;
    for (const int size : group_sizes()) groups[size] = group_of(size);
    constexpr double kMostBytes = 32 * kMebibyte;
    const std::unique_ptr<SharedMemory> memory = communicator_.share_memory(static_cast<std::size_t>(kMostBytes));
    device_.kernels().fill(1, row_of(memory->mine()));
    memory->publish();
    for (int round = 0; round < kRounds; ++round) {
      for (double bytes = 64; bytes <= kMostBytes; bytes *= kGridStep) {
        const std::int64_t count = std::llround(bytes / sizeof(float));
        measure_message(count);
        for (const auto& [size, group] : groups) {
          measure_sum(group.get(), size, count);
          measure_gather(*memory, size, count);
        }
      }
      take_reference();
    }
  }

  /// Rank 0 and 1 play ball; half a round is one message.
  void measure_message(std::int64_t count) {
    for (const int from : {0, 1}) communicator_.open_path(from, 1 - from, 0);
    if (communicator_.rank() > 1) return;
    BufferPool pool(device_);
    const Buffer numbers = pool.take_f32(count);
    device_.kernels().fill(1, numbers.row());
    const MeasuredSamples::Key key{Operator::send_recv, Pass::forward, {}, bytes_of(count), 0, 0};
    const int other = 1 - communicator_.rank();
    for (std::int64_t i = 0; i <= kMostPasses; ++i) {
      const double seconds = seconds_of(device_, [&] {
        for (const bool mine : {communicator_.rank() == 0, communicator_.rank() == 1}) {
          follow(communicator_, device_, [&](const kernels::Event& after) {
            return mine ? communicator_.send(numbers.numbers(), other, 0, after)
                        : communicator_.receive(numbers.numbers(), other, 0, after);
          });
        }
      });
      if (i > 0) samples_.add(key, seconds / 2);
    }
  }

  void measure_sum(CommunicatorGroup* group, std::int64_t ranks, std::int64_t count) {
    BufferPool pool(device_);
    const Buffer numbers = pool.take_f32(count);
    device_.kernels().fill(0, numbers.row());
    communicator_.barrier();
    if (!group) return;
    for (std::int64_t i = 0; i <= kMostPasses; ++i) {
      const double seconds = seconds_of(device_, [&] {
        follow(communicator_, device_,
               [&](const kernels::Event& after) { return group->all_reduce(numbers.numbers(), after); });
      });
      if (i > 0) samples_.add({Operator::all_reduce, Pass::forward, {ranks}, bytes_of(count), 0, 0}, seconds);
    }
  }

  /// What a rank does that reads the shares of others beside its own, while as many others do.
  void measure_gather(SharedMemory& memory, int ranks, std::int64_t count) {
    BufferPool pool(device_);
    const Buffer numbers = pool.take_f32(count);
    device_.kernels().fill(0, numbers.row());
    const std::span whole(reinterpret_cast<std::byte*>(numbers.row().data), static_cast<std::size_t>(bytes_of(count)));
    device_.wait();
    communicator_.barrier();
    const int first = communicator_.rank() / ranks * ranks;
    if (first + ranks > communicator_.size()) return;
    const std::size_t each = whole.size() / static_cast<std::size_t>(ranks);
    for (std::int64_t i = 0; i <= kMostPasses; ++i) {
      const double seconds = seconds_of(device_, [&] {
        for (int rank = 0; rank < ranks; ++rank)
          memory.read(first + rank, 0, whole.subspan(static_cast<std::size_t>(rank) * each, each));
      });
      if (i > 0) samples_.add({Operator::all_gather, Pass::forward, {ranks}, bytes_of(count), 0, 0}, seconds);
    }
  }

  /// That share the device's memory: a GPU is one rank's.
  int ranks_of_device() const { return device_.host_memory() ? communicator_.size() : 1; }

  static kernels::Matrix row_of(std::span<std::byte> bytes) {
    return {reinterpret_cast<float*>(bytes.data()), 1, std::ssize(bytes) / static_cast<std::int64_t>(sizeof(float))};
  }
  static std::int64_t bytes_of(std::int64_t floats) { return floats * static_cast<std::int64_t>(sizeof(float)); }

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

namespace {

/// Seconds of a product of three square matrices of activations, in the median; once to begin with.
double product_seconds(kernels::Device& device, std::int64_t side, int times) {
  const std::unique_ptr<kernels::FrozenLinear> linear = random_linear(side, side, false, 5, device.kernels());
  BufferPool pool(device);
  const Buffer x = pool.take(side * side), y = pool.take(side * side);
  device.kernels().fill(1, x.row());
  std::vector<double> samples;
  for (int i = 0; i <= times; ++i) {
    const double seconds = seconds_of(device, [&] { linear->forward(x.matrix(side, side), y.matrix(side, side)); });
    if (i > 0) samples.push_back(seconds);
  }
  return median(samples);
}

}  // namespace

double measure_peak_flops(kernels::Device& device) {
  // A product of a millisecond and more keeps all of a device busy.
  constexpr std::int64_t kLeast = 1024, kMost = 8192;
  std::int64_t side = kLeast;
  while (side < kMost && product_seconds(device, side, 1) < 1e-3) side *= 2;
  const auto length = static_cast<double>(side);
  return 2.0 * length * length * length / product_seconds(device, side, 10);
}

}  // namespace braid::exec
