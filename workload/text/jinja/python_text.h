#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Text as Python's `str` treats it: UTF-8 that is counted in code points. All texts given must be valid UTF-8.
namespace braid::workload::jinja {

/// Where each code point begins, and the text's end behind them.
std::vector<std::size_t> code_points(std::string_view text);
/// How many there are.
std::int64_t length_of(std::string_view text);
/// The code point that begins at `at`.
char32_t code_point_at(std::string_view text, std::size_t at);
void append_code_point(std::string& text, char32_t code);

/// What str.isspace takes for white space.
bool is_space(char32_t code);

/// Which ends a strip takes from.
enum class Ends { both, left, right };
/// Without white space, or without the characters of `set`, at the ends.
std::string_view strip(std::string_view text, Ends ends = Ends::both, std::optional<std::string_view> set = {});

/// str.split: at white space where there is no separator, at most `most` times (negative: always); from the right where
/// `from_right`. Throws Error for an empty separator.
std::vector<std::string> split(std::string_view text, std::optional<std::string_view> separator, std::int64_t most,
                               bool from_right = false);
std::vector<std::string> split_lines(std::string_view text);
/// str.replace; `most` negative: all.
std::string replace(std::string_view text, std::string_view from, std::string_view to, std::int64_t most);

/// str.count: of parts that do not overlap; an empty one is at both ends of every character.
std::size_t count_of_parts(std::string_view text, std::string_view part);

/// Of text that is plain ASCII. Throws Error for other letters, whose case is not known here.
std::string upper(std::string_view text);
std::string lower(std::string_view text);
std::string capitalize(std::string_view text);
/// str.title: letters that follow no letter are capitals.
std::string title(std::string_view text);

/// As repr() writes it. Throws Error where the text is not plain ASCII, since which other characters repr() spells out
/// is not known here.
std::string python_quoted(std::string_view text);
/// As json.dumps writes it; without `ascii` only what JSON needs is spelled out.
std::string json_quoted(std::string_view text, bool ascii);
/// As repr() writes it: the shortest digits that give the number back.
std::string number_text(double number);

}  // namespace braid::workload::jinja
