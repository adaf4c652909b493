#include "sim/cluster/outages.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "base/csv.h"
#include "base/error.h"
#include "sim/cluster/gpu_pool.h"

namespace braid::sim {
namespace {

/// Keys draws of failures apart from all others.
constexpr std::uint64_t kOutageDraw = 0x6f757467;

std::uint64_t lowest_bits(std::int64_t count) {
  return count >= kMostGpusInNode ? ~0ULL : (1ULL << count) - 1;
}

double exponential(RandomStream& random, double mean) {
  return -std::log(1 - random.next_uniform()) * mean;
}

template <typename Visit>
void for_each_gpu(const NodeGpus& gpus, const Visit& visit) {
  for (std::uint64_t left = gpus.gpus; left != 0; left &= left - 1) visit(std::countr_zero(left));
}

/// Where each column stands.
struct Columns {
  static constexpr std::size_t kAbsent = static_cast<std::size_t>(-1);
  std::size_t from = kAbsent, to = kAbsent, node = kAbsent, gpu = kAbsent;

  explicit Columns(const CsvReader& rows) {
    rows.check_distinct();
    for (std::size_t c = 0; c < rows.fields().size(); ++c) {
      const std::string_view name = rows.fields()[c];
      if (name == "from_s") from = c;
      if (name == "to_s") to = c;
      if (name == "node") node = c;
      if (name == "gpu") gpu = c;
    }
    if (from == kAbsent || to == kAbsent || node == kAbsent)
      throw error(
          "{}:{}: the columns are not those of outages; give from_s, to_s and node, and gpu where one GPU fails",
          rows.file(), rows.line());
  }
  std::size_t last() const { return std::max({from, to, node, gpu == kAbsent ? 0 : gpu}); }
};

Outage outage_of(const CsvReader& row, const Columns& columns, std::int64_t nodes, std::int64_t gpus_per_node) {
  if (row.fields().size() <= columns.last())
    throw error("{}:{}: {} fields, fewer than the header names", row.file(), row.line(), row.fields().size());
  Outage outage;
  outage.from_seconds = row.number(columns.from, "from_s");
  outage.to_seconds = row.number(columns.to, "to_s");
  if (!(outage.from_seconds <= outage.to_seconds))
    throw error("{}:{}: the outage ends at {}, before it begins at {}", row.file(), row.line(), outage.to_seconds,
                outage.from_seconds);
  const std::int64_t node = row.integer(columns.node, "node");
  if (node < 0 || node >= nodes)
    throw error("{}:{}: node {} is not of the cluster, whose nodes are 0 to {}", row.file(), row.line(), node,
                nodes - 1);
  outage.gpus = {static_cast<std::int32_t>(node), lowest_bits(gpus_per_node)};
  if (columns.gpu == Columns::kAbsent || row.fields()[columns.gpu].empty()) return outage;
  const std::int64_t gpu = row.integer(columns.gpu, "gpu");
  if (gpu < 0 || gpu >= gpus_per_node)
    throw error("{}:{}: GPU {} is not of a node, whose GPUs are 0 to {}", row.file(), row.line(), gpu,
                gpus_per_node - 1);
  outage.gpus.gpus = 1ULL << gpu;
  return outage;
}

}  // namespace

std::vector<Outage> read_outages(const std::filesystem::path& file, std::int64_t nodes, std::int64_t gpus_per_node) {
  CsvReader rows(file);
  if (!rows.next()) throw error("{}: is empty; give a header with from_s, to_s, node and gpu", file.string());
  const Columns columns(rows);
  std::vector<Outage> outages;
  while (rows.next()) outages.push_back(outage_of(rows, columns, nodes, gpus_per_node));
  std::stable_sort(outages.begin(), outages.end(),
                   [](const Outage& a, const Outage& b) { return a.from_seconds < b.from_seconds; });
  return outages;
}

Outages::Outages(const FailureRates& rates, std::int64_t nodes, std::int64_t gpus_per_node, double first_seconds,
                 std::uint64_t seed)
    : rates_(rates), nodes_(nodes), gpus_per_node_(gpus_per_node), drawn_at_(first_seconds) {
  if (!rates.any()) return;
  random_.emplace(mix_key(std::array{kOutageDraw, seed}));
  draw_next();
}

/// Failures of all GPUs and nodes together, as one stream: exponential times have no memory, so that those of what is
/// out of service already only need to be passed over.
void Outages::draw_next() {
  const double of_gpus = static_cast<double>(nodes_ * gpus_per_node_) / rates_.gpu_mtbf_seconds;
  const double of_nodes = static_cast<double>(nodes_) / rates_.node_mtbf_seconds;
  drawn_at_ += exponential(*random_, 1 / (of_gpus + of_nodes));
  const bool is_node = random_->next_uniform() * (of_gpus + of_nodes) >= of_gpus;
  Outage& outage = drawn_.emplace();
  outage.gpus.node = static_cast<std::int32_t>(random_->next_below(static_cast<std::uint64_t>(nodes_)));
  const std::uint64_t gpu = 1ULL << random_->next_below(static_cast<std::uint64_t>(gpus_per_node_));
  outage.gpus.gpus = is_node ? lowest_bits(gpus_per_node_) : gpu;
  outage.from_seconds = drawn_at_;
  outage.to_seconds = drawn_at_ + exponential(*random_, rates_.repair_seconds);
}

double Outages::next() const {
  double next = ends_.empty() ? kNever : ends_.top().time;
  if (next_recorded_ < recorded_.size()) next = std::min(next, recorded_[next_recorded_].from_seconds);
  if (drawn_) next = std::min(next, drawn_->from_seconds);
  return next;
}

double& Outages::until(std::int32_t node, int gpu) {
  const auto place = static_cast<std::size_t>(node);
  if (until_.size() <= place) until_.resize(place + 1);
  if (until_[place].empty()) until_[place].assign(kMostGpusInNode, -kNever);
  return until_[place][static_cast<std::size_t>(gpu)];
}

std::uint64_t Outages::in_service(const NodeGpus& gpus, double now) {
  std::uint64_t in_service = 0;
  for_each_gpu(gpus, [&](int gpu) { in_service |= until(gpus.node, gpu) <= now ? 1ULL << gpu : 0; });
  return in_service;
}

void Outages::begin(const Outage& outage, double now, Changes& changes) {
  ++changes.outages;
  if (const std::uint64_t broken = in_service(outage.gpus, now); broken != 0)
    changes.broken.push_back({outage.gpus.node, broken});
  for_each_gpu(outage.gpus, [&](int gpu) {
    double& until = this->until(outage.gpus.node, gpu);
    until = std::max(until, outage.to_seconds);
  });
  ends_.push({outage.to_seconds, outage.gpus});
}

Outages::Changes Outages::take(double now) {
  Changes changes;
  for (; !ends_.empty() && ends_.top().time <= now; ends_.pop()) {
    const End& end = ends_.top();
    NodeGpus repaired{end.gpus.node, 0};
    for_each_gpu(end.gpus, [&](int gpu) {
      double& until = this->until(end.gpus.node, gpu);
      if (until != end.time) return;
      repaired.gpus |= 1ULL << gpu;
      until = -kNever;
    });
    if (repaired.gpus != 0) changes.repaired.push_back(repaired);
  }
  for (; next_recorded_ < recorded_.size() && recorded_[next_recorded_].from_seconds <= now; ++next_recorded_) {
    const Outage& outage = recorded_[next_recorded_];
    if (outage.to_seconds > now) begin(outage, now, changes);
  }
  for (; drawn_ && drawn_->from_seconds <= now; draw_next()) {
    if (in_service(drawn_->gpus, now) != 0) begin(*drawn_, now, changes);
  }
  return changes;
}

}  // namespace braid::sim
