#include "planner/latency/run_prices.h"

#include <algorithm>
#include <map>

namespace braid::planner {
namespace {

using costmodel::MicrobatchLoad;
using costmodel::Operator;
using costmodel::OperatorCall;
using costmodel::Pass;
using costmodel::StageShape;

bool belongs_to_a_task(Operator op) {
  return op == Operator::attention || op == Operator::lora || op == Operator::lora_dropout;
}

std::size_t hash_of(const StageShape& stage, const MicrobatchLoad& load, Pass pass) {
  constexpr std::size_t kOdd = 1'000'003;
  auto hash = static_cast<std::size_t>(stage.layers * 8 + stage.tp * 1021 + static_cast<int>(pass));
  hash = hash * kOdd + static_cast<std::size_t>(load.tokens);
  hash = hash * kOdd + static_cast<std::size_t>(load.scored);
  hash = hash * kOdd + load.sequences.size();
  return hash * kOdd + static_cast<std::size_t>(load.tasks.front().adapter.rank);
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
  for (const OperatorCall& call : costmodel::stage_operators(backbone_, task.stage, task.load, task.pass)) {
    if (call.op == Operator::linear) product = call.shape;
    if (!belongs_to_a_task(call.op)) continue;
    const bool attends = call.op == Operator::attention;
    const costmodel::CallPrice price = cost_.price(call);
    // The bottom layer's first product has no backward pass to stand beside.
    const bool alone = attends || call.pass == Pass::parameters;
    SharedCall& shared = calls[Slot{attends, call.pass, alone ? 0 : product[0], alone ? 0 : product[1]}];
    shared.seconds = std::max(shared.seconds, price.seconds);
    shared.weighted += price.seconds * price.utilization;
    shared.launches = std::max(shared.launches, price.launches);
    shared.device = price.launches > 0;
    shared.attends = attends;
  }
  return {calls.begin(), calls.end()};
}

RunPrices::TokenPasses& RunPrices::token_passes(const StageShape& stage, const MicrobatchLoad& load, Pass pass) {
  const costmodel::AdapterShape& adapter = load.tasks.front().adapter;
  for (TokenPasses& known : passes_) {
    if (known.pass_ == pass && known.kernels_ == load.kernels && known.stage_ == stage && known.adapter_ == adapter)
      return known;
  }
  TokenPasses& made = passes_.emplace_back();
  made.prices_ = this;
  made.stage_ = stage;
  made.adapter_ = adapter;
  made.kernels_ = load.kernels;
  made.pass_ = pass;
  return made;
}

TokenPass RunPrices::TokenPasses::of(std::int64_t tokens, std::int64_t scored) {
  const auto [all, is_new] = by_tokens_.try_emplace(tokens);
  if (is_new) all->second = priced(stage_, {tokens, 0, {}, {{adapter_, tokens}}, kernels_});
  if (!stage_.has_head) return all->second;
  const auto [head, is_new_head] = by_scored_.try_emplace(scored);
  if (is_new_head) head->second = priced({0, false, true, stage_.tp}, {scored, scored, {}, {}, kernels_});
  const TokenPass &a = all->second, &b = head->second;
  return {a.seconds + b.seconds, a.device + b.device, a.host + b.host};
}

TokenPass RunPrices::TokenPasses::priced(const StageShape& stage, const MicrobatchLoad& load) const {
  const costmodel::CostModel& cost = prices_->cost_;
  TokenPass pass;
  for (const OperatorCall& call : costmodel::stage_operators(prices_->backbone_, stage, load, pass_)) {
    if (belongs_to_a_task(call.op) || (stage.layers == 0 && call.op != Operator::head_loss)) continue;
    const costmodel::CallPrice price = cost.price(call);
    pass.seconds += price.seconds;
    if (price.launches > 0) pass.device += price.seconds;
    pass.host += price.launches * cost.profile().launch_seconds;
  }
  return pass;
}

}  // namespace braid::planner
