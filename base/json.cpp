#include <unordered_set>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/node.h"
#include "base/utf8.h"

namespace braid {
namespace {

constexpr std::size_t kMostReason = 300;  // bytes; a reason quotes the string at fault, however long
constexpr std::size_t kMostDepth = 500;  // as yaml-cpp's; Nodes are destroyed by recursion

/// Reads characters and counts the lines passed; the parser holds a copy, so the count lives outside.
class CountingIterator {
 public:
  using difference_type = std::ptrdiff_t;
  using value_type = char;
  using pointer = const char*;
  using reference = const char&;
  using iterator_category = std::input_iterator_tag;

  CountingIterator(const char* at, int* line) : at_(at), line_(line) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    if (*at_ == '\n') ++*line_;
    ++at_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }
  bool operator!=(const CountingIterator& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  int* line_;
};

/// Builds Nodes from the parser's events. In a list, a number that ends its line may be told one line late: the parser
/// has read the line break by then.
class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  Builder(std::shared_ptr<const std::string> file, const int* line, RepeatedKeys repeated)
      : file_(std::move(file)), line_(line), repeated_(repeated) {}

  bool null() override { return add(Node::Kind::null, "", false); }
  bool boolean(bool value) override { return add(Node::Kind::scalar, value ? "true" : "false", false); }
  bool number_integer(number_integer_t value) override { return add(Node::Kind::scalar, std::to_string(value), false); }
  bool number_unsigned(number_unsigned_t value) override {
    return add(Node::Kind::scalar, std::to_string(value), false);
  }
  bool number_float(number_float_t, const string_t& text) override { return add(Node::Kind::scalar, text, false); }
  bool string(string_t& value) override { return add(Node::Kind::scalar, std::move(value), true); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(Node::Kind::map); }
  bool start_array(std::size_t) override { return open(Node::Kind::sequence); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    key_line_ = *line_;
    auto& fields = open_.back()->fields;
    if (!keys_.back().insert(name).second) {
      if (repeated_ == RepeatedKeys::refused)
        throw error_at(*file_, key_line_, fmt::format("key '{}' is given twice", name), "keep one");
      std::erase_if(fields, [&](const auto& field) { return field.first == name; });
    }
    fields.emplace_back(std::move(name), Node{});
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception& failure) override {
    std::string reason = failure.what();
    if (const auto colon = reason.find(": "); colon != std::string::npos) reason = reason.substr(colon + 2);
    throw error_at(*file_, *line_, "not valid JSON (" + shortened(reason, kMostReason) + ")", "mend the syntax");
  }

  Node root;

 private:
  Node* place() {
    if (open_.empty()) return &root;
    Node* parent = open_.back();
    if (parent->is_map()) return &parent->fields.back().second;
    return &parent->items.emplace_back();
  }
  Node* fill(Node::Kind kind) {
    const bool in_map = !open_.empty() && open_.back()->is_map();
    Node* node = place();
    node->kind = kind;
    node->file = file_;
    node->line = in_map ? key_line_ : *line_;
    return node;
  }
  bool add(Node::Kind kind, std::string text, bool quoted) {
    Node* node = fill(kind);
    node->text = std::move(text);
    node->quoted = quoted;
    return true;
  }
  bool open(Node::Kind kind) {
    if (open_.size() == kMostDepth) throw error_at(*file_, *line_, "nested too deeply", "give a flatter file");
    open_.push_back(fill(kind));
    keys_.emplace_back();
    return true;
  }
  bool close() {
    open_.pop_back();
    keys_.pop_back();
    return true;
  }

  std::shared_ptr<const std::string> file_;
  const int* line_;
  RepeatedKeys repeated_;
  int key_line_ = 0;
  // Pointers stay good: a container grows only while none of its children is open.
  std::vector<Node*> open_;
  std::vector<std::unordered_set<std::string>> keys_;  // of each that is open; vocabularies have many
};

}  // namespace

Node parse_json(std::string_view text, const std::string& file, int first_line, RepeatedKeys repeated) {
  int line = first_line;
  Builder builder(std::make_shared<const std::string>(file), &line, repeated);
  nlohmann::json::sax_parse(CountingIterator(text.data(), &line), CountingIterator(text.data() + text.size(), &line),
                            &builder);
  return std::move(builder.root);
}

Node read_json(const std::filesystem::path& path, RepeatedKeys repeated) {
  return parse_json(read_file(path), path.string(), 1, repeated);
}

}  // namespace braid
