#include <algorithm>
#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "base/random.h"
#include "report/charts/bar_chart.h"
#include "report/charts/heat_map.h"
#include "report/charts/line_chart.h"
#include "report/charts/pipeline_chart.h"
#include "report/charts/scatter_chart.h"
#include "report/drawn.h"

namespace braid::report {
namespace {

using testing::Box;
using testing::Drawn;
using testing::drawn;

double magnitude(RandomStream& random) {
  return std::pow(10, 12 * random.next_uniform() - 6);
}

TEST(Scale, TicksAreRoundDistinctAndCoverWhatIsShown) {
  RandomStream random(1);
  for (int round = 0; round < 2000; ++round) {
    const bool logarithmic = random.next_uniform() < 0.5;
    double least = magnitude(random), most = least * (1 + random.next_uniform() * magnitude(random));
    if (!logarithmic && random.next_uniform() < 0.3) least = -least;
    const Scale scale({"", logarithmic}, least, most, 0, 100, 6);
    EXPECT_LE(scale.from(), least * (least > 0 ? 1 + 1e-6 : 1 - 1e-6));
    EXPECT_GE(scale.to(), most * (most > 0 ? 1 - 1e-6 : 1 + 1e-6));
    ASSERT_GE(scale.ticks().size(), 2U) << least << " " << most << " " << logarithmic;
    EXPECT_LE(scale.ticks().size(), 9U);
    std::set<std::string> texts;
    for (const double tick : scale.ticks()) {
      texts.insert(scale.text(tick));
      EXPECT_GE(scale(tick), 0);
      EXPECT_LE(scale(tick), 100);
    }
    EXPECT_EQ(texts.size(), scale.ticks().size()) << "ticks that read alike between " << least << " and " << most;
    EXPECT_TRUE(std::ranges::is_sorted(scale.ticks()));
  }
}

TEST(Scale, OneValueHasRoomAroundIt) {
  for (const double value : {0.0, 5.0, -3.0}) {
    const Scale scale({""}, value, value, 0, 100, 5);
    EXPECT_LT(scale.from(), scale.to());
    EXPECT_GE(scale.ticks().size(), 2U);
  }
  EXPECT_FALSE(Scale({"", true}, 1, 10, 0, 1, 5).shows(0));
  EXPECT_FALSE(Scale({""}, 1, 10, 0, 1, 5).shows(std::nan("")));
}

/// All text lies within the picture, and none over other text.
void expect_readable(const std::string& html, const std::string& which) {
  const Drawn picture = drawn(html);
  for (const Box& text : picture.texts) {
    EXPECT_GE(text.left, -0.5) << which << ": " << text.what;
    EXPECT_LE(text.right, picture.width + 0.5) << which << ": " << text.what;
    EXPECT_GE(text.top, -0.5) << which << ": " << text.what;
    EXPECT_LE(text.bottom, picture.height + 0.5) << which << ": " << text.what;
    for (const Box& other : picture.texts) {
      if (&other == &text) continue;

      EXPECT_FALSE(text.overlaps(other)) << which << ": '" << text.what << "' over '" << other.what << "'";
    }
  }
}

void expect_no_text_on_data(const std::string& html, const std::string& which) {
  const Drawn picture = drawn(html);
  for (const Box& text : picture.texts)
    for (const Box& box : picture.boxes)
      EXPECT_FALSE(text.overlaps(box)) << which << ": '" << text.what << "' on a " << box.what;
}

TEST(Charts, TextIsWithinThePictureAndOverNothing) {
  RandomStream random(2);
  const auto name = [&] {
    return std::string(1 + random.next_below(24), static_cast<char>('a' + random.next_below(26)));
  };
  for (int round = 0; round < 200; ++round) {
    const double size = magnitude(random);
    BarChart bars{"bars", {"seconds"}, {}, "bound"};
    for (std::uint64_t i = 0; i < 1 + random.next_below(14); ++i) {
      Bar& bar = bars.bars.emplace_back(Bar{name(), size * random.next_uniform()});
      if (random.next_uniform() < 0.5) bar.bound = bar.value * random.next_uniform();
      if (random.next_uniform() < 0.3) bar.half = bar.value * random.next_uniform();
    }
    expect_readable(to_html(bars), "bars");
    expect_no_text_on_data(to_html(bars), "bars");

    LineChart lines{"lines", {"time / s", random.next_uniform() < 0.3}, {"loss", random.next_uniform() < 0.3}, {}, {}};
    for (int i = 0; i < 3; ++i) {
      Series series{name(), {}, random.next_uniform() < 0.5};
      double x = 0;
      for (std::uint64_t p = 0; p < random.next_below(900); ++p)
        series.points.emplace_back(x += size * random.next_uniform(),
                                   random.next_uniform() < 0.05 ? std::nan("") : size * random.next_uniform());
      lines.series.push_back(std::move(series));
    }
    lines.levels = {{"limit", size}};
    expect_readable(to_html(lines), "lines");

    ScatterChart scatter{"marks", {"measured", round % 2 == 0}, {"predicted", round % 2 == 0}, {}, {"all"}};
    for (std::uint64_t i = 0; i < random.next_below(20); ++i)
      scatter.marks.push_back({name(), size * random.next_uniform(), size * random.next_uniform()});
    expect_readable(to_html(scatter), "scatter");

    PipelineChart pipeline{"pipeline", {"time / s"}, {}, {{"c0", "passes"}}};
    for (const char* group : {"predicted", "measured"}) {
      LaneGroup& lanes = pipeline.groups.emplace_back(LaneGroup{group, {}});
      for (int rank = 0; rank < 3; ++rank) {
        lanes.lanes.push_back({"rank " + std::to_string(rank), {}, false});
        double time = 0;
        for (int i = 0; i < 5; ++i) {
          const double begin = time + size * random.next_uniform();
          lanes.lanes.back().work.push_back({begin, time = begin + size * random.next_uniform(), "c0", "F"});
        }
      }
    }
    expect_readable(to_html(pipeline), "pipeline");
    expect_no_text_on_data(to_html(pipeline), "pipeline");
  }
}

TEST(Charts, AFieldShowsEveryValueOnce) {
  const HeatMap map{"field",
                    "scheduler",
                    "load",
                    "hours",
                    {"fcfs", "srtf"},
                    {"0.7", "0.9", "1.1"},
                    {{1.0, 2.0, 30.0}, {0.5, std::nullopt, 9.0}}};
  const std::string html = to_html(map);
  expect_readable(html, "field");
  const Drawn picture = drawn(html);
  EXPECT_EQ(picture.boxes.size(), 5U);
  EXPECT_NE(html.find("scheduler fcfs, load 1.1: hours 30"), std::string::npos);
  EXPECT_EQ(std::ranges::count(picture.boxes, "h7", &Box::what), 1) << "the largest is the darkest";
}

/// The least and the most of what is left out stay.
TEST(Charts, VeryManyPointsKeepTheirPeaks) {
  LineChart chart{"memory", {"s"}, {"MB"}, {Series{"rank 0", {}, true}}};
  for (int i = 0; i < 100000; ++i) chart.series[0].points.emplace_back(i, i == 54321 ? 100 : i % 7);
  const std::string html = to_html(chart);
  EXPECT_LT(html.size(), 100000U);
  EXPECT_NE(html.find(",10.0 "), std::string::npos) << "the top of the picture is reached";
}

TEST(Cumulative, IsTheShareThatIsAtMostX) {
  RandomStream random(3);
  std::vector<double> values;
  for (int i = 0; i < 50; ++i) values.push_back(static_cast<double>(random.next_below(12)));
  const Series series = cumulative("all", values);
  for (const auto& [x, share] : series.points) {
    if (share == 0) continue;
    const auto most = std::ranges::count_if(values, [at = x](double value) { return value <= at; });
    EXPECT_DOUBLE_EQ(share, static_cast<double>(most) / 50);
  }
  EXPECT_EQ(series.points.back().second, 1);
}

}  // namespace
}  // namespace braid::report
