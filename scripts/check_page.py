#!/usr/bin/env python3
"""Renders a report's page in headless Chromium, as wide as a screen and as a phone, and measures it there.

usage: scripts/check_page.py PAGE [PICTURES]   (PICTURES: a folder for screenshots)

Nothing may make the page wider than its window, no text of a picture may stick out of it or lie over other text of it,
and none may be smaller than eight pixels. Exit status 77: there is no Chromium here, or none that runs."""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

LEAST_PIXELS = 8
# Runs in the page: what is wrong with it, as a list.
MEASURE = """
<script>
const wrong = [];
const root = document.documentElement;
if (root.scrollWidth > window.innerWidth) wrong.push(`the page is ${root.scrollWidth} wide in ${window.innerWidth}`);
for (const picture of document.querySelectorAll('figure svg[role=img]')) {
  const frame = picture.getBoundingClientRect(), name = picture.getAttribute('aria-label');
  const texts = [...picture.querySelectorAll('text')].map(text => [text.textContent, text.getBoundingClientRect(), text]);
  for (const [words, box, text] of texts) {
    if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1)
      wrong.push(`'${words}' sticks out of '${name}'`);
    const size = parseFloat(getComputedStyle(text).fontSize) * frame.width / picture.viewBox.baseVal.width;
    if (size < LEAST) wrong.push(`'${words}' of '${name}' is ${size.toFixed(1)} pixels high`);
    for (const [others, other] of texts) {
      if (other === box) continue;
      const apart = other.left > box.right - 1 || box.left > other.right - 1 || other.top > box.bottom - 3 || box.top > other.bottom - 3;
      if (!apart) wrong.push(`'${words}' lies over '${others}' in '${name}'`);
    }
  }
}
document.title = JSON.stringify([document.querySelectorAll('figure svg[role=img]').length, wrong]);
</script>
</body>
""".replace("LEAST", str(LEAST_PIXELS))


def main() -> None:
    page, *folder = map(Path, sys.argv[1:])
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        print("there is no Chromium here", file=sys.stderr)
        raise SystemExit(77)
    failed = False
    with tempfile.TemporaryDirectory() as temporary:
        measured = Path(temporary) / "page.html"
        measured.write_text(page.read_text().replace("</body>\n", MEASURE))
        for name, width in (("screen", 1000), ("phone", 390)):
            words = [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={temporary}/{name}"]
            # Chromium's windows are no narrower than 500: a phone's screen is a frame in one.
            shown = measured
            if width < 500:
                shown = Path(temporary) / "phone.html"
                source = measured.read_text().replace("&", "&amp;").replace('"', "&quot;")
                shown.write_text(f'<iframe srcdoc="{source}" style="width:{width}px;height:4000px;border:0"></iframe>'
                                 "<script>setTimeout(() => document.title = frames[0].document.title, 500)</script>")
            run = subprocess.run(
                [*words, f"--window-size={max(width, 500)},4000", "--virtual-time-budget=4000", "--dump-dom", shown.as_uri()],
                capture_output=True, text=True, check=True, timeout=120,
            )
            title = re.search(r"<title>(\[.*?\])</title>", run.stdout, re.DOTALL)
            if not title:
                raise SystemExit(f"error: {page}: not measured on a {name}")
            pictures, wrong = json.loads(title[1].replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">"))
            print(f"{page}: {pictures} pictures on a {name} of {width} pixels, {len(wrong)} faults")
            for fault in wrong[:20]:
                print(f"  {fault}")
            failed |= bool(wrong) or pictures == 0
            for pictures_folder in folder:
                pictures_folder.mkdir(parents=True, exist_ok=True)
                subprocess.run(
                    [*words, "--hide-scrollbars", f"--window-size={max(width, 500)},6000",
                     f"--screenshot={pictures_folder / name}.png", shown.as_uri()],
                    capture_output=True, check=True, timeout=120,
                )
    if failed:
        raise SystemExit("error: the page does not look as it should")


if __name__ == "__main__":
    try:
        main()
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as broken:
        print(f"Chromium does not run here: {broken}", file=sys.stderr)
        raise SystemExit(77) from None
