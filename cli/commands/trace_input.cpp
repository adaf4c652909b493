#include "cli/commands/trace_input.h"

#include <charconv>

#include <boost/program_options/value_semantic.hpp>
#include <fmt/core.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "cli/support/results.h"

namespace braid::cli {

namespace po = boost::program_options;

void add_trace_reading(CommandLine& line, traces::ReadOptions& options) {
  line.add().add_options()("format", po::value(&options.format),
                           "of the trace; `braid trace formats` lists them; left out: told from its beginning");
  line.add().add_options()(
      "columns", po::value<std::string>()->notifier([&options](const std::string& text) {
        options.columns = parse_columns(text);
      }),
      "in place of a format, a CSV file's own names: submit=NAME,duration=NAME,gpus=NAME (or start and "
      "end for the duration; also id, vc, priority, deadline, budget); times are seconds or dates");
  line.add().add_options()("lenient", po::bool_switch(&options.lenient), "skip and count rows that make no sense");
}

std::string_view name_of(traces::Skipped why) {
  switch (why) {
    case traces::Skipped::without_gpu:
      return "without a GPU";
    case traces::Skipped::never_ran:
      return "never started";
    case traces::Skipped::unfinished:
      return "without an end";
    case traces::Skipped::bad:
      return "bad";
  }
  return "";
}

void print_irregularities(const traces::Trace& trace) {
  const traces::Irregularities& irregular = trace.irregularities;
  for (const auto& [why, count] : irregular.skipped)
    fmt::print("  skipped           {} rows {}\n", grouped(static_cast<double>(count)), name_of(why));
  if (irregular.attempts_left_out > 0)
    fmt::print("  attempts          {} without a start or an end, left out\n",
               grouped(static_cast<double>(irregular.attempts_left_out)));
  if (!irregular.first_bad.empty()) fmt::print("  first bad row     {}\n", irregular.first_bad);
  if (irregular.blank_lines > 0) fmt::print("  blank lines       {}\n", irregular.blank_lines);
  if (irregular.out_of_order > 0)
    fmt::print("  out of order      {} rows, sorted\n", grouped(static_cast<double>(irregular.out_of_order)));
  if (!trace.unread_columns.empty()) fmt::print("  unread columns    {}\n", fmt::join(trace.unread_columns, ", "));
}

std::map<std::string, std::string> parse_columns(const std::string& text) {
  std::map<std::string, std::string> columns;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::size_t equals = text.find('=', at);
    if (equals == at || equals >= end || equals + 1 == end)
      throw error("--columns '{}' is not usable; give submit=NAME,duration=NAME,gpus=NAME", text);
    const std::string word = text.substr(at, equals - at);
    if (!columns.emplace(word, text.substr(equals + 1, end - equals - 1)).second)
      throw error("--columns names '{}' twice; keep one", word);
    at = end + 1;
  }
  return columns;
}

std::vector<std::pair<std::int32_t, double>> parse_weights(const std::string& text, const std::string& flag) {
  std::vector<std::pair<std::int32_t, double>> weights;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const char* const last = text.data() + end;
    std::int32_t count = 0;
    double weight = 1;
    auto [next, fault] = std::from_chars(text.data() + at, last, count);
    bool good = fault == std::errc() && count >= 1;
    if (good && next != last) {
      const auto [stop, wrong] = std::from_chars(next + 1, last, weight);
      good = *next == ':' && wrong == std::errc() && stop == last && weight >= 0;
    }
    if (!good) throw error("--{} '{}' is not usable; give counts with weights, as 1:8,2:1", flag, text);
    weights.emplace_back(count, weight);
    at = end + 1;
  }
  return weights;
}

}  // namespace braid::cli
