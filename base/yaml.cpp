#include <yaml-cpp/yaml.h>

#include "base/file.h"
#include "base/node.h"

namespace braid {
namespace {

using FileName = std::shared_ptr<const std::string>;

Node convert(const YAML::Node& source, const FileName& file) {
  Node node;
  node.file = file;
  node.line = source.Mark().line + 1;
  switch (source.Type()) {
    case YAML::NodeType::Undefined:
    case YAML::NodeType::Null:
      node.kind = Node::Kind::null;
      break;
    case YAML::NodeType::Scalar:
      node.kind = Node::Kind::scalar;
      node.text = source.Scalar();
      node.quoted = source.Tag() == "!";
      break;
    case YAML::NodeType::Sequence:
      node.kind = Node::Kind::sequence;
      for (const YAML::Node& item : source) node.items.push_back(convert(item, file));
      break;
    case YAML::NodeType::Map:
      node.kind = Node::Kind::map;
      for (const auto& field : source) {
        const int line = field.first.Mark().line + 1;
        if (!field.first.IsScalar()) throw error_at(*file, line, "a key is not a plain word", "give 'key: value'");
        const std::string& key = field.first.Scalar();
        if (node.find(key)) throw error_at(*file, line, fmt::format("key '{}' is given twice", key), "keep one");
        Node value = convert(field.second, file);
        if (!value.is_map() && !value.is_sequence()) value.line = line;
        node.fields.emplace_back(key, std::move(value));
      }
      break;
  }
  return node;
}

}  // namespace

Node parse_yaml(const std::string& text, const std::string& file) {
  const auto name = std::make_shared<const std::string>(file);
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(text);
    if (documents.size() > 1)
      throw error_at(file, documents[1].Mark().line + 1, "a second document begins", "keep one, without '---' between");
    return documents.empty() ? convert(YAML::Node(), name) : convert(documents[0], name);
  } catch (const YAML::Exception& failure) {
    throw error_at(file, failure.mark.line + 1, "not valid YAML (" + failure.msg + ")", "mend the syntax");
  }
}

Node read_yaml(const std::filesystem::path& path) {
  return parse_yaml(read_file(path), path.string());
}

}  // namespace braid
