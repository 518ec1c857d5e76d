"""The examples of the documentation run."""

import contextlib
import io
import re

from .support import ROOT, ServerCase


class Docs(ServerCase):
    flags = ()

    def run_page(self, path: str) -> str:
        blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / path).read_text(), re.S | re.M)
        self.assertTrue(blocks)
        names: dict = {}
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            for block in blocks:
                exec(compile(block.replace("http://127.0.0.1:4747", self.server.url), path, "exec"), names)
        if "client" in names:
            names["client"].close()
        return out.getvalue()

    def test_page(self) -> None:
        out = self.run_page("docs/python.md")
        for line in ("RUN_FINISHED", "assistant Hello!", "{'n': 3} ", "not_found there is no session"):
            self.assertIn(line, out)

    def test_readme(self) -> None:
        self.run_page("clients/python/README.md")
        session = next(iter(self.client.sessions(q="A trip")))
        self.assertEqual(session["status"], "complete")
