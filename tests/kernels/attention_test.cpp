#include "kernels/attention.h"

#include <deque>
#include <numeric>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "testing.h"

namespace braid::kernels {
namespace {

using testing::fill_normal;
using testing::normal_matrix;
using testing::OwnedMatrix;
using testing::same_bits;
using testing::with_threads;

/// Everything that one forward and backward pass reads and writes.
struct Case {
  AttentionShape shape;
  std::vector<SequenceRows> sequences;
  OwnedMatrix q, k, v, dout, out, log_sum, dq, dk, dv;

  Case(RandomStream& random, AttentionShape heads, const std::vector<std::int64_t>& lengths, std::int64_t gap = 3)
      : Case(random, heads, sequences_of(lengths), std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}),
             gap) {}

  Case(RandomStream& random, AttentionShape heads, std::vector<SequenceRows> rows, std::int64_t tokens,
       std::int64_t gap)
      : shape(heads),
        sequences(std::move(rows)),
        q(normal_matrix(random, tokens, heads.heads * heads.head_dim, gap)),
        k(normal_matrix(random, tokens, heads.kv_heads * heads.head_dim, gap)),
        v(normal_matrix(random, tokens, heads.kv_heads * heads.head_dim, gap)),
        dout(normal_matrix(random, tokens, heads.heads * heads.head_dim, gap)),
        out(tokens, q.columns(), gap),
        log_sum(tokens, heads.heads, gap),
        dq(tokens, q.columns(), gap),
        dk(tokens, k.columns(), gap),
        dv(tokens, v.columns(), gap) {}

  static std::vector<SequenceRows> sequences_of(const std::vector<std::int64_t>& lengths) {
    std::vector<SequenceRows> sequences;
    std::int64_t first = 0;
    for (const std::int64_t length : lengths) {
      sequences.push_back({first, length});
      first += length;
    }
    return sequences;
  }

  void run_reference() {
    run_reference_forward();
    run_reference_backward();
  }
  void run_reference_forward() { reference::attention_forward(shape, sequences, q, k, v, out, log_sum); }
  void run_reference_backward() {
    reference::attention_backward(shape, sequences, q, k, v, out, log_sum, dout, dq, dk, dv);
  }

  void run() {
    run_forward();
    run_backward();
  }
  void run_forward() { cpu::attention_forward(shape, sequences, q, k, v, out, log_sum); }
  void run_backward() { cpu::attention_backward(shape, sequences, q, k, v, out, log_sum, dout, dq, dk, dv); }

  std::vector<std::pair<const char*, OwnedMatrix*>> results() {
    return {{"out", &out}, {"log_sum", &log_sum}, {"dq", &dq}, {"dk", &dk}, {"dv", &dv}};
  }
};

void expect_near(Case& actual, Case& expected, double tolerance) {
  for (std::size_t i = 0; i < actual.results().size(); ++i) {
    const auto [name, matrix] = actual.results()[i];
    EXPECT_TRUE(testing::near(*matrix, *expected.results()[i].second, tolerance)) << name;
    EXPECT_TRUE(matrix->guards_untouched()) << name;
  }
}

void expect_same_rows(Case& actual, std::int64_t actual_first, Case& expected, std::int64_t expected_first,
                      std::int64_t count) {
  for (std::size_t i = 0; i < actual.results().size(); ++i) {
    const auto [name, matrix] = actual.results()[i];
    EXPECT_TRUE(same_bits(matrix->view().row_range(actual_first, actual_first + count),
                          expected.results()[i].second->view().row_range(expected_first, expected_first + count)))
        << name;
  }
}

TEST(Attention, OneKeyGivesItsValue) {
  RandomStream random(1);
  Case test(random, {4, 2, 6}, {1});
  test.run();
  for (std::int64_t head = 0; head < 4; ++head) {
    EXPECT_TRUE(testing::near(test.out.view().column_range(head * 6, head * 6 + 6),
                              test.v.view().column_range(head / 2 * 6, head / 2 * 6 + 6), 1e-6));
  }
}

TEST(Attention, ReferenceBackwardEqualsFiniteDifferences) {
  RandomStream random(2);
  Case test(random, {4, 2, 5}, {3, 1, 6});
  test.run_reference();
  OwnedMatrix out = test.out, log_sum = test.log_sum;
  const auto loss = [&] {
    reference::attention_forward(test.shape, test.sequences, test.q, test.k, test.v, out, log_sum);
    return testing::inner_product(out, test.dout);
  };
  EXPECT_TRUE(testing::near(test.dq, finite_differences(test.q, loss), 1e-3));
  EXPECT_TRUE(testing::near(test.dk, finite_differences(test.k, loss), 1e-3));
  EXPECT_TRUE(testing::near(test.dv, finite_differences(test.v, loss), 1e-3));
}

RC_GTEST_PROP(Attention, EqualsItsReference, ()) {
  const auto lengths = *rc::gen::container<std::vector<std::int64_t>>(*rc::gen::inRange<std::size_t>(0, 5),
                                                                      rc::gen::inRange<std::int64_t>(0, 90));
  const std::int64_t kv_heads = *rc::gen::inRange(1, 4), group = *rc::gen::inRange(1, 9);
  const std::int64_t size = *rc::gen::element(1, 4, 7, 16, 20, 64, 80);
  RandomStream random(*rc::gen::arbitrary<std::uint32_t>());
  Case test(random, {kv_heads * group, kv_heads, size}, lengths, *rc::gen::element(0, 3));
  Case expected = test;
  test.run();
  expected.run_reference();
  expect_near(test, expected, 1e-5);
}

TEST(Attention, EqualsItsReferenceOnLongSequencesAndWideHeads) {
  RandomStream random(3);
  for (const AttentionShape& shape : {AttentionShape{2, 1, 64}, {1, 1, 128}, {7, 1, 64}, {64, 1, 8}}) {
    Case test(random, shape, {shape.heads > 2 ? 200 : 1000, 7, 37, 128});
    Case expected = test;
    test.run();
    expected.run_reference();
    expect_near(test, expected, 2e-5);
  }
}

TEST(Attention, LargeScoresStayFinite) {
  RandomStream random(4);
  Case test(random, {2, 1, 16}, {70});
  for (OwnedMatrix* matrix : {&test.q, &test.k}) fill_normal(*matrix, random, 30.0F);
  Case expected = test;
  test.run();
  expected.run_reference();
  EXPECT_TRUE(testing::near(test.out, expected.out, 1e-3));
  EXPECT_TRUE(testing::near(test.log_sum, expected.log_sum, 1e-5));
}

TEST(Attention, NoRowDependsOnAnotherSequencesValues) {
  RandomStream random(5);
  const std::vector<std::int64_t> lengths{50, 131, 70};
  Case test(random, {6, 2, 24}, lengths);
  Case changed = test;
  for (OwnedMatrix* matrix : {&changed.q, &changed.k, &changed.v, &changed.dout}) {
    for (const SequenceRows& other : {changed.sequences[0], changed.sequences[2]}) {
      fill_normal(matrix->view().row_range(other.first, other.first + other.count), random, 100.0F);
    }
  }
  test.run();
  changed.run();
  expect_same_rows(changed, 50, test, 50, 131);
}

TEST(Attention, RowsDoNotDependOnWhereTheirSequenceStands) {
  RandomStream random(6);
  Case test(random, {8, 2, 40}, {13, 150, 60});
  test.run();
  Case alone(random, {8, 2, 40}, {150}, 8);
  const auto copy_rows = [](const OwnedMatrix& from, OwnedMatrix& to) {
    for (std::int64_t row = 0; row < 150; ++row)
      std::copy_n(from.view().row(13 + row), from.columns(), to.view().row(row));
  };
  copy_rows(test.q, alone.q);
  copy_rows(test.k, alone.k);
  copy_rows(test.v, alone.v);
  copy_rows(test.dout, alone.dout);
  alone.run();
  expect_same_rows(alone, 0, test, 13, 150);
}

TEST(Attention, OutputsDoNotDependOnLaterRows) {
  RandomStream random(7);
  constexpr std::int64_t kAll = 140;
  Case test(random, {5, 1, 32}, {kAll});
  test.run();
  for (const std::int64_t count : {1, 9, 63, 64, 65, 100}) {
    Case shorter = test;
    shorter.sequences = {{0, count}};
    for (OwnedMatrix* matrix : {&shorter.k, &shorter.v}) {
      fill_normal(matrix->view().row_range(count, kAll), random, 100.0F);
    }
    shorter.run();
    EXPECT_TRUE(same_bits(shorter.out.view().row_range(0, count), test.out.view().row_range(0, count))) << count;
    EXPECT_TRUE(same_bits(shorter.dq.view().row_range(0, count), test.dq.view().row_range(0, count))) << count;
  }
}

/// A sequence in chunks that end at `ends`, each a microbatch of its own beside another sequence: forward in order,
/// backward in reverse. The rows of `whole` are its queries, keys and values.
struct Chunks {
  Chunks(RandomStream& random, const Case& sequence, std::vector<std::int64_t> chunk_ends)
      : whole(sequence), ends(std::move(chunk_ends)) {
    std::int64_t begin = 0;
    for (const std::int64_t end : ends) {
      // The other sequence first, so that the chunk's rows do not begin at 0.
      Case& chunk = cases.emplace_back(random, whole.shape, std::vector<std::int64_t>{kOther, end - begin});
      for (const auto part : {&Case::q, &Case::k, &Case::v, &Case::dout}) copy(whole.*part, begin, chunk.*part, kOther);
      for (int i = 0; i < 2; ++i) later.emplace_back(end - begin, chunk.k.columns());
      begin = end;
    }
  }

  template <typename Forward, typename Backward>
  void run(const Forward& forward, const Backward& backward) {
    std::vector<EarlierKeys> earlier;
    earlier.reserve(cases.size());
    for (std::size_t c = 0; c < cases.size(); ++c) {
      Case& chunk = cases[c];
      chunk.sequences[1].earlier = std::span(earlier);
      forward(chunk);
      const std::int64_t last = kOther + chunk.sequences[1].count;
      earlier.push_back({chunk.k.view().row_range(kOther, last), chunk.v.view().row_range(kOther, last),
                         later[2 * c].view(), later[2 * c + 1].view()});
    }
    for (std::size_t c = cases.size(); c-- > 0;) {
      cases[c].sequences[1].earlier = std::span(earlier).first(c);
      cases[c].sequences[1].later_dk = later[2 * c].view();
      cases[c].sequences[1].later_dv = later[2 * c + 1].view();
      backward(cases[c]);
    }
    std::int64_t begin = 0;
    for (std::size_t c = 0; c < cases.size(); ++c) {
      for (const auto part : {&Case::out, &Case::log_sum, &Case::dq, &Case::dk, &Case::dv})
        copy(cases[c].*part, kOther, whole.*part, begin, ends[c] - begin);
      EXPECT_TRUE(later[2 * c].guards_untouched() && later[2 * c + 1].guards_untouched());
      begin = ends[c];
    }
  }

  static void copy(OwnedMatrix& from, std::int64_t from_row, OwnedMatrix& to, std::int64_t to_row,
                   std::int64_t count = -1) {
    if (count < 0) count = to.rows() - to_row;
    for (std::int64_t row = 0; row < count; ++row)
      std::copy_n(from.view().row(from_row + row), from.columns(), to.view().row(to_row + row));
  }

  static constexpr std::int64_t kOther = 11;
  Case whole;
  std::vector<std::int64_t> ends;
  std::vector<Case> cases;
  std::deque<OwnedMatrix> later;  // what later chunks add, dk and dv of each chunk
};

RC_GTEST_PROP(Attention, ASequenceInChunksGetsWhatItGetsWhole, ()) {
  const auto lengths = *rc::gen::container<std::vector<std::int64_t>>(*rc::gen::inRange<std::size_t>(1, 5),
                                                                      rc::gen::inRange<std::int64_t>(1, 90));
  std::vector<std::int64_t> ends(lengths.size());
  std::partial_sum(lengths.begin(), lengths.end(), ends.begin());
  const std::int64_t kv_heads = *rc::gen::inRange(1, 4), group = *rc::gen::inRange(1, 6);
  const std::int64_t size = *rc::gen::element(1, 7, 16, 20, 64);
  RandomStream random(*rc::gen::arbitrary<std::uint32_t>());
  Case whole(random, {kv_heads * group, kv_heads, size}, {ends.back()});
  Chunks chunks(random, whole, ends);
  Chunks expected = chunks;
  whole.run();
  chunks.run([](Case& chunk) { chunk.run_forward(); }, [](Case& chunk) { chunk.run_backward(); });
  expected.run([](Case& chunk) { chunk.run_reference_forward(); }, [](Case& chunk) { chunk.run_reference_backward(); });
  expect_near(chunks.whole, expected.whole, 1e-5);
  expect_near(chunks.whole, whole, 1e-5);
  for (const auto part : {&Case::out, &Case::log_sum, &Case::dq, &Case::dk, &Case::dv})
    RC_ASSERT(same_bits((chunks.whole.*part).view(), (whole.*part).view()));
}

TEST(Attention, BitsDoNotDependOnThreads) {
  RandomStream random(8);
  Case alone(random, {8, 4, 64}, {3, 128, 257, 64, 1});
  Case before = alone;
  with_threads(1, [&] { alone.run(); });
  for (const int threads : {2, 3, 8}) {
    Case together = before;
    with_threads(threads, [&] { together.run(); });
    expect_same_rows(together, 0, alone, 0, alone.q.rows());
  }
}

}  // namespace
}  // namespace braid::kernels
