#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/charts/scale.h"

namespace braid::report {

using Point = std::pair<double, double>;

/// A picture in SVG, built up shape by shape. Shapes have no colours but classes, for which the page's style has
/// colours of both a light and a dark page; the text of a shape is shown where the pointer rests on it.
class Drawing {
 public:
  /// `what` is read to those who do not see it.
  Drawing(double width, double height, const std::string& what);

  void line(Point from, Point to, std::string_view kind);
  void path(const std::vector<Point>& points, std::string_view kind, std::string_view text = {});
  void area(const std::vector<Point>& points, std::string_view kind, std::string_view text = {});
  void box(Point corner, double width, double height, std::string_view kind, std::string_view text = {});
  void dot(Point center, double radius, std::string_view kind, std::string_view text = {});
  enum class Anchor { start, middle, end };
  void text(Point at, std::string_view words, Anchor anchor = Anchor::start, std::string_view kind = {});
  void upright_text(Point at, std::string_view words);

  double width() const { return width_; }
  double height() const { return height_; }
  std::string to_svg() const { return svg_ + "</svg>\n"; }

 private:
  void close(std::string_view text, std::string_view tag);

  double width_, height_;
  std::string svg_;
};

/// Where values lie in a drawing.
struct Plot {
  Scale x, y;
};
/// Draws both axes with ticks, lines across and labels, and leaves `right` free beside the plot.
Plot draw_axes(Drawing& drawing, const Axis& x, const Axis& y, Point x_values, Point y_values, double right = 14);

/// Ticks below the line at `bottom`, lines up to `top`, and what the ticks say where there is room for it.
void draw_ticks(Drawing& drawing, const Scale& scale, double top, double bottom);

/// The width that text takes, about.
double text_width(std::string_view words);

inline constexpr double kChartWidth = 640, kChartHeight = 300;
inline constexpr int kColours = 8;
/// "c3": of the n-th thing that is told apart by its colour.
std::string colour_of(std::size_t n);

/// What colours stand for, above a picture: never over what it shows. One that begins with "line " is of a line.
std::string legend(const std::vector<std::pair<std::string, std::string>>& colours_and_names);

}  // namespace braid::report
