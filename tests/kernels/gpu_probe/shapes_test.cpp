#include "kernels/gpu_probe/shapes.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include <gtest/gtest.h>

#include "costmodel/shapes/backbone.h"
#include "costmodel/work/operators.h"

namespace braid::gpu_probe {
namespace {

using Series = std::tuple<std::string, std::string, std::vector<std::int64_t>>;

Series series_of(const Point& point) {
  return {point.op, point.pass, point.shape};
}

/// The tokens of each series among the first `count` points in measuring order.
std::map<Series, std::set<std::int64_t>> measured_first(const std::vector<Point>& points, std::size_t count) {
  const std::vector<std::size_t> order = measuring_order(points);
  std::map<Series, std::set<std::int64_t>> tokens;
  for (std::size_t i = 0; i < count; ++i) tokens[series_of(points[order[i]])].insert(points[order[i]].tokens);
  return tokens;
}

TEST(Shapes, EveryPointIsThereOnceAndNamesAnOperator) {
  std::set<std::pair<Series, std::int64_t>> seen;
  for (const Point& point : all_points()) {
    EXPECT_TRUE(seen.emplace(series_of(point), point.tokens).second) << listing({point});
    EXPECT_NO_THROW(costmodel::operator_of(point.op));
    EXPECT_NO_THROW(costmodel::pass_of(point.pass));
    EXPECT_GE(point.tokens, 1);
    EXPECT_TRUE(std::all_of(point.shape.begin(), point.shape.end(), [](std::int64_t size) { return size > 0; }));
  }
}

TEST(Shapes, TokensOfASeriesStandTogetherAndRise) {
  const std::vector<Point> points = all_points();
  std::set<Series> seen;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (i > 0 && series_of(points[i]) == series_of(points[i - 1])) {
      EXPECT_GT(points[i].tokens, points[i - 1].tokens);
    } else {
      EXPECT_TRUE(seen.insert(series_of(points[i])).second) << listing({points[i]});
    }
  }
}

TEST(Shapes, HoldTheLayersOfTheCostModelsBackbones) {
  const auto measured = measured_first(all_points(), all_points().size());
  const auto expect_layer = [&](std::int64_t in, std::int64_t out) {
    const auto found = measured.find({"linear", "forward", {in, out}});
    ASSERT_NE(found, measured.end()) << in << "x" << out;
    for (const std::int64_t tokens : {64, 192, 1024, 3072, 8192}) EXPECT_TRUE(found->second.contains(tokens));
  };
  for (const std::string name : {"llama2-7b", "llama2-70b", "llama3.1-8b", "llama3.1-70b"}) {
    const costmodel::BackboneShape backbone = costmodel::builtin_backbone(name);
    for (const std::int64_t tp : {1, 2, 4, 8}) {
      expect_layer(backbone.hidden, backbone.qkv_width() / tp);
      expect_layer(backbone.query_width() / tp, backbone.hidden);
      expect_layer(backbone.hidden, 2 * backbone.intermediate / tp);
      expect_layer(backbone.intermediate / tp, backbone.hidden);
    }
  }
}

TEST(Shapes, TheOrderHoldsEveryPointOnce) {
  const std::vector<Point> points = all_points();
  std::vector<std::size_t> order = measuring_order(points);
  std::sort(order.begin(), order.end());
  std::vector<std::size_t> all(points.size());
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(order, all);
}

TEST(Shapes, ThinnedAnywhereEverySeriesKeepsItsFirstAndLastTokens) {
  const std::vector<Point> points = all_points();
  const auto whole = measured_first(points, points.size());
  for (std::size_t count = least_measured(points); count <= points.size(); count += 50) {
    const auto thinned = measured_first(points, count);
    ASSERT_EQ(thinned.size(), whole.size());
    for (const auto& [series, tokens] : thinned) {
      EXPECT_EQ(*tokens.begin(), *whole.at(series).begin());
      EXPECT_EQ(*tokens.rbegin(), *whole.at(series).rbegin());
    }
  }
}

/// Thinned to a share, no long series keeps far more or fewer of its points than another one as long.
TEST(Shapes, ThinsEvenly) {
  const std::vector<Point> points = all_points();
  const auto whole = measured_first(points, points.size());
  for (std::size_t count = least_measured(points); count <= points.size(); count += 37) {
    std::map<std::size_t, std::set<std::size_t>> kept;
    for (const auto& [series, tokens] : measured_first(points, count))
      kept[whole.at(series).size()].insert(tokens.size());
    for (const auto& [length, counts] : kept) EXPECT_LE(*counts.rbegin() - *counts.begin(), 1U) << length;
  }
}

TEST(Shapes, NothingIsOrderedToNothing) {
  EXPECT_TRUE(measuring_order({}).empty());
  EXPECT_EQ(least_measured({}), 0U);
}

}  // namespace
}  // namespace braid::gpu_probe
