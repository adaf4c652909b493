#pragma once

#include <string_view>

/// What templates may use. Names that are not here are refused when a template is read.
namespace braid::workload::jinja {

bool is_known_function(std::string_view name);
bool is_known_filter(std::string_view name);
bool is_known_test(std::string_view name);
bool is_known_method(std::string_view name);

}  // namespace braid::workload::jinja
