#include "report/charts/pipeline_chart.h"

#include <algorithm>

namespace braid::report {

std::string to_html(const PipelineChart& chart) {
  constexpr double kThick = 22, kThin = 9, kGap = 3, kHead = 22, kBottom = 44, kRight = 14;
  double names = 40, height = kBottom, end = 0;
  for (const LaneGroup& group : chart.groups) {
    height += kHead;
    for (const Lane& lane : group.lanes) {
      if (!lane.thin) names = std::max(names, text_width(lane.name) + 12);
      height += (lane.thin ? kThin : kThick) + kGap;
      for (const Lane::Work& work : lane.work) end = std::max(end, work.end);
    }
  }
  Drawing drawing(kChartWidth, height, chart.what);
  Axis axis = chart.x;
  axis.from = 0;
  const Scale scale(axis, 0, end, names, kChartWidth - kRight, 6);
  const double bottom = height - kBottom;
  draw_ticks(drawing, scale, 4, bottom);
  double top = 0;
  for (const LaneGroup& group : chart.groups) {
    drawing.text({names, top + kHead - 7}, group.name, Drawing::Anchor::start, "head");
    top += kHead;
    for (const Lane& lane : group.lanes) {
      const double thick = lane.thin ? kThin : kThick;
      if (!lane.thin) drawing.text({names - 8, top + thick / 2 + 4}, lane.name, Drawing::Anchor::end, "tick");
      for (const Lane::Work& work : lane.work)
        drawing.box({scale(work.begin), top}, scale(work.end) - scale(work.begin), thick, work.kind, work.text);
      top += thick + kGap;
    }
  }
  drawing.line({names, bottom}, {kChartWidth - kRight, bottom}, "axis");
  drawing.text({(names + kChartWidth - kRight) / 2, height - 6}, chart.x.label, Drawing::Anchor::middle, "label");
  return report::legend(chart.legend) + "<div class=\"scrolls\">" + drawing.to_svg() + "</div>\n";
}

}  // namespace braid::report
