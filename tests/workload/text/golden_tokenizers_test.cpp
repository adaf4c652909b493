#include <gtest/gtest.h>

#include "base/node.h"
#include "support.h"
#include "workload/text/tokenizer.h"

namespace braid::workload {
namespace {

const std::filesystem::path kGoldenTokenizers = std::filesystem::path(BRAID_SOURCE_DIR) / "tests/golden/tokenizers";

/// The folders of tests/golden/tokenizers, each with a tokenizer of another form.
std::vector<std::string> forms() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kGoldenTokenizers)) {
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::optional<std::int32_t> id_at(const Node& node, std::string_view key) {
  const Node& found = node.at(key);
  if (found.is_null()) return std::nullopt;
  return static_cast<std::int32_t>(found.as_integer(key));
}

class GoldenTokenizer : public testing::TestWithParam<std::string> {
 protected:
  GoldenTokenizer() : expected(read_json(kGoldenTokenizers / GetParam() / "expected.json")) {
    costmodel::BackboneShape backbone = costmodel::builtin_backbone("tinyllama-1.1b");
    backbone.vocabulary = 32000;
    tokenizer = make_tokenizer(kGoldenTokenizers / GetParam(), backbone);
  }

  std::unique_ptr<Tokenizer> tokenizer;
  Node expected;
};

TEST_P(GoldenTokenizer, GivesTheIdsThatTransformersGives) {
  const Node texts = read_json(kGoldenTokenizers / "texts.json");
  const std::vector<Node>& ids = expected.at("ids").sequence("ids");
  ASSERT_EQ(texts.sequence("texts").size(), ids.size());
  ASSERT_GT(ids.size(), 100u);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i].is_null()) continue;
    std::vector<std::int32_t> wanted;
    for (const Node& id : ids[i].sequence("ids")) wanted.push_back(static_cast<std::int32_t>(id.as_integer("id")));
    EXPECT_EQ(tokenizer->encode(texts.items[i].text), wanted) << i << ": " << texts.items[i].text;
  }
}

TEST_P(GoldenTokenizer, HasTheBosAndEosThatTransformersHas) {
  EXPECT_EQ(tokenizer->facts().bos, id_at(expected, "bos"));
  EXPECT_EQ(tokenizer->facts().eos, id_at(expected, "eos"));
  EXPECT_EQ(tokenizer->facts().prepends_bos, expected.at("prepends_bos").as_bool("prepends_bos"));
}

INSTANTIATE_TEST_SUITE_P(Forms, GoldenTokenizer, testing::ValuesIn(forms()),
                         [](const auto& parameter) { return parameter.param; });

}  // namespace
}  // namespace braid::workload
