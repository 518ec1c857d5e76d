import NavigatedViewer from "bpmn-js/lib/NavigatedViewer";

// bpmn-js has no types for its services. These are the parts that the page uses.

interface Shape {
  id: string;
  type: string;
  labelTarget?: Shape;
  parent?: Shape;
  waypoints?: unknown;
}

interface Canvas {
  zoom(level?: number | "fit-viewport", center?: "auto"): number;
  scrollToElement(id: string, padding: number): void;
  scroll(by: { dx: number; dy: number }): void;
  getContainer(): HTMLElement;
  addMarker(id: string, name: string): void;
  removeMarker(id: string, name: string): void;
  getRootElement(): Shape;
  setRootElement(root: Shape): void;
  resized(): void;
}

interface Services {
  canvas: Canvas;
  elementRegistry: { get(id: string): Shape | undefined };
  eventBus: { on(event: string, f: (e: { element?: Shape }) => void): void };
  overlays: {
    add(
      id: string,
      o: {
        position: { top?: number; right?: number };
        html: HTMLElement;
        scale?: { min: number; max: number };
        show?: { minZoom: number };
      },
    ): string;
    remove(id: string): void;
  };
  selection: { select(s: Shape | null): void };
}

interface Definitions {
  diagrams?: { id: string; plane?: { bpmnElement?: Semantic } }[];
}

interface Semantic {
  id?: string;
  participants?: { processRef?: { id?: string } }[];
}

/** The colours are those of the page, also after the theme changes. */
const bpmnRenderer = {
  defaultFillColor: "var(--panel)",
  defaultStrokeColor: "var(--diagram-line)",
  defaultLabelColor: "var(--text)",
};

/** A small diagram is not blown up, and a large one keeps a margin. */
const largest = 1.2;
const margin = 0.94;
/** At this zoom the words of a diagram can be read. */
const readable = 1;
/** The height of the buttons and the mark of bpmn.io below the diagram. */
const foot = 40;
/** The height of a badge that stands above the highest node. */
const head = 20;
/** Badges shrink with the diagram, and are hidden where they would cover their neighbours. */
const badge = { scale: { min: 0.55, max: 1 }, show: { minZoom: 0.28 } };

/** A drawn diagram. */
export class Drawing {
  private readonly viewer: NavigatedViewer;
  private readonly marks = new Map<string, string>(); // class of each element
  private alive = true; // what React still asks for in the moment of the end is ignored
  private fitted = true; // nobody has moved it since it was fitted

  constructor(container: HTMLElement, onClick: (element: string | undefined) => void) {
    // The list has the keys. Arrows on the page move the playhead.
    this.viewer = new NavigatedViewer({ container, keyboard: { bind: false }, bpmnRenderer } as object);
    container.querySelector("svg[tabindex]")?.setAttribute("tabindex", "-1");
    this.get("eventBus").on("element.click", ({ element }) => onClick(nodeOf(element)?.id));
  }

  private get<N extends keyof Services>(name: N): Services[N] {
    return this.viewer.get(name) as Services[N];
  }

  /** Draws the diagram of a process, if the file has several. */
  async open(xml: string, process?: string): Promise<void> {
    await this.viewer.importXML(xml);
    if (!this.alive) return;
    const { diagrams = [] } = this.viewer.getDefinitions() as Definitions;
    const shows = (s?: Semantic) => s?.id === process || s?.participants?.some((p) => p.processRef?.id === process);
    const own = diagrams.findIndex((d) => shows(d.plane?.bpmnElement));
    if (own > 0) await this.viewer.open(diagrams[own]!.id);
    this.fit();
  }

  destroy(): void {
    this.alive = false;
    this.viewer.destroy();
  }

  has(element: string): boolean {
    return this.alive && this.get("elementRegistry").get(element) !== undefined;
  }

  fit(): void {
    if (!this.alive) return;
    const canvas = this.get("canvas");
    const full = canvas.zoom("fit-viewport", "auto");
    const height = canvas.getContainer().clientHeight;
    canvas.zoom(Math.min(largest, full * Math.min(margin, (height - foot - head) / Math.max(1, height))), "auto");
    canvas.scroll({ dx: 0, dy: (head - foot) / 2 });
    this.fitted = true;
  }

  zoom(by: number): void {
    const canvas = this.get("canvas");
    canvas.zoom(Math.min(4, Math.max(0.1, canvas.zoom() * by)), "auto");
    this.fitted = false;
  }

  /** Shows an element in the middle, large enough to read it. */
  show(element: string): void {
    if (!this.has(element)) {
      this.fit();
      return;
    }
    const canvas = this.get("canvas");
    const { clientWidth, clientHeight } = canvas.getContainer();
    canvas.zoom(Math.max(canvas.zoom(), readable), "auto");
    canvas.scrollToElement(element, Math.max(0, Math.min(clientWidth, clientHeight) / 2 - 60));
    this.fitted = false;
  }

  drag(dx: number, dy: number): void {
    if (this.alive) this.get("canvas").scroll({ dx, dy });
    this.fitted = false;
  }

  /** The space has changed. */
  resized(): void {
    if (!this.alive) return;
    this.get("canvas").resized();
    if (this.fitted) this.fit();
  }

  moved(): void {
    this.fitted = false;
  }

  /** Gives each element the class for its state. */
  mark(classes: Map<string, string>): void {
    if (!this.alive) return;
    const canvas = this.get("canvas");
    for (const [id, name] of this.marks) {
      if (classes.get(id) === name) continue;
      canvas.removeMarker(id, name);
      this.marks.delete(id);
    }
    for (const [id, name] of classes) {
      if (this.marks.get(id) === name || !this.has(id)) continue;
      canvas.addMarker(id, name);
      this.marks.set(id, name);
    }
  }

  /** Selects an element, and shows the plane on which it is drawn. */
  select(element: string | undefined): void {
    if (!this.alive) return;
    const shape = element === undefined ? undefined : this.get("elementRegistry").get(element);
    const root = shape && rootOf(shape);
    const canvas = this.get("canvas");
    if (root && root !== shape && canvas.getRootElement() !== root) canvas.setRootElement(root);
    this.get("selection").select(shape ?? null);
  }

  /** Puts an HTML element at the corner of a node; it returns how to remove it. */
  attach(element: string, html: HTMLElement): () => void {
    const overlays = this.get("overlays");
    const id = overlays.add(element, { position: { top: -11, right: 14 }, html, ...badge });
    return () => {
      if (this.alive) overlays.remove(id);
    };
  }
}

/** The node that was clicked: a label stands for its element; flows and the ground are none. */
function nodeOf(s: Shape | undefined): Shape | undefined {
  const shape = s?.labelTarget ?? s;
  return shape && !shape.waypoints && shape.parent ? shape : undefined;
}

function rootOf(s: Shape): Shape {
  let root = s;
  while (root.parent) root = root.parent;
  return root;
}
