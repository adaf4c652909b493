#include "workload/text/sentencepiece_model.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "base/error.h"
#include "workload/text/unicode.h"

namespace braid::workload {
namespace {

/// The fields of a message, one after the other.
class Fields {
 public:
  explicit Fields(std::string_view bytes) : rest_(bytes) {}

  /// Goes on to the next field; false at the end.
  bool next() {
    if (rest_.empty()) return false;
    const std::uint64_t key = varint();
    number_ = key >> 3;
    text_ = {};
    value_ = 0;
    switch (key & 7) {
      case 0:
        value_ = varint();
        break;
      case 1:
        take(8);
        break;
      case 2:
        text_ = take(varint());
        break;
      case 5:
        take(4);
        break;
      default:
        throw broken();
    }
    return true;
  }

  std::uint64_t number() const { return number_; }
  std::uint64_t value() const { return value_; }   // of a varint
  std::string_view text() const { return text_; }  // of bytes, a string or a message

 private:
  static Error broken() { return error("not a SentencePiece model"); }

  std::string_view take(std::uint64_t size) {
    if (size > rest_.size()) throw broken();
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    throw broken();
  }

  std::string_view rest_, text_;
  std::uint64_t number_ = 0, value_ = 0;
};

SentencePieceModel::Piece parse_piece(std::string_view bytes) {
  SentencePieceModel::Piece piece;
  for (Fields fields(bytes); fields.next();) {
    if (fields.number() == 1) piece.text = fields.text();
    if (fields.number() == 3) piece.type = static_cast<SentencePieceModel::PieceType>(fields.value());
  }
  return piece;
}

}  // namespace

SentencePieceModel parse_sentencepiece_model(std::string_view file) {
  constexpr std::uint64_t kPieces = 1, kTrainer = 2, kNormalizer = 3;
  constexpr std::uint64_t kModelType = 3, kBpe = 2, kAddDummyPrefix = 3;
  SentencePieceModel model;
  for (Fields fields(file); fields.next();) {
    if (fields.number() == kPieces) {
      model.pieces.push_back(parse_piece(fields.text()));
    } else if (fields.number() == kTrainer) {
      for (Fields spec(fields.text()); spec.next();) {
        if (spec.number() == kModelType) model.merges_pairs = spec.value() == kBpe;
      }
    } else if (fields.number() == kNormalizer) {
      for (Fields spec(fields.text()); spec.next();) {
        if (spec.number() == kAddDummyPrefix) model.add_dummy_prefix = spec.value() != 0;
      }
    }
  }
  return model;
}

std::string without_dummy_prefix(std::string file) {
  // A message that comes twice is merged: a normalizer's spec of two bytes, in which add_dummy_prefix is 0.
  constexpr char kSpec[] = {0x1A, 0x02, 0x18, 0x00};
  file.append(kSpec, sizeof kSpec);
  return file;
}

Bpe::Merges merges_of(const Bpe::Vocabulary& vocabulary) {
  struct Pair {
    std::string left, right;
    std::tuple<std::int32_t, std::size_t, std::size_t, std::int32_t, std::int32_t> order;
  };
  std::unordered_map<std::string, std::int32_t> ids;
  for (const auto& [piece, id] : vocabulary) ids.insert_or_assign(piece, id);
  std::vector<Pair> pairs;
  for (const auto& [piece, id] : vocabulary) {
    std::vector<std::size_t> borders;
    for (std::size_t at = 0; at < piece.size(); at += character_size(std::string_view(piece).substr(at)))
      borders.push_back(at);
    for (std::size_t border = 1; border < borders.size(); ++border) {
      const auto left = ids.find(piece.substr(0, borders[border])), right = ids.find(piece.substr(borders[border]));
      if (left == ids.end() || right == ids.end()) continue;
      pairs.push_back({left->first, right->first, {id, border, borders.size() - border, left->second, right->second}});
    }
  }
  std::ranges::sort(pairs, {}, &Pair::order);
  Bpe::Merges merges;
  merges.reserve(pairs.size());
  for (Pair& pair : pairs) merges.emplace_back(std::move(pair.left), std::move(pair.right));
  return merges;
}

}  // namespace braid::workload
