#pragma once

#include <string>
#include <vector>

#include "report/markup.h"

namespace braid::report {

/// A picture, what to see in it, and its values as a table for who wants to read them.
struct Figure {
  std::string finding;    ///< a sentence
  std::string html = {};  ///< the picture
  Table values = {};
};

struct Section {
  std::string title;
  std::string source;  ///< the file or folder that it is about
  std::vector<std::string> paragraphs = {};
  Table table = {};  ///< the main figures
  std::vector<Figure> figures = {};
  std::string remarks_title = {};
  std::vector<std::string> remarks = {};  ///< folded away until they are asked for
};

/// What stands at the foot.
struct Foot {
  std::string command;
  std::vector<std::string> versions;
  std::vector<std::string> notes;  ///< what was found and not read, say
};

/// One HTML page that needs nothing else: no script, no font, no picture from anywhere. It is light or dark as the
/// reader's system is, prints in light colours, and is as wide as the screen.
std::string to_html(const std::string& title, const std::vector<Section>& sections, const Foot& foot);

}  // namespace braid::report
