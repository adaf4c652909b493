#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace braid::report {

/// Text as it stands in HTML and SVG, in attributes too.
std::string escaped(std::string_view text);

/// "1,234", "0.123", "1.2e-05": four digits that count, as a reader says them.
std::string number_text(double value);
/// "-4.3 %"
std::string signed_percent(double share);

/// A quantity in the unit that its largest value reads best in.
struct Unit {
  std::string name;
  double size = 1;  ///< one of it in the base unit
  double of(double value) const { return value / size; }
};
Unit unit_of_seconds(double largest);
Unit unit_of_bytes(double largest);

/// Rows of text; columns of numbers are set flush right.
struct Table {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
};
std::string to_html(const Table& table);

}  // namespace braid::report
