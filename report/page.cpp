#include "report/page.h"

#include <fmt/core.h>

#include "report/style.h"

namespace braid::report {
namespace {

std::string to_html(const Figure& figure) {
  std::string html = "<figure><figcaption>" + escaped(figure.finding) + "</figcaption>\n" + figure.html;
  if (!figure.values.rows.empty()) html += "<details><summary>values</summary>" + to_html(figure.values) + "</details>";
  return html + "</figure>\n";
}

std::string to_html(const Section& section, std::size_t number) {
  std::string html = fmt::format("<section id=\"s{}\">\n<h2>{}</h2>\n<div class=\"source\">{}</div>\n", number,
                                 escaped(section.title), escaped(section.source));
  for (const std::string& paragraph : section.paragraphs) html += "<p>" + escaped(paragraph) + "</p>\n";
  if (!section.table.rows.empty()) html += to_html(section.table);
  for (const Figure& figure : section.figures) html += to_html(figure);
  if (!section.remarks.empty()) {
    html += "<details><summary>" + escaped(section.remarks_title) + "</summary><ul>";
    for (const std::string& remark : section.remarks) html += "<li>" + escaped(remark) + "</li>";
    html += "</ul></details>\n";
  }
  return html + "</section>\n";
}

}  // namespace

std::string to_html(const std::string& title, const std::vector<Section>& sections, const Foot& foot) {
  std::string html = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{0}</title>\n"
      "<style>{1}</style>\n</head>\n<body>\n<h1>{0}</h1>\n",
      escaped(title), kStyle);
  if (sections.size() > 1) {
    html += "<nav><ol>";
    for (std::size_t i = 0; i < sections.size(); ++i)
      html += fmt::format("<li><a href=\"#s{}\">{}</a></li>", i, escaped(sections[i].title));
    html += "</ol></nav>\n";
  }
  for (std::size_t i = 0; i < sections.size(); ++i) html += to_html(sections[i], i);
  html += "<footer>\n";
  for (const std::string& note : foot.notes) html += "<div>" + escaped(note) + "</div>\n";
  html += "<div>made by <code>" + escaped(foot.command) + "</code></div>\n<div>";
  for (std::size_t i = 0; i < foot.versions.size(); ++i) html += (i > 0 ? " · " : "") + escaped(foot.versions[i]);
  return html + "</div>\n</footer>\n</body>\n</html>\n";
}

}  // namespace braid::report
