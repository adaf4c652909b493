#include "exec/late_device.h"

#include <cstring>
#include <functional>
#include <optional>
#include <tuple>
#include <utility>

#include "exec/late_group.h"

namespace braid::exec {
namespace {

using namespace kernels;

/// What is called of a subgraph that has not ended.
thread_local std::optional<std::vector<std::function<void()>>> subgraph;

/// An operator that waits its turn, or for its subgraph to end.
void push(std::function<void()> work) {
  if (subgraph) return subgraph->push_back(std::move(work));
  late_streams->compute().push([work = std::move(work)] {
    work();
    return true;
  });
}

void end_subgraph_now() {
  const auto calls = std::exchange(subgraph, std::nullopt);
  if (!calls) return;
  push([calls] {
    for (const std::function<void()>& call : *calls) call();
  });
}

Device& base() {
  static const std::unique_ptr<Device> device = make_reference_device();
  return *device;
}

/// What a call shows of the host, kept until it runs.
template <typename T>
class Kept {
 public:
  explicit Kept(const T& value) : value_(value) {}
  const T& get() const { return value_; }

 private:
  T value_;
};

template <typename T>
class Kept<std::span<const T>> {
 public:
  explicit Kept(std::span<const T> values) : values_(values.begin(), values.end()) {}
  std::span<const T> get() const { return values_; }

 private:
  std::vector<T> values_;
};

template <>
class Kept<std::span<const SequenceRows>> {
 public:
  explicit Kept(std::span<const SequenceRows> rows) : rows_(rows.begin(), rows.end()) {
    for (const SequenceRows& row : rows) earlier_.emplace_back(row.earlier.begin(), row.earlier.end());
  }
  std::vector<SequenceRows> get() const {
    std::vector<SequenceRows> rows = rows_;
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i].earlier = earlier_[i];
    return rows;
  }

 private:
  std::vector<SequenceRows> rows_;
  std::vector<std::vector<EarlierKeys>> earlier_;
};

template <>
class Kept<DropoutRows> {
 public:
  explicit Kept(const DropoutRows& rows)
      : rows_(rows),
        positions_(rows.positions.begin(), rows.positions.end()),
        samples_(rows.samples.begin(), rows.samples.end()) {}
  DropoutRows get() const {
    DropoutRows rows = rows_;
    rows.positions = positions_, rows.samples = samples_;
    return rows;
  }

 private:
  DropoutRows rows_;
  std::vector<std::int32_t> positions_;
  std::vector<std::int64_t> samples_;
};

template <>
class Kept<std::span<const MatmulCall>> {
 public:
  explicit Kept(std::span<const MatmulCall> calls) : calls_(calls.begin(), calls.end()) {
    for (const MatmulCall& call : calls) drops_.emplace_back(call.drop);
  }
  std::vector<MatmulCall> get() const {
    std::vector<MatmulCall> calls = calls_;
    for (std::size_t i = 0; i < calls.size(); ++i) calls[i].drop = drops_[i].get();
    return calls;
  }

 private:
  std::vector<MatmulCall> calls_;
  std::vector<Kept<DropoutRows>> drops_;
};

/// An operator that waits in the queue.
template <auto Operator>
struct Later;
template <typename... Arguments, void (*Kernels::*Operator)(Arguments...)>
struct Later<Operator> {
  static void call(Arguments... arguments) {
    const auto kept = std::make_shared<std::tuple<Kept<std::remove_cvref_t<Arguments>>...>>(
        Kept<std::remove_cvref_t<Arguments>>(arguments)...);
    push([kept] { std::apply([](const auto&... each) { (base().kernels().*Operator)(each.get()...); }, *kept); });
  }
};

class LateLinear final : public FrozenLinear {
 public:
  explicit LateLinear(std::shared_ptr<FrozenLinear> linear) : linear_(std::move(linear)) {}
  std::int64_t in() const override { return linear_->in(); }
  std::int64_t out() const override { return linear_->out(); }
  ConstVector bias() const override { return linear_->bias(); }
  std::int64_t bytes() const override { return linear_->bytes(); }
  std::vector<std::span<std::byte>> storage() override { return linear_->storage(); }
  void forward(ConstMatrix x, Matrix y) const override {
    push([linear = linear_, x, y] { linear->forward(x, y); });
  }
  void backward(ConstMatrix dy, Matrix dx) const override {
    push([linear = linear_, dy, dx] { linear->backward(dy, dx); });
  }

 private:
  std::shared_ptr<FrozenLinear> linear_;
};

std::unique_ptr<FrozenLinear> pack_late(ConstMatrix weight, std::span<const float> bias, bool backward,
                                        WeightType type) {
  return std::make_unique<LateLinear>(base().kernels().pack_linear(weight, bias, backward, type));
}

constexpr Kernels kLate = {
    .pack_linear = pack_late,
    .embedding_forward = Later<&Kernels::embedding_forward>::call,
    .scatter_rows = Later<&Kernels::scatter_rows>::call,
    .rms_norm_forward = Later<&Kernels::rms_norm_forward>::call,
    .rms_norm_again = Later<&Kernels::rms_norm_again>::call,
    .rms_norm_backward = Later<&Kernels::rms_norm_backward>::call,
    .layer_norm_forward = Later<&Kernels::layer_norm_forward>::call,
    .layer_norm_again = Later<&Kernels::layer_norm_again>::call,
    .layer_norm_backward = Later<&Kernels::layer_norm_backward>::call,
    .head_norm_forward = Later<&Kernels::head_norm_forward>::call,
    .head_norm_backward = Later<&Kernels::head_norm_backward>::call,
    .rope_forward = Later<&Kernels::rope_forward>::call,
    .rope_backward = Later<&Kernels::rope_backward>::call,
    .attention_forward = Later<&Kernels::attention_forward>::call,
    .attention_backward = Later<&Kernels::attention_backward>::call,
    .activation_forward = Later<&Kernels::activation_forward>::call,
    .activation_backward = Later<&Kernels::activation_backward>::call,
    .add = Later<&Kernels::add>::call,
    .copy = Later<&Kernels::copy>::call,
    .fill = Later<&Kernels::fill>::call,
    .scale = Later<&Kernels::scale>::call,
    .scale_columns = Later<&Kernels::scale_columns>::call,
    .add_row = Later<&Kernels::add_row>::call,
    .sum_columns = Later<&Kernels::sum_columns>::call,
    .low_rank_squares = Later<&Kernels::low_rank_squares>::call,
    .inverse_roots = Later<&Kernels::inverse_roots>::call,
    .sparse_forward = Later<&Kernels::sparse_forward>::call,
    .sparse_backward = Later<&Kernels::sparse_backward>::call,
    .matmul = Later<&Kernels::matmul>::call,
    .matmul_group = Later<&Kernels::matmul_group>::call,
    .dropout = Later<&Kernels::dropout>::call,
    .cross_entropy = Later<&Kernels::cross_entropy>::call,
    .cross_entropy_share = Later<&Kernels::cross_entropy_share>::call,
    .cross_entropy_of_shares = Later<&Kernels::cross_entropy_of_shares>::call,
    .squared_norms = Later<&Kernels::squared_norms>::call,
    .adamw = Later<&Kernels::adamw>::call,
    .adamw_group = Later<&Kernels::adamw_group>::call,
    .outer_sums = nullptr,
};

class LateDevice final : public Device {
 public:
  LateDevice(std::uint64_t seed, bool groups)
      : streams_(seed), before_(std::exchange(late_streams, &streams_)), groups_(groups) {}
  ~LateDevice() override {
    wait();
    late_streams = before_;
  }

  std::string_view name() const override { return "late"; }
  const Kernels& kernels() const override { return kLate; }
  std::vector<std::string> library_versions() const override { return {}; }

  std::string machine() const override { return base().machine(); }
  Bytes memory() const override { return base().memory(); }
  Bytes held() const override { return base().held(); }
  Bytes most_held() const override { return base().most_held(); }
  void forget_most_held() override { base().forget_most_held(); }
  void trim() override { base().trim(); }

  void* reserve(Bytes bytes) override { return base().reserve(bytes); }
  void discard(void* first, Bytes bytes) override {
    push([first, bytes] { base().discard(first, bytes); });
  }
  void release(void* range, Bytes bytes) override {
    wait();
    base().release(range, bytes);
  }
  bool host_memory() const override { return false; }
  void* allocate(Bytes bytes) override {
    void* memory = base().allocate(bytes);
    std::memset(memory, 0xFF, static_cast<std::size_t>(bytes));  // NaN
    return memory;
  }
  void free(void* memory) override {
    wait();
    base().free(memory);
  }
  void upload(std::span<const std::byte> from, void* to) override {
    push([bytes = std::vector<std::byte>(from.begin(), from.end()), to] { base().upload(bytes, to); });
  }
  void download(const void* from, std::span<std::byte> to) override {
    push([from, to] { base().download(from, to); });
  }
  void copy(const void* from, void* to, Bytes bytes) override {
    push([from, to, bytes] { base().copy(from, to, bytes); });
  }
  std::unique_ptr<Event> record() override {
    end_subgraph_now();
    return std::make_unique<LateEvent>(streams_.compute().record());
  }
  /// Runs with the subgraph.
  std::unique_ptr<Event> mark() override {
    auto point = std::make_shared<std::optional<SteadyClock::time_point>>();
    push([point] { *point = SteadyClock::now(); });
    return std::make_unique<LateEvent>(std::move(point));
  }
  void wait() override {
    end_subgraph_now();
    streams_.run_all();
  }
  void follow(const Event& event) override {
    end_subgraph_now();
    streams_.compute().follow(static_cast<const LateEvent&>(event).at());
  }
  void begin_subgraph(const SubgraphCall&) override {
    end_subgraph_now();
    subgraph.emplace();
  }
  void end_subgraph() override { end_subgraph_now(); }
  void drop_subgraph() override { subgraph.reset(); }
  bool has_groups() const override { return groups_; }
  std::string name_group() override { return LateGroup::new_name(); }
  std::unique_ptr<DeviceGroup> join_group(const std::string& name, int size, int place) override {
    return std::make_unique<LateGroup>(streams_, name, size, place);
  }
  /// Ranks are threads, which see each other's memory as it is.
  std::string name_memory(void* memory) override { return {reinterpret_cast<const char*>(&memory), sizeof memory}; }
  std::shared_ptr<const void> open_memory(const std::string& name) override {
    const void* memory = nullptr;
    std::memcpy(&memory, name.data(), sizeof memory);
    return {memory, [](const void*) {}};
  }

 private:
  LateStreams streams_;
  LateStreams* before_;
  bool groups_;
};

}  // namespace

std::unique_ptr<kernels::Device> make_late_device(std::uint64_t seed, bool groups) {
  return std::make_unique<LateDevice>(seed, groups);
}

}  // namespace braid::exec
