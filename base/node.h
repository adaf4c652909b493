#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace braid {

/// A value of a YAML or JSON file that remembers the line it stood on, so that every complaint names file and line.
///
/// Scalars keep their text; the typed getters convert and refuse what does not fit. YAML and JSON read alike, save that
/// only an unquoted YAML scalar or a JSON literal counts as a number or a boolean.
class Node {
 public:
  enum class Kind { null, scalar, sequence, map };

  Kind kind = Kind::null;
  std::string text;     ///< of a scalar
  bool quoted = false;  ///< the scalar was written as a string
  int line = 0;
  std::shared_ptr<const std::string> file;
  std::vector<Node> items;                           ///< of a sequence
  std::vector<std::pair<std::string, Node>> fields;  ///< of a map, in the file's order

  bool is_map() const { return kind == Kind::map; }
  bool is_sequence() const { return kind == Kind::sequence; }
  bool is_scalar() const { return kind == Kind::scalar; }
  bool is_null() const { return kind == Kind::null; }

  /// "FILE:LINE: what; remedy".
  Error error(const std::string& what, const std::string& remedy) const;

  /// The field, or null when it is absent. Throws Error when this is not a map.
  const Node* find(std::string_view key) const;
  /// The field; throws Error when it is absent.
  const Node& at(std::string_view key) const;
  /// Throws Error that names the first field not in `known`, and lists those.
  void allow_only(std::initializer_list<std::string_view> known) const;
  /// The items of a sequence; throws Error when this is something else. `what` names it in the message.
  const std::vector<Node>& sequence(std::string_view what) const;

  std::string as_string(std::string_view what) const;
  bool as_bool(std::string_view what) const;
  std::int64_t as_integer(std::string_view what, std::int64_t least = std::numeric_limits<std::int64_t>::min(),
                          std::int64_t most = std::numeric_limits<std::int64_t>::max()) const;
  double as_number(std::string_view what, double least = -std::numeric_limits<double>::infinity(),
                   double most = std::numeric_limits<double>::infinity()) const;

  /// Field getters: the first form needs the field, the second gives `otherwise` when it is absent or null.
  std::string string_at(std::string_view key) const { return at(key).as_string(key); }
  std::string string_or(std::string_view key, std::string otherwise) const;
  bool bool_or(std::string_view key, bool otherwise) const;
  std::int64_t integer_at(std::string_view key, std::int64_t least = std::numeric_limits<std::int64_t>::min(),
                          std::int64_t most = std::numeric_limits<std::int64_t>::max()) const {
    return at(key).as_integer(key, least, most);
  }
  std::int64_t integer_or(std::string_view key, std::int64_t otherwise,
                          std::int64_t least = std::numeric_limits<std::int64_t>::min(),
                          std::int64_t most = std::numeric_limits<std::int64_t>::max()) const;
  double number_at(std::string_view key, double least = -std::numeric_limits<double>::infinity(),
                   double most = std::numeric_limits<double>::infinity()) const {
    return at(key).as_number(key, least, most);
  }
  double number_or(std::string_view key, double otherwise, double least = -std::numeric_limits<double>::infinity(),
                   double most = std::numeric_limits<double>::infinity()) const;
};

/// What becomes of a key that stands twice in a JSON object; Python's readers let the last one win.
enum class RepeatedKeys { refused, last_wins };

/// Parse errors name file and line; a key given twice is an error unless `repeated` says otherwise.
Node read_yaml(const std::filesystem::path& path);
Node read_json(const std::filesystem::path& path, RepeatedKeys repeated = RepeatedKeys::refused);
/// `file` and `first_line` are what messages will say.
Node parse_yaml(const std::string& text, const std::string& file);
Node parse_json(std::string_view text, const std::string& file, int first_line = 1,
                RepeatedKeys repeated = RepeatedKeys::refused);

}  // namespace braid
