#pragma once

#include <string>
#include <vector>

namespace braid::costmodel::studies {

/// A figure that a paper reports of operators or memory, and what the analytic model says in its place.
struct PaperFact {
  std::string source;
  std::string what;
  std::string unit;
  double paper = 0;
  double ours = 0;
};

/// Facts that rest on nothing the papers hide: LoRAFusion §3.1 and figures 17 and 19 (lorafusion_facts.h),
/// MuxTune figure 9(b) (batching on an A40), §2.2 and figure 17 (memory), mLoRA figures 14 and 16 (launches, graph
/// pruning). No constant that these use is fitted on any of them: what a launch of an eager framework costs is from
/// LobRA's layers.
std::vector<PaperFact> paper_facts();

}  // namespace braid::costmodel::studies
