#include "exec/example/example_text.h"

#include <array>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace braid::exec {
namespace {

using Json = nlohmann::ordered_json;

template <std::size_t count>
std::string_view pick(const std::array<std::string_view, count>& words, RandomStream& random) {
  return words[random.next_below(count)];
}

std::int64_t between(std::int64_t least, std::int64_t most, RandomStream& random) {
  return least + static_cast<std::int64_t>(random.next_below(static_cast<std::uint64_t>(most - least + 1)));
}

/// A sample and how many tokens a byte-level tokenizer makes of it.
struct Drawn {
  Json line;
  std::size_t tokens = 0;
};

/// Lines of samples whose length lies in [least, most]; others are drawn again.
template <typename Draw>
std::string lines_within(int samples, std::size_t least, std::size_t most, const Draw& draw) {
  std::string lines;
  for (int i = 0; i < samples; ++i) {
    Drawn sample;
    int tries = 0;
    do {
      sample = draw();
      BRAID_CHECK(++tries < 10000, "no sample of {} to {} tokens", least, most);
    } while (sample.tokens < least || sample.tokens > most);
    lines += sample.line.dump() + "\n";
  }
  return lines;
}

/// BOS and EOS stand around the two.
Drawn prompt_and_completion(const std::string& prompt, const std::string& completion) {
  return {{{"prompt", prompt}, {"completion", completion}}, prompt.size() + completion.size() + 2};
}

constexpr std::array<std::string_view, 8> kPraise = {"warm",   "witty",    "bright",   "tender",
                                                     "lively", "graceful", "charming", "moving"};
constexpr std::array<std::string_view, 8> kBlame = {"dull",    "clumsy",  "hollow",   "noisy",
                                                    "tedious", "shallow", "lifeless", "muddled"};
constexpr std::array<std::string_view, 8> kParts = {"film",   "plot",   "cast",     "score",
                                                    "ending", "script", "dialogue", "pacing"};

constexpr std::array<std::string_view, 4> kTails = {"", "", " in every scene", " for the most part"};

Drawn draw_review(RandomStream& random) {
  const bool good = random.next_below(2) == 0;
  const auto judge = [&] { return pick(good ? kPraise : kBlame, random); };
  const auto part = [&] { return pick(kParts, random); };
  std::string text;
  switch (random.next_below(4)) {
    case 0:
      text = fmt::format("the {} is {} and so is the {}", part(), judge(), part());
      break;
    case 1:
      text = fmt::format("a {} {} with a {} {}", judge(), part(), judge(), part());
      break;
    case 2:
      text = fmt::format("{}, {} and {} to the end", judge(), judge(), judge());
      break;
    default:
      text = fmt::format("i found the {} rather {}", part(), judge());
      break;
  }
  text += pick(kTails, random);
  return prompt_and_completion(text + "\nverdict:", good ? " positive" : " negative");
}

/// What a kind of thing can do, and things of that kind.
struct QuizKind {
  std::string_view question;
  std::array<std::string_view, 6> things;
};

constexpr std::array<QuizKind, 5> kKinds = {{
    {"Which one can fly?", {"a sparrow", "a bee", "an owl", "a moth", "a goose", "a bat"}},
    {"Which one lives under water?", {"a trout", "a crab", "a whale", "an eel", "a squid", "a coral"}},
    {"Which one melts in the sun?", {"butter", "ice", "chocolate", "a snowman", "wax", "sherbet"}},
    {"Which one grows from a seed?", {"an oak", "wheat", "a carrot", "a poppy", "a pumpkin", "clover"}},
    {"Which one is a good conductor?", {"copper", "silver", "iron wire", "gold leaf", "a steel nail", "tin foil"}},
}};

constexpr std::array<std::string_view, 4> kOrders = {"", "", "Pick one. ", "Give the letter of the right answer. "};

Drawn draw_quiz(RandomStream& random) {
  std::array<std::size_t, kKinds.size()> order{};
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  shuffle(std::span<std::size_t>(order), random);
  constexpr std::string_view kLetters = "ABCD";
  const std::size_t answer = random.next_below(kLetters.size());
  std::string prompt = fmt::format("{}{}\n", pick(kOrders, random), kKinds[order[answer]].question);
  for (std::size_t i = 0; i < kLetters.size(); ++i) {
    prompt += fmt::format("{}) {}\n", kLetters[i], pick(kKinds[order[i]].things, random));
  }
  return prompt_and_completion(prompt + "Answer:", fmt::format(" {}", kLetters[answer]));
}

constexpr std::array<std::string_view, 8> kNames = {"Mara",  "Jonas", "Ilse",  "Tomas",
                                                    "Nadia", "Erik",  "Lucia", "Pavel"};
constexpr std::array<std::string_view, 8> kTowns = {"Lindau", "Porto",  "Tromso", "Arles",
                                                    "Krakow", "Galway", "Siena",  "Bergen"};
constexpr std::array<std::string_view, 8> kTrades = {"baker",    "weaver",  "teacher", "carpenter",
                                                     "gardener", "printer", "nurse",   "potter"};
constexpr std::array<std::string_view, 6> kSeasons = {"last spring",   "two years ago", "in the autumn",
                                                      "after the war", "as a child",    "last winter"};
constexpr std::array<std::string_view, 6> kHabits = {
    "keeps bees behind the house",       "sings in the choir on Sundays", "walks to the harbour every morning",
    "repairs old clocks in the evening", "grows roses along the wall",    "plays chess with the neighbours"};

/// Another word of the same kind.
template <std::size_t count>
std::string_view other_than(std::string_view word, const std::array<std::string_view, count>& words,
                            RandomStream& random) {
  for (;;) {
    const std::string_view drawn = pick(words, random);
    if (drawn != word) return drawn;
  }
}

Drawn draw_entailment(RandomStream& random) {
  const std::string_view name = pick(kNames, random), town = pick(kTowns, random), trade = pick(kTrades, random);
  const std::string_view from = other_than(town, kTowns, random);
  std::string premise =
      fmt::format("{} came from {} to {} {} and works there as a {}.", name, from, town, pick(kSeasons, random), trade);
  const std::int64_t habits = between(0, 2, random);
  std::string_view habit;
  for (std::int64_t i = 0; i < habits; ++i) {
    habit = other_than(habit, kHabits, random);
    premise += fmt::format(" {} {}.", name, habit);
  }
  const bool follows = random.next_below(2) == 0;
  const bool about_town = random.next_below(2) == 0;
  const std::string_view said_town = follows || !about_town ? town : from;
  const std::string_view said_trade = follows || about_town ? trade : other_than(trade, kTrades, random);
  const std::string user = fmt::format("Premise: {}\nHypothesis: {} is a {} in {}.\nDoes it follow? Answer yes or no.",
                                       premise, name, said_trade, said_town);
  const std::string assistant = follows ? "yes" : "no";
  // <|im_start|>ROLE\n ... <|im_end|>\n around each.
  const std::size_t framing = 3 + std::string_view("user\n").size() + 3 + std::string_view("assistant\n").size();
  return {{{"messages", {{{"role", "user"}, {"content", user}}, {{"role", "assistant"}, {"content", assistant}}}}},
          user.size() + assistant.size() + framing};
}

constexpr std::array<std::string_view, 6> kWinds = {"north", "south", "east", "west", "calm", "gusty"};
constexpr std::array<std::string_view, 5> kSkies = {"clear", "cloudy", "overcast", "hazy", "fog"};
constexpr std::array<std::string_view, 4> kNotes = {"nothing to report", "gauge cleaned", "battery changed",
                                                    "mast checked"};

Drawn draw_report(RandomStream& random) {
  const std::int64_t readings = between(6, 13, random);
  std::string text = fmt::format("STATION {} DAY {}\n", between(1, 9, random), between(100, 365, random));
  std::string_view wind = pick(kWinds, random), sky = pick(kSkies, random);
  std::int64_t gauge = between(20, 60, random);
  for (std::int64_t i = 0; i < readings; ++i) {
    // The weather mostly stays as it is.
    if (random.next_below(4) == 0) wind = pick(kWinds, random);
    if (random.next_below(4) == 0) sky = pick(kSkies, random);
    gauge += between(-1, 1, random);
    text += fmt::format("{:02}:00 wind {}, sky {}, gauge {}\n", 2 * i, wind, sky, gauge);
  }
  text += fmt::format("note: {}\nEND OF DAY", pick(kNotes, random));
  return {{{"text", text}}, text.size() + 2};
}

}  // namespace

std::string review_lines(int samples, RandomStream& random) {
  return lines_within(samples, 40, 64, [&] { return draw_review(random); });
}

std::string quiz_lines(int samples, RandomStream& random) {
  return lines_within(samples, 80, 128, [&] { return draw_quiz(random); });
}

std::string entailment_lines(int samples, RandomStream& random) {
  return lines_within(samples, 150, 256, [&] { return draw_entailment(random); });
}

std::string report_lines(int samples, RandomStream& random) {
  return lines_within(samples, 300, 512, [&] { return draw_report(random); });
}

}  // namespace braid::exec
