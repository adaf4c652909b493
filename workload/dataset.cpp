#include "workload/dataset.h"

#include <algorithm>
#include <optional>

#include "base/file.h"
#include "base/node.h"

namespace braid::workload {
namespace {

constexpr std::string_view kKinds =
    R"(give one of {"input_ids", "labels"}, {"text"}, {"prompt", "completion"}, {"messages"}; labels may be left out)";

struct Reader {
  const Task& task;
  const Tokenizer& tokenizer;
  const costmodel::BackboneShape& backbone;
  std::optional<ChatFormat> chat;  ///< found when the first conversation comes
};

std::string json_string(const Node& node, std::string_view what) {
  if (!node.is_scalar() || !node.quoted) throw node.error(fmt::format("'{}' is not a string", what), "give a string");
  return node.text;
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

Sample read_ids(const Node& row, const Reader& reader) {
  Sample sample;
  sample.tokens = token_ids(row.at("input_ids"), "input_ids", reader.backbone.vocabulary, false);
  const Node* labels = row.find("labels");
  sample.labels = labels ? token_ids(*labels, "labels", reader.backbone.vocabulary, true) : sample.tokens;
  if (sample.labels.size() != sample.tokens.size()) {
    throw row.error(fmt::format("{} labels for {} input_ids", sample.labels.size(), sample.tokens.size()),
                    "give as many labels as input_ids");
  }
  return sample;
}

void append_bos(Sample& sample, const Tokenizer& tokenizer, bool supervised) {
  if (tokenizer.facts().prepends_bos) sample.append(*tokenizer.facts().bos, supervised);
}

void append_eos(Sample& sample, const Tokenizer& tokenizer) {
  if (tokenizer.facts().eos) sample.append(*tokenizer.facts().eos, true);
}

std::string filled_string(const Node& row, std::string_view key) {
  std::string text = json_string(row.at(key), key);
  if (text.empty()) throw row.error(fmt::format("'{}' is empty", key), "give some text or remove the line");
  return text;
}

Sample read_text(const Node& row, const Reader& reader) {
  Sample sample;
  append_bos(sample, reader.tokenizer, true);
  sample.append(reader.tokenizer.encode(filled_string(row, "text")), true);
  append_eos(sample, reader.tokenizer);
  return sample;
}

Sample read_completion(const Node& row, const Reader& reader) {
  const auto [prompt, completion] =
      encode_parts(reader.tokenizer, json_string(row.at("prompt"), "prompt"), filled_string(row, "completion"));
  Sample sample;
  append_bos(sample, reader.tokenizer, false);
  sample.append(prompt, false);
  sample.append(completion, true);
  append_eos(sample, reader.tokenizer);
  return sample;
}

Sample read_messages(const Node& row, Reader& reader) {
  std::vector<Message> messages;
  for (const Node& node : row.at("messages").sequence("messages")) {
    node.allow_only({"role", "content"});
    Message message{json_string(node.at("role"), "role"), json_string(node.at("content"), "content")};
    if (message.role != "system" && message.role != "user" && message.role != "assistant") {
      throw node.error(fmt::format("unknown role '{}'", message.role), "valid: system, user, assistant");
    }
    messages.push_back(std::move(message));
  }
  if (!reader.chat) reader.chat = chat_format(reader.tokenizer, reader.task.chat);
  return encode_chat(messages, *reader.chat, reader.tokenizer);
}

Sample read_row(const Node& row, Reader& reader) {
  if (!row.is_map()) throw row.error("not a JSON object", std::string(kKinds));
  const auto holds_only = [&](std::initializer_list<std::string_view> keys) {
    return std::all_of(row.fields.begin(), row.fields.end(), [&](const auto& field) {
      return std::find(keys.begin(), keys.end(), field.first) != keys.end();
    });
  };
  if (row.find("input_ids") && holds_only({"input_ids", "labels"})) return read_ids(row, reader);
  if (row.find("text") && holds_only({"text"})) return read_text(row, reader);
  if (row.find("prompt") && row.find("completion") && holds_only({"prompt", "completion"})) {
    return read_completion(row, reader);
  }
  if (row.find("messages") && holds_only({"messages"})) return read_messages(row, reader);
  std::string keys;
  for (const auto& [key, value] : row.fields) keys += (keys.empty() ? "" : ", ") + key;
  throw row.error(fmt::format("these fields are no kind of sample: {}", keys.empty() ? "none" : keys),
                  std::string(kKinds));
}

/// What the tokenizer and the chat layout refuse, they refuse without knowing where; the reading of Nodes knows.
Sample read_placed_row(const Node& row, Reader& reader) {
  const std::string place = fmt::format("{}:{}: ", *row.file, row.line);
  try {
    return read_row(row, reader);
  } catch (const Error& failure) {
    const std::string_view what = failure.what();
    if (what.starts_with(place)) throw;
    throw Error(place + failure.what());
  }
}

std::int64_t supervised_count(const Sample& sample) {
  if (sample.labels.empty()) return 0;
  return std::count_if(sample.labels.begin() + 1, sample.labels.end(),
                       [](std::int32_t l) { return l != kUnsupervised; });
}

/// Special tokens put beside a tokenizer may lie past the backbone's embedding.
void check_inside_vocabulary(const Sample& sample, const Node& row, std::int64_t vocabulary) {
  const auto largest = std::max_element(sample.tokens.begin(), sample.tokens.end());
  if (largest != sample.tokens.end() && *largest >= vocabulary) {
    throw row.error(fmt::format("the tokenizer gave id {}, the backbone has {} tokens", *largest, vocabulary),
                    "give the tokenizer of this backbone");
  }
}

/// Keeps, cuts or drops the sample; refuses what cannot be trained on.
void add(Sample sample, const Node& row, const Task& task, const costmodel::BackboneShape& backbone, Dataset& dataset) {
  check_inside_vocabulary(sample, row, backbone.vocabulary);
  const auto tokens = static_cast<std::int64_t>(sample.tokens.size());
  if (tokens < 2) {
    throw row.error(fmt::format("the sample has {} token{}", tokens, tokens == 1 ? "" : "s"),
                    "give at least 2: one to read and one to predict");
  }
  const bool too_long = tokens > task.max_length;
  if (too_long && task.on_too_long == OnTooLong::error) {
    throw row.error(fmt::format("the sample has {} tokens, max_length is {}", tokens, task.max_length),
                    "shorten it, raise max_length, or set on_too_long to truncate or drop");
  }
  if (too_long && task.on_too_long == OnTooLong::drop) {
    ++dataset.dropped;
    return;
  }
  if (too_long) {
    sample.tokens.resize(static_cast<std::size_t>(task.max_length));
    sample.labels.resize(static_cast<std::size_t>(task.max_length));
    ++dataset.truncated;
  }
  if (supervised_count(sample) == 0) {
    throw row.error(too_long ? fmt::format("no supervised token is left in the first {}", task.max_length)
                             : "no token past the first is supervised",
                    too_long ? "raise max_length or set on_too_long to drop"
                             : "give a label, a completion or an assistant's message");
  }
  dataset.samples.push_back(std::move(sample));
}

}  // namespace

Dataset load_dataset(const std::filesystem::path& path, const Task& task, const Tokenizer& tokenizer,
                     const costmodel::BackboneShape& backbone) {
  const std::string content = read_file(path);
  const std::string file = path.string();
  Reader reader{task, tokenizer, backbone, {}};
  Dataset dataset;
  int line = 0;
  for (std::size_t begin = 0; begin < content.size();) {
    const std::size_t end = std::min(content.find('\n', begin), content.size());
    const std::string_view text = std::string_view(content).substr(begin, end - begin);
    begin = end + 1;
    ++line;
    if (text.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const Node row = parse_json(text, file, line);
    add(read_placed_row(row, reader), row, task, backbone, dataset);
  }
  if (dataset.samples.empty()) {
    throw error_at(
        file, std::max(line, 1),
        dataset.dropped > 0 ? fmt::format("every sample is longer than max_length {}", task.max_length)
                            : "the dataset is empty",
        dataset.dropped > 0 ? "raise max_length or set on_too_long to truncate" : "give at least one sample");
  }
  return dataset;
}

std::vector<SampleSize> sample_sizes(const Dataset& dataset) {
  std::vector<SampleSize> sizes;
  sizes.reserve(dataset.samples.size());
  for (const Sample& sample : dataset.samples) {
    sizes.push_back({static_cast<std::int64_t>(sample.tokens.size()), supervised_count(sample)});
  }
  return sizes;
}

}  // namespace braid::workload
