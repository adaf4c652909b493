#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "workload/text/jinja/template.h"
#include "workload/text/message.h"
#include "workload/text/tokenizer.h"

namespace braid::workload {

/// A chat template as transformers applies it: with the names of the special tokens, and no tools.
class ChatTemplate {
 public:
  /// Throws Error where the template is not one that braid renders (jinja/template.h).
  ChatTemplate(std::string_view text, jinja::Source source, jinja::Fields special_tokens);

  /// The conversation as text; `prompt`: with what stands before the assistant's next turn. Throws Error with the
  /// template's own words where it raises an exception, and where it cannot be rendered.
  std::string render(std::span<const Message> messages, bool prompt) const;

 private:
  jinja::Template template_;
  jinja::Fields special_tokens_;
};

/// What a backbone's folder says of conversations.
struct FolderChat {
  std::string text;  ///< of the template; empty where there is none
  jinja::Source source;
  jinja::Fields special_tokens;  ///< {"bos_token", "<s>"} and their like
};

/// Reads what transformers would: the template of chat_template.jinja, else tokenizer_config.json's, of several the one
/// named default; the special tokens that tokenizer_config.json names, and BOS and EOS of the tokenizer where it is
/// silent. Where the folder has no template, the tokenizer's facts may. Throws Error when a file is broken, when none
/// of several templates is the default, and when the template writes a special token whose
/// name no file tells.
FolderChat read_folder_chat(const std::filesystem::path& folder, const Tokenizer& tokenizer);

}  // namespace braid::workload
