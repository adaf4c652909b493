#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/node.h"
#include "workload/sample.h"
#include "workload/text/messages.h"

namespace braid::workload {

/// Text that is learned from its first token to its last.
struct PlainText {
  std::string text;

  bool operator==(const PlainText&) const = default;
};

/// Text of which what follows the prompt is learned.
struct Completion {
  std::string prompt, completion;

  bool operator==(const Completion&) const = default;
};

/// What a row says of one sequence, before a tokenizer has seen it; a Sample where it says tokens.
using SequenceRow = std::variant<Sample, PlainText, Completion, Conversation>;

/// Two answers, of which one is preferred.
struct Preference {
  SequenceRow chosen, rejected;

  bool operator==(const Preference&) const = default;
};

using Row = std::variant<Sample, PlainText, Completion, Conversation, Preference>;

/// Tells what the rows of one dataset say. A row is of the first of these kinds whose columns it has:
///   input_ids, and labels (-100: not learned; left out: all are), and weights of their losses (left out: 1)
///   prompt and completion (or response), as text, or both as lists of turns
///   messages or conversations, lists of turns, and a system text before them
///   text
///   instruction, input (may be left out) and output, in the layout of alpaca_prompt()
///   question and answer, as prompt and completion
/// Where pairs are asked for, of one of these:
///   chosen_ids and rejected_ids, and what stands before both, prompt_ids, or the labels of each
///   prompt, chosen and rejected, all as text or all as lists of turns
///   chosen and rejected that begin alike, as text or as lists of turns: what they begin with is the prompt
/// The order is TRL's, where it knows the kinds. Columns that are null are not there. What else a row holds is not read
/// and is remembered by name, unless it would change what is learned: that is refused.
class RowReader {
 public:
  /// Of tokens ids are below `vocabulary`.
  RowReader(std::int64_t vocabulary, bool pairs) : vocabulary_(vocabulary), pairs_(pairs) {}

  /// Throws Error "FILE:LINE: what; remedy".
  Row read(const Node& row);

  /// Names of columns that were not read, in the order of their first row.
  const std::vector<std::string>& unread() const { return unread_; }
  /// "messages, not text": which of two kinds a row was taken for.
  const std::vector<std::string>& preferred() const { return preferred_; }

 private:
  Row read_single(const Node& row, std::string_view first, std::string_view last);
  Preference read_pair(const Node& row, std::string_view first);
  void check_columns(const Node& row, std::string_view kind, const std::vector<std::string_view>& read);

  std::int64_t vocabulary_;
  bool pairs_;
  std::vector<std::string> unread_, preferred_;
};

/// What stands before an answer to an instruction; the section of the input only where there is one:
///   ### Instruction:\n...\n\n### Input:\n...\n\n### Response:\n
std::string alpaca_prompt(const std::string& instruction, const std::string& input);

}  // namespace braid::workload
