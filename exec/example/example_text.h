#pragma once

#include <cstdint>
#include <string>

#include "base/random.h"

/// The made-up texts of `braid init`, as JSON lines. All are drawn from small grammars, so that a tiny model learns
/// them within a few steps. Lengths are in bytes, which are the tokens of a byte-level tokenizer, framing included.
namespace braid::exec {

/// Reviews of one sentence, judged positive or negative: {"prompt", "completion"}, 40 to 64 tokens.
std::string review_lines(int samples, RandomStream& random);
/// Questions with four answers to choose from: {"prompt", "completion"}, 80 to 128 tokens.
std::string quiz_lines(int samples, RandomStream& random);
/// Whether a hypothesis follows from a premise, yes or no: {"messages"}, 150 to 256 tokens in the chatml layout.
std::string entailment_lines(int samples, RandomStream& random);
/// Logs of a weather station: {"text"}, 300 to 512 tokens.
std::string report_lines(int samples, RandomStream& random);

}  // namespace braid::exec
