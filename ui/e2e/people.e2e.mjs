import assert from "node:assert/strict";
import { Server, turn, until, visitor } from "./lab.mjs";

const people = (page) => page.getByRole("list", { name: "People" });
const present = async (server) => (await server.call("GET", "/sessions/s/presence")).present.map((p) => p.user);
const move = (server, user, cursor, action = "move") =>
  server.call("POST", "/sessions/s/presence", { action, user, cursor });

async function lab(check, labels) {
  const server = await Server.start();
  try {
    await server.session({ id: "s", title: "A talk", ...(labels ? { labels } : {}) });
    await server.append("s", turn("i1", "question", "answer"));
    await check(server);
  } finally {
    await server.stop();
  }
}

async function open(server, query = "?panel=people", options = {}) {
  const v = await visitor(server, options);
  await v.page.goto(`${server.url}/s/s${query}`);
  await v.page.getByRole("heading", { name: "A talk" }).waitFor();
  return v;
}

async function say(page, name) {
  await page.getByLabel("Your name").fill(name);
  await page.getByRole("button", { name: "Share my presence" }).click();
}

export const checks = {
  "no presence is sent before the user enters a name": () =>
    lab(async (server) => {
      const v = await open(server);
      const asked = [];
      v.page.on("request", (r) => r.url().includes("/presence") && asked.push(r.url()));
      await v.page.getByText("Nobody shares their presence.").waitFor();
      await v.page.reload();
      await v.page.getByText("Nobody shares their presence.").waitFor();
      assert.deepEqual(asked, []);
      assert.deepEqual(await present(server), []);
      await v.end();
    }),

  "two users see each other's position, typing and leaving": () =>
    lab(async (server) => {
      const ada = await open(server);
      const bob = await open(server);
      await say(ada.page, "Ada Lovelace");
      await people(ada.page).getByText("Ada Lovelace (you)").waitFor();
      await bob.page.getByRole("button", { name: "Also here: Ada Lovelace" }).waitFor();
      await say(bob.page, "Bob");
      await people(ada.page).getByText("Bob").waitFor();
      await bob.page.getByLabel("Message to the agent").pressSequentially("Well");
      await people(ada.page).getByText("typing…").waitFor();
      await ada.page.getByRole("button", { name: "Also here: Bob (typing)" }).waitFor();
      await bob.page.keyboard.press("Escape");
      await bob.page.keyboard.press("Home");
      await people(ada.page).getByText("at event 1").waitFor();
      await ada.page.getByRole("button", { name: "Go to the position of Bob" }).click();
      await ada.page.getByText(/^event 1 of/).waitFor();
      await ada.page.keyboard.press("L");
      await bob.end();
      await until(async () => (await people(ada.page).getByText("Bob").count()) === 0, "Bob has left");
      assert.deepEqual(await present(server), ["Ada-Lovelace"]);
      await ada.page.getByRole("button", { name: "Stop sharing" }).click();
      await until(async () => (await present(server)).length === 0, "no user is present");
      await ada.end();
    }),

  "the name is kept, and the user reappears after a restart of the server": () =>
    lab(async (server) => {
      const v = await open(server);
      await say(v.page, "Ada");
      await until(async () => (await present(server)).includes("Ada"), "Ada is here");
      await v.page.reload();
      await people(v.page).getByText("Ada (you)").waitFor();
      v.expected.push(/Failed to load resource|ERR_CONNECTION_REFUSED|net::/);
      await server.kill();
      await v.page.getByText("Reconnecting").waitFor();
      await server.up();
      await move(server, "cy", { name: "Cy" }, "join");
      await people(v.page).getByText("Cy").waitFor({ timeout: 90_000 });
      await until(async () => (await present(server)).includes("Ada"), "Ada's presence is sent again");
      await people(v.page).getByText("Ada (you)").waitFor();
      await v.end();
    }),

  "playback shows the people at that moment, if the log stores presence": () =>
    lab(
      async (server) => {
        await move(server, "ada", { name: "Ada", at: 3 }, "join");
        await move(server, "bob", { name: "Bob" }, "join");
        await move(server, "ada", undefined, "leave");
        const { head } = await server.call("GET", "/sessions/s");
        const v = await open(server, `?panel=people&at=${head - 1}`);
        await people(v.page).getByText("Ada").waitFor();
        await people(v.page).getByText("Bob").waitFor();
        await v.page.keyboard.press("Alt+,");
        await until(async () => (await people(v.page).getByText("Bob").count()) === 0, "Bob had not joined yet");
        await v.page.keyboard.press("Home");
        await v.page.getByText("The log has no people at this moment.").waitFor();
        await v.end();
      },
      { presence: "stored" },
    ),

  "a hostile name is only a name": () =>
    lab(async (server) => {
      const name = "<img src=x onerror=window.pwned=1>\u202eevil";
      await move(server, "x", { name, at: 1e300, state: "<b>" }, "join");
      await move(server, "y", [name], "join");
      const v = await open(server);
      await people(v.page).getByText("<img src=x onerror=window.pwned=1>").waitFor();
      assert.equal(await v.page.evaluate(() => globalThis.pwned), undefined);
      assert.equal(await v.page.locator("#root img").count(), 0);
      await v.end();
    }),
};
