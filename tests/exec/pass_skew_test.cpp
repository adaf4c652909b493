#include "exec/pass_skew.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/random.h"

namespace braid::exec {
namespace {

constexpr PassSkew::Kind kForward{0, 64, costmodel::Pass::forward}, kBackward{0, 64, costmodel::Pass::backward};

TEST(PassSkew, IsOneWhereNothingVaries) {
  PassSkew skew;
  EXPECT_EQ(skew.factor(), 1);
  for (int pass = 0; pass < 5; ++pass) skew.add(kForward, std::vector<double>{1.0, 2.0, 3.0}, 6.5);
  EXPECT_NEAR(skew.factor(), 1, 1e-12);
}

TEST(PassSkew, FindsWhatOperatorsAreHeldUpByNowAndThen) {
  // One time in ten each of 400 operators takes twice as long, which no median tells.
  PassSkew skew;
  RandomStream random(1);
  for (const PassSkew::Kind& kind : {kForward, kBackward}) {
    for (int pass = 0; pass < 40; ++pass) {
      std::vector<double> operators;
      double total = 1;  // beside the operators
      for (int i = 0; i < 400; ++i) {
        operators.push_back(random.next_below(10) == 0 ? 2 : 1);
        total += operators.back();
      }
      skew.add(kind, operators, total);
    }
  }
  EXPECT_NEAR(skew.factor(), 1.1, 0.01);
}

TEST(PassSkew, PassesOfAKindHaveTheSameOperators) {
  PassSkew skew;
  skew.add(kForward, std::vector<double>{1.0, 2.0}, 3);
  EXPECT_THROW(skew.add(kForward, std::vector<double>{1.0}, 1), InternalError);
}

}  // namespace
}  // namespace braid::exec
