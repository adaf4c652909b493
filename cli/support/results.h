#pragma once

#include <optional>
#include <string>

#include "cli/support/course_forecast.h"

namespace braid::cli {

/// "12.3 ms", "1.2 s".
std::string duration(double seconds);
/// "12,345".
std::string grouped(double number);

/// What a plan is, and what it is predicted to do, as a person reads it.
void print_plan(const planner::Plan& plan);
/// Of a plan whose pipeline does not drain the first step is not like the others.
void print_prediction(const planner::Prediction& prediction, std::int32_t ranks, bool streams);
/// The `predicted` part of plan.json; of a run with searches `course` beside it.
std::string prediction_json(const planner::Plan& plan, const std::optional<CourseForecast>& course = {});

}  // namespace braid::cli
