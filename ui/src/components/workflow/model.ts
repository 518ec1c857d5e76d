/** A node of a diagram: an event, a task, a gateway or a sub-process. */
export interface DiagramNode {
  id: string;
  name: string;
  type: string; // the name of its element in BPMN
  depth: number; // in how many sub-processes it is
  documentation: string;
}

export interface DiagramModel {
  nodes: DiagramNode[]; // in the order in which the process reaches them
  drawn: boolean; // the file says where the elements are, and drawing them does not stop the page
  shapes?: number; // how many elements the file places; absent if it cannot be read
}

const bpmn = "http://www.omg.org/spec/BPMN/20100524/MODEL";
const bpmndi = "http://www.omg.org/spec/BPMN/20100524/DI";

/** The largest file that the server takes, and the number of shapes above which drawing would stop the page. */
const maxLength = 8 * 1024 * 1024;
const maxShapes = 3000;

const containers = new Set(["subProcess", "transaction", "adHocSubProcess"]);
const flowNode = /(Event|[tT]ask|Gateway|subProcess|transaction|adHocSubProcess|callActivity)$/;

/**
 * Reads which nodes a process has. The file has passed the checks of the server, unless
 * somebody else wrote the session; what cannot be read gives no nodes.
 */
export function modelOf(xml: string, process?: string): DiagramModel {
  const nothing = { nodes: [], drawn: false };
  if (xml.length > maxLength || /<!(DOCTYPE|ENTITY)/i.test(xml)) return nothing;
  const file = new DOMParser().parseFromString(xml, "application/xml");
  if (file.getElementsByTagName("parsererror").length > 0) return nothing;
  const processes = [...file.getElementsByTagNameNS(bpmn, "process")];
  const root =
    processes.find((p) => p.getAttribute("id") === process) ??
    processes.find((p) => p.getAttribute("isExecutable") === "true") ??
    processes[0];
  if (!root) return nothing;
  const shapes = file.getElementsByTagNameNS(bpmndi, "BPMNShape").length;
  return { nodes: nodesIn(root, 0), drawn: shapes > 0 && shapes <= maxShapes, shapes };
}

/** Why a diagram is not drawn; undefined if it is. */
export function undrawnText({ drawn, shapes }: Omit<DiagramModel, "nodes">): string | undefined {
  if (drawn) return undefined;
  if (shapes === undefined) return "This diagram cannot be drawn: the file cannot be read.";
  if (shapes === 0) return "This diagram cannot be drawn: the file does not say where its elements are.";
  return `This diagram is not drawn: it has ${shapes.toLocaleString("en")} elements, and the page draws at most ${maxShapes.toLocaleString("en")}.`;
}

function nodesIn(scope: Element, depth: number): DiagramNode[] {
  const elements = [...scope.children].filter((e) => e.namespaceURI === bpmn);
  const own = elements.filter((e) => flowNode.test(e.localName) && e.getAttribute("id"));
  return inOrder(own, elements).flatMap((e) => {
    const node: DiagramNode = {
      id: e.getAttribute("id") ?? "",
      name: (e.getAttribute("name") ?? "").replace(/\s+/g, " ").trim(),
      type: e.localName,
      depth,
      documentation: elementsNamed(e, "documentation")[0]?.textContent?.trim() ?? "",
    };
    return containers.has(e.localName) ? [node, ...nodesIn(e, depth + 1)] : [node];
  });
}

/** The nodes along the flows from the starts on; an event at a boundary after its task; then what nothing leads to. */
function inOrder(nodes: Element[], elements: Element[]): Element[] {
  const byId = new Map(nodes.map((n) => [n.getAttribute("id"), n]));
  const next = new Map<Element, Element[]>();
  const reached = new Set<Element>();
  const link = (from: string | null, to: Element | undefined) => {
    const source = byId.get(from);
    if (!source || !to) return;
    next.set(source, [...(next.get(source) ?? []), to]);
    reached.add(to);
  };
  for (const n of nodes) if (n.localName === "boundaryEvent") link(n.getAttribute("attachedToRef"), n);
  for (const f of elements)
    if (f.localName === "sequenceFlow") link(f.getAttribute("sourceRef"), byId.get(f.getAttribute("targetRef")));
  const out = new Set<Element>();
  const queue = nodes.filter((n) => !reached.has(n));
  const starts = queue.filter((n) => n.localName === "startEvent");
  for (const first of [...starts, ...queue, ...nodes]) {
    for (const todo = [first]; todo.length > 0; ) {
      const n = todo.shift()!;
      if (out.has(n)) continue;
      out.add(n);
      todo.push(...(next.get(n) ?? []));
    }
  }
  return [...out];
}

function elementsNamed(e: Element, name: string): Element[] {
  return [...e.children].filter((c) => c.namespaceURI === bpmn && c.localName === name);
}

const kinds = new Map(
  Object.entries({
    startEvent: "Start",
    endEvent: "End",
    boundaryEvent: "Boundary event",
    intermediateCatchEvent: "Event",
    intermediateThrowEvent: "Event",
    exclusiveGateway: "Decision",
    inclusiveGateway: "Inclusive gateway",
    parallelGateway: "Parallel gateway",
    eventBasedGateway: "Event gateway",
    complexGateway: "Complex gateway",
    callActivity: "Call",
    subProcess: "Sub-process",
    transaction: "Transaction",
    adHocSubProcess: "Sub-process",
    businessRuleTask: "Rule task",
  }),
);

/** What people call a type of node. */
export function kindOf(type: string): string {
  const known = kinds.get(type);
  if (known) return known;
  const words = type.replace(/([A-Z])/g, " $1").toLowerCase();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** The text for a node: its name, otherwise what it is. */
export const titleOf = (n: Pick<DiagramNode, "name" | "type">): string => n.name || kindOf(n.type);

/** Whether a node is more than a crossing of flows, so that the list shows it even before it is reached. */
export const isStep = (n: DiagramNode): boolean => n.name !== "" || !n.type.endsWith("Gateway");
