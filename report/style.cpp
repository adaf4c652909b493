#include "report/style.h"

namespace braid::report {

const std::string_view kStyle = R"css(
:root {
  color-scheme: light dark;
  --paper: #ffffff; --ink: #1a1d21; --soft: #5b6470; --rule: #d9dde2; --panel: #f6f7f9;
  --c0: #0072b2; --c1: #d55e00; --c2: #009e73; --c3: #cc79a7; --c4: #b8860b; --c5: #56b4e9; --c6: #7b4fa3; --c7: #6b6b6b;
  --heat: #0072b2; --bound: #1a1d21; --level: #c1272d;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #14171a; --ink: #e8eaed; --soft: #a3abb5; --rule: #363c43; --panel: #1c2024;
    --c0: #4ea8de; --c1: #f08a4b; --c2: #3dc79a; --c3: #e3a3c8; --c4: #e0b040; --c5: #8fd0f5; --c6: #b594d6; --c7: #a0a0a0;
    --heat: #4ea8de; --bound: #e8eaed; --level: #ff6b6b;
  }
}
@media print {
  :root {
    --paper: #ffffff; --ink: #000000; --soft: #444444; --rule: #cccccc; --panel: #ffffff;
    --c0: #0072b2; --c1: #d55e00; --c2: #009e73; --c3: #cc79a7; --c4: #b8860b; --c5: #56b4e9; --c6: #7b4fa3; --c7: #6b6b6b;
    --heat: #0072b2; --bound: #000000; --level: #c1272d;
  }
  body { max-width: none; } nav, details { display: none; } figure { break-inside: avoid; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.2rem; max-width: 56rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: .4rem 0 1rem; }
h2 { font-size: 1.25rem; margin: 2.4rem 0 .2rem; padding-top: .8rem; border-top: 2px solid var(--rule); }
p { margin: .5rem 0; max-width: 44rem; }
.source { color: var(--soft); font-size: .85rem; overflow-wrap: anywhere; }
a { color: var(--c0); }
nav ol { padding-left: 1.4rem; columns: 18rem; }
figure { margin: 1.2rem 0; padding: .8rem; background: var(--panel); border: 1px solid var(--rule); border-radius: .5rem; }
figcaption { margin-bottom: .5rem; font-weight: 600; }
.scrolls { overflow-x: auto; }
figure svg { display: block; width: 100%; min-width: 36rem; height: auto; font: 12px system-ui, sans-serif; }
.legend { display: flex; flex-wrap: wrap; gap: .2rem 1rem; list-style: none; margin: 0 0 .4rem; padding: 0; font-size: .85rem; }
.legend li { display: flex; align-items: center; }
.legend svg { width: 1.75rem; min-width: 0; height: .75rem; margin-right: .35rem; flex: none; }
table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; margin: .5rem 0; }
th, td { overflow-wrap: normal; padding: .25rem .7rem; text-align: right; border-bottom: 1px solid var(--rule); white-space: nowrap; }
th:first-child, td:first-child, .words { text-align: left; } th:first-child, td:first-child { padding-left: 0; }
th { color: var(--soft); font-weight: 600; }
details { margin-top: .5rem; font-size: .85rem; } summary { cursor: pointer; color: var(--soft); }
footer { margin-top: 3rem; padding-top: .8rem; border-top: 2px solid var(--rule); color: var(--soft); font-size: .85rem; }
code { font-size: .9em; overflow-wrap: anywhere; }
svg text { fill: var(--ink); } svg .tick { fill: var(--soft); } svg .label { fill: var(--soft); } svg .head { font-weight: 600; }
.grid { stroke: var(--rule); } .axis { stroke: var(--soft); }
.line { fill: none; stroke-width: 1.8; stroke-linejoin: round; } .hover { fill: transparent; stroke: none; }
.c0 { fill: var(--c0); stroke: var(--c0); } .c1 { fill: var(--c1); stroke: var(--c1); }
.c2 { fill: var(--c2); stroke: var(--c2); } .c3 { fill: var(--c3); stroke: var(--c3); }
.c4 { fill: var(--c4); stroke: var(--c4); } .c5 { fill: var(--c5); stroke: var(--c5); }
.c6 { fill: var(--c6); stroke: var(--c6); } .c7 { fill: var(--c7); stroke: var(--c7); }
.line.c0, .line.c1, .line.c2, .line.c3, .line.c4, .line.c5, .line.c6, .line.c7 { fill: none; }
.line.c1 { stroke-dasharray: 7 3; } .line.c2 { stroke-dasharray: 2 2; } .line.c3 { stroke-dasharray: 9 3 2 3; }
.line.c5 { stroke-dasharray: 7 3; } .line.c6 { stroke-dasharray: 2 2; } .line.c7 { stroke-dasharray: 9 3 2 3; }
.line.solid { stroke-dasharray: none; } .line.dashed { stroke-dasharray: 6 4; }
rect { stroke-width: 0; } circle { stroke: none; }
rect.back { fill-opacity: .5; stroke-width: .6; } .step { fill: var(--ink); } .message { fill: var(--soft); }
.level { stroke: var(--level); stroke-dasharray: 4 3; }
.bound { stroke: var(--bound); stroke-width: 3; } .boundbox { fill: var(--bound); } .interval { stroke: var(--ink); }
.band { fill: var(--c2); fill-opacity: .18; } .bandbox { fill: var(--c2); fill-opacity: .35; } .diagonal { stroke: var(--soft); }
.h0, .h1, .h2, .h3, .h4, .h5, .h6, .h7 { fill: var(--heat); }
.h0 { fill-opacity: .06; } .h1 { fill-opacity: .14; } .h2 { fill-opacity: .22; } .h3 { fill-opacity: .3; }
.h4 { fill-opacity: .38; } .h5 { fill-opacity: .46; } .h6 { fill-opacity: .54; } .h7 { fill-opacity: .62; }
)css";

}  // namespace braid::report
