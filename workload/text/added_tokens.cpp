#include "workload/text/added_tokens.h"

#include <algorithm>

#include "workload/text/unicode.h"

namespace braid::workload {

void TokenFinder::add(const std::string& content, const AddedToken& token, std::int32_t id) {
  if (content.empty()) return;
  std::size_t at = 0;
  for (const char byte : content) {
    const auto found = places_[at].next.find(byte);
    if (found != places_[at].next.end()) {
      at = found->second;
      continue;
    }
    places_[at].next.emplace(byte, places_.size());
    at = places_.size();
    places_.emplace_back();
  }
  if (places_[at].token) return;
  places_[at].token = tokens_.size();
  tokens_.emplace_back(token, id);
}

std::optional<std::pair<std::size_t, std::size_t>> TokenFinder::longest(std::string_view text) const {
  std::optional<std::pair<std::size_t, std::size_t>> best;
  std::size_t at = 0;
  for (std::size_t size = 0;; ++size) {
    if (places_[at].token) best = {*places_[at].token, size};
    if (size == text.size()) return best;
    const auto found = places_[at].next.find(text[size]);
    if (found == places_[at].next.end()) return best;
    at = found->second;
  }
}

std::vector<TokenFinder::Stretch> TokenFinder::split(std::string_view text) const {
  std::vector<Stretch> stretches;
  std::size_t done = 0;
  const auto plain_until = [&](std::size_t end) {
    if (done < end) stretches.push_back({{done, end}, {}});
  };
  for (std::size_t at = 0; at < text.size();) {
    const auto found = longest(text.substr(at));
    if (!found) {
      ++at;
      continue;
    }
    const auto& [token, id] = tokens_[found->first];
    ByteRange range{at, at + found->second};
    at = range.end;
    if (token.single_word && (ends_with_word(text.substr(0, range.begin)) || begins_with_word(text.substr(range.end))))
      continue;
    // What an earlier token has taken to its right it keeps.
    if (token.left_strip) range.begin = std::max(range.begin - trailing_space(text.substr(0, range.begin)), done);
    if (token.right_strip) range.end += leading_space(text.substr(range.end));
    plain_until(range.begin);
    stretches.push_back({range, id});
    done = range.end;
  }
  plain_until(text.size());
  return stretches;
}

std::int32_t AddedVocabulary::add(const AddedToken& token) {
  if (token.content.empty()) return -1;
  const auto among = [&](const std::vector<AddedToken>& tokens) {
    return std::ranges::any_of(tokens, [&](const AddedToken& each) { return each.content == token.content; });
  };
  const bool is_special = among(special_);
  if (token.special && !is_special) special_.push_back(token);
  const std::int64_t next =
      tokens_.empty() ? model_size_ : std::max<std::int64_t>(model_size_, tokens_.rbegin()->first + 1);
  const std::int32_t number = id(token.content).value_or(static_cast<std::int32_t>(next));
  if (has(token)) return number;
  ids_[token.content] = number;
  tokens_.insert_or_assign(number, token);
  if (!token.special && !is_special) plain_.push_back(token);
  return number;
}

bool AddedVocabulary::has(const AddedToken& wanted) const {
  const AddedToken* found = token(wanted.content);
  return found && *found == wanted;
}

std::optional<std::int32_t> AddedVocabulary::id(std::string_view content) const {
  if (const auto found = ids_.find(std::string(content)); found != ids_.end()) return found->second;
  return model_(content);
}

const AddedToken* AddedVocabulary::token(const std::string& content) const {
  const auto found = ids_.find(content);
  return found == ids_.end() ? nullptr : &tokens_.at(found->second);
}

TokenFinder AddedVocabulary::finder(bool normalized,
                                    const std::function<std::string(const std::string&)>& as_sought) const {
  TokenFinder finder;
  for (const auto* tokens : {&special_, &plain_}) {
    for (const AddedToken& each : *tokens) {
      if (each.normalized == normalized)
        finder.add(as_sought(each.content), *token(each.content), ids_.at(each.content));
    }
  }
  return finder;
}

}  // namespace braid::workload
