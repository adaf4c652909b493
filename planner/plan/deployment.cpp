#include "planner/plan/deployment.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"

namespace braid::planner {
namespace {

std::string spelled(const LayerSplit& split) {
  return fmt::format("--layers {}", fmt::join(split.layers, ","));
}

void check_split(const costmodel::BackboneShape& backbone, const Overrides& overrides) {
  if (overrides.split.kind != LayerSplit::Kind::given) return;
  const std::vector<std::int64_t>& layers = overrides.split.layers;
  const std::string text = spelled(overrides.split);
  std::int64_t sum = 0;
  for (const std::int64_t count : layers) {
    if (count > backbone.layers)
      throw error("{}: a stage of {} layers, and {} has {}; give as many in all", text, count, backbone.name,
                  backbone.layers);
    sum += count;
  }
  if (sum != backbone.layers)
    throw error("{}: these are {} layers, and {} has {}; give as many", text, sum, backbone.name, backbone.layers);
  if (overrides.pp && *overrides.pp != static_cast<std::int64_t>(layers.size()))
    throw error("{} is for {} stages, and --pp asks for {}; leave one of them out", text, layers.size(), *overrides.pp);
}

[[noreturn]] void refuse_heads(const costmodel::BackboneShape& backbone, std::int64_t tp, std::int64_t ranks) {
  std::vector<std::int64_t> usable;
  for (std::int64_t degree = 1; degree <= std::min(ranks, backbone.heads); ++degree) {
    if (splits_heads(backbone, degree)) usable.push_back(degree);
  }
  throw error("--tp {} does not split the {} attention heads and {} key/value heads of {} evenly; give one of: {}", tp,
              backbone.heads, backbone.kv_heads, backbone.name, fmt::join(usable, ", "));
}

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
    if (!splits_heads(workload.backbone, tp)) refuse_heads(workload.backbone, tp, ranks);
  }
  check_split(workload.backbone, overrides);
  const std::optional<std::int64_t> stages = fixed_stages(overrides);
  if (!stages) return;
  const std::int64_t pp = *stages, tp = overrides.tp.value_or(1);
  if (pp < 1) throw error("--pp {} is not usable; give pp >= 1", pp);
  const bool given = overrides.split.kind == LayerSplit::Kind::given;
  if (pp > 1 && !parallelism.pipeline) {
    if (given) throw error("{}: this policy has no stages; leave it out", spelled(overrides.split));
    throw error("--pp {}: this policy has no stages; give --pp 1", pp);
  }
  if (pp > layers)
    throw error("{} stages are more than the {} layers of {}; give --pp <= {}", pp, layers, workload.backbone.name,
                layers);
  if (pp * tp > ranks)
    throw error("{} stages need {} ranks and the cluster has {}; give {} or --ranks {}", pp, pp * tp, ranks,
                given ? std::string("--layers for fewer stages") : fmt::format("--pp <= {}", ranks / tp), pp * tp);
}

std::vector<std::int64_t> tensor_degrees(const workload::Workload& workload, const workload::Cluster& cluster,
                                         const Overrides& overrides, const Parallelism& parallelism) {
  if (overrides.tp) return {*overrides.tp};
  std::vector<std::int64_t> degrees = {1};
  if (!parallelism.tensor) return degrees;
  const std::int64_t most = std::min(cluster.gpus_per_node, workload.backbone.heads);
  for (std::int64_t tp = 2; tp <= most; tp *= 2) {
    if (cluster.gpus_per_node % tp == 0 && splits_heads(workload.backbone, tp)) degrees.push_back(tp);
  }
  if (most == cluster.gpus_per_node && degrees.back() != most && splits_heads(workload.backbone, most))
    degrees.push_back(most);
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

/// " of 9, 6 x 8, 7 layers": stages that follow one another with as many are told once. Nothing where layers are split
/// evenly.
std::string uneven_split(const std::vector<LayerRange>& layers) {
  if (layers.empty() || layers == even_layers(layers.back().last, static_cast<std::int64_t>(layers.size()))) return "";
  std::vector<std::string> runs;
  for (std::size_t first = 0, last = 0; first < layers.size(); first = last) {
    while (last < layers.size() && layers[last].count() == layers[first].count()) ++last;
    if (last - first > 2) {
      runs.push_back(fmt::format("{} x {}", last - first, layers[first].count()));
    } else {
      runs.insert(runs.end(), last - first, fmt::format("{}", layers[first].count()));
    }
  }
  return fmt::format(" of {} layers", fmt::join(runs, ", "));
}

/// ", full recomputation of 12 + 5 layers", of how many on each stage; nothing where none are.
std::string recomputation(const ReplicaShape& replica) {
  std::string text;
  for (const costmodel::RecomputeKind kind : {costmodel::RecomputeKind::selective, costmodel::RecomputeKind::full}) {
    std::vector<std::int64_t> layers;
    bool any = false;
    for (std::int32_t s = 0; s < replica.stages(); ++s) {
      const costmodel::Recompute recompute = replica.recompute_of(s);
      layers.push_back(recompute.kind == kind ? recompute.layers : 0);
      any = any || layers.back() > 0;
    }
    if (!any) continue;
    text += fmt::format(", {} recomputation of {} layers", name(kind), fmt::join(layers, " + "));
  }
  return text;
}

/// "2 x tp 4, pp 1 | 8 x tp 1, pp 2": runs of like replicas.
std::string describe_unlike(std::span<const ReplicaShape> deployment) {
  std::vector<std::string> runs;
  for (std::size_t first = 0, last = 0; first < deployment.size(); first = last) {
    while (last < deployment.size() && deployment[last] == deployment[first]) ++last;
    runs.push_back(fmt::format("{} x {}", last - first, describe({deployment[first]})));
  }
  return fmt::format("{}", fmt::join(runs, " | "));
}

}  // namespace

bool splits_heads(const costmodel::BackboneShape& backbone, std::int64_t tp) {
  return backbone.heads % tp == 0 && (backbone.kv_heads % tp == 0 || tp % backbone.kv_heads == 0);
}

std::optional<std::int64_t> fixed_stages(const Overrides& overrides) {
  if (overrides.split.kind != LayerSplit::Kind::given) return overrides.pp;
  return static_cast<std::int64_t>(overrides.split.layers.size());
}

LayerSplit layer_split_of(const std::string& text) {
  if (text == "even") return {};
  if (text == "balanced") return {LayerSplit::Kind::balanced};
  LayerSplit split{LayerSplit::Kind::given};
  const char* next = text.data();
  const char* const end = next + text.size();
  for (bool more = true; more;) {
    std::int64_t layers = 0;
    const auto [after, wrong] = std::from_chars(next, end, layers);
    more = after != end && *after == ',';
    if (wrong != std::errc() || layers < 1 || (after != end && !more))
      throw error("--layers '{}' is not usable; give 'even', 'balanced' or the layers of each stage, such as 9,9,9,5",
                  text);
    split.layers.push_back(layers);
    next = after + 1;
  }
  return split;
}

std::string text_of(const LayerSplit& split) {
  if (split.kind != LayerSplit::Kind::given) return split.kind == LayerSplit::Kind::even ? "even" : "balanced";
  return fmt::format("{}", fmt::join(split.layers, ","));
}

std::vector<LayerRange> even_layers(std::int64_t layers, std::int64_t stages) {
  std::vector<std::int64_t> counts;
  for (std::int64_t stage = 0; stage < stages; ++stage)
    counts.push_back(layers / stages + (stage < layers % stages ? 1 : 0));
  return layer_ranges(counts);
}

std::vector<LayerRange> layer_ranges(std::span<const std::int64_t> layers) {
  std::vector<LayerRange> ranges;
  std::int64_t next = 0;
  for (const std::int64_t count : layers) {
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
  const bool may_idle = !parallelism.data && !cluster.own();
  std::int64_t most_used = 0;
  for (const std::int64_t tp : tensor_degrees(workload, cluster, overrides, parallelism)) {
    const std::int64_t deepest = parallelism.pipeline ? std::min(ranks / tp, layers) : 1;
    std::vector<std::int64_t> stages = {deepest};
    if (const std::optional<std::int64_t> fixed = fixed_stages(overrides)) {
      stages = {*fixed};
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
      if (overrides.split.kind == LayerSplit::Kind::given) {
        for (ReplicaShape& replica : found.back()) replica.layers = layer_ranges(overrides.split.layers);
        continue;
      }
      for (std::int64_t chunks = 2; parallelism.interleaved && pp > 1 && layers % (pp * chunks) == 0; chunks *= 2)
        found.push_back(deploy(layers, tp, pp, replicas, chunks));
    }
  }
  return found;
}

void recompute_all(costmodel::RecomputeKind kind, std::vector<ReplicaShape>& deployment) {
  for (ReplicaShape& replica : deployment) recompute_all(kind, replica);
}

void recompute_all(costmodel::RecomputeKind kind, ReplicaShape& replica) {
  replica.recompute.clear();
  for (std::int32_t s = 0; kind != costmodel::RecomputeKind::none && s < replica.stages(); ++s)
    replica.recompute.push_back({kind, replica.layers_of(s)});
}

void share_tokens(std::vector<ReplicaShape>& deployment) {
  for (ReplicaShape& replica : deployment) replica.sequence_parallel = replica.tp > 1;
}

bool recomputes(const std::vector<ReplicaShape>& deployment) {
  const auto any = [](const costmodel::Recompute& recompute) { return recompute.any(); };
  return std::any_of(deployment.begin(), deployment.end(), [&](const ReplicaShape& replica) {
    return std::any_of(replica.recompute.begin(), replica.recompute.end(), any);
  });
}

bool same_places(const std::vector<ReplicaShape>& a, const std::vector<ReplicaShape>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const ReplicaShape& one, const ReplicaShape& other) {
    return one.tp == other.tp && one.layers == other.layers && one.model_chunks == other.model_chunks;
  });
}

std::string describe(const std::vector<ReplicaShape>& deployment) {
  const ReplicaShape& first = deployment.front();
  const auto other = std::find_if(deployment.begin(), deployment.end(), [&](const auto& one) { return one != first; });
  if (other != deployment.end()) return describe_unlike(deployment);
  std::string chunks;
  if (first.model_chunks > 1) chunks = fmt::format(" of {} model chunks each", first.model_chunks);
  return fmt::format("tp {}{}, pp {}{}{}{}{}", first.tp, first.sequence_parallel ? " with sequence parallelism" : "",
                     first.stages(), chunks, uneven_split(first.layers),
                     deployment.size() > 1 ? fmt::format(", {} replicas", deployment.size()) : "",
                     recomputation(first));
}

}  // namespace braid::planner
