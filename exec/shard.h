#pragma once

#include <cstdint>
#include <vector>

#include "costmodel/shapes/adapter.h"

namespace braid::exec {

/// Numbers [first, last) of a whole.
struct Share {
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::int64_t count() const { return last - first; }
};

/// What one of `count` tensor-parallel ranks computes of every layer (Shoeybi et al. 2019): some heads, and the columns
/// of the feed-forward layer and rows of the vocabulary that fall to it, whose last shares may be smaller. Where there
/// are fewer key/value heads than ranks, several compute the same one, each for query heads of its own.
class Shard {
 public:
  /// Throws Error where the heads cannot be shared out evenly.
  explicit Shard(const costmodel::BackboneShape& whole, int place = 0, int count = 1);

  int place() const { return place_; }
  int count() const { return count_; }
  const costmodel::BackboneShape& whole() const { return whole_; }
  /// The backbone as this rank computes it: its heads, columns and rows of the vocabulary.
  const costmodel::BackboneShape& part() const { return part_; }

  /// Of a module's weight [out, in]: the outputs and the inputs that are this rank's, one of them all.
  Share outputs(costmodel::Module module) const;
  /// The same of any target of an adapter, as runs of rows of its weight: of several modules in one a run of each.
  std::vector<Share> output_runs(costmodel::Module target) const;
  Share inputs(costmodel::Module module) const;
  Share vocabulary() const { return vocabulary_; }

 private:
  costmodel::BackboneShape whole_, part_;
  int place_, count_;
  Share queries_, keys_, intermediate_, vocabulary_;
};

}  // namespace braid::exec
