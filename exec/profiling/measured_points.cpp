#include "exec/profiling/measured_points.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/random.h"
#include "planner/program/load.h"

namespace braid::exec {
namespace {

class Writer {
 public:
  void put(std::int64_t number) { bytes_.append(reinterpret_cast<const char*>(&number), sizeof number); }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  std::int64_t get() {
    std::int64_t number = 0;
    BRAID_CHECK(bytes_.size() >= sizeof number, "points end early");
    std::memcpy(&number, bytes_.data(), sizeof number);
    bytes_.remove_prefix(sizeof number);
    return number;
  }
  std::int32_t get_small() { return static_cast<std::int32_t>(get()); }

 private:
  std::string_view bytes_;
};

void put(Writer& writer, const planner::Segment& segment) {
  for (const std::int64_t number :
       {std::int64_t{segment.task}, segment.global_batch, std::int64_t{segment.index}, segment.sample,
        std::int64_t{segment.chosen}, std::int64_t{segment.begin}, std::int64_t{segment.end},
        std::int64_t{segment.padding}, std::int64_t{segment.scored}, std::int64_t{segment.continues ? 1 : 0}})
    writer.put(number);
}

planner::Segment segment_from(Reader& reader) {
  planner::Segment segment;
  segment.task = reader.get_small();
  segment.global_batch = reader.get();
  segment.index = reader.get_small();
  segment.sample = reader.get();
  segment.chosen = reader.get_small();
  segment.begin = reader.get_small();
  segment.end = reader.get_small();
  segment.padding = reader.get_small();
  segment.scored = reader.get_small();
  segment.continues = reader.get() != 0;
  return segment;
}

}  // namespace

std::int64_t MeasuredPoint::tokens() const {
  std::int64_t sum = 0;
  for (const planner::Microbatch& microbatch : microbatches) sum += microbatch.computed_tokens();
  return sum;
}

MeasuredPoint uniform_point(planner::TaskIndex task, std::int64_t tokens, std::int64_t context, std::int64_t chunk,
                            std::int64_t scored) {
  MeasuredPoint point;
  if (chunk <= 0) chunk = context;
  for (std::int64_t begin = 0; begin < context; begin += chunk) {
    planner::Microbatch microbatch;
    microbatch.id = std::ssize(point.microbatches);
    for (std::int64_t first = 0; first < tokens; first += context) {
      const std::int64_t length = std::min(context, tokens - first);
      if (begin >= length) continue;
      planner::Segment& segment = microbatch.segments.emplace_back();
      segment.task = task;
      segment.index = static_cast<std::int32_t>(first / context);
      segment.sample = segment.index;
      segment.begin = static_cast<std::int32_t>(begin);
      segment.end = static_cast<std::int32_t>(std::min(begin + chunk, length));
      segment.continues = segment.end < length;
      segment.scored = segment.tokens() - (segment.continues ? 0 : 1);
    }
    if (!microbatch.segments.empty()) point.microbatches.push_back(std::move(microbatch));
  }
  // The first rows have none.
  std::int64_t excess = -scored;
  for (const planner::Microbatch& microbatch : point.microbatches)
    for (const planner::Segment& segment : microbatch.segments) excess += segment.scored;
  for (planner::Microbatch& microbatch : point.microbatches) {
    for (planner::Segment& segment : microbatch.segments) {
      const auto without = static_cast<std::int32_t>(std::clamp<std::int64_t>(excess, 0, segment.scored));
      segment.scored -= without;
      excess -= without;
    }
  }
  return point;
}

Batch random_batch(const planner::Microbatch& microbatch, std::int64_t vocabulary) {
  RandomStream random(static_cast<std::uint64_t>(microbatch.computed_tokens()));
  const auto token = [&] {
    return static_cast<std::int32_t>(random.next_below(static_cast<std::uint64_t>(vocabulary)));
  };
  Batch batch;
  for (const planner::Segment& segment : microbatch.segments) {
    const std::int64_t first = batch.rows();
    if (batch.tasks.empty() || batch.tasks.back().task != segment.task)
      batch.tasks.push_back({segment.task, segment.global_batch, first, first});
    planner::for_each_sequence(segment, [&](const planner::SequencePart& part) {
      const std::int64_t first_row = batch.rows();
      for (std::int32_t row = 0; row < part.end - part.begin + part.padding; ++row) {
        const std::int32_t position = part.begin + row;
        batch.tokens.push_back(position < part.end ? token() : 0);
        batch.positions.push_back(position);
        batch.samples.push_back(2 * segment.sample + part.sequence);
        // What a loss is taken of stands at the end, as completions do; a sample's last token predicts nothing.
        const auto after =
            static_cast<std::int32_t>(segment.tokens() - (segment.continues ? 0 : 1) - (batch.rows() - 1 - first));
        if (after <= 0 || after > segment.scored) continue;
        batch.scored.push_back({batch.rows() - 1, token(), 1, batch.sequences.size()});
      }
      batch.sequences.push_back({{segment.task, segment.global_batch, segment.index, part.sequence},
                                 segment.sample,
                                 part.begin,
                                 part.end - part.begin,
                                 first_row,
                                 batch.rows() - first_row,
                                 part.continues});
    });
    batch.tasks.back().last = batch.rows();
  }
  return batch;
}

std::vector<costmodel::OperatorCall> calls_of(const MeasuredPoint& point, const costmodel::BackboneShape& backbone,
                                              costmodel::StageShape stage,
                                              std::span<const costmodel::AdapterShape> adapters, costmodel::Pass pass,
                                              const costmodel::Storage& storage) {
  stage.tp = point.tp;
  std::vector<costmodel::OperatorCall> calls;
  for (const planner::Microbatch& microbatch : point.microbatches) {
    const std::vector<costmodel::OperatorCall> more =
        costmodel::stage_operators(backbone, stage, planner::load_of(microbatch, adapters), pass, storage);
    calls.insert(calls.end(), more.begin(), more.end());
  }
  return calls;
}

std::string to_bytes(std::span<const MeasuredPoint> points) {
  Writer writer;
  writer.put(std::ssize(points));
  for (const MeasuredPoint& point : points) {
    for (const std::int64_t number :
         {std::int64_t{point.tp}, std::int64_t{point.layers}, std::int64_t{point.attends ? 1 : 0},
          std::int64_t{point.needed ? 1 : 0}, std::ssize(point.microbatches)})
      writer.put(number);
    for (const planner::Microbatch& microbatch : point.microbatches) {
      writer.put(std::ssize(microbatch.segments));
      for (const planner::Segment& segment : microbatch.segments) put(writer, segment);
    }
  }
  return writer.take();
}

std::vector<MeasuredPoint> points_from_bytes(std::string_view bytes) {
  Reader reader(bytes);
  std::vector<MeasuredPoint> points(static_cast<std::size_t>(reader.get()));
  for (MeasuredPoint& point : points) {
    point.tp = reader.get_small();
    point.layers = reader.get_small();
    point.attends = reader.get() != 0;
    point.needed = reader.get() != 0;
    point.microbatches.resize(static_cast<std::size_t>(reader.get()));
    for (std::size_t i = 0; i < point.microbatches.size(); ++i) {
      point.microbatches[i].id = static_cast<planner::MicrobatchId>(i);
      const std::int64_t segments = reader.get();
      for (std::int64_t s = 0; s < segments; ++s) point.microbatches[i].segments.push_back(segment_from(reader));
    }
  }
  return points;
}

}  // namespace braid::exec
