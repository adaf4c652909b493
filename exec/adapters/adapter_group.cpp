#include "exec/adapters/adapter_group.h"

#include <algorithm>
#include <map>
#include <utility>

namespace braid::exec {

using kernels::ConstMatrix;
using kernels::Matrix;

namespace {

/// By which tasks share what a call for all of them takes.
double numbers_of(const AdapterRows& rows) {
  double width = 0;
  for (const costmodel::Module module : costmodel::modules_of(rows.context.shard.whole(), rows.group)) {
    const costmodel::ModuleShape shape = costmodel::module_shape(rows.context.shard.whole(), module);
    if (rows.adapter.shape().has(module) || rows.adapter.shape().has(costmodel::Module::qkv))
      width += static_cast<double>(rows.adapter.shape().rank_of(module) * (shape.in + shape.out));
  }
  return static_cast<double>(rows.count()) * std::max(width, 1.0);
}

}  // namespace

bool AdapterGroup::any() const {
  return std::any_of(batch_.tasks.begin(), batch_.tasks.end(), [&](const TaskSpan& span) {
    const costmodel::AdapterShape& shape = adapter_of(span).shape();
    return kind_of(shape.method) && targets_any(shape, group_);
  });
}

bool AdapterGroup::changes_output() const {
  return std::any_of(batch_.tasks.begin(), batch_.tasks.end(),
                     [&](const TaskSpan& span) { return costmodel::changes_output(adapter_of(span).shape(), group_); });
}

costmodel::OperatorCall AdapterGroup::call(const TaskSpan& span, costmodel::Pass pass) const {
  const costmodel::AdapterShape& shape = adapter_of(span).shape();
  return {operator_of(shape),
          pass,
          costmodel::adapter_shape(context_.shard.whole(), shape, group_, context_.shard.count()),
          span.last - span.first,
          0,
          0,
          1};
}

template <typename Work>
void AdapterGroup::visit(const Work& work) {
  std::vector<AdapterKept>& kept = stash_.adapters[static_cast<std::size_t>(group_)];
  kept.resize(batch_.tasks.size());
  for (std::size_t i = 0; i < batch_.tasks.size(); ++i) {
    const TaskSpan& span = batch_.tasks[i];
    Adapter& adapter = adapter_of(span);
    const AdapterKind* kind = kind_of(adapter.shape().method);
    if (!kind || !targets_any(adapter.shape(), group_)) continue;
    const std::shared_ptr<kernels::Event> begun = context_.probe.mark();
    work(*kind, AdapterRows{context_, layer_, group_, batch_, span, weights_, adapter, kept[i]});
    if (begun) kept[i].stretches.push_back({begun, context_.probe.mark()});
  }
}

template <typename Work>
void AdapterGroup::visit_methods(bool ahead, const Work& work) {
  std::vector<AdapterKept>& kept = stash_.adapters[static_cast<std::size_t>(group_)];
  kept.resize(batch_.tasks.size());
  std::map<costmodel::AdapterMethod, std::vector<AdapterRows>> methods;
  for (std::size_t i = 0; i < batch_.tasks.size(); ++i) {
    const TaskSpan& span = batch_.tasks[i];
    Adapter& adapter = adapter_of(span);
    if (kind_of(adapter.shape().method) && targets_any(adapter.shape(), group_))
      methods[adapter.shape().method].push_back({context_, layer_, group_, batch_, span, weights_, adapter, kept[i]});
  }
  const bool joins = context_.pool.device().joins_products();
  for (const auto& [method, tasks] : methods) {
    if ((joins && kind_of(method)->joins(tasks)) != ahead) continue;
    const std::shared_ptr<kernels::Event> begun = context_.probe.mark();
    work(*kind_of(method), std::span(tasks));
    if (!begun) continue;
    const std::shared_ptr<kernels::Event> ended = context_.probe.mark();
    double whole = 0;
    for (const AdapterRows& rows : tasks) whole += numbers_of(rows);
    for (const AdapterRows& rows : tasks) rows.kept.stretches.push_back({begun, ended, numbers_of(rows) / whole});
  }
}

void AdapterGroup::tell(costmodel::Pass pass) {
  std::vector<AdapterKept>& kept = stash_.adapters[static_cast<std::size_t>(group_)];
  for (std::size_t i = 0; i < batch_.tasks.size(); ++i) {
    const TaskSpan& span = batch_.tasks[i];
    const costmodel::AdapterShape& shape = adapter_of(span).shape();
    if (!kind_of(shape.method) || !targets_any(shape, group_)) continue;
    context_.probe.hear(call(span, pass), std::exchange(kept[i].stretches, {}));
  }
}

Buffer AdapterGroup::give_shared() {
  std::int64_t count = 0;
  visit([&](const AdapterKind& kind, const AdapterRows& rows) { count += kind.shared_numbers(rows); });
  if (count == 0) return {};
  Buffer all = context_.pool.take_f32(count);
  std::int64_t first = 0;
  visit([&](const AdapterKind& kind, const AdapterRows& rows) {
    const std::int64_t last = first + kind.shared_numbers(rows);
    kind.give_shared(rows, all.vector().range(first, last));
    first = last;
  });
  return all;
}

void AdapterGroup::take_shared(const Buffer& sums) {
  std::int64_t first = 0;
  visit([&](const AdapterKind& kind, const AdapterRows& rows) {
    const std::int64_t last = first + kind.shared_numbers(rows);
    kind.take_shared(rows, sums.vector().range(first, last));
    first = last;
  });
}

void AdapterGroup::scale_inputs(Matrix x) {
  visit([&](const AdapterKind& kind, const AdapterRows& rows) { kind.scale_input(rows, rows_of(rows, x)); });
}

void AdapterGroup::forward_ahead(ConstMatrix x, Matrix y, Products& added) {
  visit_methods(true, [&](const AdapterKind& kind, std::span<const AdapterRows> tasks) {
    kind.forward_ahead(tasks, x, y, added);
  });
}

void AdapterGroup::forward(ConstMatrix x, Matrix y) {
  visit_methods(false,
                [&](const AdapterKind& kind, std::span<const AdapterRows> tasks) { kind.forward_all(tasks, x, y); });
}

void AdapterGroup::forward_sum(Matrix y) {
  visit([&](const AdapterKind& kind, const AdapterRows& rows) { kind.forward_sum(rows, rows_of(rows, y)); });
  tell(costmodel::Pass::forward);
}

void AdapterGroup::backward_output(ConstMatrix x, Matrix dy) {
  visit([&](const AdapterKind& kind, const AdapterRows& rows) {
    kind.backward_sum(rows, rows_of(rows, dy));
    kind.backward_output(rows, rows_of(rows, x), rows_of(rows, dy));
  });
}

void AdapterGroup::backward_ahead(ConstMatrix x, ConstMatrix dy, Matrix dx, Products& added) {
  visit_methods(true, [&](const AdapterKind& kind, std::span<const AdapterRows> tasks) {
    kind.backward_ahead(tasks, x, dy, dx, added);
  });
}

void AdapterGroup::backward(ConstMatrix x, ConstMatrix dy, Matrix dx) {
  visit_methods(
      false, [&](const AdapterKind& kind, std::span<const AdapterRows> tasks) { kind.backward_all(tasks, x, dy, dx); });
  if (dx.rows > 0)
    visit([&](const AdapterKind& kind, const AdapterRows& rows) {
      kind.backward_input(rows, rows_of(rows, x), rows_of(rows, dx));
    });
  tell(dx.rows > 0 ? costmodel::Pass::backward : costmodel::Pass::parameters);
}

}  // namespace braid::exec
