#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planner/window/packing.h"

// How the samples of the tasks of one hTask come together in microbatches (MuxTune §3.5, Figure 12).
namespace braid::planner {

inline constexpr std::int64_t kLeastChunk = 64;
inline constexpr std::int64_t kChunkUnit = 16;

/// Throws Error unless `chunk_size` is a positive multiple of kChunkUnit.
void check_chunk_size(std::int64_t chunk_size);
/// The greatest power of two that divides all of `max_lengths`, yet no less than `least` (MuxTune §3.5). Throws as
/// check_chunk_size does.
std::int64_t chunk_size_for(std::span<const std::int64_t> max_lengths, std::int64_t least = kLeastChunk);
/// The largest of `max_lengths` in whole chunks.
std::int64_t pack_length_for(std::span<const std::int64_t> max_lengths, std::int64_t chunk_size);

/// Microbatches joined by samples that span them: forward in this order, backward in reverse.
struct AlignedGroup {
  std::int64_t part = 0;                     ///< of the parts asked for: which one it comes from
  std::vector<std::vector<Segment>> chunks;  ///< each the segments of one microbatch; those of a task stand together
};

/// What becomes of the chunks of a pack that hold a row's padding alone. MuxTune computes them, as they are billed;
/// nothing depends on them.
enum class EmptyChunks { computed, skipped };

/// Tokens of an alignment. A row's tokens and padding are in `data`, `row_padding` and `skipped_padding`: their sum is
/// what is billed where rows are padded to their own task's max_length.
struct AlignmentTokens {
  std::int64_t data = 0;
  std::int64_t row_padding = 0;      ///< of rows, computed
  std::int64_t chunk_padding = 0;    ///< that fills up the last chunks of packs, computed: what nobody is billed for
  std::int64_t skipped_padding = 0;  ///< of rows, in chunks that would hold nothing else: not computed

  std::int64_t computed() const { return data + row_padding + chunk_padding; }
  bool operator==(const AlignmentTokens&) const = default;
};

struct Alignment {
  std::vector<AlignedGroup> groups;  ///< by part, then by chunk; none of their microbatches is empty
  std::int64_t packs = 0;
  AlignmentTokens tokens;

  std::int64_t microbatches() const;
};

/// The rows of each task of an hTask in one step: one global batch a task.
using HTaskRows = std::span<const std::vector<SampleRow>>;

/// Zero padding (Figure 12a): part p of P is one microbatch, of the rows [p n / P, (p + 1) n / P) of each task's n.
/// Parts without rows are left out. Here nothing tells a row's own padding from that between tasks.
Alignment align_padded(HTaskRows tasks, std::int64_t parts);

/// Packing alone (Figure 12b): whole packs are dealt over `parts` microbatches, or as many as there are packs.
Alignment align_packed(HTaskRows tasks, std::int64_t pack_length, std::int64_t parts);

/// Chunks (Figure 12c): packs are dealt over `parts` sets, or as many as there are packs, and cut every `chunk_size`
/// tokens. Chunk k of all packs of a set is one microbatch; a set falls into groups wherever no sample spans two chunks
/// of it, so that rows as long as a chunk give groups of one microbatch.
///
/// Packs go, longest first, to the set that computes least: no two sets differ by more than one pack. Every chunk of a
/// pack that is computed has `chunk_size` tokens. Padding of a row whose tokens all lie in earlier chunks is carried by
/// the segment that follows in the chunk, as its padding, or where none follows by an empty segment at the row's end:
/// keys and values of padding are never read again.
/// Where `chunk_size` divides the largest max_length, no more is computed than with zero padding to it; elsewhere each
/// pack may take up to a chunk more.
/// Throws Error as check_chunk_size and pack_samples do. Cost: that of pack_samples, and linear in the segments.
Alignment align_chunks(HTaskRows tasks, std::int64_t pack_length, std::int64_t chunk_size, std::int64_t parts,
                       EmptyChunks empty = EmptyChunks::computed);

}  // namespace braid::planner
