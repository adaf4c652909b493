#include "report/markup.h"

#include <cctype>
#include <cmath>

#include <fmt/core.h>

namespace braid::report {

std::string escaped(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

std::string number_text(double value) {
  if (!std::isfinite(value)) return "–";
  const double magnitude = std::abs(value);
  if (value == 0) return "0";
  if (magnitude >= 1e12 || magnitude < 1e-4) return fmt::format("{:.3g}", value);
  if (magnitude >= 1000) {
    std::string digits = fmt::format("{:.0f}", magnitude);
    for (std::ptrdiff_t place = std::ssize(digits) - 3; place > 0; place -= 3)
      digits.insert(static_cast<std::size_t>(place), ",");
    return (value < 0 ? "-" : "") + digits;
  }
  const int decimals = std::max(0, 3 - static_cast<int>(std::floor(std::log10(magnitude))));
  std::string text = fmt::format("{:.{}f}", value, decimals);
  if (text.find('.') != std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
  }
  return text;
}

std::string signed_percent(double share) {
  return std::isfinite(share) ? fmt::format("{:+.1f} %", 100 * share) : "–";
}

Unit unit_of_seconds(double largest) {
  if (largest < 1e-3) return {"µs", 1e-6};
  if (largest < 1) return {"ms", 1e-3};
  if (largest < 600) return {"s", 1};
  if (largest < 6 * 3600) return {"min", 60};
  return {"h", 3600};
}

Unit unit_of_bytes(double largest) {
  if (largest < 1e6) return {"kB", 1e3};
  if (largest < 1e9) return {"MB", 1e6};
  return {"GB", 1e9};
}

std::string to_html(const Table& table) {
  std::vector<bool> words(table.columns.size(), false);
  for (const std::vector<std::string>& row : table.rows)
    for (std::size_t i = 0; i < row.size() && i < words.size(); ++i)
      if (!row[i].empty() && std::isalpha(static_cast<unsigned char>(row[i].front()))) words[i] = true;
  const auto tag = [&](const char* kind, std::size_t column) {
    return fmt::format("<{}{}>", kind, column < words.size() && words[column] ? " class=\"words\"" : "");
  };
  std::string html = "<div class=\"scrolls\"><table><thead><tr>";
  for (std::size_t i = 0; i < table.columns.size(); ++i) html += tag("th", i) + escaped(table.columns[i]) + "</th>";
  html += "</tr></thead><tbody>\n";
  for (const std::vector<std::string>& row : table.rows) {
    html += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) html += tag("td", i) + escaped(row[i]) + "</td>";
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

}  // namespace braid::report
