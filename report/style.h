#pragma once

#include <string_view>

namespace braid::report {

/// The style sheet of a page. Colours are those of Okabe and Ito, which those who see red and green alike tell apart,
/// lightened on a dark page.
extern const std::string_view kStyle;

}  // namespace braid::report
