#include "planner/window/packing.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace braid::planner {
namespace {

/// Which pack each row goes to.
struct Packing {
  std::vector<std::size_t> pack_of;
  std::size_t packs = 0;
};

/// Each row, in the order given, into the first pack with room.
Packing first_fit(std::span<const SampleRow> rows, std::span<const std::size_t> order, std::int64_t pack_length) {
  Packing packing{std::vector<std::size_t>(rows.size()), 0};
  const auto shortest = std::min_element(rows.begin(), rows.end(),
                                         [](const SampleRow& a, const SampleRow& b) { return a.padded < b.padded; });
  std::vector<std::int64_t> room;
  std::size_t open = 0;  // packs before have no room for any row
  for (const std::size_t row : order) {
    while (open < room.size() && room[open] < shortest->padded) ++open;
    std::size_t pack = open;
    while (pack < room.size() && room[pack] < rows[row].padded) ++pack;
    if (pack == room.size()) room.push_back(pack_length);
    room[pack] -= rows[row].padded;
    packing.pack_of[row] = pack;
  }
  packing.packs = room.size();
  return packing;
}

void check_rows(std::span<const SampleRow> rows) {
  for (const SampleRow& row : rows) {
    BRAID_CHECK(row.tokens > 0 && row.padded >= row.tokens && row.scored >= 0 && row.scored < row.tokens,
                "a row of {} tokens, {} with padding, {} scored", row.tokens, row.padded, row.scored);
    BRAID_CHECK(row.task == rows.front().task && row.global_batch == rows.front().global_batch,
                "rows of several global batches");
  }
}

}  // namespace

std::vector<SampleRow> rows_of(TaskIndex task, std::int64_t global_batch, std::span<const workload::SampleRef> samples,
                               std::int64_t length) {
  std::vector<SampleRow> rows;
  rows.reserve(samples.size());
  for (const workload::SampleRef& sample : samples) {
    SampleRow row;
    row.task = task;
    row.global_batch = global_batch;
    row.index = static_cast<std::int32_t>(rows.size());
    row.sample = sample.sample;
    row.tokens = static_cast<std::int32_t>(sample.tokens);
    row.padded = static_cast<std::int32_t>(std::max(sample.tokens, length));
    row.scored = static_cast<std::int32_t>(sample.supervised);
    row.chosen = static_cast<std::int32_t>(sample.chosen);
    rows.push_back(row);
  }
  return rows;
}

std::vector<Pack> pack_samples(std::span<const SampleRow> rows, std::int64_t pack_length) {
  check_rows(rows);
  std::int64_t tokens = 0;
  for (const SampleRow& row : rows) {
    if (row.padded > pack_length)
      throw error("sample {} of task {} has {} tokens with its padding, which no pack of {} holds; make packs longer",
                  row.sample, row.task, row.padded, pack_length);
    tokens += row.padded;
  }
  if (rows.empty()) return {};
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  Packing packing = first_fit(rows, order, pack_length);
  if (static_cast<std::int64_t>(packing.packs) * pack_length >= tokens + pack_length) {
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return rows[a].padded > rows[b].padded; });
    Packing decreasing = first_fit(rows, order, pack_length);
    if (decreasing.packs < packing.packs) packing = std::move(decreasing);
  }
  std::vector<Pack> packs;
  std::vector<std::size_t> place(packing.packs, packing.packs);  // by first row; packing.packs: not met yet
  for (std::size_t row = 0; row < rows.size(); ++row) {
    std::size_t& here = place[packing.pack_of[row]];
    if (here == packing.packs) {
      here = packs.size();
      packs.push_back({rows[row].task, {}, 0});
    }
    packs[here].rows.push_back(rows[row]);
    packs[here].tokens += rows[row].padded;
  }
  return packs;
}

}  // namespace braid::planner
