#include "planner/plan/deployment.h"

#include <algorithm>

#include "base/error.h"

namespace braid::planner {
namespace {

void check(const workload::Workload& workload, const workload::Cluster& cluster, const Overrides& overrides,
           const Parallelism& parallelism) {
  const std::int64_t ranks = cluster.gpus(), layers = workload.backbone.layers;
  if (overrides.tp) {
    const std::int64_t tp = *overrides.tp;
    if (tp < 1) throw error("--tp {} is not usable; give tp >= 1", tp);
    if (tp > 1 && !parallelism.tensor) throw error("--tp {}: this policy has no tensor parallelism; give --tp 1", tp);
    if (tp > workload.backbone.heads)
      throw error("--tp {} is more than the {} heads of {}; give --tp <= {}", tp, workload.backbone.heads,
                  workload.backbone.name, workload.backbone.heads);
    if (tp > ranks) throw error("--tp {} needs {} ranks and the cluster has {}; give --tp <= {}", tp, tp, ranks, ranks);
  }
  if (!overrides.pp) return;
  const std::int64_t pp = *overrides.pp, tp = overrides.tp.value_or(1);
  if (pp < 1) throw error("--pp {} is not usable; give pp >= 1", pp);
  if (pp > 1 && !parallelism.pipeline) throw error("--pp {}: this policy has no stages; give --pp 1", pp);
  if (pp > layers)
    throw error("{} stages are more than the {} layers of {}; give --pp <= {}", pp, layers, workload.backbone.name,
                layers);
  if (pp * tp > ranks)
    throw error("{} stages need {} ranks and the cluster has {}; give --pp <= {} or --ranks {}", pp, pp * tp, ranks,
                ranks / tp, pp * tp);
}

std::vector<std::int64_t> tensor_degrees(const workload::Workload& workload, const workload::Cluster& cluster,
                                         const Overrides& overrides, const Parallelism& parallelism) {
  if (overrides.tp) return {*overrides.tp};
  std::vector<std::int64_t> degrees = {1};
  if (!parallelism.tensor) return degrees;
  const std::int64_t most = std::min(cluster.gpus_per_node, workload.backbone.heads);
  for (std::int64_t tp = 2; tp <= most; tp *= 2) {
    if (cluster.gpus_per_node % tp == 0) degrees.push_back(tp);
  }
  if (most == cluster.gpus_per_node && degrees.back() != most) degrees.push_back(most);
  return degrees;
}

/// All up to `most`; where ranks may stay idle from 8 on only quarters between powers of two, and the most.
std::vector<std::int64_t> stage_counts(std::int64_t most, bool may_idle) {
  std::vector<std::int64_t> counts;
  std::int64_t step = 1;
  for (std::int64_t count = 1; count < most; count += step) {
    counts.push_back(count);
    if (may_idle && count >= 4 * step * 2) step *= 2;
  }
  counts.push_back(most);
  return counts;
}

}  // namespace

std::vector<LayerRange> even_layers(std::int64_t layers, std::int64_t stages) {
  std::vector<LayerRange> ranges;
  std::int64_t next = 0;
  for (std::int64_t stage = 0; stage < stages; ++stage) {
    const std::int64_t count = layers / stages + (stage < layers % stages ? 1 : 0);
    ranges.push_back({static_cast<std::int32_t>(next), static_cast<std::int32_t>(next + count)});
    next += count;
  }
  return ranges;
}

std::vector<ReplicaShape> deploy(std::int64_t layers, std::int64_t tp, std::int64_t pp, std::int64_t replicas,
                                 std::int64_t model_chunks) {
  const ReplicaShape replica{static_cast<std::int32_t>(tp), even_layers(layers, pp * model_chunks),
                             static_cast<std::int32_t>(model_chunks)};
  return std::vector<ReplicaShape>(static_cast<std::size_t>(replicas), replica);
}

std::vector<std::vector<ReplicaShape>> deployments(const workload::Workload& workload, const workload::Cluster& cluster,
                                                   const Overrides& overrides, const Parallelism& parallelism) {
  check(workload, cluster, overrides, parallelism);
  const std::int64_t ranks = cluster.gpus(), layers = workload.backbone.layers;
  std::vector<std::vector<ReplicaShape>> found;
  const bool may_idle = !parallelism.data && cluster.gpu != "cpu";
  std::int64_t most_used = 0;
  for (const std::int64_t tp : tensor_degrees(workload, cluster, overrides, parallelism)) {
    const std::int64_t deepest = parallelism.pipeline ? std::min(ranks / tp, layers) : 1;
    std::vector<std::int64_t> stages = {deepest};
    if (overrides.pp) {
      stages = {*overrides.pp};
    } else if (tp == 1 || !may_idle) {
      stages = stage_counts(deepest, may_idle);
    }
    for (const std::int64_t pp : stages) {
      const std::int64_t replicas = parallelism.data ? ranks / (tp * pp) : 1;
      if (!may_idle) {
        const std::int64_t used = tp * pp * replicas;
        if (used < most_used) continue;
        if (used > most_used) found.clear();
        most_used = used;
      }
      found.push_back(deploy(layers, tp, pp, replicas));
      for (std::int64_t chunks = 2; parallelism.interleaved && pp > 1 && layers % (pp * chunks) == 0; chunks *= 2)
        found.push_back(deploy(layers, tp, pp, replicas, chunks));
    }
  }
  return found;
}

std::string describe(const std::vector<ReplicaShape>& deployment) {
  const ReplicaShape& first = deployment.front();
  return fmt::format("tp {}, pp {}{}{}", first.tp, first.stages(),
                     first.model_chunks > 1 ? fmt::format(" of {} model chunks each", first.model_chunks) : "",
                     deployment.size() > 1 ? fmt::format(", {} replicas", deployment.size()) : "");
}

}  // namespace braid::planner
