#include "sim/cluster/instances/instances.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/error.h"
#include "sim/cluster/moments.h"

namespace braid::sim {

double Instance::first_end_steps() const {
  double first = kNever;
  for (const Member& member : members) first = std::min(first, member.end_steps);
  return first;
}

Instances::Instances(GpuPool pool, TaskSets& sets, Joining joining, const InstanceRules& rules)
    : pool_(std::move(pool)), sets_(sets), rules_(rules), choice_(sets, joining), audit_(rules.audit_seed) {
  if (rules.outages.next() != kNever)
    owners_.assign(static_cast<std::size_t>(pool_.nodes() * pool_.gpus_per_node()), kNobody);
}

bool Instances::fits(KindIndex kind, std::int64_t gpus) {
  if (fits_alone(gpus)) return true;
  if (!sets_.shares()) return false;
  if (choice_.best(kind, gpus, false) != kNobody) return true;
  return rules_.scales && growth_for(kind).place != kNobody;
}

InstanceIndex Instances::place_for(KindIndex kind, std::int64_t gpus, double now) {
  InstanceIndex place = rules_.scales ? grow_for(kind) : kNobody;
  if (place == kNobody && sets_.shares()) place = choice_.best(kind, gpus, pool_.fits(gpus));
  return place < 0 ? start(gpus, sets_.shares(), now) : place;
}

InstanceIndex Instances::start_alone(std::int64_t gpus, double now) {
  if (!pool_.fits(gpus)) give_up_idle();
  return start(gpus, false, now);
}

InstanceIndex Instances::start(std::int64_t gpus, bool open, double now) {
  auto place = static_cast<InstanceIndex>(instances_.size());
  if (vacant_.empty()) {
    instances_.emplace_back();
  } else {
    place = vacant_.back();
    vacant_.pop_back();
  }
  take_gpus(place, gpus);
  Instance& instance = at(place);
  instance.open = open;
  instance.set = sets_.empty(gpus);
  instance.backbone = Instance::kNoBackbone;
  instance.steps = 0;
  instance.at_seconds = now;
  instance.number = static_cast<std::int32_t>(totals_.started++);
  if (open) {
    choice_.add(place, instance.set);
    idle_gpus_ += gpus;
  }
  return place;
}

/// The first instance started of those that have fewer tasks than the largest has GPUs, and that can get as many GPUs
/// as they would have tasks.
Instances::Growth Instances::growth_for(KindIndex kind) {
  for (const auto& [number, place] : growable_) {
    const Instance& instance = at(place);
    const std::int64_t tasks = sets_.tasks(instance.set) + 1;
    const std::int64_t gpus = std::max<std::int64_t>(
        instance.gpu_count, *std::lower_bound(sets_.sizes().begin(), sets_.sizes().end(), tasks));
    if (gpus > instance.gpu_count && !pool_.fits_in_place_of(instance.gpus, gpus)) continue;
    if (sets_.with_on(instance.set, kind, gpus) != TaskSets::kNone) return {place, gpus};
  }
  return {};
}

InstanceIndex Instances::grow_for(KindIndex kind) {
  const auto [place, gpus] = growth_for(kind);
  if (place == kNobody || gpus == at(place).gpu_count) return place;
  give_gpus(place);
  take_gpus(place, gpus);
  ++totals_.growths;
  return place;
}

/// Where instances scale: whether another task makes it grow.
void Instances::note_growable(InstanceIndex place) {
  if (!rules_.scales) return;
  const Instance& instance = at(place);
  const std::int32_t tasks = sets_.tasks(instance.set);
  if (instance.open && tasks > 0 && tasks < sets_.sizes().back()) {
    growable_.emplace(instance.number, place);
  } else {
    growable_.erase({instance.number, place});
  }
}

void Instances::take_gpus(InstanceIndex place, std::int64_t gpus) {
  Instance& instance = at(place);
  instance.gpus = pool_.take(gpus);
  instance.gpu_count = gpus;
  set_owner(instance.gpus, place);
}

void Instances::give_gpus(InstanceIndex place) {
  Instance& instance = at(place);
  pool_.give(instance.gpus);
  set_owner(instance.gpus, kNobody);
  instance.gpus.clear();
}

void Instances::give_up(InstanceIndex place) {
  give_gpus(place);
  vacant_.push_back(place);
}

void Instances::give_up_idle() {
  for (const InstanceIndex place : emptied_) {
    const Instance& instance = at(place);
    if (instance.gpus.empty() || !instance.members.empty()) continue;
    choice_.remove(place, instance.set);
    idle_gpus_ -= instance.gpu_count;
    give_up(place);
  }
  emptied_.clear();
}

/// Its last task has left.
void Instances::empty(InstanceIndex place) {
  const Instance& instance = at(place);
  if (instance.open && !rules_.scales) {
    idle_gpus_ += instance.gpu_count;
    emptied_.push_back(place);
  } else {
    if (instance.open) choice_.remove(place, instance.set);
    give_up(place);
  }
}

double Instances::join(InstanceIndex place, JobIndex job, KindIndex kind, double steps, double now) {
  Instance& instance = at(place);
  if (instance.members.empty()) {
    if (instance.open) idle_gpus_ -= instance.gpu_count;
    load(instance, kind, now);
  }
  change_set(place, sets_.with_on(instance.set, kind, instance.gpu_count), now, [&] {
    instance.members.push_back({job, kind, instance.steps + steps});
  });
  return instance.steps;
}

void Instances::leave(InstanceIndex place, JobIndex job, double now) {
  Instance& instance = at(place);
  const auto member = std::find_if(instance.members.begin(), instance.members.end(),
                                   [&](const Instance::Member& each) { return each.job == job; });
  change_set(place, sets_.without(instance.set, member->kind), now, [&] { instance.members.erase(member); });
  if (instance.members.empty()) empty(place);
}

void Instances::vacate(InstanceIndex place, double now) {
  Instance& instance = at(place);
  anchor(instance, clock(place, now), now);
  change_set(place, sets_.empty(instance.gpu_count), now, [&] { instance.members.clear(); });
  empty(place);
}

void Instances::load(Instance& instance, KindIndex kind, double now) {
  if (rules_.backbones.empty()) return;
  const InstanceRules::Backbone& wanted = rules_.backbones[static_cast<std::size_t>(kind)];
  if (instance.backbone == wanted.name) return;
  instance.backbone = wanted.name;
  instance.load_seconds = wanted.load_seconds;
  instance.at_seconds = now + wanted.load_seconds;
}

double Instances::clock(InstanceIndex place, double now) const {
  const Instance& instance = (*this)[place];
  if (instance.members.empty() || now <= instance.at_seconds) return instance.steps;
  const double passed = (now - instance.at_seconds) / sets_.step_seconds(instance.set);
  return std::min(instance.steps + passed, instance.first_end_steps());
}

double Instances::saved_steps(InstanceIndex place, double now) const {
  const Instance& instance = (*this)[place];
  const double passed = std::max(0.0, now - instance.at_seconds);
  const double checkpoints = std::floor(passed / rules_.checkpoint_seconds);
  const double saved_seconds = checkpoints > 0 ? checkpoints * rules_.checkpoint_seconds : 0;
  return std::min(clock(place, now), instance.steps + saved_seconds / sets_.step_seconds(instance.set));
}

double Instances::end_seconds(InstanceIndex place, JobIndex job) const {
  const Instance& instance = (*this)[place];
  for (const Instance::Member& member : instance.members) {
    if (member.job == job)
      return instance.at_seconds + (member.end_steps - instance.steps) * sets_.step_seconds(instance.set);
  }
  return kNever;
}

double Instances::next_end() const {
  return ends_.empty() ? kNever : ends_.top().time;
}

/// Asks memory for the instance whose tasks end next, while those of this one are seen to: with 100,000 of them what a
/// run waits for is memory.
void Instances::fetch_next() const {
  if (ends_.empty()) return;
  const auto* next = reinterpret_cast<const char*>(&(*this)[ends_.top().instance]);
  constexpr std::size_t kCacheLine = 64;
  for (std::size_t byte = 0; byte < sizeof(Instance); byte += kCacheLine) __builtin_prefetch(next + byte);
}

std::span<const JobIndex> Instances::take_ended(double now) {
  ended_.clear();
  while (ended_.empty() && next_end() == now) {
    const End end = ends_.top();
    ends_.pop();
    fetch_next();
    Instance& instance = at(end.instance);
    if (instance.version != end.version) continue;  // tasks came or went meanwhile
    const double end_steps = instance.first_end_steps();
    for (const Instance::Member& member : instance.members) {
      if (member.end_steps == end_steps) ended_.push_back(member.job);
    }
    std::sort(ended_.begin(), ended_.end());
    // At an end the clock shows that end, and not what rounding makes of it.
    anchor(instance, end_steps, now);
  }
  return ended_;
}

/// Kept where GPUs may fail.
void Instances::set_owner(const GpuSet& gpus, InstanceIndex owner) {
  if (owners_.empty()) return;
  for (const NodeGpus& part : gpus) {
    for (std::uint64_t left = part.gpus; left != 0; left &= left - 1)
      owners_[gpu_index(part.node, std::countr_zero(left))] = owner;
  }
}

InstanceIndex Instances::owner_of(const NodeGpus& gpus) const {
  for (std::uint64_t left = gpus.gpus; left != 0; left &= left - 1) {
    const InstanceIndex owner = owners_[gpu_index(gpus.node, std::countr_zero(left))];
    if (owner != kNobody) return owner;
  }
  return kNobody;
}

/// The clock is brought to the present, when it shows `steps`.
void Instances::anchor(Instance& instance, double steps, double now) {
  count_tokens(instance, -1);
  tokens_.add((steps - instance.steps) * sets_.tokens_per_second(instance.set) * sets_.step_seconds(instance.set));
  totals_.busy_gpu_seconds += (steps - instance.steps) * sets_.busy_gpu_seconds(instance.set);
  instance.steps = steps;
  instance.at_seconds = std::max(instance.at_seconds, now);
  count_tokens(instance, 1);
}

/// `change` adds or removes members when the clock shows the present.
template <typename Change>
void Instances::change_set(InstanceIndex place, SetIndex next, double now, const Change& change) {
  Instance& instance = at(place);
  BRAID_CHECK(next != TaskSets::kNone, "an instance is given a task that it cannot take");
  anchor(instance, clock(place, now), now);
  count_tokens(instance, -1);
  const bool had_others = !instance.members.empty();
  change();
  if (had_others && !instance.members.empty()) {
    ++totals_.replans;
    const bool moves = sets_.layout(instance.set) != sets_.layout(next);
    const double pause = rules_.replan_seconds + (moves ? instance.load_seconds : 0);
    instance.at_seconds = std::max(instance.at_seconds, now + pause);
  }
  if (instance.open) {
    choice_.remove(place, instance.set);
    choice_.add(place, next);
  }
  instance.set = next;
  note_growable(place);
  if (sets_.tasks(next) > 0 && audit_.next_uniform() < rules_.audited_share && sets_.is_estimated(next))
    totals_.audited.push_back(next);
  ++instance.version;
  count_tokens(instance, 1);
  if (instance.members.empty()) return;
  const double left = std::max(0.0, instance.first_end_steps() - instance.steps);
  ends_.push({instance.at_seconds + left * sets_.step_seconds(next), place, instance.version});
}

void Instances::count_tokens(const Instance& instance, int sign) {
  tokens_.add_rate(sign * sets_.tokens_per_second(instance.set), instance.at_seconds);
}

}  // namespace braid::sim
