#include "planner/milp/files.h"

#include <cmath>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>

#include <fmt/format.h>

#include "base/error.h"

namespace braid::planner::milp {
namespace {

std::string terms_of(std::span<const Term> terms, const Model& model) {
  std::string text;
  for (const Term& term : terms) {
    text += fmt::format(" {} {:.17g} {}", term.coefficient < 0 ? '-' : '+', std::abs(term.coefficient),
                        model.variables()[static_cast<std::size_t>(term.variable)].name);
    // Lines are kept short, as old readers want.
    if (text.size() - text.rfind('\n') > 200) text += "\n ";
  }
  return text;
}

std::vector<Term> objective_of(const Model& model) {
  std::vector<Term> terms;
  for (std::size_t v = 0; v < model.variables().size(); ++v) {
    if (model.variables()[v].cost != 0) terms.push_back({static_cast<std::int32_t>(v), model.variables()[v].cost});
  }
  return terms;
}

/// MPS has a kind and one number for each row, and a range beside where both sides are bounded.
char kind_of(const Row& row) {
  if (row.low == row.high) return 'E';
  return std::isinf(row.high) ? (std::isinf(row.low) ? 'N' : 'G') : 'L';
}

std::string bound_of(const Variable& variable) {
  const auto line = [&](const char* kind, double value) {
    return fmt::format(" {} BND {} {:.17g}\n", kind, variable.name, value);
  };
  if (variable.low == variable.high) return line("FX", variable.low);
  std::string text;
  if (std::isinf(variable.low)) text += fmt::format(" MI BND {}\n", variable.name);
  if (!std::isinf(variable.low) && (variable.low != 0 || variable.integer)) text += line("LO", variable.low);
  if (std::isinf(variable.high) && variable.integer) text += fmt::format(" PL BND {}\n", variable.name);
  if (!std::isinf(variable.high)) text += line("UP", variable.high);
  return text;
}

std::optional<double> number_in(const std::string& word) {
  try {
    std::size_t used = 0;
    const double value = std::stod(word, &used);
    if (used == word.size()) return value;
  } catch (const std::exception&) {
  }
  return std::nullopt;
}

}  // namespace

std::string to_lp(const Model& model) {
  std::string text =
      fmt::format("\\ {}\nMinimize\n cost:{}\nSubject To\n", model.name(), terms_of(objective_of(model), model));
  for (const Row& row : model.rows()) {
    const std::string terms = terms_of(row.terms, model);
    if (row.low == row.high) {
      text += fmt::format(" {}:{} = {:.17g}\n", row.name, terms, row.low);
      continue;
    }
    const bool both = !std::isinf(row.low) && !std::isinf(row.high);
    if (!std::isinf(row.low))
      text += fmt::format(" {}{}:{} >= {:.17g}\n", row.name, both ? "_low" : "", terms, row.low);
    if (!std::isinf(row.high)) text += fmt::format(" {}:{} <= {:.17g}\n", row.name, terms, row.high);
  }
  text += "Bounds\n";
  for (const Variable& variable : model.variables()) {
    const std::string low = std::isinf(variable.low) ? "-inf" : fmt::format("{:.17g}", variable.low);
    const std::string high = std::isinf(variable.high) ? "+inf" : fmt::format("{:.17g}", variable.high);
    text += fmt::format(" {} <= {} <= {}\n", low, variable.name, high);
  }
  text += "Generals\n";
  for (const Variable& variable : model.variables()) {
    if (variable.integer) text += fmt::format(" {}\n", variable.name);
  }
  return text + "End\n";
}

std::string to_mps(const Model& model) {
  std::string text = fmt::format("NAME {}\nROWS\n N cost\n", model.name());
  for (const Row& row : model.rows()) text += fmt::format(" {} {}\n", kind_of(row), row.name);
  std::vector<std::vector<std::pair<std::size_t, double>>> columns(model.variables().size());
  for (std::size_t r = 0; r < model.rows().size(); ++r) {
    for (const Term& term : model.rows()[r].terms)
      columns[static_cast<std::size_t>(term.variable)].emplace_back(r, term.coefficient);
  }
  text += "COLUMNS\n";
  bool whole = false;
  for (std::size_t v = 0; v < columns.size(); ++v) {
    const Variable& variable = model.variables()[v];
    if (variable.integer != whole) {
      text += fmt::format(" MARK{} 'MARKER' '{}'\n", v, variable.integer ? "INTORG" : "INTEND");
      whole = variable.integer;
    }
    text += fmt::format(" {} cost {:.17g}\n", variable.name, variable.cost);
    for (const auto& [row, coefficient] : columns[v])
      text += fmt::format(" {} {} {:.17g}\n", variable.name, model.rows()[row].name, coefficient);
  }
  if (whole) text += " MARKEND 'MARKER' 'INTEND'\n";
  text += "RHS\n";
  std::string ranges;
  for (const Row& row : model.rows()) {
    const char kind = kind_of(row);
    if (kind == 'N') continue;
    text += fmt::format(" RHS {} {:.17g}\n", row.name, kind == 'G' ? row.low : row.high);
    if (kind == 'L' && !std::isinf(row.low)) ranges += fmt::format(" RNG {} {:.17g}\n", row.name, row.high - row.low);
  }
  if (!ranges.empty()) text += "RANGES\n" + ranges;
  text += "BOUNDS\n";
  for (const Variable& variable : model.variables()) text += bound_of(variable);
  return text + "ENDATA\n";
}

std::vector<double> read_solution(const std::filesystem::path& path, const Model& model) {
  std::ifstream file(path);
  if (!file) throw error("{}: cannot be read; give a .sol file", path.string());
  std::map<std::string, std::size_t> places;
  for (std::size_t v = 0; v < model.variables().size(); ++v) places[model.variables()[v].name] = v;
  std::vector<double> values(model.variables().size(), 0.0);
  std::size_t named = 0;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    std::istringstream text(line);
    std::vector<std::string> words;
    for (std::string word; text >> word;) words.push_back(word);
    // Gurobi and HiGHS: name value. CBC: index name value reduced cost, with ** before what is not feasible.
    for (std::size_t w = 0; w + 1 < words.size() && w < 3; ++w) {
      const auto place = places.find(words[w]);
      if (place == places.end()) continue;
      const std::optional<double> value = number_in(words[w + 1]);
      if (!value)
        throw error("{}:{}: '{}' is not a number; give the value of {}", path.string(), number, words[w + 1], words[w]);
      values[place->second] = *value;
      ++named;
      break;
    }
  }
  if (named == 0)
    throw error("{}: names no variable of model {}, such as '{}'; give a solution of this model", path.string(),
                model.name(), model.variables().empty() ? "" : model.variables().front().name);
  return values;
}

}  // namespace braid::planner::milp
