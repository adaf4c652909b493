#include "report/charts/drawing.h"

#include <algorithm>

#include <fmt/core.h>

#include "report/markup.h"

namespace braid::report {
namespace {

constexpr double kFont = 12;

std::string points_text(const std::vector<Point>& points) {
  std::string text;
  for (const auto& [x, y] : points) text += fmt::format("{}{:.1f},{:.1f}", text.empty() ? "" : " ", x, y);
  return text;
}

std::string_view name(Drawing::Anchor anchor) {
  return anchor == Drawing::Anchor::start ? "start" : anchor == Drawing::Anchor::middle ? "middle" : "end";
}

}  // namespace

Drawing::Drawing(double width, double height, const std::string& what)
    : width_(width),
      height_(height),
      svg_(fmt::format("<svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"{}\">\n", width, height,
                       escaped(what))) {}

void Drawing::close(std::string_view text, std::string_view tag) {
  if (text.empty()) {
    svg_ += "/>\n";
  } else {
    svg_ += fmt::format("><title>{}</title></{}>\n", escaped(text), tag);
  }
}

void Drawing::line(Point from, Point to, std::string_view kind) {
  svg_ += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"{}\"/>\n", from.first,
                      from.second, to.first, to.second, kind);
}

void Drawing::path(const std::vector<Point>& points, std::string_view kind, std::string_view text) {
  svg_ += fmt::format("<polyline points=\"{}\" class=\"line {}\"", points_text(points), kind);
  close(text, "polyline");
}

void Drawing::area(const std::vector<Point>& points, std::string_view kind, std::string_view text) {
  svg_ += fmt::format("<polygon points=\"{}\" class=\"{}\"", points_text(points), kind);
  close(text, "polygon");
}

void Drawing::box(Point corner, double width, double height, std::string_view kind, std::string_view text) {
  svg_ += fmt::format("<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\" class=\"{}\"", corner.first,
                      corner.second, std::max(0.0, width), std::max(0.0, height), kind);
  close(text, "rect");
}

void Drawing::dot(Point center, double radius, std::string_view kind, std::string_view text) {
  svg_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" class=\"{}\"", center.first, center.second,
                      radius, kind);
  close(text, "circle");
}

void Drawing::text(Point at, std::string_view words, Anchor anchor, std::string_view kind) {
  svg_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" class=\"{}\">{}</text>\n", at.first,
                      at.second, name(anchor), kind, escaped(words));
}

void Drawing::upright_text(Point at, std::string_view words) {
  svg_ += fmt::format(
      "<text x=\"{0:.1f}\" y=\"{1:.1f}\" text-anchor=\"middle\" transform=\"rotate(-90 {0:.1f} {1:.1f})\" "
      "class=\"label\">{2}</text>\n",
      at.first, at.second, escaped(words));
}

Plot draw_axes(Drawing& drawing, const Axis& x, const Axis& y, Point x_values, Point y_values, double right) {
  constexpr double kTop = 10, kBottom = 44, kMostTickWidth = 64;
  const double left = kFont + 14 + kMostTickWidth;
  const Plot plot{Scale(x, x_values.first, x_values.second, left, drawing.width() - right,
                        static_cast<int>((drawing.width() - left - right) / 80)),
                  Scale(y, y_values.first, y_values.second, drawing.height() - kBottom, kTop,
                        static_cast<int>((drawing.height() - kTop - kBottom) / 36))};
  const double bottom = drawing.height() - kBottom, end = drawing.width() - right;
  for (const double tick : plot.y.ticks()) {
    const double place = plot.y(tick);
    drawing.line({left, place}, {end, place}, "grid");
    drawing.text({left - 6, place + 4}, plot.y.text(tick), Drawing::Anchor::end, "tick");
  }
  draw_ticks(drawing, plot.x, bottom, bottom);
  drawing.line({left, bottom}, {end, bottom}, "axis");
  drawing.text({(left + end) / 2, drawing.height() - 6}, x.label, Drawing::Anchor::middle, "label");
  drawing.upright_text({kFont, (kTop + bottom) / 2}, y.label);
  return plot;
}

void draw_ticks(Drawing& drawing, const Scale& scale, double top, double bottom) {
  constexpr double kApart = 8;
  double free = 0;  // from there on
  for (const double tick : scale.ticks()) {
    const double place = scale(tick);
    if (top < bottom) drawing.line({place, top}, {place, bottom}, "grid");
    drawing.line({place, bottom}, {place, bottom + 4}, "axis");
    const std::string words = scale.text(tick);
    const double half = text_width(words) / 2, middle = std::min(place, drawing.width() - half);
    if (middle - half < free) continue;
    drawing.text({middle, bottom + 17}, words, Drawing::Anchor::middle, "tick");
    free = middle + half + kApart;
  }
}

double text_width(std::string_view words) {
  const auto letters = std::ranges::count_if(words, [](char c) { return (c & 0xC0) != 0x80; });
  return 0.62 * kFont * static_cast<double>(letters);
}

std::string colour_of(std::size_t n) {
  return fmt::format("c{}", n % kColours);
}

std::string legend(const std::vector<std::pair<std::string, std::string>>& colours_and_names) {
  std::string html = "<ul class=\"legend\">";
  for (const auto& [colour, name] : colours_and_names) {
    const bool line = colour.starts_with("line ");
    html +=
        fmt::format("<li><svg viewBox=\"0 0 28 12\"><{} class=\"{}\"/></svg>{}</li>",
                    line ? "polyline points=\"0,6 28,6\"" : "rect width=\"28\" height=\"12\"", colour, escaped(name));
  }
  return html + "</ul>\n";
}

}  // namespace braid::report
