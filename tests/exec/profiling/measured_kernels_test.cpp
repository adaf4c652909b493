#include "exec/profiling/measured_kernels.h"

#include <cmath>
#include <optional>
#include <set>

#include <gtest/gtest.h>

#include "base/error.h"
#include "costmodel/shapes.h"
#include "exec/profiling/measured_points.h"
#include "exec/ranks/thread_ranks.h"
#include "kernels/host_memory.h"

namespace braid::exec {
namespace {

using namespace kernels;
using costmodel::KernelChoice;
using costmodel::Operator;
using costmodel::Pass;

/// The reference with second kernels, on a clock of its own, so that what a kernel takes is what the test says.
struct Pace {
  double second_attention = 1;  ///< of the first one's time
  std::int64_t slow_below = 0;  ///< attention's sequences below this take the second kernel twice as long
  double second_forward_product = 1, second_backward_product = 1;
  bool wrong_attention = false;
  bool attention_leaks = false;  ///< no numbers of one sequence become another's
  bool attention_fails = false;
  double graphs = 0;  ///< what layers that are launched as graphs take of others' time; 0: there are none
  std::int64_t graphs_slow_above = 0;  ///< tokens above which it is twice that of others; 0: none
  std::int64_t graphs_fail_above = 0;  ///< likewise
  bool graphs_fail = false, graphs_lose_work = false;
};

class TwoKernels final : public HostMemoryDevice {
 public:
  explicit TwoKernels(const Pace& pace) : pace_(pace) { current = this; }
  std::string_view name() const override { return "two kernels"; }
  std::vector<std::string> library_versions() const override { return {}; }
  bool has_second_kernel(Operator op) override {
    return op == Operator::linear || op == Operator::attention || (op == Operator::launch && pace_.graphs > 0);
  }
  bool joins_products() const override {
    return std::ranges::find(chosen_, Operator::linear, &KernelChoice::op) != chosen_.end();
  }
  void choose_kernels(std::vector<KernelChoice> choices) override {
    Device::choose_kernels(choices);
    chosen_ = std::move(choices);
  }
  const std::vector<KernelChoice>& chosen() const { return chosen_; }

  std::unique_ptr<Event> record() override {
    class Now final : public Event {
     public:
      explicit Now(double seconds) : seconds_(seconds) {}
      std::optional<SteadyClock::time_point> ended() override {
        return SteadyClock::time_point(
            std::chrono::duration_cast<SteadyClock::duration>(std::chrono::duration<double>(seconds_)));
      }

     private:
      double seconds_;
    };
    return std::make_unique<Now>(now_);
  }

  void begin_subgraph(const SubgraphCall& call) override {
    if (!takes(Operator::launch, call.pass, {}, call.tokens)) return;
    if (pace_.graphs_fail_above > 0 && call.tokens > pace_.graphs_fail_above) throw Failure("no memory");
    begun_ = {now_, pace_.graphs_slow_above > 0 && call.tokens > pace_.graphs_slow_above ? 2 : pace_.graphs};
    // The first of its kind is none.
    captures_ = !kinds_.insert(call.kind).second;
  }
  void end_subgraph() override {
    if (begun_) now_ = begun_->first + begun_->second * (now_ - begun_->first);
    if (begun_ && captures_ && pace_.graphs_fail) throw Failure("no graph");
    begun_.reset();
    captures_ = false;
  }
  void drop_subgraph() override {
    begun_.reset();
    captures_ = false;
  }

  const Kernels& kernels() const override {
    static const std::unique_ptr<Device> reference = make_reference_device();
    static const Kernels table = [] {
      Kernels two = reference->kernels();
      two.attention_forward = attend;
      two.pack_linear = pack;
      return two;
    }();
    return table;
  }

 private:
  static constexpr double kSecondsAToken = 1e-2;

  bool takes(Operator op, Pass pass, const costmodel::OperatorShape& shape, std::int64_t amount) const {
    return costmodel::takes_second_kernel(chosen_, op, pass, shape, amount);
  }

  static void attend(const AttentionShape& shape, std::span<const SequenceRows> sequences, ConstMatrix q, ConstMatrix k,
                     ConstMatrix v, Matrix out, Matrix log_sum) {
    reference::attention_forward(shape, sequences, q, k, v, out, log_sum);
    std::int64_t longest = 0;
    for (const SequenceRows& sequence : sequences) longest = std::max(longest, sequence.count);
    double share = 1;
    if (current->takes(Operator::attention, Pass::forward, {shape.heads, shape.kv_heads, shape.head_dim}, longest)) {
      share = longest < current->pace_.slow_below ? 2 : current->pace_.second_attention;
      if (current->pace_.wrong_attention) reference::scale(0.5F, out, false, out);
      if (current->pace_.attention_leaks && std::isnan(v.row(v.rows - 1)[0])) out.row(0)[0] = v.row(v.rows - 1)[0];
      if (current->pace_.attention_fails) throw Failure("no kernel");
    }
    if (current->captures_ && current->pace_.graphs_lose_work) reference::fill(0, out);
    current->now_ += share * kSecondsAToken * static_cast<double>(q.rows);
  }

  class Linear final : public FrozenLinear {
   public:
    explicit Linear(std::unique_ptr<FrozenLinear> plain) : plain_(std::move(plain)) {}
    std::int64_t in() const override { return plain_->in(); }
    std::int64_t out() const override { return plain_->out(); }
    ConstVector bias() const override { return plain_->bias(); }
    std::int64_t bytes() const override { return plain_->bytes(); }
    std::vector<std::span<std::byte>> storage() override { return plain_->storage(); }
    void forward(ConstMatrix x, Matrix y) const override { plain_->forward(x, y), spend(1, x); }
    void backward(ConstMatrix dy, Matrix dx) const override { plain_->backward(dy, dx), spend(1, dy); }
    bool forward_joined(ConstMatrix x, Matrix y, std::span<const MatmulCall> added) const override {
      if (!current->takes(Operator::linear, Pass::forward, {in(), out()}, x.rows)) return false;
      plain_->forward(x, y);
      return join(current->pace_.second_forward_product, x, added);
    }
    bool backward_joined(ConstMatrix dy, Matrix dx, std::span<const MatmulCall> added) const override {
      if (!current->takes(Operator::linear, Pass::backward, {in(), out()}, dy.rows)) return false;
      plain_->backward(dy, dx);
      return join(current->pace_.second_backward_product, dy, added);
    }

   private:
    static bool join(double share, ConstMatrix read, std::span<const MatmulCall> added) {
      for (const MatmulCall& call : added) current->kernels().matmul_group({&call, 1});
      spend(share, read);
      return true;
    }
    static void spend(double share, ConstMatrix read) {
      current->now_ += share * 1e-6 * static_cast<double>(read.rows);
    }
    std::unique_ptr<FrozenLinear> plain_;
  };
  static std::unique_ptr<FrozenLinear> pack(ConstMatrix weight, std::span<const float> bias, bool backward,
                                            WeightType type) {
    return std::make_unique<Linear>(reference::pack_linear(weight, bias, backward, type));
  }

  static inline thread_local TwoKernels* current = nullptr;
  Pace pace_;
  std::vector<KernelChoice> chosen_;
  double now_ = 1;
  std::optional<std::pair<double, double>> begun_;  // a subgraph: when, and its share of time
  bool captures_ = false;
  std::set<std::size_t> kinds_;
};

costmodel::BackboneShape tiny_backbone() {
  costmodel::BackboneShape shape = costmodel::small_backbone();
  shape.hidden = 32, shape.intermediate = 40, shape.vocabulary = 50;
  shape.heads = 2, shape.kv_heads = 1, shape.head_dim = 8;
  return shape;
}

/// Two tasks with LoRA on all layers' products, one with dropout. Time is left for passes of 128 and 512 tokens, in
/// sequences of 32 and of 128.
KernelTrialResult tried(const Pace& pace, Communicator& communicator, double seconds = 200,
                        std::vector<std::int64_t> sizes = {128, 512, 2048, 8192}) {
  const costmodel::BackboneShape backbone = tiny_backbone();
  costmodel::AdapterShape adapter{4, 8.0, false, 0.0, {}};
  adapter.targets = costmodel::kSeparateModules;
  std::vector<costmodel::AdapterShape> adapters = {adapter, adapter};
  adapters[1].dropout = 0.1;
  TwoKernels device(pace);
  KernelTrialResult result =
      try_kernels({backbone, adapters, costmodel::DataType::f32, seconds, std::move(sizes)}, communicator, device);
  EXPECT_TRUE(device.chosen().empty()) << "the device is left with its first kernels";
  return result;
}
KernelTrialResult tried(const Pace& pace, double seconds = 200) {
  return tried(pace, *make_local_communicator(), seconds);
}

void expect_note(const KernelTrialResult& found, const std::string& words) {
  EXPECT_TRUE(found.choices.empty());
  ASSERT_EQ(found.notes.size(), 1U);
  EXPECT_NE(found.notes[0].find(words), std::string::npos) << found.notes[0];
}

TEST(TryKernels, TheFasterIsChosenByShapeAndPass) {
  const costmodel::BackboneShape shape = tiny_backbone();
  const KernelTrialResult found = tried({.second_attention = 0.5, .second_backward_product = 0.8});
  EXPECT_TRUE(found.notes.empty());
  std::vector<KernelChoice> expected;
  for (const auto& [in, out] : {std::pair(shape.hidden, shape.qkv_width()),
                                {shape.query_width(), shape.hidden},
                                {shape.hidden, 2 * shape.intermediate},
                                {shape.intermediate, shape.hidden}})
    expected.push_back({Operator::linear, Pass::backward, {in, out}, 128});
  expected.push_back({Operator::attention, Pass::forward, {shape.heads, shape.kv_heads, shape.head_dim}, 32});
  EXPECT_EQ(found.choices.size(), expected.size());
  for (const KernelChoice& choice : expected)
    EXPECT_NE(std::ranges::find(found.choices, choice), found.choices.end())
        << name(choice.op) << " " << choice.shape[0] << " " << choice.shape[1];
}

TEST(TryKernels, FromTheSizeOnFromWhichItIsTheFaster) {
  const KernelTrialResult found = tried({.second_attention = 0.5, .slow_below = 100});
  ASSERT_EQ(found.choices.size(), 1U);
  EXPECT_EQ(found.choices[0].op, Operator::attention);
  EXPECT_EQ(found.choices[0].from, 128);
}

TEST(TryKernels, WhatIsNoFasterIsLeft) {
  EXPECT_TRUE(tried({}).choices.empty());
  EXPECT_TRUE(
      tried({.second_attention = 0.99, .second_forward_product = 0.98, .second_backward_product = 2}).choices.empty());
}

/// Graphs spare the host's time, of which small microbatches leave the least.
TEST(TryKernels, GraphsAreForUpToTheSizeThatTheyAreTheFasterFor) {
  const auto tried_on = [](const Pace& pace, std::vector<std::int64_t> sizes) {
    return tried(pace, *make_local_communicator(), 1000, std::move(sizes));
  };
  const KernelTrialResult all = tried_on({.graphs = 0.9}, {16, 64});
  ASSERT_EQ(all.choices.size(), 2U);
  EXPECT_EQ(all.choices, costmodel::all_of(Operator::launch));
  const auto expect_up_to = [](const KernelTrialResult& found, std::int64_t most) {
    ASSERT_EQ(found.choices.size(), 2U);
    for (const KernelChoice& choice : found.choices) {
      EXPECT_EQ(choice.op, Operator::launch);
      EXPECT_EQ(choice.to, most);
    }
  };
  expect_up_to(tried_on({.graphs = 0.9, .graphs_slow_above = 20}, {16, 64}), 16);
  // Of larger ones than there was time, or memory, for nothing is known.
  expect_up_to(tried_on({.graphs = 0.9}, {16, 64, 100000}), 64);
  expect_up_to(tried_on({.graphs = 0.9, .graphs_fail_above = 700}, {16, 64, 800}), 64);
  EXPECT_TRUE(tried_on({.graphs = 0.98}, {16, 64}).choices.empty());
  expect_note(tried({.graphs = 0.5, .graphs_fail = true}), "launching layers as CUDA graphs does not run");
  expect_note(tried({.graphs = 0.5, .graphs_lose_work = true}), "CUDA graphs computes other gradients");
}

/// Whatever it takes.
TEST(TryKernels, WhatComputesOtherwiseIsLeftAndTold) {
  expect_note(tried({.second_attention = 0.1, .wrong_attention = true}),
              "second kernel of attention computes other gradients");
  expect_note(tried({.second_attention = 0.1, .attention_leaks = true}),
              "second kernel of attention computes other gradients");
  expect_note(tried({.second_attention = 0.1, .attention_fails = true}), "second kernel of attention does not run");
}

/// Ranks choose alike, and none waits for another, where one rank's alone is wrong.
TEST(TryKernels, RanksAreOfOneMind) {
  for (const auto& [wrong, fails] : {std::pair(-1, false), {1, false}, {0, true}}) {
    run_on_threads(2, [wrong = wrong, fails = fails](Communicator& communicator) {
      const bool odd = communicator.rank() == wrong;
      const KernelTrialResult found = tried(
          {.second_attention = 0.5, .wrong_attention = odd && !fails, .attention_fails = odd && fails}, communicator);
      EXPECT_EQ(found.choices.size(), wrong < 0 ? 2U : 0U) << "of a whole, and of one of two shards";
      EXPECT_EQ(found.notes.size(), wrong < 0 ? 0U : 1U);
    });
  }
}

TEST(TryKernels, WithoutTimeNothingIsChosenAndItIsTold) {
  const KernelTrialResult none = tried({.second_attention = 0.1}, 0);
  EXPECT_TRUE(none.choices.empty());
  EXPECT_EQ(none.notes.size(), 2U);
  // Time for the smallest size alone tells nothing of others.
  const KernelTrialResult little = tried({.second_attention = 0.1}, 50);
  EXPECT_TRUE(little.choices.empty());
  EXPECT_EQ(little.notes.size(), 2U);
}

/// A processor has one kernel an operator.
TEST(TryKernels, NothingIsTriedWhereThereIsNoSecond) {
  const std::unique_ptr<Communicator> alone = make_local_communicator();
  const std::unique_ptr<Device> device = make_reference_device();
  const costmodel::BackboneShape backbone = tiny_backbone();
  const std::vector<costmodel::AdapterShape> none;
  EXPECT_TRUE(try_kernels({backbone, none, costmodel::DataType::f32, 1}, *alone, *device).choices.empty());
}

}  // namespace
}  // namespace braid::exec
