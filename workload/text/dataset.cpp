#include "workload/text/dataset.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>

#include "workload/sample_index.h"
#include "workload/text/chat.h"
#include "workload/text/row.h"
#include "workload/text/rows.h"

namespace braid::workload {
namespace {

/// Rows to samples.
class Encoder {
 public:
  Encoder(const Task& task, const Tokenizer& tokenizer, const std::filesystem::path& folder)
      : task_(task), tokenizer_(tokenizer), folder_(folder) {}

  /// Reads the tokenizer where the row needs one. Throws Error that does not know the row.
  void read_tokenizer(const Row& said) const {
    const auto* pair = std::get_if<Preference>(&said);
    const bool of_ids = pair ? std::holds_alternative<Sample>(pair->chosen) : std::holds_alternative<Sample>(said);
    if (!of_ids) tokenizer_.facts();
  }

  /// Reads the layout of chats where the row needs it. Throws Error that names the template's file, whichever row it
  /// is.
  void read_chat(const Row& said) {
    const auto* pair = std::get_if<Preference>(&said);
    const bool of_turns =
        pair ? std::holds_alternative<Conversation>(pair->chosen) : std::holds_alternative<Conversation>(said);
    if (!chat_ && of_turns) chat_.emplace(folder_, tokenizer_, task_.chat);
  }

  Sample operator()(const Sample& sample) { return sample; }

  Sample operator()(const PlainText& plain) {
    const std::vector<std::int32_t> text = tokenizer_.encode(plain.text);
    Sample sample;
    append_bos(sample, text, 1);
    sample.append(text, 1);
    append_eos(sample, text);
    return sample;
  }

  Sample operator()(const Completion& row) {
    const auto [prompt, completion] = encode_parts(tokenizer_, row.prompt, row.completion);
    Sample sample;
    append_bos(sample, prompt, 0);
    sample.append(prompt, 0);
    sample.append(completion, 1);
    append_eos(sample, completion);
    return sample;
  }

  Sample operator()(const Conversation& turns) { return chat_->encode(turns); }

  Sample operator()(const Preference& pair) {
    return pair_of(std::visit(*this, pair.chosen), std::visit(*this, pair.rejected));
  }

 private:
  /// Where the text does not begin with it.
  void append_bos(Sample& sample, const std::vector<std::int32_t>& text, float weight) const {
    const TokenizerFacts& facts = tokenizer_.facts();
    if (facts.prepends_bos && (text.empty() || text.front() != *facts.bos)) sample.append(*facts.bos, weight);
  }

  /// Where the text does not end with it.
  void append_eos(Sample& sample, const std::vector<std::int32_t>& text) const {
    const std::optional<std::int32_t> eos = tokenizer_.facts().eos;
    if (eos && (text.empty() || text.back() != *eos)) sample.append(*eos, 1);
  }

  const Task& task_;
  const Tokenizer& tokenizer_;
  const std::filesystem::path& folder_;
  std::optional<Chat> chat_;
};

/// What the tokenizer and the chat layout refuse, they refuse without knowing where.
template <typename Work>
auto with_place(const Node& row, const Work& work) {
  try {
    return work();
  } catch (const Error& failure) {
    throw error("{}:{}: {}", *row.file, row.line, failure.what());
  }
}

Sample encode(const Row& said, const Node& row, Encoder& encoder) {
  with_place(row, [&] { encoder.read_tokenizer(said); });
  encoder.read_chat(said);
  return with_place(row, [&] { return std::visit(encoder, said); });
}

/// Special tokens put beside a tokenizer may lie past the backbone's embedding.
void check_inside_vocabulary(const Sample& sample, const Node& row, std::int64_t vocabulary) {
  const auto largest = std::max_element(sample.tokens.begin(), sample.tokens.end());
  if (largest != sample.tokens.end() && *largest >= vocabulary) {
    throw row.error(fmt::format("the tokenizer gave id {}, the backbone has {} tokens", *largest, vocabulary),
                    "give the tokenizer of this backbone");
  }
}

/// What the message of a row calls the sequence.
std::string_view name_of_sequence(std::size_t place, std::size_t count) {
  if (count == 1) return "the sample";
  return place == 0 ? "the chosen sequence" : "the rejected sequence";
}

/// Keeps, cuts or drops the sample; refuses what cannot be trained on.
void add(Sample sample, const Node& row, const Task& task, const costmodel::BackboneShape& backbone, Dataset& dataset) {
  check_inside_vocabulary(sample, row, backbone.vocabulary);
  std::vector<Sample> sequences = sequences_of(sample);
  bool too_long = false, emptied = false;
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    Sample& sequence = sequences[i];
    const std::string_view name = name_of_sequence(i, sequences.size());
    const auto tokens = static_cast<std::int64_t>(sequence.tokens.size());
    if (tokens < 2) {
      throw row.error(fmt::format("{} has {} token{}", name, tokens, tokens == 1 ? "" : "s"),
                      "give at least 2: one to read and one to predict");
    }
    const bool longer = tokens > task.max_length;
    if (longer && task.on_too_long == OnTooLong::error) {
      throw row.error(fmt::format("{} has {} tokens, max_length is {}", name, tokens, task.max_length),
                      "shorten it, raise max_length, or set on_too_long to truncate or drop");
    }
    if (supervised_count(sequence) == 0 && !(longer && task.on_too_long == OnTooLong::drop))
      throw row.error(i == 0 && sequences.size() == 1
                          ? "no token past the first is supervised"
                          : fmt::format("of {} no token past the first is supervised", name),
                      "give a label, a completion or an assistant's message");
    if (longer) sequence.cut(static_cast<std::size_t>(task.max_length));
    too_long |= longer;
    emptied |= supervised_count(sequence) == 0;
  }
  if (too_long && task.on_too_long == OnTooLong::drop) {
    ++dataset.dropped;
    return;
  }
  if (emptied) {
    ++dataset.emptied;
    return;
  }
  dataset.truncated += too_long;
  dataset.samples.push_back(sequences.size() == 1 ? std::move(sequences[0]) : pair_of(sequences[0], sequences[1]));
}

Error no_samples(const std::string& file, const Task& task, const Dataset& dataset) {
  if (dataset.emptied > 0)
    return error_at(file, 1,
                    fmt::format("of no sample is there anything to learn in the first {} tokens", task.max_length),
                    "raise max_length");
  if (dataset.dropped > 0)
    return error_at(file, 1, fmt::format("every sample is longer than max_length {}", task.max_length),
                    "raise max_length or set on_too_long to truncate");
  return error_at(file, 1, "the dataset is empty", "give at least one sample");
}

}  // namespace

Dataset load_dataset(const std::filesystem::path& path, const Task& task, const Tokenizer& tokenizer,
                     const costmodel::BackboneShape& backbone, const std::filesystem::path& folder) {
  RowReader reader(backbone.vocabulary, task.objective.pairs());
  Encoder encoder(task, tokenizer, folder);
  Dataset dataset;
  for_each_row(path,
               [&](const Node& row) { add(encode(reader.read(row), row, encoder), row, task, backbone, dataset); });
  if (dataset.samples.empty()) throw no_samples(path.string(), task, dataset);
  dataset.unread = reader.unread();
  dataset.preferred = reader.preferred();
  return dataset;
}

namespace {

/// Moves a fraction of the samples behind the others, both in the file's order.
void hold_out_fraction(const Task& task, Dataset& dataset) {
  const std::vector<bool> held = held_out(static_cast<std::int64_t>(dataset.samples.size()), task);
  std::vector<Sample> kept, behind;
  for (std::size_t i = 0; i < held.size(); ++i) (held[i] ? behind : kept).push_back(std::move(dataset.samples[i]));
  dataset.held_out = std::ssize(behind);
  dataset.samples = std::move(kept);
  std::ranges::move(behind, std::back_inserter(dataset.samples));
}

/// What reading left out of either file is told as one.
void append_held_out(Dataset more, Dataset& dataset) {
  dataset.held_out = std::ssize(more.samples);
  std::ranges::move(more.samples, std::back_inserter(dataset.samples));
  dataset.dropped += more.dropped;
  dataset.truncated += more.truncated;
  dataset.emptied += more.emptied;
  const auto add_new = [](std::vector<std::string> names, std::vector<std::string>& known) {
    for (std::string& name : names)
      if (std::ranges::find(known, name) == known.end()) known.push_back(std::move(name));
  };
  add_new(std::move(more.unread), dataset.unread);
  add_new(std::move(more.preferred), dataset.preferred);
}

std::vector<SampleSize> sizes_of(std::span<const Sample> samples) {
  std::vector<SampleSize> sizes;
  sizes.reserve(samples.size());
  for (const Sample& sample : samples)
    sizes.push_back({static_cast<std::int64_t>(sample.tokens.size()), supervised_count(sample), sample.chosen});
  return sizes;
}

}  // namespace

Dataset load_task_data(const Task& task, const Tokenizer& tokenizer, const costmodel::BackboneShape& backbone,
                       const std::filesystem::path& folder) {
  Dataset dataset = load_dataset(task.dataset, task, tokenizer, backbone, folder);
  if (!task.evaluation) return dataset;
  if (task.evaluation->dataset.empty()) {
    hold_out_fraction(task, dataset);
  } else {
    append_held_out(load_dataset(task.evaluation->dataset, task, tokenizer, backbone, folder), dataset);
  }
  return dataset;
}

std::vector<SampleSize> sample_sizes(const Dataset& dataset) {
  return sizes_of(std::span(dataset.samples).first(dataset.samples.size() - static_cast<std::size_t>(dataset.held_out)));
}

std::vector<SampleSize> held_out_sizes(const Dataset& dataset) {
  return sizes_of(std::span(dataset.samples).last(static_cast<std::size_t>(dataset.held_out)));
}

}  // namespace braid::workload
