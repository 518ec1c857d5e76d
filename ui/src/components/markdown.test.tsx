// @vitest-environment jsdom
import { cleanup, fireEvent, render, screen } from "@testing-library/react";
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

const cited = `See [the docs][d] and [this][evil].[^n]

# A heading

More[^n]

\`\`\`
code
\`\`\`

[d]: https://ok.example/docs
[evil]: javascript:x()
[^n]: A *note*.`;

it("resolves reference links and footnotes of a finished text, wherever they are defined", () => {
  const { container, rerender } = render(<Markdown streaming text={cited} />);
  expect(container.querySelector("a")).toBeNull();
  rerender(<Markdown streaming={false} text={cited} />);
  expect([...container.querySelectorAll("a")].map((a) => a.href)).toEqual(["https://ok.example/docs"]);
  expect(container.querySelector(".footnotes li")?.textContent).toMatch(/^\s*A note\./);
  expect(screen.getAllByRole("button", { name: "Footnote 1" })).toHaveLength(2);
});

it("goes to the footnote of the same message, and back", () => {
  Element.prototype.scrollIntoView = () => undefined;
  const { container } = render(
    <>
      <Markdown streaming={false} text={cited} />
      <Markdown streaming={false} text={cited} />
    </>,
  );
  const ids = [...container.querySelectorAll("[id]")].map((e) => e.id);
  expect(new Set(ids).size).toBe(ids.length);
  const second = screen.getAllByRole("button", { name: "Footnote 1" })[2] as HTMLElement;
  fireEvent.click(second);
  const note = container.querySelectorAll(".footnotes li")[1];
  expect(note?.contains(document.activeElement)).toBe(true);
  fireEvent.click(document.activeElement as HTMLElement);
  expect(document.activeElement).toBe(second);
});
