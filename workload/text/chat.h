#pragma once

#include <filesystem>
#include <optional>
#include <span>

#include "workload/sample.h"
#include "workload/text/chat_layout.h"
#include "workload/text/chat_template.h"
#include "workload/text/learned_spans.h"
#include "workload/text/message.h"
#include "workload/text/tokenizer.h"

namespace braid::workload {

/// Conversations to tokens, laid out as a task or a backbone's folder says.
class Chat {
 public:
  /// Takes the layout that is chosen, else the folder's chat template (read_folder_chat). Where the template lays
  /// conversations out otherwise than the chosen layout, that is told on stderr. A chosen chatml begins with BOS where
  /// the template does. Throws Error where the template is not one that braid renders, and none is chosen.
  Chat(const std::filesystem::path& folder, const Tokenizer& tokenizer, std::optional<ChatLayout> chosen);

  /// The tokens of the conversation's text, with what the assistant says in turns that are learned, and the token that
  /// ends such a turn, supervised (learned_spans.h); nothing is put before or behind them. Throws Error where neither a
  /// layout is chosen nor the folder has a template, where the template refuses the conversation, and where the tokens
  /// would not be those that the template means: the tokenizer spells special tokens out, and the text is that of no
  /// layout that is built in.
  Sample encode(std::span<const Message> messages) const;

 private:
  void choose(ChatLayout chosen, const FolderChat& folder);
  void find_spelt_out(const FolderChat& folder);

  const Tokenizer& tokenizer_;
  std::optional<ChatLayout> chosen_;
  std::optional<ChatTemplate> template_;
  std::string bos_;        // what text begins with where it begins with BOS; empty: it never does
  std::string spelt_out_;  // a special token whose name in text is text to the tokenizer; empty: none is
};

}  // namespace braid::workload
