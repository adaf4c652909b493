#pragma once

#include "planner/muxtune/structured_plan.h"
#include "planner/muxtune/task_fusion.h"

namespace braid::planner {

/// Which of MuxTune's parts take part: all, or for its ablation (§5.3) all but one.
struct MuxTuneOptions {
  enum class Fusion { one_pass, literal, off };
  enum class Alignment { chunks, packed, zero_padding };
  Fusion fusion = Fusion::one_pass;  ///< off: every task an hTask of its own
  Alignment alignment = Alignment::chunks;
  Padding pad_to = Padding::max_length;  ///< of rows in packs
  std::int64_t chunk_size = 0;           ///< 0: the greatest power of two that divides every max_length, 64 or more
  std::int64_t pack_length = 0;          ///< 0: the largest max_length, with chunks that of each hTask
  bool searches_chunk_size = false;      ///< tries that and the powers of two from 64 to the largest max_length
  bool skips_padding = false;            ///< chunks of padding alone are not computed; the paper says nothing of it
  bool drains = true;                    ///< off: the template's buckets, step after step in one stream
  LaunchRule launch = LaunchRule::earliest_start;
  bool orchestration = true;  ///< off: one hTask after another, 1F1B, nothing overlapped
  BucketSearch order = BucketSearch::descending;
  bool lays_out_all = false;  ///< every N with every P; else of many those that are best by Eq. 3
};

/// MuxTune (§3.3 to 3.5) on one deployment: tasks fused into hTasks for every N, hTasks grouped into P buckets for
/// every P, each laid out by the structured template with what Eq. 3 says of its latencies; the best few laid out again
/// with the microbatches that they really have, and of those the fastest. Nothing when not even single tasks fit
/// memory. Throws Error for a chunk size that is not usable.
std::optional<Arrangement> arrange_muxtune(const PolicyInput& input, const MuxTuneOptions& options);

/// A step by Eq. 3's latencies alone, of the best N and P.
Sketch sketch_muxtune(const PolicyInput& input, const MuxTuneOptions& options);

}  // namespace braid::planner
