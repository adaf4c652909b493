#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/regex.h"
#include "workload/text/aligned_text.h"

namespace braid::workload {

/// A regular expression over Unicode characters, of the kind that pre-tokenizers cut words with. It means what
/// Oniguruma, which Hugging Face's library asks, takes it for; what the two engines take differently is refused.
class Pattern {
 public:
  /// Throws Error, without a place, when the expression is broken or holds what is not known to mean the same.
  explicit Pattern(const std::string& expression);

  /// Where it matches, one after the other; matches of nothing are left out. Throws Error when `text` is no UTF-8.
  std::vector<ByteRange> matches(std::string_view text) const;

 private:
  std::shared_ptr<const Regex> regex_;
};

}  // namespace braid::workload
