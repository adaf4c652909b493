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

using Kinds = std::vector<Kind>;

const Kinds& kinds_of_sequences() {
  static const Kinds all = {{
      {"input_ids", 0, {"input_ids"}, {"labels", "weights"}},
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

const Kinds& kinds_of_pairs() {
  static const Kinds all = {{
      {"chosen_ids and rejected_ids",
       0,
       {"chosen_ids", "rejected_ids"},
       {"prompt_ids", "chosen_labels", "rejected_labels"}},
      {"prompt, chosen and rejected", 1, {"prompt", "chosen", "rejected"}, {}},
      {"chosen and rejected", 2, {"chosen", "rejected"}, {}},
  }};
  return all;
}

constexpr std::string_view kPairsRemedy =
    R"(give {"prompt", "chosen", "rejected"}, or {"prompt_ids", "chosen_ids", "rejected_ids"})";
constexpr std::string_view kKindsRemedy =
    R"(give one of {"text"}, {"prompt", "completion"}, {"messages"}, {"conversations"}, {"instruction", "input", "output"}, )"
    R"({"question", "answer"}, {"input_ids", "labels"})";

/// What would change what is learned, if it were read.
constexpr std::array<std::string_view, 20> kChanging = {"labels",
                                                        "weights",
                                                        "ref_chosen_logps",
                                                        "ref_rejected_logps",
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

Error no_kind(const Node& row, bool pairs) {
  if (!pairs && ((present(row, "chosen") && present(row, "rejected")) ||
                 (present(row, "chosen_ids") && present(row, "rejected_ids"))))
    return row.error("a chosen and a rejected answer, which no task of objective sft learns from",
                     "set the task's objective: {type: dpo}");
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
                   std::string(pairs ? kPairsRemedy : kKindsRemedy));
}

/// Those that the row has the columns of, the one to read first.
std::vector<const Kind*> kinds_of(const Node& row, bool pairs) {
  std::vector<const Kind*> found;
  for (const Kind& kind : pairs ? kinds_of_pairs() : kinds_of_sequences()) {
    if (has_all(row, kind.needed)) found.push_back(&kind);
  }
  if (found.empty()) throw no_kind(row, pairs);
  // What tells of the prompt by itself is another way to say the same.
  if (pairs) found.erase(found.begin() + 1, found.end());
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

/// As many as there are tokens.
void check_count(const Node& row, std::string_view column, std::size_t count, std::string_view ids,
                 std::size_t tokens) {
  if (count != tokens)
    throw row.error(fmt::format("{} {} for {} {}", count, column, tokens, ids),
                    fmt::format("give as many {} as {}", column, ids));
}

/// Of the names of ids, of labels, and of their weights; where there are no labels all is learned.
Sample read_ids(const Node& row, std::string_view ids, std::string_view labels, std::string_view weights,
                std::int64_t vocabulary) {
  Sample sample;
  sample.tokens = token_ids(row.at(ids), ids, vocabulary, false);
  const Node* list = present(row, labels);
  sample.labels = list ? token_ids(*list, labels, vocabulary, true) : sample.tokens;
  check_count(row, labels, sample.labels.size(), ids, sample.tokens.size());
  if (const Node* counts = weights.empty() ? nullptr : present(row, weights)) {
    for (const Node& item : counts->sequence(weights)) sample.weights.push_back(read_loss_weight(item, weights));
    check_count(row, weights, sample.weights.size(), ids, sample.tokens.size());
    for (std::size_t i = 0; i < sample.labels.size(); ++i)
      if (sample.weights[i] == 0) sample.labels[i] = kUnsupervised;
  }
  return sample;
}

Preference read_pair_of_ids(const Node& row, std::int64_t vocabulary) {
  Sample chosen = read_ids(row, "chosen_ids", "chosen_labels", "", vocabulary);
  Sample rejected = read_ids(row, "rejected_ids", "rejected_labels", "", vocabulary);
  const Node* prompt = present(row, "prompt_ids");
  if (!prompt) return {std::move(chosen), std::move(rejected)};
  Preference pair;
  for (auto [sequence, answer] : {std::pair{&pair.chosen, &chosen}, std::pair{&pair.rejected, &rejected}}) {
    Sample whole;
    whole.append(token_ids(*prompt, "prompt_ids", vocabulary, false), 0);
    whole.tokens.insert(whole.tokens.end(), answer->tokens.begin(), answer->tokens.end());
    whole.labels.insert(whole.labels.end(), answer->labels.begin(), answer->labels.end());
    *sequence = std::move(whole);
  }
  return pair;
}

/// What two texts begin with, up to where the last word that is whole in both ends.
std::string common_prompt(std::string_view a, std::string_view b) {
  std::size_t size = static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
  while (size > 0 && size < a.size() && (static_cast<unsigned char>(a[size]) & 0xC0) == 0x80) --size;
  while (size > 0 && size < b.size() && (static_cast<unsigned char>(b[size]) & 0xC0) == 0x80) --size;
  // A blank before what differs belongs to it, as in TRL.
  if (size > 0 && a[size - 1] == ' ') --size;
  return std::string(a.substr(0, size));
}

Preference read_pair_that_begins_alike(const Node& row, const Unread& unread) {
  const Node& one = row.at("chosen");
  const Node& other = row.at("rejected");
  if (one.is_sequence() != other.is_sequence())
    throw row.error("of 'chosen' and 'rejected' one is a list of turns and one is not", "give two texts or two lists");
  if (!one.is_sequence()) {
    const std::string chosen = json_string(one, "chosen"), rejected = json_string(other, "rejected");
    if (chosen == rejected) throw row.error("'chosen' and 'rejected' are the same text", "remove the row");
    const std::string prompt = common_prompt(chosen, rejected);
    return {Completion{prompt, chosen.substr(prompt.size())}, Completion{prompt, rejected.substr(prompt.size())}};
  }
  Conversation chosen = read_messages(one, "chosen", unread), rejected = read_messages(other, "rejected", unread);
  if (chosen == rejected) throw row.error("'chosen' and 'rejected' are the same turns", "remove the row");
  for (std::size_t i = 0; i < std::min(chosen.size(), rejected.size()) && chosen[i] == rejected[i]; ++i)
    chosen[i].weight = rejected[i].weight = 0;
  return {std::move(chosen), std::move(rejected)};
}

/// The losses of a pair are summed up as they are.
void check_weights(const Node& row, const SequenceRow& sequence) {
  const auto* turns = std::get_if<Conversation>(&sequence);
  if (turns && std::ranges::any_of(*turns, [](const Message& turn) { return turn.weight != 0 && turn.weight != 1; }))
    throw row.error("'weight' of a turn of a pair is neither 0 nor 1",
                    "give 0 to take the turn out of the loss, or leave it out");
}

SequenceRow read_completion(const Node& row, std::string_view prompt, std::string_view completion,
                            const Unread& unread) {
  const Node& before = row.at(prompt);
  const Node& after = row.at(completion);
  if (!before.is_sequence() || !after.is_sequence()) {
    if (before.is_sequence() || after.is_sequence())
      throw row.error(fmt::format("of '{}' and '{}' one is a list of turns and one is not", prompt, completion),
                      "give two texts or two lists");
    return Completion{json_string(before, prompt), json_string(after, completion)};
  }
  Conversation turns = read_messages(before, prompt, unread);
  for (Message& turn : turns) turn.weight = 0;
  for (Message& turn : read_messages(after, completion, unread)) turns.push_back(std::move(turn));
  return turns;
}

Conversation read_conversation(const Node& row, std::string_view column, const Unread& unread) {
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
  if (!row.is_map()) throw row.error("not a JSON object", std::string(pairs_ ? kPairsRemedy : kKindsRemedy));
  const std::vector<const Kind*> found = kinds_of(row, pairs_);
  const Kind& kind = *found.front();
  std::vector<std::string_view> read = kind.needed;
  read.insert(read.end(), kind.optional.begin(), kind.optional.end());
  check_columns(row, kind.name, read);
  for (auto other = found.begin() + 1; other != found.end(); ++other)
    remember(preferred_, fmt::format("{}, not {}", kind.name, (*other)->name));

  if (pairs_) return read_pair(row, kind.needed.front());
  return read_single(row, kind.needed.front(), kind.needed.back());
}

Row RowReader::read_single(const Node& row, std::string_view first, std::string_view last) {
  const Unread unread = [&](const std::string& key) { remember(unread_, key); };
  if (first == "input_ids") return read_ids(row, first, "labels", "weights", vocabulary_);
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
  if (last == first) return read_conversation(row, first, unread);
  return std::visit([](auto&& said) { return Row(std::move(said)); }, read_completion(row, first, last, unread));
}

Preference RowReader::read_pair(const Node& row, std::string_view first) {
  const Unread unread = [&](const std::string& key) { remember(unread_, key); };
  if (first == "chosen_ids") return read_pair_of_ids(row, vocabulary_);
  Preference pair = first == "chosen" ? read_pair_that_begins_alike(row, unread)
                                      : Preference{read_completion(row, "prompt", "chosen", unread),
                                                   read_completion(row, "prompt", "rejected", unread)};
  check_weights(row, pair.chosen);
  check_weights(row, pair.rejected);
  return pair;
}

/// That no column but those that are read would change what is learned; the others are remembered.
void RowReader::check_columns(const Node& row, std::string_view kind, const std::vector<std::string_view>& read) {
  for (const auto& [column, value] : row.fields) {
    if (value.is_null() || std::find(read.begin(), read.end(), column) != read.end()) continue;
    if (std::find(kChanging.begin(), kChanging.end(), column) != kChanging.end() && !is_blank(value))
      throw value.error(fmt::format("'{}' is not taken beside {}", column, kind),
                        "remove it if it changes nothing, else give input_ids and labels that say the same");
    if (column == "attention_mask") {
      check_attention(value);
      if (const Node* ids = row.find("input_ids"))
        check_count(row, column, value.items.size(), "input_ids", ids->items.size());
    }
    if (column == "position_ids") check_positions(value);
    remember(unread_, column);
  }
}

}  // namespace braid::workload
