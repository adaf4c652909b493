#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "planner/program/lower.h"
#include "workload/cluster.h"
#include "workload/workload.h"

namespace braid::planner {

/// How a backbone's layers are split over the stages of a pipeline.
struct LayerSplit {
  enum class Kind {
    even,      ///< as published systems do
    balanced,  ///< stages of about one time, too, where that is another split and faster (balanced_layers.h)
    given      ///< the one that is asked for
  };
  Kind kind = Kind::even;
  std::vector<std::int64_t> layers = {};  ///< given: of each stage

  bool operator==(const LayerSplit&) const = default;
};
/// "even", "balanced" or layers of each stage: "9,9,9,5". Throws Error for anything else.
LayerSplit layer_split_of(const std::string& text);
/// As `layer_split_of` reads it.
std::string text_of(const LayerSplit& split);

/// What the command line fixes that a policy would search.
struct Overrides {
  std::optional<std::int64_t> tp;
  std::optional<std::int64_t> pp;
  std::optional<std::int64_t> microbatches;
  LayerSplit split = {};

  bool operator==(const Overrides&) const = default;
};

/// Stages that the overrides fix: as many as a given split has, or as are asked for; nothing where they are searched.
std::optional<std::int64_t> fixed_stages(const Overrides& overrides);

/// Which kinds of parallelism a policy's system has.
struct Parallelism {
  bool tensor = false;
  bool pipeline = false;
  bool data = false;
  bool interleaved = false;  ///< stages of several model chunks, too
};

/// Layers split as evenly as can be, the earlier stages taking one more: the last has the head.
std::vector<LayerRange> even_layers(std::int64_t layers, std::int64_t stages);

/// So many layers on each stage.
std::vector<LayerRange> layer_ranges(std::span<const std::int64_t> layers);

/// `replicas` like copies of ⟨tp, pp⟩, each stage of so many model chunks.
std::vector<ReplicaShape> deploy(std::int64_t layers, std::int64_t tp, std::int64_t pp, std::int64_t replicas,
                                 std::int64_t model_chunks = 1);

/// Whether the systems that have tensor parallelism, all on Megatron's layers, split this backbone's attention over
/// `tp` ranks: as many heads on each, and key/value heads that are a multiple of `tp`, or a divisor, each on several
/// ranks.
bool splits_heads(const costmodel::BackboneShape& backbone, std::int64_t tp);

/// The ways to lay a backbone over a cluster's ranks that a grid search tries (MuxTune §5.1): tensor parallelism within
/// a node, by powers of two and by whole nodes, of those that split the heads; stages; and replicas of them, together
/// on as many ranks as can be. Without data parallelism GPUs may stay idle: where links are slow, fewer stages can be
/// faster (without shards 1 to 8, 10, 12, 14, 16, 20, ... and the most; with shards the most alone). CPU ranks do not,
/// for their number was asked for. Ascending by tp, then stages, then model chunks: of those 2, 4, ... that divide the
/// layers evenly, where the system has them. Without any parallelism of a kind its degree is 1; what the overrides fix
/// is not varied. Layers are split evenly or as given.
///
/// Throws Error when the overrides ask for more stages than layers, more ranks than there are, a split of other layers
/// than the backbone's, or a tp that the policy's system or the backbone's heads do not have.
std::vector<std::vector<ReplicaShape>> deployments(const workload::Workload& workload, const workload::Cluster& cluster,
                                                   const Overrides& overrides, const Parallelism& parallelism);

/// Every layer of every stage is recomputed so; with RecomputeKind::none no layer is.
void recompute_all(costmodel::RecomputeKind kind, ReplicaShape& replica);
void recompute_all(costmodel::RecomputeKind kind, std::vector<ReplicaShape>& deployment);
bool recomputes(const std::vector<ReplicaShape>& deployment);
/// Replicas of several shards share the tokens between products.
void share_tokens(std::vector<ReplicaShape>& deployment);
/// Whether the layers are on the same ranks, whatever is recomputed.
bool same_places(const std::vector<ReplicaShape>& a, const std::vector<ReplicaShape>& b);

/// "tp 2, pp 4, 2 replicas"; of layers that are not split evenly "tp 1, pp 4 of 3 x 9, 5 layers"; of recomputed ones
/// "tp 1, pp 2, full recomputation of 12 + 5 layers"; with shared tokens "tp 4 with sequence parallelism, pp 2"; of
/// unlike replicas "1 x tp 8, pp 1 | 4 x tp 1, pp 2".
std::string describe(const std::vector<ReplicaShape>& deployment);

}  // namespace braid::planner
