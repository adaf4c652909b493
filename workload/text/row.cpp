#include "workload/text/row.h"

#include <algorithm>
#include <array>

#include <fmt/ranges.h>

namespace braid::workload {
namespace {

/// Columns that make a row of a kind. Of those of one rank a row may be of one; of others the lowest rank goes first.
struct Kind {
  std::string_view name;
  int rank;
  std::vector<std::string_view> needed, optional;
};

const std::array<Kind, 8>& kinds() {
  static const std::array<Kind, 8> all = {{
      {"input_ids", 0, {"input_ids"}, {"labels"}},
      {"prompt and completion", 1, {"prompt", "completion"}, {}},
      {"prompt and response", 1, {"prompt", "response"}, {}},
      {"messages", 2, {"messages"}, {"system"}},
      {"conversations", 2, {"conversations"}, {"system"}},
      {"text", 3, {"text"}, {}},
      {"instruction and output", 4, {"instruction", "output"}, {"input"}},
      {"question and answer", 4, {"question", "answer"}, {}},
  }};
  return all;
}

constexpr std::string_view kKindsRemedy =
    R"(give one of {"text"}, {"prompt", "completion"}, {"messages"}, {"conversations"}, {"instruction", "input", "output"}, )"
    R"({"question", "answer"}, {"input_ids", "labels"})";

/// What would change what is learned, if it were read.
constexpr std::array<std::string_view, 17> kChanging = {"labels",
                                                        "system",
                                                        "tools",
                                                        "functions",
                                                        "history",
                                                        "images",
                                                        "image",
                                                        "videos",
                                                        "video",
                                                        "audios",
                                                        "loss_mask",
                                                        "audio",
                                                        "completion_mask",
                                                        "assistant_masks",
                                                        "label_mask",
                                                        "seq_lengths",
                                                        "chat_template_kwargs"};

const Node* present(const Node& row, std::string_view column) {
  const Node* found = row.find(column);
  return found && !found->is_null() ? found : nullptr;
}

bool has_all(const Node& row, const std::vector<std::string_view>& columns) {
  return std::all_of(columns.begin(), columns.end(), [&](std::string_view column) { return present(row, column); });
}

/// A list of objects in a row of no kind: the rows, or the turns of a conversation, under another name.
const std::pair<std::string, Node>* list_of_objects(const Node& row) {
  const auto found = std::find_if(row.fields.begin(), row.fields.end(), [](const auto& field) {
    return field.second.is_sequence() && !field.second.items.empty() && field.second.items[0].is_map();
  });
  return found == row.fields.end() ? nullptr : &*found;
}

Error no_kind(const Node& row) {
  if (const auto* list = list_of_objects(row)) {
    const Node& first = list->second.items[0];
    if (first.find("role") || first.find("from"))
      return row.error(fmt::format("'{}' holds turns, and is no name of theirs that is known", list->first),
                       "name it messages");
    return row.error(fmt::format("'{}' holds a list of objects where a row is wanted", list->first),
                     fmt::format("if they are the rows, take them out: jq -c '.[\"{}\"][]' {} > rows.jsonl",
                                 list->first, *row.file));
  }
  std::vector<std::string> columns;
  for (const auto& [column, value] : row.fields) columns.push_back(column + (value.is_null() ? " (null)" : ""));
  return row.error(fmt::format("these fields are no kind of sample: {}",
                               columns.empty() ? "none" : fmt::format("{}", fmt::join(columns, ", "))),
                   std::string(kKindsRemedy));
}

/// Those that the row has the columns of, the one to read first.
std::vector<const Kind*> kinds_of(const Node& row) {
  std::vector<const Kind*> found;
  for (const Kind& kind : kinds()) {
    if (has_all(row, kind.needed)) found.push_back(&kind);
  }
  if (found.empty()) throw no_kind(row);
  if (found.size() > 1 && found[0]->rank == found[1]->rank)
    throw row.error(fmt::format("{}, and {} as well, make two samples of one row", found[0]->name, found[1]->name),
                    "keep one of them");
  return found;
}

void remember(std::vector<std::string>& names, const std::string& name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

/// That nothing is masked, as braid masks nothing: it has no padding.
void check_attention(const Node& mask) {
  for (const Node& item : mask.sequence("attention_mask")) {
    if (!item.is_scalar() || item.quoted || (item.text != "1" && item.text != "true"))
      throw mask.error("attention_mask hides tokens", "take the padding out of the row, and leave attention_mask out");
  }
}

void check_positions(const Node& positions) {
  std::int64_t expected = 0;
  for (const Node& item : positions.sequence("position_ids")) {
    if (item.as_integer("position_ids") != expected++)
      throw positions.error("position_ids do not count from 0", "give a row for each sample, and leave them out");
  }
}

std::vector<std::int32_t> token_ids(const Node& list, std::string_view what, std::int64_t vocabulary,
                                    bool may_be_masked) {
  std::vector<std::int32_t> ids;
  ids.reserve(list.sequence(what).size());
  for (const Node& item : list.items) {
    const std::int64_t id = item.as_integer(what);
    if ((id < 0 || id >= vocabulary) && !(may_be_masked && id == kUnsupervised)) {
      throw item.error(fmt::format("{} {} is not a token of this backbone", what, id),
                       fmt::format("give ids in 0..{}{}", vocabulary - 1,
                                   may_be_masked ? fmt::format(", or {} where unsupervised", kUnsupervised) : ""));
    }
    ids.push_back(static_cast<std::int32_t>(id));
  }
  return ids;
}

Row read_completion(const Node& row, std::string_view prompt, std::string_view completion, const Unread& unread) {
  const Node& before = row.at(prompt);
  const Node& after = row.at(completion);
  if (!before.is_sequence() || !after.is_sequence()) {
    if (before.is_sequence() || after.is_sequence())
      throw row.error(fmt::format("of '{}' and '{}' one is a list of turns and one is not", prompt, completion),
                      "give two texts or two lists");
    return Completion{json_string(before, prompt), json_string(after, completion)};
  }
  Conversation turns = read_messages(before, prompt, unread);
  for (Message& turn : turns) turn.learned = false;
  for (Message& turn : read_messages(after, completion, unread)) turns.push_back(std::move(turn));
  return turns;
}

Row read_conversation(const Node& row, std::string_view column, const Unread& unread) {
  Conversation turns = read_messages(row.at(column), column, unread);
  const Node* system = present(row, "system");
  if (!system || is_blank(*system)) return turns;
  if (turns.front().role == "system")
    throw system->error(fmt::format("'system' and the first turn of '{}' both are the system's", column), "keep one");
  turns.insert(turns.begin(), Message{"system", json_string(*system, "system")});
  return turns;
}

}  // namespace

std::string alpaca_prompt(const std::string& instruction, const std::string& input) {
  const std::string section = input.empty() ? "" : "### Input:\n" + input + "\n\n";
  return "### Instruction:\n" + instruction + "\n\n" + section + "### Response:\n";
}

Row RowReader::read(const Node& row) {
  if (!row.is_map()) throw row.error("not a JSON object", std::string(kKindsRemedy));
  const std::vector<const Kind*> found = kinds_of(row);
  const Kind& kind = *found.front();
  std::vector<std::string_view> read = kind.needed;
  read.insert(read.end(), kind.optional.begin(), kind.optional.end());
  check_columns(row, kind.name, read);
  for (auto other = found.begin() + 1; other != found.end(); ++other)
    remember(preferred_, fmt::format("{}, not {}", kind.name, (*other)->name));

  const Unread unread = [&](const std::string& key) { remember(unread_, key); };
  const std::string_view first = kind.needed.front();
  if (first == "input_ids") return read_ids(row);
  if (first == "text") {
    PlainText plain{json_string(row.at("text"), "text")};
    if (plain.text.empty()) throw row.error("'text' is empty", "give some text or remove the row");
    return plain;
  }
  if (first == "instruction") {
    const Node* input = present(row, "input");
    return Completion{
        alpaca_prompt(json_string(row.at("instruction"), "instruction"), input ? json_string(*input, "input") : ""),
        json_string(row.at("output"), "output")};
  }
  if (kind.needed.size() == 2) return read_completion(row, first, kind.needed.back(), unread);
  return read_conversation(row, first, unread);
}

Sample RowReader::read_ids(const Node& row) const {
  Sample sample;
  sample.tokens = token_ids(row.at("input_ids"), "input_ids", vocabulary_, false);
  const Node* labels = present(row, "labels");
  sample.labels = labels ? token_ids(*labels, "labels", vocabulary_, true) : sample.tokens;
  for (const char* other : {"labels", "attention_mask"}) {
    const Node* list = present(row, other);
    if (list && list->sequence(other).size() != sample.tokens.size())
      throw row.error(fmt::format("{} {} for {} input_ids", list->items.size(), other, sample.tokens.size()),
                      fmt::format("give as many {} as input_ids", other));
  }
  return sample;
}

/// That no column but those that are read would change what is learned; the others are remembered.
void RowReader::check_columns(const Node& row, std::string_view kind, const std::vector<std::string_view>& read) {
  for (const auto& [column, value] : row.fields) {
    if (value.is_null() || std::find(read.begin(), read.end(), column) != read.end()) continue;
    if (std::find(kChanging.begin(), kChanging.end(), column) != kChanging.end() && !is_blank(value))
      throw value.error(fmt::format("'{}' is not taken beside {}", column, kind),
                        "remove it if it changes nothing, else give input_ids and labels that say the same");
    if (column == "attention_mask") check_attention(value);
    if (column == "position_ids") check_positions(value);
    remember(unread_, column);
  }
}

}  // namespace braid::workload
