#include "planner/latency/run_prices.h"

#include <algorithm>
#include <bit>
#include <map>

namespace braid::planner {
namespace {

using costmodel::MicrobatchLoad;
using costmodel::Operator;
using costmodel::OperatorCall;
using costmodel::Pass;
using costmodel::StageShape;

bool belongs_to_a_task(Operator op) {
  return op == Operator::attention || is_adapter(op);
}

std::size_t hash_of(const StageShape& stage, const MicrobatchLoad& load, Pass pass) {
  constexpr std::size_t kOdd = 1'000'003;
  auto hash = static_cast<std::size_t>(stage.layers * 8 + stage.recompute.layers * 257 + stage.tp * 1021 +
                                       static_cast<int>(pass));
  hash = hash * kOdd + static_cast<std::size_t>(load.tokens);
  hash = hash * kOdd + static_cast<std::size_t>(load.scored);
  hash = hash * kOdd + load.sequences.size();
  hash = hash * kOdd + static_cast<std::size_t>(load.tasks.front().adapter.method);
  return hash * kOdd + static_cast<std::size_t>(load.tasks.front().adapter.rank);
}

/// A count of nine binary digits and then zeros, and its place among all of those.
struct Rounded {
  std::int64_t count = 0;
  std::size_t place = 0;
};

Rounded rounded_up(std::int64_t count) {
  constexpr int kDigits = 9;
  const int zeros = std::max(0, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(count))) - kDigits);
  const std::int64_t digits = (count + (std::int64_t{1} << zeros) - 1) >> zeros;
  return {digits << zeros, static_cast<std::size_t>(digits + (std::int64_t{zeros} << (kDigits - 1)))};
}

}  // namespace

const RunPrices::SharedCalls& RunPrices::shared_calls(const StageShape& stage, const MicrobatchLoad& load, Pass pass) {
  const std::size_t hash = hash_of(stage, load, pass);
  const auto [first, last] = calls_.equal_range(hash);
  for (auto known = first; known != last; ++known) {
    const Task& task = known->second.first;
    if (task.pass == pass && task.stage == stage && task.load == load) return known->second.second;
  }
  Task task{stage, load, pass};
  SharedCalls calls = priced(task);
  return calls_.emplace(hash, std::pair(std::move(task), std::move(calls)))->second.second;
}

RunPrices::SharedCalls RunPrices::priced(const Task& task) const {
  std::map<Slot, SharedCall> calls;
  costmodel::OperatorShape product{};
  for (const OperatorCall& call :
       costmodel::stage_operators(backbone_, task.stage, task.load, task.pass, cost_.storage())) {
    if (call.op == Operator::linear) product = call.shape;
    if (!belongs_to_a_task(call.op)) continue;
    const bool attends = call.op == Operator::attention;
    const costmodel::CallPrice price = cost_.price(call);
    // The bottom layer's first product has no backward pass to stand beside.
    const bool alone = attends || call.pass == Pass::parameters;
    SharedCall& shared = calls[Slot{attends, call.pass, alone ? 0 : product[0], alone ? 0 : product[1]}];
    if (attends) {
      shared.attention += price.attention;
      shared.layers = call.count;
    } else {
      shared.seconds = std::max(shared.seconds, price.seconds);
      shared.weighted += price.seconds * price.utilization;
    }
    shared.launches = std::max(shared.launches, price.launches);
    shared.device = price.launches > 0;
    shared.attends = attends;
  }
  return {calls.begin(), calls.end()};
}

RunPrices::TokenPrices& RunPrices::token_prices(TokenPrices::Piece piece, const StageShape& stage,
                                                const costmodel::AdapterShape& adapter,
                                                costmodel::AdapterKernels kernels, Pass pass) {
  for (TokenPrices& known : token_prices_) {
    if (known.piece_ == piece && known.pass_ == pass && known.kernels_ == kernels && known.stage_ == stage &&
        known.adapter_ == adapter)
      return known;
  }
  TokenPrices& made = token_prices_.emplace_back();
  made.prices_ = this;
  made.piece_ = piece;
  made.stage_ = stage;
  made.adapter_ = adapter;
  made.kernels_ = kernels;
  made.pass_ = pass;
  return made;
}

RunPrices::TokenPasses RunPrices::token_passes(const StageShape& stage, const MicrobatchLoad& load, Pass pass) {
  using Piece = TokenPrices::Piece;
  const costmodel::AdapterShape& adapter = load.tasks.front().adapter;
  StageShape body = stage, head = stage;
  body.layers = std::min<std::int64_t>(stage.layers, 1);
  body.recompute = stage.recompute.of_run(0, body.layers);
  head.layers = 0;
  head.recompute = {};
  body.has_head = head.has_embedding = false;
  const StageShape recomputed = run_of(stage, 0, 1), kept = run_of(stage, stage.recompute.layers, 1);
  TokenPasses passes;
  passes.body = &token_prices(Piece::body, body, adapter, load.kernels, pass);
  const std::int64_t again = stage.recompute.of_run(body.layers, stage.layers - body.layers).layers;
  passes.recomputed_layers = static_cast<double>(again);
  passes.further_layers = static_cast<double>(stage.layers - body.layers - again);
  if (passes.recomputed_layers > 0)
    passes.recomputed_layer = &token_prices(Piece::further_layer, recomputed, adapter, load.kernels, pass);
  if (passes.further_layers > 0)
    passes.further_layer = &token_prices(Piece::further_layer, kept, adapter, load.kernels, pass);
  // The loss and its gradient are one call of the Forward.
  passes.scores_all = cost_.storage().whole_logits;
  if (stage.has_head && pass == Pass::forward) passes.head = &token_prices(Piece::head, head, {}, {}, pass);
  return passes;
}

TokenPass RunPrices::TokenPasses::of(std::int64_t tokens, std::int64_t scored) const {
  TokenPass pass = body->of(tokens);
  if (further_layer) pass.add(further_layer->of(tokens), further_layers);
  if (recomputed_layer) pass.add(recomputed_layer->of(tokens), recomputed_layers);
  if (head) pass.add(head->of(scores_all ? tokens : scored), 1);
  return pass;
}

const TokenPass& RunPrices::TokenPrices::of(std::int64_t tokens) {
  const Rounded rounded = rounded_up(tokens);
  if (rounded.place >= known_.size()) known_.resize(rounded.place + 1);
  std::optional<TokenPass>& known = known_[rounded.place];
  const std::int64_t count = rounded.count;
  if (!known && piece_ == Piece::head) known = priced({count, count, {}, {}, kernels_});
  if (!known) known = priced({count, 0, {}, {{adapter_, count}}, kernels_});
  return *known;
}

bool RunPrices::TokenPrices::holds(const OperatorCall& call) const {
  if (piece_ == Piece::head) return call.op == Operator::head_loss;
  if (piece_ == Piece::further_layer && call.op == Operator::dispatch) return false;
  return !belongs_to_a_task(call.op);
}

TokenPass RunPrices::TokenPrices::priced(const MicrobatchLoad& load) const {
  const costmodel::CostModel& cost = prices_->cost_;
  TokenPass pass;
  for (const OperatorCall& call : costmodel::stage_operators(prices_->backbone_, stage_, load, pass_, cost.storage())) {
    if (!holds(call)) continue;
    const costmodel::CallPrice price = cost.price(call);
    pass.seconds += price.seconds;
    if (price.launches > 0) pass.device += price.seconds;
    pass.host += price.launches * cost.profile().launch_seconds;
  }
  return pass;
}

}  // namespace braid::planner
