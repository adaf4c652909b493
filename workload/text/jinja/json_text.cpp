#include <algorithm>

#include "workload/text/jinja/calls.h"
#include "workload/text/jinja/python_text.h"

namespace braid::workload::jinja {
namespace {

class JsonWriter {
 public:
  explicit JsonWriter(const Arguments& arguments) {
    arguments.expect("tojson", {"ensure_ascii", "indent", "separators", "sort_keys"});
    if (const Value* ascii = arguments.find(0, "ensure_ascii")) ascii_ = ascii->truth();
    if (const Value* indent = arguments.find(1, "indent"); indent && !indent->is_none()) {
      indented_ = true;
      between_ = ",";
      if (const std::string* text = indent->as_text()) {
        indent_ = *text;
      } else {
        constexpr std::int64_t kMostIndent = 100;
        indent_.assign(
            static_cast<std::size_t>(std::clamp<std::int64_t>(integer_argument(*indent, "indent"), 0, kMostIndent)),
            ' ');
      }
    }
    if (const Value* separators = arguments.find(2, "separators"); separators && !separators->is_none()) {
      const Items both = walk(*separators);
      if (both.size() != 2) throw error("'tojson' is given {} separators", both.size());
      between_ = text_of(both[0], "a separator");
      behind_key_ = text_of(both[1], "a separator");
    }
    if (const Value* sorted = arguments.find(3, "sort_keys")) sorted_ = sorted->truth();
  }

  std::string write(const Value& value) {
    add(value);
    return std::move(text_);
  }

 private:
  void add(const Value& value) {
    if (value.is_none()) {
      text_ += "null";
    } else if (const bool* truth = value.get<bool>()) {
      text_ += *truth ? "true" : "false";
    } else if (is_number(value)) {
      text_ += notation(value);
    } else if (const std::string* text = value.as_text()) {
      text_ += json_quoted(*text, ascii_);
    } else if (const Mapping* mapping = value.as_mapping()) {
      add_fields(mapping->fields);
    } else if (const Sequence* sequence = value.as_sequence(); sequence && sequence->kind != Sequence::Kind::view) {
      add_items(sequence->items);
    } else {
      throw error("{} is written as JSON", value.kind());
    }
  }

  void add_items(const Items& items) {
    if (items.empty()) {
      text_ += "[]";
      return;
    }
    text_ += '[';
    ++depth_;
    for (std::size_t i = 0; i < items.size(); ++i) {
      begin(i);
      add(items[i]);
    }
    end(']');
  }

  void add_fields(const Fields& fields) {
    if (fields.empty()) {
      text_ += "{}";
      return;
    }
    std::vector<const std::pair<std::string, Value>*> order;
    for (const auto& field : fields) order.push_back(&field);
    if (sorted_)
      std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) { return a->first < b->first; });
    text_ += '{';
    ++depth_;
    for (std::size_t i = 0; i < order.size(); ++i) {
      begin(i);
      text_ += json_quoted(order[i]->first, ascii_) + behind_key_;
      add(order[i]->second);
    }
    end('}');
  }

  void begin(std::size_t place) {
    if (place > 0) text_ += between_;
    break_line();
  }

  void end(char mark) {
    --depth_;
    break_line();
    text_ += mark;
  }

  void break_line() {
    if (!indented_) return;
    text_ += '\n';
    for (int level = 0; level < depth_; ++level) text_ += indent_;
  }

  bool ascii_ = false, indented_ = false, sorted_ = false;
  std::string indent_, between_ = ", ", behind_key_ = ": ";
  std::string text_;
  int depth_ = 0;
};

}  // namespace

std::string json_text(const Value& value, const Arguments& arguments) {
  return JsonWriter(arguments).write(value);
}

}  // namespace braid::workload::jinja
