#include "planner/window/alignment.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <numeric>
#include <optional>
#include <queue>
#include <utility>

#include "base/error.h"

namespace braid::planner {
namespace {

std::int64_t whole_chunks(std::int64_t tokens, std::int64_t chunk_size) {
  return (tokens + chunk_size - 1) / chunk_size;
}

Segment segment_of(const SampleRow& row, std::int64_t begin, std::int64_t end, std::int64_t padding) {
  Segment segment;
  segment.task = row.task;
  segment.global_batch = row.global_batch;
  segment.index = row.index;
  segment.sample = row.sample;
  segment.chosen = row.chosen;
  segment.begin = static_cast<std::int32_t>(begin);
  segment.end = static_cast<std::int32_t>(end);
  segment.padding = static_cast<std::int32_t>(padding);
  const std::int32_t last = row.tokens - 1;
  segment.scored = std::max(0, std::min(segment.end, last) - std::max(segment.begin, last - row.scored));
  return segment;
}

/// How packs are cut.
struct Cut {
  std::int64_t chunk_size = 0;
  bool fill = true;  ///< up to whole chunks
  EmptyChunks empty = EmptyChunks::computed;
};

/// What is computed of a pack.
std::int64_t computed_tokens(const Pack& pack, const Cut& cut) {
  if (!cut.fill) return pack.tokens;
  if (cut.empty == EmptyChunks::computed) return whole_chunks(pack.tokens, cut.chunk_size) * cut.chunk_size;
  std::int64_t chunks = 0, next = 0, offset = 0;
  for (const SampleRow& row : pack.rows) {
    const std::int64_t first = std::max(next, offset / cut.chunk_size);
    next = std::max(next, whole_chunks(offset + row.tokens, cut.chunk_size));
    chunks += next - first;
    offset += row.padded;
  }
  return chunks * cut.chunk_size;
}

struct Carried {
  const SampleRow* row = nullptr;
  std::int64_t chunk = 0;
  std::int64_t padding = 0;
};

/// Appends chunk k of the pack to `chunks`[k].
void append_chunks(const Pack& pack, const Cut& cut, std::vector<std::vector<Segment>>& chunks,
                   AlignmentTokens& tokens) {
  std::int64_t offset = 0;
  // Padding that a chunk begins with, of a row whose tokens lie before: the segment that follows there carries it.
  Carried carried;
  std::optional<std::pair<std::size_t, std::size_t>> before;  // chunk and place of the row's last segment
  const auto append = [&](std::int64_t chunk, const Segment& segment) {
    std::vector<Segment>& segments = chunks[static_cast<std::size_t>(chunk)];
    if (before) chunks[before->first][before->second].continues = true;
    before = {static_cast<std::size_t>(chunk), segments.size()};
    segments.push_back(segment);
  };
  const auto end_chunk = [&] {
    if (carried.padding == 0) return;
    if (cut.empty == EmptyChunks::computed) {
      const std::int32_t end = carried.row->tokens;
      append(carried.chunk, segment_of(*carried.row, end, end, carried.padding));
    } else {
      tokens.skipped_padding += carried.padding;
      tokens.row_padding -= carried.padding;
    }
    carried.padding = 0;
  };
  for (const SampleRow& row : pack.rows) {
    for (std::int64_t begin = 0, end = 0; begin < row.padded; begin = end) {
      const std::int64_t chunk = (offset + begin) / cut.chunk_size;
      if (offset + begin == chunk * cut.chunk_size) end_chunk();
      if (begin == 0) before.reset();
      end = std::min<std::int64_t>(row.padded, (chunk + 1) * cut.chunk_size - offset);
      const std::int64_t data_end = std::min<std::int64_t>(end, row.tokens);
      if (data_end > begin) {
        append(chunk, segment_of(row, begin, data_end, end - data_end + std::exchange(carried.padding, 0)));
      } else {
        carried = {&row, chunk, end - begin};
      }
    }
    offset += row.padded;
    tokens.data += row.tokens;
    tokens.row_padding += row.padded - row.tokens;
  }
  // Padding that is carried to the end is all that the last chunk has.
  const bool empty = carried.padding > 0;
  end_chunk();
  if (!cut.fill || (empty && cut.empty == EmptyChunks::skipped)) return;
  const std::int64_t last = whole_chunks(offset, cut.chunk_size);
  const std::int64_t filled = last * cut.chunk_size - offset;
  chunks[static_cast<std::size_t>(last - 1)].back().padding += static_cast<std::int32_t>(filled);
  tokens.chunk_padding += filled;
}

/// Deals items over at most `parts` sets, heaviest first to the lightest set, ties in order. Items of a set ascend.
std::vector<std::vector<std::size_t>> deal(const std::vector<std::int64_t>& weights, std::int64_t parts) {
  std::vector<std::size_t> order(weights.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return weights[a] > weights[b]; });
  std::vector<std::vector<std::size_t>> sets(std::min(static_cast<std::size_t>(parts), weights.size()));
  using Load = std::pair<std::int64_t, std::size_t>;
  std::priority_queue<Load, std::vector<Load>, std::greater<>> lightest;
  for (std::size_t set = 0; set < sets.size(); ++set) lightest.emplace(0, set);
  for (const std::size_t item : order) {
    const auto [load, set] = lightest.top();
    lightest.pop();
    lightest.emplace(load + weights[item], set);
    sets[set].push_back(item);
  }
  for (std::vector<std::size_t>& set : sets) std::sort(set.begin(), set.end());
  return sets;
}

/// A microbatch belongs to the group before it when a sample goes on in it.
void append_groups(std::int64_t part, std::vector<std::vector<Segment>> chunks, std::vector<AlignedGroup>& groups) {
  for (std::vector<Segment>& chunk : chunks) {
    if (chunk.empty()) continue;
    const bool joined =
        std::any_of(chunk.begin(), chunk.end(), [](const Segment& segment) { return segment.begin > 0; });
    if (!joined) groups.push_back({part, {}});
    groups.back().chunks.push_back(std::move(chunk));
  }
}

Alignment align_packs(HTaskRows tasks, std::int64_t pack_length, const Cut& cut, std::int64_t parts) {
  BRAID_CHECK(parts > 0, "{} parts", parts);
  std::vector<Pack> packs;
  for (const std::vector<SampleRow>& rows : tasks) {
    std::vector<Pack> more = pack_samples(rows, pack_length);
    std::move(more.begin(), more.end(), std::back_inserter(packs));
  }
  std::vector<std::int64_t> weights;
  for (const Pack& pack : packs) weights.push_back(computed_tokens(pack, cut));

  Alignment alignment;
  alignment.packs = static_cast<std::int64_t>(packs.size());
  const std::vector<std::vector<std::size_t>> sets = deal(weights, parts);
  for (std::size_t set = 0; set < sets.size(); ++set) {
    std::vector<std::vector<Segment>> chunks(static_cast<std::size_t>(whole_chunks(pack_length, cut.chunk_size)));
    for (const std::size_t pack : sets[set]) append_chunks(packs[pack], cut, chunks, alignment.tokens);
    append_groups(static_cast<std::int64_t>(set), std::move(chunks), alignment.groups);
  }
  return alignment;
}

}  // namespace

void check_chunk_size(std::int64_t chunk_size) {
  if (chunk_size <= 0 || chunk_size % kChunkUnit != 0)
    throw error("chunks of {} tokens are not usable; give a positive multiple of {}", chunk_size, kChunkUnit);
}

std::int64_t chunk_size_for(std::span<const std::int64_t> max_lengths, std::int64_t least) {
  std::int64_t bits = 0;
  for (const std::int64_t length : max_lengths) {
    BRAID_CHECK(length > 0, "a max_length of {}", length);
    bits |= length;
  }
  BRAID_CHECK(bits > 0, "no max_lengths");
  const std::int64_t chunk_size = std::max(bits & -bits, least);
  check_chunk_size(chunk_size);
  return chunk_size;
}

std::int64_t pack_length_for(std::span<const std::int64_t> max_lengths, std::int64_t chunk_size) {
  check_chunk_size(chunk_size);
  BRAID_CHECK(!max_lengths.empty(), "no max_lengths");
  return whole_chunks(*std::max_element(max_lengths.begin(), max_lengths.end()), chunk_size) * chunk_size;
}

std::int64_t Alignment::microbatches() const {
  std::int64_t count = 0;
  for (const AlignedGroup& group : groups) count += static_cast<std::int64_t>(group.chunks.size());
  return count;
}

Alignment align_padded(HTaskRows tasks, std::int64_t parts) {
  BRAID_CHECK(parts > 0, "{} parts", parts);
  Alignment alignment;
  for (std::int64_t part = 0; part < parts; ++part) {
    std::vector<Segment> segments;
    for (const std::vector<SampleRow>& rows : tasks) {
      const auto size = static_cast<std::int64_t>(rows.size());
      for (std::int64_t i = part * size / parts; i < (part + 1) * size / parts; ++i) {
        const SampleRow& row = rows[static_cast<std::size_t>(i)];
        segments.push_back(segment_of(row, 0, row.tokens, row.padded - row.tokens));
        alignment.tokens.data += row.tokens;
        alignment.tokens.row_padding += row.padded - row.tokens;
      }
    }
    if (!segments.empty()) alignment.groups.push_back({part, {std::move(segments)}});
  }
  return alignment;
}

Alignment align_packed(HTaskRows tasks, std::int64_t pack_length, std::int64_t parts) {
  BRAID_CHECK(pack_length > 0, "packs of {} tokens", pack_length);
  return align_packs(tasks, pack_length, {pack_length, false, EmptyChunks::computed}, parts);
}

Alignment align_chunks(HTaskRows tasks, std::int64_t pack_length, std::int64_t chunk_size, std::int64_t parts,
                       EmptyChunks empty) {
  check_chunk_size(chunk_size);
  return align_packs(tasks, pack_length, {chunk_size, true, empty}, parts);
}

}  // namespace braid::planner
