import assert from "node:assert/strict";
import { attacksAreBlocked, Server, turn, until, visitor } from "./lab.mjs";

export const attacks = [
  "<script>window.pwned = 1</script><img src=x onerror='window.pwned=2'><svg onload='window.pwned=3'>",
  "[click](javascript:window.pwned=4) [data](data:text/html,<script>window.pwned=5</script>) <javascript:window.pwned=6>",
  "![pixel](https://evil.example/pixel.png) ![local](/api/v1/sessions)",
  "[a]: javascript:window.pwned=7\n\n[a] and [mail](mailto:a@b.example) and [web](https://evil.example/)",
  "```html\n<iframe src=https://evil.example></iframe>\n```\n<iframe src='https://evil.example/'></iframe>",
  '<a href="javascript:window.pwned=8">x</a><form action=https://evil.example><button>go</button></form>',
  "<style>@import url(https://evil.example/x.css)</style><link rel=stylesheet href=https://evil.example/y.css>",
  "<meta http-equiv=refresh content='0;url=https://evil.example'><base href=https://evil.example>",
];

async function hostileServer() {
  const server = await Server.start();
  const title = "<script>window.pwned=9</script><img src=https://evil.example/t.png>";
  await server.session({
    id: "s",
    title,
    owner: title,
    state: { "<img src=x onerror=window.pwned=10>": attacks, __proto__x: 1 },
  });
  await server.append(
    "s",
    attacks.flatMap((text, i) => turn(`i${i}`, text, text)),
  );
  const call = (type, data) => ({ type, invocation: "t1", data });
  await server.append("s", [
    call("RUN_STARTED", { threadId: "main", runId: "t1" }),
    call("TOOL_CALL_START", { toolCallId: "c1", toolCallName: attacks[0].slice(0, 120) }),
    call("TOOL_CALL_ARGS", { toolCallId: "c1", delta: JSON.stringify({ command: attacks.join("\n") }) }),
    call("TOOL_CALL_END", { toolCallId: "c1" }),
    call("TOOL_CALL_RESULT", { toolCallId: "c1", messageId: "r1", content: attacks.join("\n") }),
    call("STATE_DELTA", { delta: [{ op: "add", path: "/__proto__", value: { pwned: 11 } }] }),
    call("RUN_ERROR", { message: attacks[0] }),
  ]);
  return server;
}

const never = async (page) => assert.equal(await page.evaluate(() => globalThis.pwned), undefined, "a script has run");

export const checks = {
  "a hostile transcript runs nothing and fetches nothing": async () => {
    const server = await hostileServer();
    try {
      const v = await visitor(server);
      for (const path of [
        "/",
        "/s/s",
        "/s/s?panel=state",
        "/s/s?view=events",
        "/s/s?view=branches",
        "/s/s?panel=summary",
      ]) {
        const response = await v.page.goto(server.url + path);
        const policy = response.headers()["content-security-policy"];
        assert.match(policy, /script-src 'self'/);
        assert.doesNotMatch(policy, /unsafe/);
        await v.page.getByText("<script>").first().waitFor();
        await v.page.waitForTimeout(300);
        await never(v.page);
        const bad = await v.page
          .locator("iframe, object, embed, base, meta[http-equiv], #root form[action], #root style, #root link, img")
          .count();
        assert.equal(bad, 0, `${path} has elements from the transcript`);
        for (const a of await v.page.locator("#root a[href]").all()) {
          const href = await a.getAttribute("href");
          assert.match(href, /^(#|\/|https?:|mailto:)/, `a link to ${href}`);
          if (/^https?:/.test(href)) assert.match((await a.getAttribute("rel")) ?? "", /noopener/);
        }
      }
      await v.end();
    } finally {
      await server.stop();
    }
  },

  "the content security policy stops scripts, styles, images and requests of an attacker": async () => {
    const server = await hostileServer();
    try {
      const v = await visitor(server);
      await v.page.goto(`${server.url}/s/s`);
      await v.page.getByText("<script>").first().waitFor();
      await attacksAreBlocked(v);
      await v.end();
    } finally {
      await server.stop();
    }
  },

  "the page cannot be framed, and the API refuses requests of other origins": async () => {
    const server = await hostileServer();
    try {
      const response = await fetch(server.url, { headers: { Accept: "text/html" } });
      assert.match(response.headers.get("content-security-policy"), /frame-ancestors 'none'/);
      await until(
        async () =>
          (await fetch(`${server.url}/api/v1/sessions`, { headers: { Origin: "https://evil.example" } })).status ===
          403,
        "403",
      );
    } finally {
      await server.stop();
    }
  },
};
