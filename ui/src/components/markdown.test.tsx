// @vitest-environment jsdom
import { cleanup, render, screen } from "@testing-library/react";
import { afterEach, expect, it } from "vitest";
import Markdown from "./markdown";

afterEach(cleanup);

it("runs and loads nothing from an agent's text", () => {
  const { container } = render(
    <Markdown
      streaming={false}
      text={
        "<script>x()</script> <img src=x onerror=y>\n\n![p](https://evil.example/p.png)\n\n[a](javascript:x()) [b](data:text/html,x) [c](//evil.example) [d](https://ok.example)"
      }
    />,
  );
  expect(container.querySelector("script, img, iframe, style")).toBeNull();
  expect([...container.querySelectorAll("a")].map((a) => a.href)).toEqual(["https://ok.example/"]);
  expect(screen.getByText("d").getAttribute("rel")).toContain("noopener");
  expect(container.textContent).toContain("<script>");
});

it("renders incomplete Markdown in its final form", () => {
  const { container } = render(<Markdown streaming text={"a **bold"} />);
  expect(container.querySelector("strong")?.textContent).toBe("bold");
});
