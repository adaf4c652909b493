#include "kernels/gpu_probe/shapes.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

namespace braid::gpu_probe {
namespace {

using Numbers = std::vector<std::int64_t>;
/// in, out.
using Linear = std::pair<std::int64_t, std::int64_t>;

const Numbers kLayerTokens = {64, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 8192};
const Numbers kBackwardTokens = {64, 256, 1024, 2048, 4096, 8192};
const Numbers kRanks = {8, 16, 32, 64, 128};
const Numbers kShards = {1, 2, 4, 8};
constexpr std::int64_t kHidden = 4096;

/// `first`, twice that and so on up to `last`.
Numbers doubling(std::int64_t first, std::int64_t last) {
  Numbers numbers;
  for (std::int64_t number = first; number <= last; number *= 2) numbers.push_back(number);
  return numbers;
}

struct Backbone {
  std::int64_t hidden = 0;
  std::int64_t intermediate = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
};
// Llama 2's 7B, Llama 3.1's 8B, and the 70B of both.
constexpr Backbone kLlama7b{4096, 11008, 32, 32};
constexpr Backbone kLlama8b{4096, 14336, 32, 8};
constexpr Backbone kLlama70b{8192, 28672, 64, 8};

/// One shard of a layer's fused qkv, o, fused gate_up and down.
std::vector<Linear> layer_of(const Backbone& backbone, std::int64_t tp) {
  const std::int64_t head_dim = backbone.hidden / backbone.heads;
  return {{backbone.hidden, (backbone.heads + 2 * backbone.kv_heads) * head_dim / tp},
          {backbone.heads * head_dim / tp, backbone.hidden},
          {backbone.hidden, 2 * backbone.intermediate / tp},
          {backbone.intermediate / tp, backbone.hidden}};
}

/// Collects points, leaving out what is there already: shards of one backbone are layers of another.
class Points {
 public:
  void add(const std::string& family, const std::string& op, const std::string& pass, const Numbers& shape,
           const Numbers& all_tokens) {
    for (const std::int64_t tokens : all_tokens) {
      if (seen_.emplace(op, pass, shape, tokens).second) points_.push_back({family, op, pass, shape, tokens});
    }
  }
  std::vector<Point> take() { return std::move(points_); }

 private:
  std::vector<Point> points_;
  std::set<std::tuple<std::string, std::string, Numbers, std::int64_t>> seen_;
};

void add_layers(Points& points) {
  for (const Backbone& backbone : {kLlama7b, kLlama8b, kLlama70b}) {
    for (const std::int64_t tp : kShards) {
      for (const auto& [in, out] : layer_of(backbone, tp))
        points.add("layers", "linear", "forward", {in, out}, kLayerTokens);
    }
  }
  // A transposed W is another kernel, no other size: two backbones say how it differs.
  for (const auto& [backbone, tp] : {std::pair(kLlama7b, 1), std::pair(kLlama70b, 4)}) {
    for (const auto& [in, out] : layer_of(backbone, tp))
      points.add("layers backward", "linear", "backward", {in, out}, kBackwardTokens);
  }
}

void add_adapters(Points& points) {
  const Numbers tokens = doubling(64, 8192);
  // Up-projections of k adapters of rank 16 in the same product as the layer's own weights.
  for (const std::int64_t adapters : {1, 2, 4, 8})
    points.add("adapters in the layer", "linear", "forward", {kHidden + 16 * adapters, kHidden}, tokens);
  for (const std::string pass : {"forward", "parameters"}) {
    const std::string family = pass == "forward" ? "adapters" : "adapter gradients";
    for (const std::int64_t rank : kRanks) {
      points.add(family, "linear", pass, {kHidden, rank}, tokens);
      points.add(family, "linear", pass, {rank, kHidden}, tokens);
    }
  }
}

/// The places of each series.
std::vector<std::vector<std::size_t>> series_of(const std::vector<Point>& points) {
  const auto key = [](const Point& point) { return std::tie(point.family, point.op, point.pass, point.shape); };
  std::vector<std::vector<std::size_t>> series;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (i == 0 || key(points[i]) != key(points[i - 1])) series.emplace_back();
    series.back().push_back(i);
  }
  return series;
}

/// 0..count-1, both ends first, then the middle of each gap, wide gaps before narrow ones.
std::vector<std::size_t> ends_first(std::size_t count) {
  std::vector<std::size_t> order;
  if (count > 0) order.push_back(0);
  if (count > 1) order.push_back(count - 1);
  std::vector<std::pair<std::size_t, std::size_t>> gaps = {{0, count == 0 ? 0 : count - 1}};
  for (std::size_t i = 0; i < gaps.size(); ++i) {
    const auto [first, last] = gaps[i];
    const std::size_t middle = (first + last) / 2;
    if (middle == first) continue;
    order.push_back(middle);
    gaps.emplace_back(first, middle);
    gaps.emplace_back(middle, last);
  }
  return order;
}

}  // namespace

std::vector<Point> all_points() {
  Points points;
  add_layers(points);
  add_adapters(points);
  points.add("copies", "copy", "forward", {}, doubling(std::int64_t{1} << 12, std::int64_t{1} << 30));
  points.add("additions", "residual", "forward", {kHidden}, doubling(64, 16384));
  points.add("launches", "launch", "forward", {}, {1});
  points.add("launches", "empty_kernel", "forward", {}, {1});
  return points.take();
}

std::vector<std::size_t> measuring_order(const std::vector<Point>& points) {
  const std::vector<std::vector<std::size_t>> series = series_of(points);
  const std::vector<std::size_t> series_order = ends_first(series.size());
  std::vector<std::size_t> order;
  for (std::size_t round = 0; order.size() < points.size(); ++round) {
    for (const std::size_t one : series_order) {
      if (round < series[one].size()) order.push_back(series[one][ends_first(series[one].size())[round]]);
    }
  }
  return order;
}

std::size_t least_measured(const std::vector<Point>& points) {
  std::size_t least = 0;
  for (const std::vector<std::size_t>& one : series_of(points)) least += std::min<std::size_t>(one.size(), 2);
  return least;
}

std::string listing(const std::vector<Point>& points) {
  const auto padded = [](std::string text, std::size_t width) {
    return text.append(text.size() < width ? width - text.size() : 1, ' ');
  };
  const std::vector<std::vector<std::size_t>> series = series_of(points);
  std::string text = padded("for", 23) + padded("op", 14) + padded("pass", 12) + padded("shape", 14) + "tokens\n";
  for (const std::vector<std::size_t>& one : series) {
    const Point& first = points[one[0]];
    std::string shape;
    for (const std::int64_t number : first.shape) shape += (shape.empty() ? "" : "x") + std::to_string(number);
    text += padded(first.family, 23) + padded(first.op, 14) + padded(first.pass, 12) + padded(shape, 14);
    for (const std::size_t place : one) text += (place == one[0] ? "" : " ") + std::to_string(points[place].tokens);
    text += "\n";
  }
  return text + std::to_string(points.size()) + " points in " + std::to_string(series.size()) + " series\n";
}

}  // namespace braid::gpu_probe
