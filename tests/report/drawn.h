#pragma once

#include <regex>
#include <string>
#include <vector>

#include "report/charts/drawing.h"

namespace braid::report::testing {

struct Box {
  double left = 0, top = 0, right = 0, bottom = 0;
  std::string what;

  bool overlaps(const Box& other) const {
    constexpr double kTouch = 0.5;
    return left < other.right - kTouch && other.left < right - kTouch && top < other.bottom - kTouch &&
           other.top < bottom - kTouch;
  }
};

/// What stands in the one picture of a chart's HTML.
struct Drawn {
  double width = 0, height = 0;
  std::vector<Box> texts;  ///< that lie
  std::vector<Box> boxes;  ///< rectangles that show data
};

inline Drawn drawn(const std::string& html) {
  Drawn drawn;
  const std::size_t begin = html.find("role=\"img\"");
  const std::string svg = html.substr(html.rfind("<svg", begin));
  std::smatch size;
  std::regex_search(svg, size, std::regex("viewBox=\"0 0 (\\d+) (\\d+)\""));
  drawn.width = std::stod(size[1]), drawn.height = std::stod(size[2]);
  const std::regex text(
      "<text x=\"([-0-9.]+)\" y=\"([-0-9.]+)\" text-anchor=\"(\\w+)\" class=\"[^\"]*\">([^<]*)</text>");
  for (std::sregex_iterator one(svg.begin(), svg.end(), text), end; one != end; ++one) {
    const double x = std::stod((*one)[1]), y = std::stod((*one)[2]), width = text_width((*one)[4].str());
    const std::string anchor = (*one)[3];
    const double left = anchor == "start" ? x : anchor == "middle" ? x - width / 2 : x - width;
    drawn.texts.push_back({left, y - 10, left + width, y + 2, (*one)[4]});
  }
  const std::regex box(
      "<rect x=\"([-0-9.]+)\" y=\"([-0-9.]+)\" width=\"([-0-9.]+)\" height=\"([-0-9.]+)\" class=\"([^\"]*)\"");
  for (std::sregex_iterator one(svg.begin(), svg.end(), box), end; one != end; ++one) {
    const double x = std::stod((*one)[1]), y = std::stod((*one)[2]);
    drawn.boxes.push_back({x, y, x + std::stod((*one)[3]), y + std::stod((*one)[4]), (*one)[5]});
  }
  return drawn;
}

}  // namespace braid::report::testing
