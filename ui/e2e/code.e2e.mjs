import assert from "node:assert/strict";
import { onPage, turn, until } from "./lab.mjs";

/** The number of highlighted characters of a kind in an element. */
const coloured = (element, kind) =>
  element.evaluate((el, name) => {
    let letters = 0;
    for (const r of CSS.highlights.get(`code-${name}`) ?? [])
      if (el.contains(r.startContainer)) letters += r.endOffset - r.startOffset;
    return letters;
  }, kind);

async function lab(events, check) {
  const fill = async (server) => {
    await server.session({ id: "s", title: "Code" });
    await server.append("s", events);
  };
  await onPage("/s/s", fill, check);
}

const colours = (element, kind, letters, ms = 90_000) =>
  until(
    async () => (await coloured(element, kind)) === letters,
    `${letters} characters are of the kind ${kind}`,
    () => "",
    ms,
  );

const go = "// Total adds up.\nfunc Total() int { return 1 }\n";

export const checks = {
  "code in a message is highlighted without extra elements, and each theme has its own colours": () =>
    lab(turn("i1", "Show it", `Here:\n\n\`\`\`go\n${go}\`\`\`\n\nand \`inline\` too.`), async (page) => {
      const code = page.locator(".prose pre code");
      await code.waitFor();
      const before = await code.evaluate((el) => el.getBoundingClientRect().height);
      await colours(code, "comment", "// Total adds up.".length);
      assert.equal(await coloured(code, "keyword"), "funcintreturn".length);
      assert.equal(await code.innerText(), go);
      assert.equal(await code.locator("*").count(), 0);
      assert.equal(await code.evaluate((el) => el.getBoundingClientRect().height), before);
      const colour = () =>
        code.evaluate((el) => getComputedStyle(el, "::highlight(code-comment)").getPropertyValue("--code-comment"));
      const light = await colour();
      await page.evaluate(() => {
        document.documentElement.dataset.theme = "dark";
      });
      assert.notEqual(await colour(), light);
    }),

  "a code block is highlighted once it is complete, and its text does not change": () =>
    lab(turn("i1", "Show it", "Soon.").slice(0, 3), async (page, server) => {
      const say = (delta) =>
        server.append("s", [{ type: "TEXT_MESSAGE_CONTENT", invocation: "i1", data: { messageId: "a_i1", delta } }]);
      await say("```go\n// one\nfunc a() {}\n");
      const code = page.locator(".prose pre code");
      await code.getByText("func a() {}").waitFor();
      assert.equal(await coloured(code, "comment"), 0);
      await say("```\n\nThat is it.");
      await page.getByText("That is it.").waitFor();
      await colours(code, "comment", "// one".length);
      assert.equal(await code.innerText(), "// one\nfunc a() {}\n");
    }),

  "files that a tool reads or edits are highlighted in their language": () => {
    const call = (type, data) => ({ type, invocation: "i1", data });
    const tool = (id, name, args, content) => [
      call("TOOL_CALL_START", { toolCallId: id, toolCallName: name }),
      call("TOOL_CALL_ARGS", { toolCallId: id, delta: JSON.stringify(args) }),
      call("TOOL_CALL_END", { toolCallId: id }),
      call("TOOL_CALL_RESULT", { toolCallId: id, messageId: `r_${id}`, content }),
    ];
    return lab(
      [
        call("RUN_STARTED", { threadId: "main", runId: "i1" }),
        ...tool("c1", "Read", { file_path: "a.py" }, "1\tdef f():\n2\t    return None\n"),
        ...tool("c2", "Edit", { file_path: "a.go", old_string: "return 1\n}", new_string: "return nil\n}" }, "done"),
        call("RUN_FINISHED", { threadId: "main", runId: "i1" }),
      ],
      async (page) => {
        await page.getByRole("button", { name: /^Read/ }).first().click();
        const read = page.getByRole("group", { name: "Output of Read" });
        await colours(read, "keyword", "defreturn".length);
        assert.equal(await read.innerText(), "1\tdef f():\n2\t    return None\n");
        await colours(page.getByRole("group", { name: "Arguments of Read" }), "string", '"a.py"'.length);
        const edit = page.getByRole("group", { name: "Changes to a.go" });
        await colours(edit, "keyword", "returnreturn".length);
        await colours(edit, "constant", "1nil".length);
      },
    );
  },

  "code that is very long, or in an unknown language, is not highlighted": () =>
    lab(
      turn("i1", "Show it", [
        `\`\`\`go\n${"x := 1 // a long one\n".repeat(3000)}\`\`\`\n\n`,
        "```klingon\n// what\n```\n\n```go\n// last\n```\n",
      ]),
      async (page) => {
        const last = page.locator(".prose pre code").last();
        await colours(last, "comment", "// last".length);
        assert.equal(await coloured(page.locator("body"), "comment"), "// last".length);
      },
    ),
};
